#!/bin/sh
# linkpredict 2.2.1 (PyPI) counts the gain of the devices in the receiver for the signal and not for the noise.
# The noise temperature of its chain is that at the antenna, the noise of each device divided by the gain before
# it (Friis, Proc. IRE 32, 1944); but G/T and C/N0 get the gain of the whole chain (link.py), which belongs to
# noise at the end of it. So each dB of an amplifier is one dB of C/N0, Eb/N0 and margin too many, and the loss
# of a cable counts twice. Nothing is said. G/T is the gain of the antenna by the noise temperature of the
# system (ITU-R S.733), both at one point; pylink-satcom 0.9 gives 4.79, 14.59 and 15.00 dB/K.
#
# Seen, antenna of 35 dBi and 50 K, receiver of 1000 K; without an amplifier, with 20 and 40 dB of 50 K: G/T
# 4.79, 34.59 and 55.00 dB/K, C/N0 100.68, 130.48 and 150.89 dB-Hz; right for C/N0 is 100.68, 110.48, 110.89.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet linkpredict==2.2.1 numpy==2.2.6 scipy==1.15.3 skyfield==1.55 sgp4==2.27
cat >"$dir/run.py" <<'END'
import math
import sys

import linkpredict as lp

ANTENNA, NOISE, RECEIVER, AMPLIFIER = 35.0, 50, 1000, 50  # dBi, K, K, K
KEYS = lp.LinkBudgetKeys


def budget(gain: float | None) -> dict:
    """The budget of a satellite's downlink, with an amplifier before the receiver or without."""
    devices = [] if gain is None else [lp.Device(gain, AMPLIFIER)]
    return lp.Link(
        channel=lp.Channel(frequency=8e9),
        geometry=lp.SimpleGeometry(slant_range=40.721e6),
        transmitter=lp.Transmitter(amplifier_power=20),
        transmit_antenna=lp.MainLobeAntenna(50.0, 6),
        receive_antenna=lp.MainLobeAntenna(ANTENNA, 6),
        receive_antenna_noise=lp.SimpleAntennaNoise(NOISE),
        receiver=lp.Receiver(noise_temperature=RECEIVER, devices=devices),
    ).calculate_link_budget()


told = []
for gain in (None, 20, 40):
    result = budget(gain)
    chain = RECEIVER if gain is None else AMPLIFIER + RECEIVER / 10 ** (gain / 10)
    right = ANTENNA - 10 * math.log10(NOISE + chain)
    merit, ratio = (round(float(result[key]), 2) for key in (KEYS.g_t_figure_of_merit, KEYS.cno_ratio))
    told.append((merit, ratio))
    print(f"amplifier {gain} dB: G/T {merit} dB/K, right {right:.2f}; C/N0 {ratio} dB-Hz")
sys.exit(told != [(4.79, 100.68), (34.59, 130.48), (55.0, 150.89)])
END
"$dir/venv/bin/python" "$dir/run.py"
