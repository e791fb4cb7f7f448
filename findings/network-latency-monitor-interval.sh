#!/bin/sh
# network-latency-monitor 0.2.2 (PyPI) pings hosts for hours and draws latency and loss over "Time (s)". It counts pings
# for seconds, whatever the interval between them is (process_ping_results in data_processing.py numbers them from 1 on,
# and has 60 of them for a minute). With --ping-interval 2, as in the first example of its own help, all is at half its
# time. With 10 an outage of a minute in the middle of an hour is one of 6 s in its third minute, and the mean and the
# loss of a "minute" are those of ten. Nothing is said. A minute in which all is lost has a mean latency of 0.0 ms, the
# best of all; of this its log tells, and no more than its log.
#
# Seen, an hour at an interval of 2 s, with an outage from 1800 to 1920 s: the outage at 901 to 960 s, the last ping at
# 1800 s; in minutes, the mean of 0.0 ms and 100 % lost are those at 930 s. Right are 1800 to 1920 s and 3600.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check network-latency-monitor==0.2.2
cat >run.py <<'END'
from pathlib import Path

from network_latency_monitor.data_processing import process_ping_results

INTERVAL, DURATION, OUTAGE = 2, 3600, range(1800, 1920)
times = range(0, DURATION, INTERVAL)
folder = Path("results")
folder.mkdir()
# As run_ping writes them, one line for each ping.
lines = ["Lost" if time in OUTAGE else "20.0" for time in times]
(folder / "ping_results_192.0.2.1.txt").write_text("\n".join(lines) + "\n")
config = {"duration": DURATION, "ping_interval": INTERVAL, "no_aggregation": False}
tables = process_ping_results(str(folder), config)["192.0.2.1"]
raw, minutes = tables["raw"], tables["aggregated"]
lost = raw[raw["Ping (ms)"].isna()]["Time (s)"]
print(f"lost from {lost.min()} to {lost.max()} s, last ping at {raw['Time (s)'].max()} s")
for _, minute in minutes[minutes["Packet Loss (%)"] > 0].iterrows():
    time, latency, loss = minute
    print(f"minute around {time:.0f} s: mean {latency} ms, {loss:.0f} % lost")
END
env/bin/python run.py 2>log | tee told
cat >expected <<'END'
lost from 901 to 960 s, last ping at 1800 s
minute around 930 s: mean 0.0 ms, 100 % lost
END
diff expected told
