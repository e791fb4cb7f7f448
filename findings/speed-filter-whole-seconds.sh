#!/bin/sh
# speed-filter 0.0.0 (npm), which vectorize 0.1.1 and gps-filter 0.2.0 compute with, counts the time between two fixes
# in whole seconds and drops the rest (calcElapsed in index.js; moment's diff cuts off). So for a receiver of 2 Hz or
# more the time is 0 and every speed infinite, and gps-filter's velocityFilter removes the whole track, whatever the
# limits. A receiver of 1 Hz whose clock jitters by milliseconds, as a phone's does, has twice the speed where 1.999 s
# passed and an infinite one where 0.999 s did, and speed-filter takes the fix after it for an outlier. No error is
# returned. By the documentation of vectorize and gps-filter times may be anything that moment reads, which is
# milliseconds, and all speeds are in m/s.
#
# Seen, a vehicle at 20 m/s: fixes at 0, 1.001, 2.000, 3.001, 4.000 s: 20.0, Infinity, 20.0, Infinity m/s, of which
# speed-filter leaves three; 5 Hz for 4 s: all Infinity, velocityFilter from 0 to 50 m/s leaves 0 of 21 fixes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund speed-filter@0.0.0 vectorize@0.1.1 gps-filter@0.2.0
cat >run.js <<'END'
const speedFilter = require('speed-filter')
const gpsFilter = require('gps-filter')

const SPEED = 20 // m/s
const METRES = 6_371_000 * Math.PI / 180 // of a degree
const START = Date.UTC(2026, 2, 23, 12)
const LIMITS = [0, 50] // m/s

/** Fixes at these times, in ms, of a vehicle that goes north. */
const track = times => times.map(time => ({
  lat: 60 + SPEED * time / 1000 / METRES,
  lng: 10,
  time: new Date(START + time).toISOString()
}))

const told = []
for (const [name, times] of [
  ['1 Hz', [0, 1000, 2000, 3000, 4000]],
  ['1 Hz, late fixes', [0, 1000, 2999, 3999, 4999]],
  ['1 Hz with jitter', [0, 1001, 2000, 3001, 4000]],
  ['5 Hz', Array.from({ length: 21 }, (_, index) => 200 * index)]
]) {
  const points = track(times)
  const speeds = speedFilter.calcSpeeds(points).slice(0, 4).map(speed => speed.toFixed(1)).join(', ')
  const left = speedFilter.filter(points, ...LIMITS).length
  const filtered = gpsFilter.velocityFilter(points, ...LIMITS).length
  console.log(`${name}: ${speeds} m/s; of ${points.length} fixes speed-filter leaves ${left}, gps-filter ${filtered}`)
  told.push([speeds, left, filtered].join(' '))
}
const expected = [
  '20.0, 20.0, 20.0, 20.0 5 5',
  '20.0, 40.0, 20.0, 20.0 5 5',
  '20.0, Infinity, 20.0, Infinity 3 4',
  'Infinity, Infinity, Infinity, Infinity 5 0'
]
process.exit(told.join() === expected.join() ? 0 : 1)
END
node --no-warnings run.js
