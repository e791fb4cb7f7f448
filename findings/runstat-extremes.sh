#!/bin/sh
# RunStat of runstat 1.0.0 (PyPI), running statistics of a sampled signal, begins its smallest and largest value at 0
# and leaves the first sample out of both (__init__ and update in runstat.py). So the shortest of round trips is 0, and
# the strongest of levels in dBm is 0 dBm. A largest value that comes first is never told. The variance of two samples
# is half of what it is for more: it divides by n - 1 only if n is above 2 (var). Nothing is said. Mean and count are
# right.
#
# Seen: round trips of 90, 50, 60 and 40 ms min 0, max 60; levels of -80, -95 and -101 dBm min -101, max 0; variance of
# 40 and 60 ms 100, where the rule for three and more gives 200 (40, 50 and 60: 100, right).
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check runstat==1.0.0
cat >run.py <<'END'
from statistics import variance

from runstat import RunStat


def statistics_of(samples):
    """What RunStat tells of these samples."""
    statistics = RunStat()
    for sample in samples:
        statistics.update(sample)
    return statistics


for name, samples in (("round trips", (90, 50, 60, 40)), ("levels", (-80, -95, -101))):
    statistics = statistics_of(samples)
    print(f"{name}: min {statistics.min}, max {statistics.max}, right {min(samples)} and {max(samples)}")
for samples in ((40, 60), (40, 50, 60)):
    print(f"variance of {samples}: {statistics_of(samples).var}, right {variance(samples)}")
END
env/bin/python run.py | tee told
cat >expected <<'END'
round trips: min 0, max 60, right 40 and 90
levels: min -101, max 0, right -101 and -80
variance of (40, 60): 100, right 200
variance of (40, 50, 60): 100, right 100
END
diff expected told
