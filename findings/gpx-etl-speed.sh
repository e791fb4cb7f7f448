#!/bin/sh
# gpx-etl 0.0.2 (PyPI) makes tables and statistics of GPX tracks. mean_speed is the mean over the points, whatever the
# time each stands for (transform.py): loggers that record fewer points at rest, as most do, get a speed well above
# distance by duration. The README's own example tells 15.1 km/h for 13.43 km in 120.9 min, which is 6.7. The fraction
# of each second is cut off, although GPX 1.1 allows it for time ("Fractional seconds are allowed for millisecond timing
# in tracklogs"), and points are then sorted by time, by a sort that does not keep the order of equals: a log of 10 Hz
# is walked in another order within each second, so it is longer, at infinite speed. Tracks are told apart by name,
# which GPX 1.1 neither requires nor wants unique: without a name there is no distance, and two of the same name, as of
# two devices, become one that leaps from one to the other.
#
# Seen, 600 m in a minute: 36 km/h, right. With ten minutes at rest, a point each minute, after that: 30.9 (3.3). At 10
# Hz: 1716 m at inf. Without a name: NaN. Two of the same name, 1 km apart: 95 km.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check gpx-etl==0.0.2 gpxpy==1.6.2 numpy==1.26.4 pandas==2.3.3 \
    pyarrow==15.0.2
cat >run.py <<'END'
import math

from gpx_etl.transform import GPXTransformer

METRES = 111319.49  # a degree of longitude at the equator, as gpxpy has it


def track(points, name: str = "<name>walk</name>") -> str:
    text = "".join(
        f'<trkpt lat="0" lon="{x / METRES:.9f}"><ele>0</ele>'
        f"<time>2024-05-01T12:{int(time) // 60:02}:{time % 60:06.3f}Z</time></trkpt>"
        for time, x in points
    )
    return f"<trk>{name}<trkseg>{text}</trkseg></trk>"


def stats(what: str, *tracks: str) -> tuple[float, float]:
    space = "http://www.topografix.com/GPX/1/1"
    gpx = f'<?xml version="1.0"?><gpx version="1.1" creator="finding" xmlns="{space}">{"".join(tracks)}</gpx>'
    told = GPXTransformer.from_xml(gpx).stats.iloc[0]
    print(f"{what}: {told.total_distance:.0f} m in {told.duration:.1f} min, mean {told.mean_speed:.1f} km/h")
    return told.total_distance, told.mean_speed


minute = [(second, 10 * second) for second in range(61)]
distance, speed = stats("one minute", track(minute))
assert round(distance) == 600 and round(speed, 1) == 36.0

distance, speed = stats("then ten at rest", track(minute + [(60 * number, 600) for number in range(2, 12)]))
assert round(distance) == 600 and round(speed, 1) == 30.9  # 600 m in 11 min are 3.3 km/h

distance, speed = stats("at 10 Hz", track([(tenth / 10, tenth) for tenth in range(601)]))
assert distance > 1000 and speed == math.inf

distance, speed = stats("without a name", track(minute, ""))
assert math.isnan(distance) and math.isnan(speed)

distance, speed = stats("two of the same name", track(minute), track([(second, x + 1000) for second, x in minute]))
assert distance > 50_000
END
env/bin/python run.py
