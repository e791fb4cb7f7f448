#!/bin/sh
# micropython-pycayennelpp 2.4.0 (PyPI; PyCayenneLPP) packs sensor values for LoRaWAN with CayenneLPP, signed integers
# in hundredths or tenths for the most part. It multiplies and cuts (lpp_type.py, encode), so a value that is exact in
# hundredths, as those it unpacks, is packed one lower where the product is a hair less in binary: 0.29 · 100 is
# 28.999999999999996. A gateway that unpacks and packs again lets such values sink by a step at each hop, until one
# holds. And it checks signed values against the range of unsigned ones, and not at all downwards, despite "proper
# encoding and decoding with sensible checks": values beyond come out with the other sign.
#
# Seen, in hundredths (analogue input): 1.16 is 1.15, 1.14, 1.13 and 1.12 after one to four hops; of the 1001 values
# from 0 to 10, 69 are packed wrong. 400 becomes -255.36, -400 becomes 255.36; 700: ValueError.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check micropython-pycayennelpp==2.4.0
cat >run.py <<'END'
from cayennelpp import LppFrame


def hop(value: float) -> float:
    frame = LppFrame()
    frame.add_analog_input(1, value)
    return LppFrame.from_bytes(bytes(frame)).data[0].value[0]


hops = [1.16]
while len(hops) < 7:
    hops.append(hop(hops[-1]))
print("hops", hops)
assert hops == [1.16, 1.15, 1.14, 1.13, 1.12, 1.12, 1.12]

wrong = sum(round(hop(number / 100) * 100) != number for number in range(1001))
print("wrong", wrong)
assert wrong == 69

print("beyond", hop(400), hop(-400))
assert (hop(400), hop(-400)) == (-255.36, 255.36)
try:
    hop(700)
    raise SystemExit("packed")
except ValueError as error:
    print("700:", error)
END
env/bin/python run.py
