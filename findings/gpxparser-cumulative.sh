#!/bin/sh
# gpxparser 3.0.8 (npm), which reads GPX tracks, gives each point the distance to the point after it: the first has the
# length of the first leg, not 0, and the last two have the same (calculDistance in GPXParser.js). So who divides these
# distances by the times of the fixes has each speed one fix early, a vehicle starts before its first fix, and it stands
# still at the end of every track. Its slopes (calculSlope) divide the climb of a leg by the length of the leg after it:
# a climb before a slow stretch is too steep, and the last slope of a track is infinite, or no number where it is level.
# Nothing is said; the total is right. By its README the values are the "Cumulative distance at each point of the
# Route/Track". @we-gold/gpxjs 1.2.0 (npm) has both right.
#
# Seen, a fix every 10 s, legs of 100, 100, 0 and 200 m, 10 m uphill each but the third: distances 100, 200, 200, 400
# and 400 m, right 0, 100, 200, 200 and 400; slopes 10, infinite, 0 and infinite %, right 10, 10, none and 5.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund gpxparser@3.0.8 @we-gold/gpxjs@1.2.0 jsdom@22.1.0
cat >run.js <<'END'
const { JSDOM } = require('jsdom')
const METRE = 180 / Math.PI / 6371000
const track = [[0, 0], [100, 10], [200, 20], [200, 20], [400, 30]]
const points = track.map(([metres, height], index) => {
  const time = new Date(Date.UTC(2026, 4, 1) + 10000 * index).toISOString()
  return `<trkpt lat="${(metres * METRE).toFixed(9)}" lon="8"><ele>${height}</ele><time>${time}</time></trkpt>`
})
const gpx = '<?xml version="1.0"?><gpx version="1.1" creator="finding" xmlns="http://www.topografix.com/GPX/1/1">' +
  `<trk><name>track</name><trkseg>${points.join('')}</trkseg></trk></gpx>`
const round = values => values.map(value => Math.round(value)).join(' ')

const GpxParser = require('gpxparser')
const parser = new GpxParser()
parser.parse(gpx)
const [told] = parser.tracks
console.log(`gpxparser: ${round(told.distance.cumul)} m, slopes ${round(told.slopes)} %`)

import('@we-gold/gpxjs').then(({ parseGPXWithCustomParser, calculateSlopes }) => {
  const parse = text => new JSDOM(text, { contentType: 'text/xml' }).window.document
  const [parsed, error] = parseGPXWithCustomParser(gpx, parse)
  if (error) throw error
  const right = parsed.tracks[0]
  console.log(`gpxjs: ${round(right.distance.cumulative)} m, slopes ${round(right.slopes)} %`)
})
END
node run.js | tee told
cat >expected <<'END'
gpxparser: 100 200 200 400 400 m, slopes 10 Infinity 0 Infinity %
gpxjs: 0 100 200 200 400 m, slopes 10 10 NaN 5 %
END
diff expected told
