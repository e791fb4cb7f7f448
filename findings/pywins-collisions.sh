#!/bin/sh
# PyWINS 0.1.0 (PyPI), a simulator of the 802.11 DCF, takes the frame of a station that began a collision as received
# unless the station last in the list takes part: the loop over the other stations keeps the state of the last one
# alone (busy_head_except_node). Its throughput grows with the number of stations, where collisions should make it
# fall, and who wins depends on the order in the list. Nothing is said. By Bianchi's model (JSAC 18, 2000; equations
# 7, 9 and 13, with the parameters of PyWINS) it falls. With any() for the loop PyWINS gives 27.9 and 25.4.
#
# Seen, of four stations 0 and 1 collide: one frame is received; 0 and 3 collide: none. Throughput of 5 and 20 stations
# at 54 Mbit/s: 32.7 and 35.5 Mbit/s; by the model 31.2 and 26.5.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --no-deps pywins==0.1.0 numpy==2.2.6
cat >"$dir/run.py" <<'END'
import contextlib
import sys
from unittest.mock import MagicMock

sys.modules["matplotlib"] = sys.modules["matplotlib.pyplot"] = MagicMock()  # plots

import numpy as np  # noqa: E402
from pywins import Simulator  # noqa: E402


def network(stations: int, time: float) -> Simulator:
    """Stations that all hear each other."""
    listen = [[other for other in range(stations) if other != station] for station in range(stations)]
    return Simulator(STATIONS=stations, total_time=time, listen=listen)


def received(pair: tuple[int, int]) -> int:
    """Frames received of two stations of four that send in the same slot."""
    simulator = network(4, 450)  # us, one collision
    for node in simulator.nodes:
        node.backoff_counter = 5 if node.id in pair else 100
    with contextlib.suppress(ZeroDivisionError):  # the share of frames dropped, when none is received
        simulator.run()
    return sum(node.success_count for node in simulator.nodes)


def bianchi(stations: int, node) -> float:
    """Throughput in Mbit/s."""

    def attempt(collision: float) -> float:
        window, double = node.CW_MIN, 2 * collision
        growth = sum(double**stage for stage in range(node.MAX_STAGE))
        return 2 / (1 + window + collision * window * growth)

    low, high = 0.0, 1.0
    for _ in range(50):
        collision = (low + high) / 2
        if 1 - (1 - attempt(collision)) ** (stations - 1) > collision:
            low = collision
        else:
            high = collision
    tau = attempt(collision)
    idle, alone = (1 - tau) ** stations, stations * tau * (1 - tau) ** (stations - 1)
    success = node.DATA_DURATION + node.SIFS + node.ACK_DURATION + node.DIFS
    failure = node.DATA_DURATION + node.ACK_TIMEOUT + node.DIFS
    slot = idle * node.SLOT_TIME + alone * success + (1 - idle - alone) * failure
    return alone * node.DATA_DURATION / slot * node.RATE


changed = False
for pair, expected in (((0, 1), 1), ((0, 3), 0)):
    told = received(pair)
    print("stations {} and {} of 0 to 3 collide: {} received".format(*pair, told))
    changed |= told != expected
np.random.seed(1)
throughputs = []
for stations in (5, 20):
    simulator = network(stations, 5e5)
    throughputs.append(float(simulator.run()[2]))
    model = bianchi(stations, simulator.nodes[0])
    print(f"{stations} stations: {throughputs[-1]:.1f} Mbit/s, Bianchi {model:.1f}")
sys.exit(changed or throughputs[1] < throughputs[0] or throughputs[1] < 1.2 * model)
END
"$dir/venv/bin/python" "$dir/run.py"
