#!/bin/sh
# gtimes 0.6.0 (PyPI), GPS time for receivers and their logs, is wrong in three ways between GPS weeks and UTC
# (gpstime.py). UTCFromGps adds the fraction of a second to a time that has it already, so where it is half a second or
# more the second is one too late. It gives local time, not UTC, if a datetime is asked for (dtimeObj=True). And
# gpsFromUTC takes the difference of two local times: a comment says that their offset from UTC cancels. But the one is
# in January 1980, and many clocks have been set to another zone since, as in Singapore (1982) and Kathmandu (1986).
# Nothing is said: its documentation promises UTC and tells of no time zone. GPS time does not depend on where one is
# (IS-GPS-200, 3.3.4).
#
# Seen, 2026-03-23 12:00:00 UTC, which is second 129618 of week 2411, and 0.4 and 0.5 s later. UTCFromGps in UTC 0.4 and
# 1.5 s past 12:00. As datetime in Berlin 13:00. gpsFromUTC in Kathmandu second 128718, 15 min early, in Singapore
# 127818, 30 min early.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check gtimes==0.6.0
cat >run.py <<'END'
import os

from gtimes.gpstime import UTCFromGps, gpsFromUTC

LEAP_SECONDS = 18  # since 2017
week, second, *_ = gpsFromUTC(2026, 3, 23, 12, 0, 0, leapSecs=LEAP_SECONDS)
seconds = [UTCFromGps(2411, 129618 + fraction, leapSecs=LEAP_SECONDS)[5] for fraction in (0.4, 0.5)]
clock = UTCFromGps(2411, 129618, leapSecs=LEAP_SECONDS, dtimeObj=True)
told = " and ".join(f"{second:.1f}" for second in seconds)
print(f"{os.environ['TZ']}: week {week}, second {second:.0f}; back {clock:%H:%M}, 0.4 and 0.5 s later {told} s")
END
for zone in UTC Europe/Berlin Asia/Kathmandu Asia/Singapore; do TZ=$zone env/bin/python run.py; done | tee told
cat >expected <<'END'
UTC: week 2411, second 129618; back 12:00, 0.4 and 0.5 s later 0.4 and 1.5 s
Europe/Berlin: week 2411, second 129618; back 13:00, 0.4 and 0.5 s later 0.4 and 1.5 s
Asia/Kathmandu: week 2411, second 128718; back 18:00, 0.4 and 0.5 s later 0.4 and 1.5 s
Asia/Singapore: week 2411, second 127818; back 20:30, 0.4 and 0.5 s later 0.4 and 1.5 s
END
diff expected told
