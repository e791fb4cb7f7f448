#!/bin/sh
# fast-stats 0.0.7 (npm) has two rules for percentiles (percentile in faststats.js). 25, 50 and 75 are the mean of the
# two values around that share of n - 1. All others are the value at n times the share, counted from 0, so one too far:
# the nearest rank, counted from 1, would be that. So percentiles do not grow with their number: the 75th can be below
# the 70th. And the largest value is told for the 90th of 10, the 95th of 20 and the 99th of 100 values, as it is by
# none of the nine definitions of Hyndman and Fan (American Statistician 50, 1996): one late packet of a hundred is the
# 99th percentile. Nothing is said: its documentation takes any number from 0 to 100.
#
# Seen, round trips of 20 ms seven times, then 400, 410 and 420: percentile 70 400 ms, 75 210, 76 400, 90 420. Of 1 to
# 100 ms: 50 50.5 ms, 90 91, 99 100.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund fast-stats@0.0.7
cat >run.js <<'END'
const { Stats } = require('fast-stats')

/** Prints these percentiles of these values. */
function show (name, values, percentiles) {
  const stats = new Stats().push(values)
  console.log(name + ': ' + percentiles.map(number => `${number} ${stats.percentile(number)}`).join(', '))
}

show('seven of ten 20 ms', [20, 20, 20, 20, 20, 20, 20, 400, 410, 420], [50, 70, 75, 76, 90])
show('1 to 100 ms', Array.from({ length: 100 }, (_, index) => index + 1), [50, 90, 99])
END
node run.js | tee told
cat >expected <<'END'
seven of ten 20 ms: 50 20, 70 400, 75 210, 76 400, 90 420
1 to 100 ms: 50 50.5, 90 91, 99 100
END
diff expected told
