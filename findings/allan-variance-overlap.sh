#!/bin/sh
# compute_allan_variances of allan-variance-analyzer 1.0.4 (PyPI) is wrong for any overlap of the bins that it averages
# over, and the default is 0.5, "the overlap between bins". It turns that share into a number of samples and hands it
# to compute_bin_averages, which takes it for a share: the step to the next bin becomes negative and is then set to one
# sample (statistics.py). Two neighbours have all samples but one in common, and their difference is that of two single
# samples. So white noise of variance 1, which averages out as 1/n over n samples, comes out as 1/n^2, another kind of
# noise: over 10 s at 10 Hz a hundred times too small. Nothing is said. An Allan variance compares bins that follow on
# each other without an overlap (IEEE Std 1139-2008; overlapping estimates shift pairs of such bins). With overlap=0,
# as its class has it, it is right. It also turns three of the six columns of the caller's array into degrees, in place,
# each time that the class runs. allan-variance 1.0 (PyPI) is right.
#
# Seen, white noise of variance 1 at 10 Hz, over 0.1, 1, 10 and 100 s, times the number of samples, which is 1: overlap
# 0.5 1.0, 0.10, 0.010 and 0.001; overlap 0 1.0, 1.0, 1.0 and 0.9; allan-variance 1.0, 1.0, 1.0 and 1.1.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check \
    allan-variance-analyzer==1.0.4 allan-variance==1.0 numpy==2.4.6 pandas==3.1.1 scipy==1.17.1
cat >run.py <<'END'
import numpy as np
from allan_variance import compute_avar
from allan_variance_analyzer.statistics import compute_allan_variances

RATE = 10  # Hz
periods = np.array([0.1, 1, 10, 100])  # s
sizes = np.round(periods * RATE)
noise = np.random.default_rng(1).normal(size=(100_000, 6))


def show(name, variances):
    print(f"{name}:", *(f"{size * variance:.3f}" for size, variance in zip(sizes, variances)))


show("overlap 0.5, the default", compute_allan_variances(noise, periods, RATE)[:, 0])
show("overlap 0", compute_allan_variances(noise, periods, RATE, overlap=0)[:, 0])
show("allan-variance", compute_avar(noise[:, 0], 1 / RATE, 0.1, 100, len(periods))[1])
END
env/bin/python run.py 2>/dev/null | tee told
cat >expected <<'END'
overlap 0.5, the default: 0.987 0.097 0.010 0.001
overlap 0: 0.987 0.975 0.965 0.938
allan-variance: 0.987 0.972 1.037 1.061
END
diff expected told
