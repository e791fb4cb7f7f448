#!/bin/sh
# comyx 0.2.5 (PyPI), which simulates wireless links, leaves the scale out of the distribution function of its Rician
# fading (Rician.cdf in fading/rician.py), so it is right for sigma = 1 alone. Fading that neither adds nor takes power
# has a sigma of sqrt(1 / (2K + 2)), 0.21 at K = 10. There outages, which are what one asks a distribution function for,
# come out hundreds to thousands of times too rare: a margin of 3 dB seems to do where 16 are needed. And rms_value has
# no K in it, so a line of sight adds nothing (its documentation has the same formula); the mean square of Rician fading
# is 2 sigma^2 + nu^2 (Proakis, Digital Communications, 2.3). Nothing is said. The density, mean, variance and samples
# of the same object are right, and so are Rayleigh and Nakagami.
#
# Seen, K = 10, mean power 1: at least 6 dB below it by cdf 0.0000094 of the time, by pdf and a million samples
# 0.0114; rms value 0.40, right is 1.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check numpy==2.2.6 scipy==1.15.3 pandas==2.3.3 mpmath==1.3.0
env/bin/pip install --quiet --disable-pip-version-check --no-deps comyx==0.2.5
cat >run.py <<'END'
import math
import sys

import numpy as np
from comyx.fading import Rician
from scipy.integrate import quad

K = 10
fading = Rician(K, sigma=math.sqrt(1 / (2 * K + 2)))
samples = fading.get_samples(1_000_000, seed=1)
rms = math.sqrt(np.mean(samples**2))
assert abs(rms - 1) < 0.01
told = [f"rms value {fading.rms_value():.2f}"]
print(f"{told[0]}, samples {rms:.2f}")
for decibels in 3, 6, 10:
    amplitude = 10 ** (-decibels / 20)
    outage, right = fading.cdf(amplitude), quad(fading.pdf, 0, amplitude)[0]
    assert abs(np.mean(samples < amplitude) - right) < 0.001
    told.append(f"{decibels} dB or more below: {outage:.7f}")
    print(f"{told[-1]}, by samples and pdf {right:.4f}")
expected = ["0.40", "0.0000282", "0.0000094", "0.0000028"]
sys.exit([line.split()[-1] for line in told] != expected)
END
env/bin/python run.py
