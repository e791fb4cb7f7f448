#!/bin/sh
# heare-histograms 0.1.3 (PyPI) has histograms of measurements, as of latencies, from which one draws samples and adds
# them up, as for a path of several hops. One that was combined from two (h + g, or combine in __init__.py) has the
# values of both for its mean and percentiles, but hands its samples out from the first alone: it is given the first
# one's function for them. So a simulation that draws from it never meets the second path, with its mean beside it.
# h += g, "combine two histograms or observe new data", drops g without a word, and h + 5 is None. And clone(), "a deep
# copy", shares the list of values: what the copy observes is in the original too.
#
# Seen, 1000 values of 10 ms and 1000 of 100 ms: mean of the combination 55, 90th percentile 100, mean of samples 10;
# after += of the second the mean is 10; after its copy has observed 1000 more, the original of 1000 has 2000 values.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check heare-histograms==0.1.3
cat >run.py <<'END'
from heare.histograms import Histogram

near, far = (Histogram[int](max_size=2000, data=[delay] * 1000) for delay in (10, 100))
both = near + far
samples = sum(both.sample() for _ in range(1000)) / 1000
print(f"near + far: mean {both.mean():g}, 90 % {both.percentile(0.9)}, mean of samples {samples:g}")
near += far
print(f"near += far: mean {near.mean():g}")
print(f"near + 5: {near + 5}")
original = Histogram[int](max_size=2000, data=[10] * 1000)
original.clone().observe([100] * 1000)
print(f"after the copy observed: mean {original.mean():g}")
END
env/bin/python run.py | tee told
cat >expected <<'END'
near + far: mean 55, 90 % 100, mean of samples 10
near += far: mean 10
near + 5: None
after the copy observed: mean 55
END
diff expected told
