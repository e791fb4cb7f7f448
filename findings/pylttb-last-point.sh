#!/bin/sh
# pylttb 0.1.9 (PyPI) thins out time series for display, as of round trips, by Largest Triangle Three Buckets. It ends
# its result with the mean of the last bucket (lttb in lttb.py: right_point), which should hold just the last point. The
# edges of the buckets are products of a fraction, cut off to whole numbers: where the product falls just short, as for
# 200 points thinned to 100, the bucket holds the last two. Then the series ends half a step early, at a value that was
# never measured: of a link that has just failed, whose round trips of 40 ms end with one of 2 s, 1020 ms are left.
# That happens with one length in 16 at 51, 100, 101 or 200 points kept, and one in 90 at 500 or 1000. Nothing is said.
# The algorithm keeps the first and the last point and invents none (S. Steinarsson, Downsampling Time Series for Visual
# Representation, 2013, 4.2). lttb 0.3.2 (PyPI) does so.
#
# Seen, 200 points thinned to 100: the last at 198.5 s and 1020 ms by pylttb, at 199 s and 2000 ms by lttb; 201 points
# to 100: 200 s and 2000 ms by both. Of the lengths up to 5000, 6.3 % end wrong at 100 points kept.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check --no-deps pylttb==0.1.9 lttb==0.3.2 numpy==2.2.6
cat >run.py <<'END'
import lttb
import numpy as np
import pylttb

KEPT, LONGEST = 100, 5000


def thinned(length):
    """The last point by pylttb and by lttb."""
    times = np.arange(length, dtype=float)
    round_trips = np.full(length, 40.0)
    round_trips[-1] = 2000.0
    first = pylttb.lttb(times, round_trips, KEPT)
    second = lttb.downsample(np.column_stack([times, round_trips]), n_out=KEPT)
    return (first[0][-1], first[1][-1]), tuple(second[-1])


for length in 200, 201:
    for name, (time, round_trip) in zip(("pylttb", "lttb"), thinned(length), strict=True):
        print(f"{length} points, {name}: ends at {time:.1f} s with {round_trip:.0f} ms")
lengths = range(KEPT + 1, LONGEST + 1)
wrong = 0
for length in lengths:
    times = np.arange(length, dtype=float)
    wrong += pylttb.lttb(times, times, KEPT)[0][-1] != times[-1]
print(f"wrong: {100 * wrong / len(lengths):.1f} % of the lengths")
END
env/bin/python run.py | tee told
cat >expected <<'END'
200 points, pylttb: ends at 198.5 s with 1020 ms
200 points, lttb: ends at 199.0 s with 2000 ms
201 points, pylttb: ends at 200.0 s with 2000 ms
201 points, lttb: ends at 200.0 s with 2000 ms
wrong: 6.3 % of the lengths
END
diff expected told
