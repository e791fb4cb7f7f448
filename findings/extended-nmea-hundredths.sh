#!/bin/sh
# extended-nmea 2.1.3 (npm) takes the hundredths of a second in "hhmmss.ss", the time as u-blox and many other
# receivers write it, for milliseconds (parseTime in helpers.js): 12:35:19.80 becomes 12:35:19.080. So the fixes of
# a receiver at 5 Hz are 20 ms apart and every fifth 920 ms, and a track made from them moves ten times too fast and
# then nearly stands: speeds, handovers and path loss over time are wrong. At 1 Hz all is well. No error is returned,
# `valid` is true. In NMEA 0183 the digits after the point, any number of them, are a decimal fraction of the second.
# nmea-simple 3.3.0 reads them so.
#
# Seen, a vehicle at 20 m/s, 5 fixes a second: 200, 200, 200, 200 and 4.3 m/s; with nmea-simple 20 m/s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund extended-nmea@2.1.3 nmea-simple@3.3.0
cat >run.js <<'END'
const { Decoder } = require('extended-nmea')
const { parseNmeaSentence } = require('nmea-simple')

const SPEED = 20 // m/s, along the equator
const METRES = 1852 // a minute of longitude there
const FIXES = 6, RATE = 5 // Hz

/** The sentence of a fix, as a u-blox receiver writes it. */
function sentence (fix) {
  const seconds = (19 + fix / RATE).toFixed(2)
  const minutes = (31 + SPEED * fix / RATE / METRES).toFixed(5)
  const body = `GNRMC,1235${seconds},A,0000.00000,N,011${minutes},E,38.877,90.00,230326,,,A`
  const sum = [...body].reduce((sum, character) => sum ^ character.charCodeAt(0), 0)
  return `$${body}*${sum.toString(16).toUpperCase().padStart(2, '0')}\r\n`
}

/** Speeds between fixes, each a time in ms and a longitude. */
function speeds (fixes) {
  return fixes.slice(1).map(([time, longitude], index) => {
    const [before, from] = fixes[index]
    return (longitude - from) * 60 * METRES / (time - before) * 1000
  })
}

const told = [], right = []
let valid = true
for (let fix = 0; fix < FIXES; fix++) {
  const line = sentence(fix)
  const read = Decoder.decode(line)
  valid &&= read.valid
  told.push([read.time.totalMilliseconds, read.longitude.decimalDegrees])
  const other = parseNmeaSentence(line.trim())
  right.push([other.datetime.getTime(), other.longitude])
}
const show = values => values.map(value => value.toFixed(1)).join(', ')
console.log(`extended-nmea: ${show(speeds(told))} m/s; nmea-simple: ${show(speeds(right))} m/s`)
const expected = [200, 200, 200, 200, 4.3]
const near = (values, wanted) => values.every((value, index) => Math.abs(value - wanted[index]) < 1)
process.exit(valid && near(speeds(told), expected) && near(speeds(right), Array(5).fill(SPEED)) ? 0 : 1)
END
node run.js
