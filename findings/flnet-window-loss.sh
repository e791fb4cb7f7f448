#!/bin/sh
# The window of TCP in flnet 1.3, a simulator of fluid models, is inversely proportional to the loss rate,
# not to its square root. A sender takes 2/3 p w / rtt off each second (Sender.advance); but each of the
# p w / rtt losses in a second costs a part of the window, so w squared belongs there (Misra, Gong and
# Towsley, SIGCOMM 2000; RFC 5348, 3.1). Besides, acknowledgements on their way back are charged once more
# with the delay and the loss of the queue that the data waited in (Router.advance). Nothing is said. Loss rates
# for given windows, and windows for given loss rates, are wrong, by more the larger the window.
#
# Seen, one flow, windows of 26 and 101 packets: loss 2.76 and 0.73 %; right is 0.227 and 0.015 %.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet flnet==1.3
cat >"$dir/run.py" <<'END'
import sys

from flnet import Receiver, Router, Scheduler, Sender

DELAY, END = 0.05, 200.0  # s each way, s


def steady(bandwidth: float, queue: float) -> tuple[float, float]:
    """The window in packets and the loss rate of one flow at a bottleneck, in packets and packets/s."""
    scheduler = Scheduler(max_time=END)
    sender, receiver = Sender(scheduler), Receiver(scheduler)
    router = Router(scheduler, bandwidth=bandwidth, qsize=queue)
    sender.dst = receiver
    sender.connect(router, DELAY)
    router.connect(receiver, 0.0)
    windows, losses = [], []
    while scheduler.is_running():
        for node in (sender, router, receiver):
            node.advance()
        scheduler.advance()
        if scheduler.time > END / 2:
            windows.append(sender.w)
            losses.append(router.p)
    return sum(windows) / len(windows), sum(losses) / len(losses)


changed = False
for bandwidth, queue in ((100, 5), (400, 20)):
    window, loss = steady(bandwidth, queue)
    right = 1.5 / window**2
    print(f"window {window:.0f}: loss {100 * loss:.2f} %, right {100 * right:.3f} %")
    changed |= not 0.7 < loss * window < 0.8
sys.exit(changed)
END
"$dir/venv/bin/python" "$dir/run.py"
