#!/bin/sh
# itamae 0.1.1 (PyPI), which reads frames of 802.11 and their radiotap headers, exchanges the rates of the long and the
# short guard interval. In its table of the rates of 802.11n 1 is the long and 0 the short one (mcs_rate in mcs.py). It
# looks there by radiotap's flag, which is set for the short one (rate in radiotap.py; radiotap.org, MCS). So every
# frame of 802.11n has the rate that it was not sent with: rates, and times on air, are off by 11 %. And it takes the
# reference number of an A-MPDU for 8 bytes, where radiotap has 4: the format "L" is of native size, which is 8 on 64
# bits. So the number has the flags in it, and the fields that follow are read from 4 bytes further on. Nothing is said.
#
# Seen, MCS 7, 20 MHz: 72.2 Mbit/s with the long interval and 65 with the short; right is 65 and 72.2. 40 MHz: 150 and
# 135; right is 135 and 150. A-MPDU with reference number 5: 85899345925, which is 5 and the flags, 20, times 2^32.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check itamae==0.1.1
cat >run.py <<'END_PYTHON'
import struct
import sys

import itamae.radiotap

MCS, AMPDU = 1 << 19, 1 << 20
KNOWN_WIDTH_INDEX_GUARD = 0x07
WIDE, SHORT = 0x01, 0x04
FRAME = bytes(24)


def header(present: int, fields: bytes) -> bytes:
    return struct.pack("<BBHI", 0, 0, 8 + len(fields), present) + fields + FRAME


told = []
for flags in (0, SHORT, WIDE, WIDE | SHORT):
    frame = header(MCS, bytes([KNOWN_WIDTH_INDEX_GUARD, flags, 7]))
    rate = itamae.radiotap.parse(frame).rate
    print(f"{40 if flags & WIDE else 20} MHz, {'short' if flags & SHORT else 'long'} interval: {rate} Mbit/s")
    told.append(rate)
frame = header(AMPDU, struct.pack("<IHBB", 5, 0x0014, 0, 0))
number = itamae.radiotap.parse(frame)["a-mpdu"][0]
print(f"A-MPDU: {number}")
told.append(number)
sys.exit(told != [72.2, 65, 150, 135, 5 + (0x14 << 32)])
END_PYTHON
env/bin/python run.py
