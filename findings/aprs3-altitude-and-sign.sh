#!/bin/sh
# aprs3 8.0.0.post1 (PyPI) reads and writes APRS, in which trackers send positions by packet radio, and is wrong in
# three ways. It writes positions less than a degree south of the equator or west of Greenwich as north and east,
# since it takes the sign from the whole degrees, and 0 has none (dec2dm_lat and dec2dm_lng in geo_util.py). So a
# received report of London that is sent on, as a gateway does, is somewhere else. Of altitudes it reads only those
# below the sea: it looks for "/A=-" and digits (ALTITUDE_REX in position.py). And the altitude in a compressed
# position, which is one if the compression type says that it came from a GGA sentence, is read as course and speed,
# and in others a course and speed are an altitude besides, as the type is taken without the 33 that its character has
# on top, and by the remainder of a division where two bits are meant. Nothing is said; by its README it supports
# "Altitude". By APRS 1.01, 6, an altitude is "/A=aaaaaa", and by 9 "S]S" is 10004 feet.
#
# Seen, 0.1277 degrees west: read as -0.1277, written again as 00007.66E; 0.25 degrees south: 0015.00N. "/A=001234":
# none; "/A=-00123": -123. "S]S": no altitude, course 200, speed 100. "7P@": altitude 60, course 88, right is the
# course.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check aprs3==8.0.0.post1
cat >run.py <<'END'
from decimal import Decimal

from aprs import APRSFrame
from aprs.position import Position


def parse(information):
    return APRSFrame.from_str(f"N0CALL>APRS:{information}").info


london = parse("!5130.45N/00007.66W>")
written = bytes(london), bytes(Position(lat=-0.25, long=-78.5, symbol_code=b">"))
print(f"read {london.long:.4f}, written {written[0].decode()}; 0.25 S: {written[1].decode()}")

altitudes = [parse(f"!4903.50N/07201.75W>088/036/A={height}").altitude_ft for height in ("001234", "-00123")]
print("altitudes 1234 and -123:", *altitudes)

compressed = []
for ending in "S]S", "7P@":
    report = parse(f"=/5L!!<*e7>{ending}")
    height = report.altitude_ft and round(report.altitude_ft)
    compressed.append((height, report.data_ext.course, round(report.data_ext.speed)))
    print(f"{ending}: altitude {height}, course {compressed[-1][1]}, speed {compressed[-1][2]}")
assert abs(london.long + Decimal("7.66") / 60) < Decimal("1e-9")
assert written == (b"!5130.45N/00007.66E>", b"0015.00N/07830.00W>")
assert altitudes == [None, -123] and compressed == [(None, 200, 100), (60, 88, 36)]
END
env/bin/python run.py
