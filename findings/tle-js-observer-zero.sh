#!/bin/sh
# getSatelliteInfo of tle.js 5.0.3 (npm) takes a latitude, longitude or height of 0 for one that was not given, and puts
# 36.96 N, 122.03 W or 370 m for it, a place in California. So a station on the equator looks from 37 degrees north, one
# on the meridian of Greenwich from the far side of the Earth, and no pass is where it should be; nor are the satellites
# of getVisibleSatellites. And getOrbitTrackSync keeps its tracks by satellite, start and step only: asked again for a
# longer one, it gives the short one. Nothing is said; an example of its documentation has the height 0. satellite.js
# 7.1.0 (ecfToLookAngles), which it computes with, has all stations right.
#
# Seen, elevation of a satellite from 51 N 0 E -29.9, from 51 N 0.0001 E 68.8 degrees; from 0 N 30 E -12.4, from
# 0.0001 N 30 E 65.6. Tracks of 1 and 10 minutes, a point each 10 s: 7 and 7 points; right is 61 for the second.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund tle.js@5.0.3 satellite.js@7.1.0
cat >run.js <<'END'
import { ecfToLookAngles, eciToEcf, gstime, propagate, twoline2satrec } from 'satellite.js'
import { getOrbitTrackSync, getSatelliteInfo } from 'tle.js'

const LINES = [
  '1 99999U 24001A   24001.50000000  .00016717  00000-0  10270-3 0  9994',
  '2 99999  51.6400 208.9163 0006317  69.9862  25.2906 15.50000000    00'
]
const EPOCH = Date.UTC(2024, 0, 1, 12)
const HEIGHT = 0.1 // km

/** The elevation of the satellite in degrees, by satellite.js. */
function right (time, latitude, longitude) {
  const date = new Date(time)
  const place = eciToEcf(propagate(twoline2satrec(...LINES), date).position, gstime(date))
  const radians = degrees => degrees * Math.PI / 180
  const station = { latitude: radians(latitude), longitude: radians(longitude), height: HEIGHT }
  return ecfToLookAngles(station, place).elevation * 180 / Math.PI
}

let changed = false
for (const [minutes, latitude, longitude, expected] of [
  [92, 51, 0, '-29.9'], [92, 51, 0.0001, '68.8'], [300, 0, 30, '-12.4'], [300, 0.0001, 30, '65.6']
]) {
  const time = EPOCH + 60000 * minutes
  const told = getSatelliteInfo(LINES, time, latitude, longitude, HEIGHT).elevation.toFixed(1)
  console.log(`${latitude} N ${longitude} E: elevation ${told}, right ${right(time, latitude, longitude).toFixed(1)}`)
  changed = changed || told !== expected
}
const points = minutes =>
  getOrbitTrackSync({ tle: LINES, startTimeMS: EPOCH, stepMS: 10000, maxTimeMS: 60000 * minutes }).length
const lengths = [points(1), points(10)]
console.log(`tracks of 1 and 10 minutes: ${lengths.join(' and ')} points, right 7 and 61`)
changed = changed || lengths.join() !== '7,7'
process.exit(changed ? 1 : 0)
END
node run.js
