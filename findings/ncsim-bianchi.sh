#!/bin/sh
# ncsim of anrg-ncsim 1.0.0 computes the share of the channel that n stations of 802.11 can use by Bianchi's
# model (models/wifi.py). It solves the two equations by putting the result back in, 200 times. From eight
# stations on this does not converge: it swings between two attempt probabilities, and ncsim keeps the larger.
# So links that contend (--interference csma_bianchi) seem to lose nearly all of their rate to collisions.
# Nothing is said. The equations have one solution (Bianchi, IEEE JSAC 18, 2000); bisection finds it.
# The same backoff simulated over 400,000 slots gives 0.788, 0.759, 0.698 and 0.609.
#
# Seen, efficiency with 7, 10, 20 and 50 stations: 0.788, 0.592, 0.265 and 0.022; right is 0.788, 0.756, 0.694
# and 0.607.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --no-deps anrg-ncsim==1.0.0 PyYAML==6.0.2
cat >"$dir/run.py" <<'END'
import logging
import sys

logging.disable()  # a scheduler that it can do without

from ncsim.models.wifi import bianchi_efficiency  # noqa: E402

WINDOW, STAGES = 16, 6  # of backoff
SLOT, BUSY = 9, 500  # us, as ncsim has them


def right(stations: int) -> float:
    """The share of time of successful frames, with the attempt probability by bisection."""
    low, high = 0.0, 1.0
    while high - low > 1e-12:
        attempt = (low + high) / 2
        collision = 1 - (1 - attempt) ** (stations - 1)
        doublings = sum((2 * collision) ** stage for stage in range(STAGES))
        if attempt < 2 / (1 + WINDOW + collision * WINDOW * doublings):
            low = attempt
        else:
            high = attempt
    idle = (1 - low) ** stations
    success = stations * low * (1 - low) ** (stations - 1)
    return success * BUSY / (idle * SLOT + (1 - idle) * BUSY)


told = []
for stations in (7, 10, 20, 50):
    told.append(round(bianchi_efficiency(stations), 3))
    print(f"{stations} stations: {told[-1]:.3f}, right {right(stations):.3f}")
sys.exit(told != [0.788, 0.592, 0.265, 0.022])
END
"$dir/venv/bin/python" "$dir/run.py"
