#!/bin/sh
# queuelab 0.2.0 (PyPI), which sets a simulated queue M/M/1 beside its theory, counts no departures (MM1.simulate in
# mm1.py): avg_queue_length is how many customers came since the server was last idle. That is rho / (1 - rho)^2 on
# average, where rho^2 / (1 - rho) were waiting. So a buffer seems to need four times its size at half load and eleven
# times at 90 %; the waits of the same run are right, and by Little's law (Little, Operations Research 9, 1961) give the
# right queue. compare_mm1, which is to show that both agree, has a class of its own: its "queue length" is the wait in
# seconds, and beside the wait in the queue it puts the theory's time in the system. Nothing is said.
#
# Seen, service of 10 ms: load 0.5 queue 2.0, right 0.5; load 0.8 19.7, right 3.2; load 0.9 about 90, right 8.1.
# compare_mm1 at 0.8: queue 0.040, wait 0.040 s beside 0.050 s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check queuelab==0.2.0
cat >run.py <<'END'
import random
import sys

from queuelab import MM1, compare_mm1, mm1_metrics

SERVICE = 100  # packets per second
changed = False
for load in 0.5, 0.8, 0.9:
    random.seed(1)
    told = MM1(load * SERVICE, SERVICE, 200_000).simulate()
    right = mm1_metrics(load * SERVICE, SERVICE)
    wait, length = told["avg_wait_time"], told["avg_queue_length"]
    print(
        f"load {load}: wait {1000 * wait:.1f} ms, right {1000 * right['avg_waiting_queue ']:.1f}; "
        f"queue {length:.1f}, right {right['avg_customer_queue ']:.1f}, rate times wait {load * SERVICE * wait:.1f}"
    )
    changed |= not 0.8 < length * (1 - load) ** 2 / load < 1.2
random.seed(1)
both = compare_mm1(80, SERVICE, 200_000)
wait, length = both["simulation"]["avg_wait_time"], both["simulation"]["avg_queue_length"]
print(f"compare_mm1: wait {wait:.3f} s, queue {length:.3f}; beside {both['theoretical']['avg_wait_time_system']:.3f} s")
sys.exit(1 if changed or length != wait or not 0.036 < wait < 0.044 else 0)
END
MPLBACKEND=agg env/bin/python run.py
