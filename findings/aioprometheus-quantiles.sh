#!/bin/sh
# A Summary of aioprometheus 23.12.0 (PyPI) tells percentiles that are far too low until many thousand values have been
# observed. It takes them from quantile-python 1.1, which puts each value that is the largest so far into its list
# twice (_replace_batch in quantile/__init__.py: what is appended at the end is then inserted as well), but counts it
# once. So of up to 512 values, which it sorts first, all are there twice. The walk to the rank that is asked for ends
# half way: the median is the first quartile, and the 99th percentile is the median. Values that keep growing, as round
# trips do while a buffer fills, are never right. Nothing is said. By default, it sets bounds of 5, 1 and 0.1 % of the
# ranks for the percentiles 50, 90 and 99, which the algorithm of Cormode and others (ICDE 2005) keeps.
#
# Seen, round trips of 1 to n ms, each once, in mixed order, percentiles 50, 90 and 99 as ranks in per cent: after 100
# values 27, 45 and 51; after 500 27, 45 and 50; after 1000 31, 61 and 66; after 20000 43, 88 and 96. In rising order,
# after 20000: 27, 45 and 50.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check aioprometheus==23.12.0 quantile-python==1.1
cat >run.py <<'END'
from aioprometheus import Summary

PERCENTILES = (50, 90, 99)


def told(name, values):
    """The ranks, in per cent, of what a Summary takes for the percentiles of the numbers 1 to n."""
    summary = Summary(name, "Round trips in ms")
    for value in values:
        summary.observe({}, value)
    quantiles = summary.get({})
    return [round(100 * quantiles[percentile / 100] / len(values)) for percentile in PERCENTILES]


print("percentiles:", *PERCENTILES)
for count in (100, 500, 1000, 20000):
    print(f"{count} values:", *told(f"rtt_{count}", [1 + 617 * index % count for index in range(count)]))
print("20000 rising values:", *told("rtt_rising", list(range(1, 20001))))
END
env/bin/python run.py | tee told
cat >expected <<'END'
percentiles: 50 90 99
100 values: 27 45 51
500 values: 27 45 50
1000 values: 31 61 66
20000 values: 43 88 96
20000 rising values: 27 45 50
END
diff expected told
