#!/bin/sh
# FullMixed of dtnsim 1.8, the mobility model of homogeneous mixing, divides its encounter rate (1 in 1000 s)
# by the length of a slot where it should multiply: two nodes meet in a slot with the probability rate /
# slot. So the rate of meetings falls with the square of the slot, which should affect precision only.
# The command dtnsim has slots of 5 s and meets 25 times too seldom, Scheduler's default of 10 s 100 times.
# Nothing is said. With a constant rate the probability is 1 - exp(-rate * slot), nearly rate * slot
# (Groenevelt, Nain and Koole, Perform. Eval. 62, 2005: meetings of two nodes are a Poisson process).
#
# Seen, meetings of each pair in 1000 s: slots of 1 s 0.998, 2 s 0.245, 5 s 0.039, 10 s 0.011; right is 1.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet dtnsim==1.8
cat >"$dir/run.py" <<'END'
import random
import sys

from dtnsim.mobility import FullMixed

NODES, TIME = 10, 200_000
random.seed(1)
nodes = [FullMixed() for _ in range(NODES)]
homes = [node.current for node in nodes]
changed = False
for slot in (1, 2, 5, 10):
    meetings = 0
    for _ in range(TIME // slot):
        for node, home in zip(nodes, homes):
            node.move(slot)
            meetings += node.current != home
    rate = meetings / (NODES * (NODES - 1) / 2) / TIME * 1000
    print(f"slots of {slot} s: {rate:.3f} meetings of each pair in 1000 s")
    changed |= not 0.8 < rate * slot**2 < 1.2
sys.exit(changed)
END
"$dir/venv/bin/python" "$dir/run.py"
