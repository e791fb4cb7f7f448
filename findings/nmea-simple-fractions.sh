#!/bin/sh
# nmea-simple 3.3.0 (npm), which reads and writes NMEA 0183, loses fractions of seconds. Of the time in RMC, the
# sentence that has the date with it, it keeps the fraction only if that has two digits (parseDatetime in helpers.ts:
# a length of 9). NMEA 0183 leaves the number of digits open, as for ZDA, GGA and the others, of which the same
# package reads any (parseTime); many receivers write three or one. So of ten fixes a second, all ten have one time.
# What it writes has whole seconds in all sentences (encodeTime), cut off and not rounded. Nothing is said; by the
# comments of both functions that read it takes "hhmmss" and "hhmmss.ss".
#
# Seen, 12:35:19.6: from ZDA and from RMC with two digits 600 ms, from RMC with one or three digits 0 ms. Written as
# GGA and read again: 12:35:19.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund nmea-simple@3.3.0
cat >run.js <<'END'
const { encodeNmeaPacket, parseNmeaSentence } = require('nmea-simple')

function read (sentence) {
  const checksum = [...sentence.slice(1)].reduce((sum, letter) => sum ^ letter.charCodeAt(0), 0)
  return parseNmeaSentence(`${sentence}*${checksum.toString(16).toUpperCase().padStart(2, '0')}`)
}

const told = []
for (const time of ['123519.6', '123519.60', '123519.600']) {
  const rmc = read(`$GPRMC,${time},A,4807.038,N,01131.000,E,022.4,084.4,010326,003.1,W`).datetime
  const zda = read(`$GPZDA,${time},01,03,2026,00,00`).datetime
  told.push([rmc, zda].map(date => date.toISOString().slice(11, 23)).join(' '))
  console.log(`${time}: RMC and ZDA ${told.at(-1)}`)
}
const gga = read('$GPGGA,123519.60,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,')
const written = encodeNmeaPacket(gga, 'GP').split(',')[1]
console.log(`written: ${written}`)
const expected = ['12:35:19.000 12:35:19.600', '12:35:19.600 12:35:19.600', '12:35:19.000 12:35:19.600']
process.exit(String(told) === String(expected) && written === '123519' ? 0 : 1)
END
node run.js
