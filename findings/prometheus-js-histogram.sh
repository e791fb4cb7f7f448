#!/bin/sh
# The npm package parse-prometheus-text-format 1.1.1 makes one histogram of all histograms of a name:
# it takes their labels away, the buckets of the last one replace those of the others, and sums and
# counts are lost. Summaries go the same way; counters and gauges keep their labels. Nothing is raised.
# In the format each set of labels has buckets, sum and count of its own; prometheus_client 0.26.0
# for Python gives them all.
#
# Seen: one histogram of two, without labels, sum and count: "0.1" 1, "+Inf" 100, which are those of
# the south cell.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-fund --no-audit parse-prometheus-text-format@1.1.1 >/dev/null
cat >run.js <<'END'
const assert = require("assert");
const parse = require("parse-prometheus-text-format").default ?? require("parse-prometheus-text-format");

const text = `# TYPE rtt_seconds histogram
rtt_seconds_bucket{cell="north",le="0.1"} 9
rtt_seconds_bucket{cell="north",le="+Inf"} 10
rtt_seconds_sum{cell="north"} 0.7
rtt_seconds_count{cell="north"} 10
rtt_seconds_bucket{cell="south",le="0.1"} 1
rtt_seconds_bucket{cell="south",le="+Inf"} 100
rtt_seconds_sum{cell="south"} 90
rtt_seconds_count{cell="south"} 100
`;
const [family] = parse(text);
console.log(JSON.stringify(family.metrics));
assert.deepStrictEqual(family.metrics, [{ buckets: { 0.1: "1", "+Inf": "100" } }]);
END
node run.js
