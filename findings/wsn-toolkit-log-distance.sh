#!/bin/sh
# The log-distance path loss of wsn-toolkit 0.0.5 (PyPI), a simulator of wireless sensor networks, adds two losses that
# exclude each other (LogNormalLink in network/_link.py): the one of free space at a distance, and 10 gamma times the
# logarithm of the same distance in kilometres. So the exponent is two too high, and up to 1 km, where sensors are, the
# second loss is negative: the more obstructed a place is, the farther a node reaches up to there, and at a few metres
# more arrives than was sent. Nothing is said. By the table in its own documentation a gamma of 2 without shadowing is
# "Vacuum, infinite space", which is its FreeSpaceLink; this one is right. The model has the loss at a reference
# distance, often 1 m, and 10 gamma log(d / d0) on top of it (Rappaport, Wireless Communications, 4.9.1).
#
# Seen, 933 MHz, gamma 2 and 3 without shadowing: at 2 m -16.1 and -43.1 dB of loss, right is 37.9 and 40.9; at 100 m
# 51.8 and 41.8, right is 71.8 and 91.8. In an office (gamma 3) two radios of 9 dBm at 2.4 GHz hear each other at 1 km;
# right are -121 dBm where they need -97.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check wsn-toolkit==0.0.5 numpy==2.4.6
cat >run.py <<'END'
from math import log10

import numpy as np
from wsntk.network import FreeSpaceLink, LogNormalLink, SensorNetwork

METRE = 0.001
free_space = FreeSpaceLink()


def right(distance, frequency, gamma):
    return free_space.loss(METRE, frequency) + 10 * gamma * log10(distance / METRE)


for metres in (2, 10, 100, 1000, 10_000):
    distance, columns = metres * METRE, []
    for gamma in (2.0, 3.0):
        told = LogNormalLink(sigma=0.0, gamma=gamma).loss(distance, 933e6)
        columns.append(f"gamma {gamma:.0f} {told:.1f} dB, right {right(distance, 933e6, gamma):.1f}")
    print(f"{metres} m:", "; ".join(columns))
network = SensorNetwork(2, (10.0, 10.0), loss="LNPL", sigma=0.0, gamma=3.0, radio="ESP32-WROOM-32U")
for sensor, position in zip(network.sensors, ((1.0, 1.0), (2.0, 1.0))):
    sensor.set_position(np.array(position))
receiver, sender = network.sensors
level = sender.get_txpower() - right(1.0, receiver.get_frequency(), 3.0)
_, links = next(iter(network))
print(f"office, 1 km: link {links[0][1]}, right {level:.0f} dBm at a receiver of {receiver.get_rxsensitivity():.0f}")
END
env/bin/python run.py | tee told
cat >expected <<'END'
2 m: gamma 2 -16.1 dB, right 37.9; gamma 3 -43.1 dB, right 40.9
10 m: gamma 2 11.8 dB, right 51.8; gamma 3 -8.2 dB, right 61.8
100 m: gamma 2 51.8 dB, right 71.8; gamma 3 41.8 dB, right 91.8
1000 m: gamma 2 91.8 dB, right 91.8; gamma 3 91.8 dB, right 121.8
10000 m: gamma 2 131.8 dB, right 111.8; gamma 3 141.8 dB, right 151.8
office, 1 km: link 1, right -121 dBm at a receiver of -97
END
diff expected told
