#!/bin/sh
# py-channelmodel 0.9.3 (PyPI), which simulates fading channels, departs in two ways from what it is asked for. It moves
# a channel on by mixing its state with a new one, such that the correlation over a step of t is exp(-11.5 (f v t /
# c)^2) (update_channel_state in timevariantchannel.py). Over many short steps these correlations multiply, and the
# product is not that of the whole time. So the finer the steps, the slower the fading, without limit. And it takes the
# rms delay spread for that of the amplitudes (initialize_pdp in powerdelayprofile.py). A delay spread is one of the
# power (ITU-R P.1407), and that of its channels is half of what it was given. Nothing is said.
#
# Seen, 2.4 GHz, 10 m/s, correlation after 5 ms in 1, 10 and 100 steps: 0.16, 0.83 and 0.99; right is 0.16 each time. A
# delay spread of 50 ns: 25.0 ns.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check py-channelmodel==0.9.3 numpy==2.2.6 scipy==1.15.3
cat >run.py <<'END_PYTHON'
import sys

import numpy as np
from channelmodel import ChannelFactory

HERTZ, SPEED, SPREAD, TIME = 2.4e9, 10.0, 50e-9, 5e-3


def channel(bandwidth: float):
    return ChannelFactory(
        "time", "rayleigh", 1.0, rms_delay_spread=SPREAD, max_delay_spread=1e-6, bandwidth=bandwidth,
        carrier_frequency=HERTZ, velocity=SPEED, equalizer_type="ZF").create(20.0)


def correlation(steps: int, runs: int = 300) -> float:
    """The correlation of taps before and after TIME."""
    before, after = [], []
    for _ in range(runs):
        made = channel(100e6)
        before.append(made.channel_taps()[0][0])
        for _ in range(steps):
            made.step(TIME / steps)
        after.append(made.channel_taps()[0][0])
    scale = np.std(before, axis=0) * np.std(after, axis=0)
    return np.mean(np.conj(before) * after / scale).real


np.random.seed(1)
right = np.exp(-11.5 * (HERTZ * SPEED * TIME / 299_792_458) ** 2)
changed = False
for steps, expected in ((1, 0.16), (10, 0.83), (100, 0.98)):
    told = correlation(steps)
    print(f"{TIME * 1e3:.0f} ms in {steps} steps: correlation {told:.2f}, right {right:.2f}")
    changed |= abs(told - expected) > 0.02
taps = [channel(1e9).channel_taps()[0][0] for _ in range(3000)]
power = np.mean(np.abs(taps) ** 2, axis=0)
power /= power.sum()
delays = np.arange(len(power))  # ns, at 1 GHz
spread = np.sqrt(power @ (delays - power @ delays) ** 2)
print(f"delay spread: {spread:.1f} ns, right {SPREAD * 1e9:.0f}")
sys.exit(bool(changed or abs(spread - 25) > 1))
END_PYTHON
env/bin/python run.py
