#!/bin/sh
# hdrhistogram 0.10.8, HdrHistogram for Python, records one value too many when it corrects for coordinated omission
# (record_corrected_value): it goes down from a late value in steps of the expected interval until it is below the
# interval, where it should stop above. So each value above the interval brings one of its remainder, which nobody
# waited for. A prober that waits for a reply of 600 ms and should send every 500 ms gets as many values of 100 ms:
# the median is 100 ms. Nothing is said, and minimum and mean are wrong with it. ltiprobe 1.6.1 (--interval) takes its
# percentiles from there, and hdrpy 0.3.3 has the same loop. By the documentation of the original in Java
# (recordValueWithExpectedInterval) the values go down to the expected interval; hdr-histogram-js 3.0.1 gives a
# median of 600 ms.
#
# Seen, 100 replies, one every 500 ms expected: of 600 ms each, 200 values, median 100, mean 350 ms; right is 100, 600
# and 600. Of 20 ms and one of 5050 ms, 110 values, one of them 50 ms; right is 109, none below 550.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet hdrhistogram==0.10.8
cat >"$dir/run.py" <<'END'
import sys

from hdrh.histogram import HdrHistogram

INTERVAL = 500  # ms
LONGEST, DIGITS = 3_600_000, 3


def corrected(replies: list[int]) -> HdrHistogram:
    histogram = HdrHistogram(1, LONGEST, DIGITS)
    for reply in replies:
        histogram.record_corrected_value(reply, INTERVAL)
    return histogram


def right(replies: list[int]) -> list[int]:
    """The replies, and those that requests in time would have had to wait for."""
    values = list(replies)
    for reply in replies:
        values.extend(range(reply - INTERVAL, INTERVAL - 1, -INTERVAL))
    return sorted(values)


satellite, outage = [600] * 100, [20] * 99 + [5050]
slow = corrected(satellite)
told = (slow.get_total_count(), slow.get_value_at_percentile(50), slow.get_mean_value())
expected = right(satellite)
print(f"satellite: {told[0]} values, median {told[1]}, mean {told[2]:.0f} ms; right {len(expected)} of {expected[0]}")
late = corrected(outage)
counts = (late.get_total_count(), late.get_count_at_value(50))
print(f"outage: {counts[0]} values, {counts[1]} of 50 ms; right {len(right(outage))} and {right(outage).count(50)}")
sys.exit(told != (200, 100, 350) or counts != (110, 1))
END
"$dir/venv/bin/python" "$dir/run.py"
