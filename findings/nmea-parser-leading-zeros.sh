#!/bin/sh
# nmea-parser 0.1.2 (PyPI; the versions from 0.2.0 to 0.5.0 lack one of their own modules and cannot be imported) turns
# latitude and longitude into numbers before it takes the degrees from their first two or three digits
# (format_coordinate in util.py). The zeros in front, which make these digits the degrees ("ddmm.mm" and "dddmm.mm",
# NMEA 0183, GGA and RMC), are gone by then. So a longitude of 11 degrees 31 minutes is one of 113 degrees, one of 2
# degrees 27 minutes is 227, and a latitude of 6 degrees is one of 60; what is more than 100 degrees from Greenwich and
# more than 10 from the equator is right. Nothing is said. pynmea2 1.19.0 (PyPI) has all of them right.
#
# Seen, latitude and longitude: Munich 48.1173 113.0167, right 48.1173 11.5167; Manchester 53.5000 -227.0000, right
# 53.5000 -2.4500; Jakarta -60.1208 106.8300, right -6.1208 106.8300; San Francisco right.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check nmea-parser==0.1.2 pynmea2==1.19.0
cat >run.py <<'END'
import functools
import operator
import sys

import pynmea2
from nmea.nmea_message import NMEAMessage

SEEN = {
    "Munich": "48.1173 113.0167",
    "Manchester": "53.5000 -227.0000",
    "Jakarta": "-60.1208 106.8300",
    "San Francisco": "37.3775 -122.4217",
}


def sentence(place: str) -> str:
    content = f"GPRMC,123519.80,A,{place},22.4,84.4,230324,,"
    return f"${content}*{functools.reduce(operator.xor, content.encode()):02X}"


changed = False
for name, place in (
    ("Munich", "4807.03849,N,01131.00012,E"),
    ("Manchester", "5330.00000,N,00227.00000,W"),
    ("Jakarta", "0607.25000,S,10649.80000,E"),
    ("San Francisco", "3722.65000,N,12225.30000,W"),
):
    line = sentence(place)
    told = NMEAMessage.load_message(line.encode())
    right = pynmea2.parse(line, check=True)
    seen = f"{told.latitude:.4f} {told.longitude:.4f}"
    print(f"{name}: {seen}, right {right.latitude:.4f} {right.longitude:.4f}")
    changed |= seen != SEEN[name]
sys.exit(changed)
END
env/bin/python run.py
