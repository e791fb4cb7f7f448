#!/bin/sh
# filterOutliers of stats-analysis 2.0.0 (npm), by its documentation "best for time series data", compares each value
# with the one before and drops it if that difference is more than three times the median of all (isMedianDiffOutlier in
# stats.js). After a spike the first good value differs as much, and is dropped too; of a spike that lasts, as in an
# outage, only the first value is dropped, and the others stay. It also rounds differences to whole numbers and adds one
# (differences), so it depends on the unit: of round trips in seconds all differences are one, and nothing is ever
# dropped. After a value of 0 nothing is compared (arr[i - 1] || d[0], which is undefined). Nothing is said.
#
# Seen, round trips of 20 to 22 ms and one of 400: left out are the one of 400 and the one of 20 behind it; in seconds
# none. With three around 400: the first of them and the first behind them.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund stats-analysis@2.0.0
cat >run.js <<'END'
const { indexOfOutliers } = require('stats-analysis')

/** Prints which of these values are taken for outliers. */
function show (name, values) {
  const told = indexOfOutliers(values).map(index => `${values[index]} at ${index}`)
  console.log(`${name}: ${told.join(', ') || 'none'}`)
}

const spike = [20, 21, 20, 22, 21, 400, 20, 21, 22, 20, 21] // ms
show('spike, in ms', spike)
show('spike, in s', spike.map(ms => ms / 1000))
show('outage, in ms', [20, 21, 20, 22, 21, 400, 401, 399, 20, 21, 22, 20, 21])
END
node run.js | tee told
cat >expected <<'END'
spike, in ms: 400 at 5, 20 at 6
spike, in s: none
outage, in ms: 400 at 5, 20 at 8
END
diff expected told
