#!/bin/sh
# py3gpp 0.6.0 (PyPI), which is to replace Matlab's 5G Toolbox, has two errors in its path loss of rural cells
# (nrPathLoss, its only scenario). With line of sight and beyond the breakpoint, 2 pi h h f / c, it multiplies the loss
# by the breakpoint's distance in metres where it should take the loss at that distance: 36 dB too much at 3.5 GHz, in
# one step, so a cell ends there. Without line of sight it squares the 3.2 of 3.2 (log 11.75 h)^2 - 4.97 too, and
# subtracts the 4.97 where the sign before it makes it an addition: 21 dB too little, so near the base station a house
# in between costs nothing. And nrTBS gives each of two codewords all layers and half of the resource blocks, rounded
# down, where a codeword has all blocks and its own layers: with five layers on 53 blocks the first gets a quarter too
# many bits. Nothing is said. TR 38.901, table 7.4.1-1; TS 38.211, table 7.3.1.3-1 (the layers of two codewords), and TS
# 38.214, 5.1.3.2. handoverlab 2.8.0 (PyPI) computes the right losses below.
#
# Seen, stations of 35 and 1.5 m at 3.5 GHz, line of sight: 165.8 dB at 5 km, right is 126.0. Without: 109.6 dB at 1 km,
# right is 130.4. Two codewords of QPSK and 64QAM at rate 1/2: 20496 and 60456 bits, right is 16392 and 73776, which
# nrTBS itself gives for each alone with its 2 and 3 layers.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check py3gpp==0.6.0 handoverlab==2.8.0
cat >run.py <<'END'
import numpy as np
from handoverlab.channel.pathloss import path_loss
from py3gpp.configs.nrPathLossConfig import nrPathLossConfig
from py3gpp.nrPathLoss import nrPathLoss
from py3gpp.nrTBS import nrTBS

config = nrPathLossConfig()
config.Scenario, config.BuildingHeight, config.StreetWidth = "RMa", 5, 20
BASE, MOBILE, GHZ = 35.0, 1.5, 3.5
print(f"breakpoint at {2 * np.pi * BASE * MOBILE * GHZ * 1e9 / 3e8:.0f} m")
for sight in (True, False):
    for distance in (500.0, 1000.0, 3800.0, 3900.0, 5000.0):
        base, mobile = np.array([0, 0, BASE]), np.array([distance, 0, MOBILE])
        told, _ = nrPathLoss(config, GHZ * 1e9, sight, base, mobile)
        right = float(path_loss(distance, sight, "rma", GHZ, BASE, MOBILE))
        print(f"line of sight {sight}, {distance:.0f} m: {told:.1f} dB, right {right:.1f}")
both = nrTBS(["QPSK", "64QAM"], 5, 53, 156, [0.5, 0.5])
alone = nrTBS("QPSK", 2, 53, 156, 0.5), nrTBS("64QAM", 3, 53, 156, 0.5)
print("two codewords:", *both, "bits, right", *alone)
END
env/bin/python run.py | tee told
cat >expected <<'END'
breakpoint at 3848 m
line of sight True, 500 m: 98.6 dB, right 98.6
line of sight True, 1000 m: 105.5 dB, right 105.5
line of sight True, 3800 m: 121.2 dB, right 121.2
line of sight True, 3900 m: 157.7 dB, right 121.7
line of sight True, 5000 m: 165.8 dB, right 126.0
line of sight False, 500 m: 98.6 dB, right 118.8
line of sight False, 1000 m: 109.6 dB, right 130.4
line of sight False, 3800 m: 131.9 dB, right 152.8
line of sight False, 3900 m: 157.7 dB, right 153.3
line of sight False, 5000 m: 165.8 dB, right 157.4
two codewords: 20496 60456 bits, right 16392 73776
END
diff expected told
