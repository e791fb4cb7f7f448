#!/bin/sh
# welford-remove 0.2.1 (PyPI), running means and variances that can be merged and can forget old samples, as for a
# moving window over round trips, loses what is merged into a new accumulator. merge takes the other's count, mean and
# sum of squares, but not its shape (welford.py), and everything else takes an accumulator without a shape for an
# empty one. So a second merge replaces the first, a sample that is added afterwards begins anew, and remove does
# nothing. Who so adds up the hosts or intervals of a measurement, beginning with Welford(), gets the statistics of
# the last alone. Nothing is said. By its documentation merge is to "merge this accumulator with another one".
#
# Seen, 10, 20 and 30, and 100 and 110: merged into a new one, count 2 and mean 105, right is 5 and 54. The first, and
# 40 added: count 1, mean 40, right is 4 and 25. Merged into the first itself, 5 and 54.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check welford-remove==0.2.1 numpy==1.26.4
cat >run.py <<'END'
import numpy
from welford_remove import Welford


def accumulator(*values):
    welford = Welford()
    for value in values:
        welford.add(numpy.array([float(value)]))
    return welford


def told(what, welford):
    print(f"{what}: count {welford.count}, mean {welford.mean[0]:g}, variance {welford.var_s[0]:g}")
    return welford.count, round(float(welford.mean[0]), 6)


first, second = accumulator(10, 20, 30), accumulator(100, 110)
total = Welford()
total.merge(first)
total.merge(second)
merged = told("merged into a new one", total)

total = Welford()
total.merge(accumulator(10, 20, 30))
total.add(numpy.array([40.0]))
added = told("merged into a new one, 40 added", total)

first.merge(second)
right = told("merged into the first", first)
assert (merged, added, right) == ((2, 105), (1, 40), (5, 54))
END
env/bin/python run.py
