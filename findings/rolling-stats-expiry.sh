#!/bin/sh
# rolling-stats 0.2.1 (npm), statistics over the points of the last so many milliseconds, drops no more than half of its
# points when it computes them. calculate drops old points from the end while a counter is below the number of points
# (rolling-stats.js): each turn raises the counter and lowers the number, so they meet half way. After a pause, as in an
# outage, more than half are too old, and the rest of them stays: count, mean, largest, deviation and rate are those of
# the path before. Only the next calls drop more. The smallest value since the start (allmin) and the lowest rate begin
# at 0 and stay there; so does the largest (allmax) of numbers below 0, as dBm are. Nothing is said.
#
# Seen, a window of 10 s, 100 round trips of 600 ms, a pause of 20 s. Computed then, when none is left: 50 of 600 ms,
# again 25, 12 and 6. Computed after 50 more of 40 ms: 75, mean 226.7 ms, largest 600, smallest ever 0. Levels of -80
# and -90 dBm: largest ever 0.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund rolling-stats@0.2.1
cat >run.js <<'END'
const RollingStats = require('rolling-stats')

let now = 0 // ms

/** Enters this many points of this value, one each 0.1 s. */
function enter (stats, count, value) {
  for (let index = 0; index < count; index++, now += 100) stats.point(value)
}

const [first, second] = [0, 1].map(() => {
  const stats = RollingStats(1000, 10000, () => now)
  enter(stats, 100, 600)
  now += 20000
  return stats
})
console.log('after the pause:', [1, 2, 3, 4].map(() => first.calculate().count).join(' '))
enter(second, 50, 40)
const { count, mean, max, allmin } = second.calculate()
console.log(`after 50 of 40 ms: count ${count}, mean ${mean.toFixed(1)}, max ${max}, smallest ever ${allmin}`)
const levels = RollingStats(1000, 10000, () => now)
levels.point(-80)
levels.point(-90)
console.log('levels of -80 and -90 dBm, largest ever:', levels.calculate().allmax)
END
node run.js | tee told
cat >expected <<'END'
after the pause: 50 25 12 6
after 50 of 40 ms: count 75, mean 226.7, max 600, smallest ever 0
levels of -80 and -90 dBm, largest ever: 0
END
diff expected told
