#!/bin/sh
# Circular of python-pyriodic 0.1.2 (PyPI), statistics of directions, computes in radians and means to give results in
# the unit of the data (_descriptive_stats in circular.py). But when it has turned degrees into radians it also sets the
# range of the data to that of radians, 0 to 2 pi and 0.001 more, and turns results back with that. So the mean of
# headings or antenna angles in degrees comes out in radians, and 0.016 % too large. The resultant length, which has no
# unit, goes the same way and can be above 1. The median sorts the angles as numbers (circular_median in desc.py), so
# around north it is a direction at the edge of the data. With full_range=(-180, 180), which it takes, -180 is added as
# if it were radians. Nothing is said. The median of a circle has as many angles on one side as on the other (Fisher,
# Statistical Analysis of Circular Data, 1993).
#
# Seen: mean of 80, 90 and 100 degrees 1.571. Resultant length of 90 twice 1.00016. Median of 350, 355, 5, 10 and 15
# degrees, which is 5, 0.262 in radians, 15 degrees. Mean of -10, 0 and 10 degrees 2.213 radians, 127 degrees.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check python-pyriodic==0.1.2 numpy==2.4.6 pandas==3.1.1
cat >run.py <<'END'
from math import degrees

from pyriodic import Circular

print(f"mean of 80, 90, 100 degrees: {Circular([80, 90, 100], unit='degrees').mean():.3f}")
print(f"resultant length of 90, 90: {Circular([90, 90], unit='degrees').r():.5f}")
median = Circular([350, 355, 5, 10, 15], unit="degrees").median()
print(f"median around 5 degrees: {median:.3f}, as radians {degrees(median):.0f} degrees")
mean = Circular([-10, 0, 10], unit="degrees", full_range=(-180, 180)).mean()
print(f"mean of -10, 0, 10 degrees: {mean:.3f}, as radians {degrees(mean):.0f} degrees")
END
env/bin/python run.py | tee told
cat >expected <<'END'
mean of 80, 90, 100 degrees: 1.571
resultant length of 90, 90: 1.00016
median around 5 degrees: 0.262, as radians 15 degrees
mean of -10, 0, 10 degrees: 2.213, as radians 127 degrees
END
diff expected told
