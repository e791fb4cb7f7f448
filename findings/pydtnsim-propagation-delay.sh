#!/bin/sh
# pydtnsim 0.1.1 (PyPI), which simulates delay-tolerant networks such as those of space, gives contacts a propagation
# delay ("delay (int): Propagation delay in ms", contact.py; the plans of contact_plan.py and the JSON files that it
# loads have it too), and uses it nowhere. A packet is at the next node when its last bit has been sent, and none of the
# routing algorithms counts the delay when it looks for the next contact. Between Earth and Mars it is 3 to 22 minutes.
# So packets arrive too early, and over contacts that have ended when the packet gets there. Contact
# graph routing adds it as one-way light time (CCSDS 734.3-B-1). And a packet that just fits into what is left of a
# contact is refused: is_capacity_sufficient adds a millisecond. It waits for a later contact, or for ever.
#
# Seen, from a over b to c in contacts from 0 to 10 s, 1000 bits at 1 bit/ms: at c after 2 s without delay, and after
# 2 s too with 600 s each way, when b and c can never use their contact. 10 s of data in a contact of 10 s: not sent.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check pydtnsim==0.1.1 setuptools==65.5.0
cat >run.py <<'END'
import contextlib
import io

from pydtnsim import Contact, ContactGraph, ContactPlan, Simulator
from pydtnsim.monitors import BaseMonitor
from pydtnsim.nodes import SimpleCGRNode
from pydtnsim.packet_generators import BatchPacketGenerator
from pydtnsim.routing import cgr_basic


def arrives(path: str, bits: int, delay: int) -> str:
    """When a packet is at the end of the path, whose hops have one contact each from 0 to 10 s at 1 bit/ms."""
    simulator, plan, times = Simulator(), ContactPlan(default_datarate=1, default_delay=delay), []

    class Monitor(BaseMonitor):
        def packet_destination_reached(self, packet, node) -> None:
            times.append(f"{self.env.now / 1000:g} s")

    for source, peer in zip(path, path[1:]):
        plan.add_contact(source, peer, 0, 10_000, bidirectional=False)
    for contact in plan.get_contacts():
        ends = contact.from_time, contact.to_time, contact.datarate, contact.from_node, contact.to_node, contact.delay
        simulator.register_contact(Contact(*ends))
    graph = ContactGraph(plan)
    for node in plan.get_nodes():
        contacts = simulator.get_contact_dict(plan.get_outbound_contacts_of_node(node))
        SimpleCGRNode(node, contacts, cgr_basic.cgr, graph, simulator, [])
    simulator.register_generator(BatchPacketGenerator(1, bits, [path[0]], [path[-1]], [0]))
    simulator.register_monitor(Monitor(simulator.env))
    with contextlib.redirect_stdout(io.StringIO()):
        simulator.run_simulation(10_000_000)
    return times[0] if times else "never"


print("no delay:", arrives("abc", 1000, 0))
print("600 s each way:", arrives("abc", 1000, 600_000))
print("9999 bits in a contact of 10000:", arrives("ab", 9999, 0))
print("10000 bits in a contact of 10000:", arrives("ab", 10_000, 0))
END
env/bin/python run.py | tee told
cat >expected <<'END'
no delay: 2 s
600 s each way: 2 s
9999 bits in a contact of 10000: 9.999 s
10000 bits in a contact of 10000: never
END
diff expected told
