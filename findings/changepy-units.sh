#!/bin/sh
# changepy 0.4.0 (PyPI), PELT for changes in a series, misses changes of a mean, or finds them where there are none, by
# the unit that the series is in. The cost of a part for a normal distribution is its sum of squares less that of its
# mean, over the variance (Killick and others, J. Am. Stat. Assoc. 107, 2012). normal_mean adds up the values, not their
# squares (costs.py: cumsum of abs), so each part costs its mean more, and PELT, which relies on parts that cost no more
# when cut in two, drops the right ones. Where a mean is small in its unit, as round trips in seconds, the sum of values
# weighs more than the squares. And it divides by the square of what its documentation calls variance. Who hands it a
# standard deviation in milliseconds, so that a mean is large, mostly gets the right answer. Nothing is said. With the
# right cost its pelt is right in all units.
#
# Seen, 48 round trips around 50 ms and 48 around 80, deviation 10 ms, so variance 100; in ms with variance none, with
# the deviation 48; in seconds with either 1, a change after the first sample; with the right cost 48 in both. Without
# a change, 96 around 50 ms, in seconds: 1 with either, none with the right cost. (It tells 0, the beginning, always.)
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check changepy==0.4.0 numpy==2.4.6
cat >run.py <<'END'
import numpy as np
from changepy import pelt
from changepy.costs import normal_mean

DEVIATION = 10  # ms
AROUND = DEVIATION * np.tile([1, -1, -1, 1], 12)  # mean 0


def right_cost(values, variance):
    sums, squares = [np.concatenate(([0], np.cumsum(numbers))) for numbers in (values, values**2)]

    def cost(start, end):
        return (squares[end] - squares[start] - (sums[end] - sums[start]) ** 2 / (end - start)) / variance

    return cost


for unit, milliseconds in (("ms", 1), ("s", 1000)):
    deviation = DEVIATION / milliseconds
    for name, last in (("50, then 80", 80), ("50", 50)):
        values = np.concatenate((50 + AROUND, last + AROUND)) / milliseconds
        costs = (normal_mean(values, deviation**2), normal_mean(values, deviation), right_cost(values, deviation**2))
        variance, given_deviation, right = [[int(at) for at in pelt(cost, len(values))] for cost in costs]
        print(f"{name}, in {unit}: variance {variance}, deviation {given_deviation}, right cost {right}")
END
env/bin/python run.py | tee told
cat >expected <<'END'
50, then 80, in ms: variance [0], deviation [0, 48], right cost [0, 48]
50, in ms: variance [0], deviation [0], right cost [0]
50, then 80, in s: variance [0, 1], deviation [0, 1], right cost [0, 48]
50, in s: variance [0, 1], deviation [0, 1], right cost [0]
END
diff expected told
