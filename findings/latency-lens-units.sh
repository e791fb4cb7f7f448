#!/bin/sh
# latency-lens 1.0.2 (PyPI), which tells p99 and jitter from tables of timings, guesses the unit of each number
# (dur_to_ms and ts_to_ms in io/normalize.py). A duration of at most 60 is in seconds, one of a million or more in
# microseconds, any other in milliseconds. So in one column of round trips in milliseconds 50 is 50 s and 70 is 70 ms:
# the fast ones become the slowest. A time below a million is in seconds, one up to 1e9 in milliseconds: on a clock in
# milliseconds the records jump back by a factor of 1000 after 1000 s, and "worst windows" are over other records than
# those of a window. Nothing is said. By its documentation (Input Formats) only times are detected, as seconds above 1e9
# and else as milliseconds. Its own example there has durations of 12.5, 8.3 and 15.2, with times as far apart, and is
# read as 12.5 s.
#
# Seen, round trips of 50 and 70 ms in turn: minimum 70, median 25035, maximum 50000 ms. Times of 999,000 and 1,000,000
# ms: 999,000,000 and 1,000,000.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check latency-lens==1.0.2
cat >run.py <<'END'
from pathlib import Path

from latency_lens.io.csv_reader import parse_csv

# A probe a second for 20 minutes.
lines = ["time,duration"] + [f"{second * 1000},{50 if second % 2 else 70}" for second in range(1200)]
Path("probes.csv").write_text("\n".join(lines) + "\n")
for second, row in list(enumerate(parse_csv(Path("probes.csv"))))[998:1001]:
    print(f"time {second * 1000} ms: {row.ts_ms:.0f} ms")
END
{
    env/bin/python run.py
    env/bin/latency-lens analyze probes.csv | tr -d '│' | awk '/^ *(Count|Min|Max|p50)/ { print $1, $2, $3 }'
} | sed 's/ *$//' | tee told
cat >expected <<'END'
time 998000 ms: 998000000 ms
time 999000 ms: 999000000 ms
time 1000000 ms: 1000000 ms
Count 1,200
Min 70.00 ms
Max 50000.00 ms
p50 25035.00 ms
END
diff expected told
