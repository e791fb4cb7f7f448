#!/bin/sh
# pyqueueing 0.1.1 (PyPI) computes queues whose rates change with a state, such as a link that is good or bad, as
# quasi-birth-death processes (QBD in qbd.py). It is right only while the empty queue is like any other. Its parameter
# B0, the rates from the empty queue to the first packet, has no effect (stationary_distribution in
# matrix_geometric.py). Left out, B1, the rates within the empty queue, is A1, "Defaults to A1": an empty queue still
# sends, and what it sends leaves the model. So a link spends less time in the good state than its own rates say. And
# mean_level adds up 200 levels, whatever the load. Nothing is said. By Neuts (Matrix-Geometric Solutions, 1981, ch. 3)
# the boundary is of its own, and levels go on for ever: the mean follows from R in closed form. For M/M/1 it is rho /
# (1 - rho).
#
# Seen, service rate 1: load 0.9, mean 9.0, right; 0.98, 45.4, right 49; 0.99, 68.1, right 99. Arrivals of 0.5, but 0.1
# while empty: mean 1.0, right 0.33. A link that is good (1) and bad (0.2) half of the time, arrivals of 0.3: good for
# 26 %, mean 2.5; with B1 given 50 % and 2.0, right.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check pyqueueing==0.1.1 numpy
cat >run.py <<'END'
import numpy as np
from pyqueueing import QBD

for load in 0.9, 0.98, 0.99:
    queue = QBD([[load]], [[-load - 1]], [[1]])
    print(f"load {load}: mean {queue.mean_level():.1f}, right {load / (1 - load):.1f}")

# Of the empty queue 0.1 / (1 + 0.1 / 0.5) is one packet, and so on: 0.1 / 1.2 * (1 + 2 * 0.5 + 3 * 0.25 + ...).
queue = QBD([[0.5]], [[-1.5]], [[1]], B0=[[0.1]], B1=[[-0.1]])
print(f"slow to begin: mean {queue.mean_level():.2f}, right {0.1 / 1.2 / (1 - 0.5) ** 2:.2f}")

change = np.array([[-0.1, 0.1], [0.1, -0.1]])
arrivals, services = np.diag([0.3, 0.3]), np.diag([1, 0.2])
for name, boundary in ("", {}), (", B1 given", {"B1": change - arrivals}):
    link = QBD(arrivals, change - arrivals - services, services, **boundary)
    good = sum(link.stationary())[0]
    print(f"link{name}: good {good:.0%}, mean {link.mean_level():.1f}")
END
env/bin/python run.py | tee told
cat >expected <<'END'
load 0.9: mean 9.0, right 9.0
load 0.98: mean 45.4, right 49.0
load 0.99: mean 68.1, right 99.0
slow to begin: mean 1.00, right 0.33
link: good 26%, mean 2.5
link, B1 given: good 50%, mean 2.0
END
diff expected told
