#!/bin/sh
# rf-linkbudget 1.1.7 (PyPI), which computes the levels along a chain of radio devices, takes a compression point or an
# intercept point of 0 dBm for one that was not given (calc_P1 and calc_IP3 in rfmath.py drop zeros by "any" and
# "filter"). 0 dBm is 1 mW, an ordinary value of mixers and low-noise amplifiers. So the limit of such a device does not
# count, and the chain has that of another device, or none. One of -1 dBm counts. Nothing is said: a receiver seems to
# stand signals a thousand times stronger than it does.
#
# Seen, amplifiers of 20 and 10 dB, of which the first compresses at 20 dBm and has its intercept at 30. Points of -1
# dBm of the second: the chain has -1 and -1 dBm. Points of 0 dBm: 30 and 40; right is at most 0 and 0. Points of 1 dBm:
# 1 and 1.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check rf-linkbudget==1.1.7 numpy==2.2.6 pandas==2.2.3 scipy==1.15.3 \
    networkx==3.4.2 matplotlib==3.10.3
cat >run.py <<'END_PYTHON'
import sys

import rf_linkbudget as rf


def output(compression: float, intercept: float) -> tuple:
    """Compression and intercept point in dBm after two amplifiers, the second with these."""
    circuit = rf.Circuit("chain")
    source, sink = rf.Source("source"), rf.Sink("sink")
    first = rf.Amplifier("first", Gain=20, NF=1, OP1dB=20, OIP3=30)
    second = rf.Amplifier("second", Gain=10, NF=6, OP1dB=compression, OIP3=intercept)
    source["out"] >> first["in"]
    first["out"] >> second["in"]
    second["out"] >> sink["in"]
    source["out"].regCallback(lambda port, f, p: {"f": f, "p": p, "Tn": rf.RFMath.T0})
    circuit.finalise()
    simulation = circuit.simulate(network=circuit.net, start=source, end=sink, freq=[0], power=[-60])
    simulation.setNoiseBandwidth(1e6)
    return tuple(float(simulation.extractLastValues(name, freq=0, power=-60)) for name in ("P1", "IP3"))


told = []
for given in ((-1, -1), (0, 0), (1, 1)):
    points = output(*given)
    print(f"second amplifier {given[0]} dBm: chain compresses at {points[0]:.0f}, intercept at {points[1]:.0f} dBm")
    told.append(points)
sys.exit(told != [(-1, -1), (30, 40), (1, 1)])
END_PYTHON
MPLCONFIGDIR="$dir" env/bin/python -W ignore run.py
