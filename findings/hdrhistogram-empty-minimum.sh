#!/bin/sh
# Two HdrHistograms for Python, hdrhistogram 0.10.8 and hdrpy 0.3.3 (both PyPI), have a minimum of 0 for good once an
# empty histogram was added. add takes the lesser of the two minima, and get_min_value of an empty one is 0 (hdrh/
# histogram.py and hdrpy/__init__.py). So where the histograms of intervals, paths or hosts are added up, as the
# library is made for, one in which nothing came, as in an outage, gives all a least round trip of 0, and what is told
# above the minimum, the delay of the queue, is the whole round trip. Nothing is said; percentile 0 stays right. The
# original in Java keeps the least value above zero, which an empty one does not change (AbstractHistogram.add), and
# so does hdr-histogram-js 3.0.1.
#
# Seen, 20, 30 and 40 ms: minimum 20; with an empty one added 0, percentile 0 and maximum still 20 and 40; and with a
# further 25 recorded, 0.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check hdrhistogram==0.10.8 hdrpy==0.3.3 numpy==1.26.4
cat >run.py <<'END'
import hdrpy
from hdrh.histogram import HdrHistogram

told = []
for kind in HdrHistogram, hdrpy.HdrHistogram:
    interval, outage, total = (kind(1, 60_000, 2) for _ in range(3))
    for value in 20, 30, 40:
        interval.record_value(value)
    total.add(interval)
    minima = [total.get_min_value()]
    total.add(outage)
    minima.append(total.get_min_value())
    total.record_value(25)
    minima.append(total.get_min_value())
    told.append((minima, total.get_value_at_percentile(0), total.get_max_value()))
    print(f"{kind.__module__}: minimum {minima}, percentile 0 {told[-1][1]}, maximum {told[-1][2]}")
assert told == [([20, 0, 0], 20, 40)] * 2
END
env/bin/python run.py
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund hdr-histogram-js@3.0.1
cat >run.js <<'END'
const { build } = require('hdr-histogram-js')
const range = { lowestDiscernibleValue: 1, highestTrackableValue: 60000 }
const [interval, outage, total] = [1, 2, 3].map(() => build(range))
for (const value of [20, 30, 40]) interval.recordValue(value)
total.add(interval)
total.add(outage)
console.log('hdr-histogram-js: minimum', total.minNonZeroValue)
process.exit(total.minNonZeroValue === 20 ? 0 : 1)
END
node run.js
