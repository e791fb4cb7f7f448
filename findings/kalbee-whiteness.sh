#!/bin/sh
# kalbee 1.0.0 (PyPI), Kalman filters with tests of their tuning, checks whether the innovations of a filter are white,
# that is without correlation, as those of a well-tuned filter are (innovation_whiteness_test in consistency.py). It
# holds each of ten lags against the bounds for one lag at a significance of 5 %. The sequence fails if a single lag is
# outside, and of ten right ones at least one is in 40 % of the cases. So of filters that are tuned right, two in five
# are told to be wrong; with max_lag 20 it is two in three. Who tunes a filter of round trips or signal strength until
# it passes, tunes it to chance. With a state of several dimensions the lags are averaged over them, but the bounds are
# still those of one, and it errs to the other side. Nothing is said: "alpha" is the significance level. A test of many
# lags at once has one level for all (Ljung and Box, Biometrika 65, 1978; Bar-Shalom et al., Estimation, 2001, 5.4).
#
# Seen, white innovations, 200 samples, alpha 0.05, 1000 times, rejected: one lag 5 %, ten 41, twenty 65, ten in four
# dimensions 0.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check kalbee==1.0.0
cat >run.py <<'END'
import random
import sys

import numpy as np
from kalbee.modules.utils.consistency import innovation_whiteness_test

SAMPLES, RUNS = 200, 1000


def rejected(lags, dimensions=1):
    """Percentage of sequences without any correlation that are told to have one."""
    draw = random.Random(1)
    count = 0
    for _ in range(RUNS):
        innovations = [np.array([[draw.gauss(0, 1)] for _ in range(dimensions)]) for _ in range(SAMPLES)]
        passed, _ = innovation_whiteness_test(innovations, max_lag=lags, alpha=0.05)
        count += not passed
    return 100 * count / RUNS


told = rejected(1), rejected(10), rejected(20), rejected(10, 4)
print("rejected: one lag {:.1f} %, ten {:.1f}, twenty {:.1f}, ten in four dimensions {:.1f}".format(*told))
sys.exit(not (3 < told[0] < 7 and 33 < told[1] < 47 and 55 < told[2] < 75 and told[3] < 1))
END
env/bin/python run.py
