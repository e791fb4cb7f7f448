#!/bin/sh
# Three t-digests, sketches for percentiles of streams, go wrong where many samples are equal, as round trips in whole
# milliseconds are: pytdigest 0.1.4 and tdigest 0.5.2.2 (PyPI) and tdigest 0.1.3 (npm). All keep equal samples as one
# centroid, and go in a straight line from its middle to the next (td_value_at in tdigest.c; percentile in tdigest.py;
# percentile in tdigest.js), as if half of its samples were larger than they are. tdigest of PyPI also follows the line
# to the left of the first middle, to round trips below 0. Nothing is said. They promise approximate percentiles, but
# these were not averaged with anything, and fastdigest 0.12.0 (PyPI), a t-digest too, has them right. Exact ones are
# by definition 7 of Hyndman and Fan, American Statistician 50 (1996).
#
# Seen, nine of ten round trips 20 ms, the others 300 to 399, as with a radio that sleeps; percentiles 25, 50, 80 and
# 95: pytdigest 20, 52, 241, 350; tdigest of PyPI -104, 51, 238, 350; of npm 20, 51, 238, 350; fastdigest and exact 20,
# 20, 20, 349.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check \
    pytdigest==0.1.4 tdigest==0.5.2.2 fastdigest==0.12.0 numpy==2.4.6 pandas==3.1.1
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund tdigest@0.1.3
cat >run.py <<'END'
import json

import fastdigest
import numpy
import pytdigest
import tdigest

PERCENTILES = (25, 50, 80, 95)
samples = numpy.array([300.0 + number // 10 if number % 10 == 9 else 20.0 for number in range(1000)])
with open("samples.json", "w") as file:
    json.dump({"percentiles": PERCENTILES, "samples": samples.tolist()}, file)
batch = tdigest.TDigest()
batch.batch_update(samples)
sketches = {
    "pytdigest": pytdigest.TDigest.compute(samples).inverse_cdf,
    "tdigest of PyPI": lambda share: batch.percentile(100 * share),
    "fastdigest": fastdigest.TDigest.from_values(samples.tolist()).quantile,
    "exact": lambda share: numpy.quantile(samples, share),
}
for name, quantile in sketches.items():
    print(f"{name}:", *(f"{quantile(percentile / 100):.0f}" for percentile in PERCENTILES))
END
cat >run.js <<'END'
const { TDigest } = require('tdigest')
const { percentiles, samples } = JSON.parse(require('fs').readFileSync('samples.json'))
const digest = new TDigest()
digest.push(samples)
digest.compress()
console.log('tdigest of npm:', ...percentiles.map(percentile => digest.percentile(percentile / 100).toFixed(0)))
END
{ env/bin/python run.py && node run.js; } | tee told
cat >expected <<'END'
pytdigest: 20 52 241 350
tdigest of PyPI: -104 51 238 350
fastdigest: 20 20 20 349
exact: 20 20 20 349
tdigest of npm: 20 51 238 350
END
diff expected told
