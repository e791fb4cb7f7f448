#!/bin/sh
# gnsstime 0.0.9 (PyPI), times of satellite navigation as an extension of datetime, leaves the microseconds out where it
# subtracts one time from another: it takes those of the second time from themselves (dmicrosec in __sub__,
# gnsstime.py). So differences are those of whole seconds, and a delay between two stamps is 0 or 1 s. The second of the
# week (gpswsec) has no fraction either. And from_gpsw, which takes the number of times that the week counter has
# wrapped around, adds 1024 days for each, not 1024 weeks, so the week of 10 bits that a receiver tells now is one of
# 1992. Nothing is said. The counter of GPS wraps after 1024 weeks (IS-GPS-200, 20.3.3.3.1.1), as it did in 1999 and
# 2019.
#
# Seen, 12:00:00.9 to 12:00:01.1 1.0 s (datetime 0.2 s), 12:00:00.02 to 12:00:00.98 0.0 s (datetime 0.96 s); second of
# the week at .9 s 129600; week 363 after two wraps, which is 2411, 1992-07-31, right 2026-03-23.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check gnsstime==0.0.9
cat >run.py <<'END'
from datetime import datetime

from gnsstime import gnsstime

for seconds, microseconds in (((0, 1), (900_000, 100_000)), ((0, 0), (20_000, 980_000))):
    first, last = [(2026, 3, 23, 12, 0, second, micro) for second, micro in zip(seconds, microseconds)]
    told, right = [(kind(*last) - kind(*first)).total_seconds() for kind in (gnsstime, datetime)]
    print(f"{told:.2f} s, right {right:.2f} s")
print(f"second of the week {gnsstime(2026, 3, 23, 12, 0, 0, 900_000).gpswsec}, right 129600.9")
print(f"week {363 + 2 * 1024}: {gnsstime.from_gpsw(363, 1, nrollover=2):%Y-%m-%d}, right", end=" ")
print(f"{gnsstime.from_gpsw(363 + 2 * 1024, 1):%Y-%m-%d}")
END
env/bin/python run.py | tee told
cat >expected <<'END'
1.00 s, right 0.20 s
0.00 s, right 0.96 s
second of the week 129600.0, right 129600.9
week 2411: 1992-07-31, right 2026-03-23
END
diff expected told
