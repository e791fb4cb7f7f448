#!/bin/sh
# comford 0.1.2 (PyPI), a benchmark of positioning by the signal strengths of WiFi, charges less for a floor too high
# than for one too low. Its penalised error (_errors_3d_penalized in evaluation/metrics.py) adds 15 m for each wrong
# floor, and 50 m for a wrong building, to the difference of heights, the true one less the predicted. That has a sign.
# Where the prediction is too high it is negative and takes some of the penalty away; where it is too low it adds to it.
# So of two methods that are wrong as often, the one that errs upwards wins. Nothing is said. Its documentation names
# the IPIN competition, which adds 15 m for each floor, up or down, to the horizontal error (Potorti and others, Sensors
# 17, 2327, 2017).
#
# Seen, floors of 4 m, at the right place but one floor too high: 11 m, one too low: 19 m; by IPIN it is 15 m each. In
# the wrong building too: 61 and 69 m.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check comford==0.1.2 numpy==2.2.6 pandas==2.2.3
cat >run.py <<'END_PYTHON'
import sys

import pandas
from comford.evaluation import error_3d_penalized

FLOOR = 4.0  # m


def place(floor: int, building: int) -> pandas.DataFrame:
    return pandas.DataFrame({"x": [10.0], "y": [20.0], "z": [floor * FLOOR], "floor": [floor], "building": [building]})


told = []
for building in (0, 1):
    for floor, name in ((3, "high"), (1, "low")):
        error = error_3d_penalized(place(2, 0), place(floor, building))
        print(f"one floor too {name}, {'wrong' if building else 'right'} building: {error:g} m")
        told.append(error)
sys.exit(told != [11, 19, 61, 69])
END_PYTHON
env/bin/python run.py
