#!/bin/sh
# wsnsimpy 1.0.1 (PyPI), which simulates wireless sensor networks with a physical and a MAC layer, sends the broadcasts
# of a node at the same time (DefaultMacLayer.process_queue in wsnsimpy.py). After a broadcast it takes the next frame
# from the queue at once, while the first is on the air; the channel is clear for it, as only what is received makes it
# busy. So frames that were queued together collide with each other at every neighbour, and all are lost, always, on a
# channel with nobody else. Only a frame sent when the one before has left arrives. And a node receives while it sends:
# two that send at once hear each other. Nothing is said. A radio sends one frame after the other, in half duplex; by
# IEEE Std 802.15.4, whose 250 kbit/s it has as default, CSMA-CA comes before each frame.
#
# Seen, frames of 2.56 ms to two neighbours: one arrives at both; of two or ten that were queued together none, all on
# the air in the same 2.56 ms; ten sent 3 ms apart all. Two nodes that send at once receive each other's frame.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check wsnsimpy==1.0.1 simpy==4.1.1
cat >run.py <<'END'
from wsnsimpy.wsnsimpy import BROADCAST_ADDR, LayeredNode, Simulator


def run(gaps, senders=1):
    """What each node received; the sender waits so long after each frame, in s."""

    class Node(LayeredNode):
        tx_range = 100

        def init(self):
            self.logging = False
            self.received = 0

        def run(self):
            for gap in gaps if self.id < senders else ():
                self.send(BROADCAST_ADDR)
                yield self.timeout(gap)

        def on_receive(self, sender, **message):
            self.received += 1

    simulator = Simulator(until=10, timescale=0)
    for index in range(3):
        simulator.add_node(Node, (30 * index, 0))
    simulator.run()
    return simulator.nodes


for name, gaps in ("1", [1]), ("2 at once", [0] * 2), ("10 at once", [0] * 10), ("10, 3 ms apart", [0.003] * 10):
    sender, *others = run(gaps)
    sent, busy = sender.phy.stat.total_channel_tx, others[0].phy.stat.total_channel_busy
    received = " and ".join(str(node.received) for node in others)
    print(f"{name}: {received} received, {sent * 1000:.2f} ms of frames in {busy * 1000:.2f} ms")
print("two nodes at once:", " and ".join(str(node.received) for node in run([1], senders=2)[:2]), "received")
END
env/bin/python run.py | tee told
cat >expected <<'END'
1: 1 and 1 received, 2.56 ms of frames in 2.56 ms
2 at once: 0 and 0 received, 5.12 ms of frames in 2.56 ms
10 at once: 0 and 0 received, 25.60 ms of frames in 2.56 ms
10, 3 ms apart: 10 and 10 received, 25.60 ms of frames in 25.60 ms
two nodes at once: 1 and 1 received
END
diff expected told
