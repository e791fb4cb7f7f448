#!/bin/sh
# nmea 0.1.2 (npm) writes GGA sentences with too few digits. Longitude is "dddmm.mm", latitude "ddmm.mm", with zeros in
# front (NMEA 0183, GGA, and the comment in its own codecs/GGA.js). encode fills both up to six characters
# (encodeDegrees in helpers.js), one or two less than these have, so the first zero of a longitude below 100 degrees is
# missing: 11 degrees and 31 minutes becomes "1131.00". gps 0.9.0 (npm), which takes the first three digits for the
# degrees, reads 113 degrees and 1 minute. It also rounds minutes to two decimals, up to 9 m, and cuts the time to whole
# seconds: at 5 Hz five fixes have the same time. So a trace that was read, filtered and written again is in another
# part of the world. Nothing is said, and the checksum is right.
#
# Seen, 48.1173 N 11.5167 E at 12:35:19.80: "123519,4807.04,N,1131.00,E", which is read as 113.0167 E at 12:35:19.00.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund nmea@0.1.2 gps@0.9.0
cat >run.js <<'END'
const GPS = require('gps')
const nmea = require('nmea')

/** A sentence with its checksum. */
function sentence (content) {
  const sum = [...content].reduce((sum, character) => sum ^ character.charCodeAt(0), 0)
  return `$${content}*${sum.toString(16).toUpperCase().padStart(2, '0')}`
}

const received = sentence('GPGGA,123519.80,4807.03849,N,01131.00012,E,1,08,0.9,545.4,M,46.9,M,,')
const fix = nmea.parse(received)
// The encoder wants numbers and a date where the parser gives text.
const written = nmea.encode('GP', {
  ...fix,
  timestamp: new Date('2024-01-01T12:35:19.800Z'),
  lat: Number(fix.lat),
  lon: Number(fix.lon)
})
const [before, after] = [received, written].map(line => {
  const { time, lat, lon, valid } = GPS.Parse(line)
  return `${lat.toFixed(4)} N ${lon.toFixed(4)} E, ${time.toISOString().slice(11, 22)}, ${valid ? 'valid' : 'invalid'}`
})
console.log(`received: ${received}: ${before}`)
console.log(`written: ${written}: ${after}`)
process.exit(
  before === '48.1173 N 11.5167 E, 12:35:19.80, valid' &&
  after === '48.1173 N 113.0167 E, 12:35:19.00, valid' &&
  written.includes(',123519,4807.04,N,1131.00,E,')
    ? 0 : 1)
END
node run.js
