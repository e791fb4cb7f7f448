#!/bin/sh
# mobile-env 2.1.0 (PyPI), an environment for learning which cells mobile users are to connect to, has two errors that
# learning does not show. Its path loss is Hata's, which takes the distance in km (IEEE Trans. Veh. Technol. 29, 1980).
# It gets that on the map (power_loss in channels.py), which is 200 wide, where users walk 1.5 a step and masts are 50 m
# high. So metres count as kilometres: with these masts 101 dB too many are lost. The threshold to connect fits that, at
# 77 dB below the noise, and rates are some bit/s; its picture calls them GB/s. So far below the noise a rate goes with
# the power, not with its logarithm: who is near a cell gets far more than others. And the seed of reset has no effect
# (base.py: seeding returns a configuration that nobody keeps). By Gymnasium's documentation of reset it starts the
# random numbers anew. So runs with several seeds are all the same, and a run with the same seed is another. Nothing is
# said.
#
# Seen, a user at 20 and at 60 m from a cell of 9 MHz: 17 and 0.4 bit/s; by Hata's formula 127 and 79 Mbit/s. First
# positions of users, in two new environments with seeds 1 and 2: the same. In the first again with seed 1: others.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check mobile-env==2.1.0 numpy==2.2.6 gymnasium==1.1.1 \
    matplotlib==3.10.3 pandas==2.2.3 pygame==2.6.1 shapely==2.1.1 svgpath2mpl==1.0.0
cat >run.py <<'END_PYTHON'
import math
import sys

import gymnasium
import mobile_env  # noqa: F401  registers its environments
from mobile_env.core.base import MComCore
from mobile_env.core.channels import OkumuraHata
from mobile_env.core.entities import BaseStation, UserEquipment

config = MComCore.default_config()
cell = BaseStation(0, (0, 0), *config["bs"].values())
user = UserEquipment(0, *config["ue"].values())


def hata(km: float) -> float:
    """The loss in dB in a medium city, by Hata's formula."""
    mhz = math.log10(cell.frequency)
    mobile = (1.1 * mhz - 0.7) * user.height - (1.56 * mhz - 0.8)
    urban = 69.55 + 26.16 * mhz - 13.82 * math.log10(cell.height) - mobile
    return urban + (44.9 - 6.55 * math.log10(cell.height)) * math.log10(km)


told = []
for metres in (20, 60):
    user.x, user.y = metres, 0
    channel = OkumuraHata()
    rate = channel.datarate(cell, user, channel.snr(cell, user))
    ratio = 10 ** ((cell.tx_power - hata(metres / 1000)) / 10) / user.noise
    right = cell.bw * math.log2(1 + ratio)
    print(f"{metres} m: {rate:.2g} bit/s, by Hata {right / 1e6:.0f} Mbit/s")
    told.append(f"{rate:.2g} {right / 1e6:.0f}")


def positions(made: gymnasium.Env, seed: int) -> list:
    made.reset(seed=seed)
    return [(round(user.x), round(user.y)) for user in made.unwrapped.users.values()]


first, second = (gymnasium.make("mobile-small-central-v0") for _ in range(2))
one, two = positions(first, 1), positions(second, 2)
again = positions(first, 1)
for name, users in (("seed 1", one), ("seed 2", two), ("seed 1 again", again)):
    print(f"{name}: {users[:2]}")
sys.exit(told != ["17 127", "0.41 79"] or one != two or one == again)
END_PYTHON
MPLCONFIGDIR="$dir" SDL_VIDEODRIVER=dummy env/bin/python -W ignore run.py
