#!/bin/sh
# nmea2gpx of nmeatoolkit 0.2 (PyPI) makes a GPX track of the sentences of a GPS receiver (translators/gpx.py). The
# speed of a point is what VTG has in knots; GPX is metric (its schema: "All measurements are in metric units"), so
# readers take 10 knots for 10 m/s, twice the speed. A sentence without a date, GGA or GLL, gets the date of the last
# RMC. As receivers send GGA first, the first point after midnight UTC, which is noon or morning in other parts of the
# world, is 24 hours before its neighbours; sorted by time, the track jumps. And times have a blank where the schema
# (xsd:dateTime) wants a T. The same dates are in TrackPointTranslator, whose "diluition", one point in so many, keeps
# all: the count that it divides is never increased.
#
# Seen, GGA, RMC and VTG each second around midnight at 10 knots: times 23:59:59 on the 31st, 00:00:00 on the 31st,
# 00:00:00 on the 1st; speed 10.0 (5.1 is right); one point in 10: all 7.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check nmeatoolkit==0.2 pynmea2==1.19.0 python-dateutil==2.9.0.post0
cat >run.py <<'END'
import functools
import operator
import re

import pynmea2
from nmeatoolkit.translators import GPXTranslator, TrackPointTranslator


def sentence(body: str) -> pynmea2.NMEASentence:
    return pynmea2.parse(f"${body}*{functools.reduce(operator.xor, body.encode()):02X}")


gpx, thinned = GPXTranslator(), TrackPointTranslator(diluition=10)
for time, date in ("235958.00", "311225"), ("235959.00", "311225"), ("000000.00", "010126"), ("000001.00", "010126"):
    place = "5200.000,N,01300.000,E"
    for body in (
        f"GPGGA,{time},{place},1,08,1.0,30.0,M,46.0,M,,",
        f"GPRMC,{time},A,{place},10.0,90.0,{date},,,A",
        "GPVTG,90.0,T,,M,10.0,N,18.5,K",
    ):
        for translator in (gpx, thinned):
            translator.feed(sentence(body))
track = gpx.result().split("<trkseg>")[1]
print(*re.findall("<time>(.*)</time>", track), sep="\n")
print("speeds:", *sorted(set(re.findall("<speed>(.*)</speed>", track))))
print("points, one in 10:", len(thinned.track))
END
env/bin/python run.py | tee told
cat >expected <<'END'
2025-12-31 23:59:58+00:00
2025-12-31 23:59:59+00:00
2025-12-31 23:59:59+00:00
2025-12-31 00:00:00+00:00
2026-01-01 00:00:00+00:00
2026-01-01 00:00:01+00:00
2026-01-01 00:00:01+00:00
speeds: 10.0
points, one in 10: 7
END
diff expected told
