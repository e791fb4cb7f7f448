#!/bin/sh
# gps-time 1.0.8 (npm) converts between Unix time and GPS time, in milliseconds. It takes every Unix time that is not a
# whole second for one within a leap second (a comment in toGPSMS says so, gps-time.js): half a second off, and a whole
# one on. So all of these come out 500 ms late, and after each x.999 GPS time goes back by 499 ms. The way back is
# right, so there and back makes 500 ms. Who compares the GPS time that a packet was sent with, say from a drive test,
# with a receiver's clock has one-way delays that are half a second too long. Nothing is said: README.md promises leap
# seconds, and its example converts Date.now(), which is a whole second once in a thousand times. GPS time has no leap
# seconds; since 2017 it is 18 s ahead of UTC (IS-GPS-200, 3.3.4), whatever the fraction.
#
# Seen, packets under way for 40 ms, the arrival converted by toGPSMS: 540 ms, and 40 for one that arrives at a whole
# second.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund gps-time@1.0.8
cat >run.js <<'END'
const { toGPSMS, toUnixMS } = require('gps-time')

const START = Date.UTC(2026, 2, 23, 12) // ms, a whole second
const EPOCH = Date.UTC(1980, 0, 6) // ms, where GPS time begins
const LEAP_SECONDS = 18 // since 2017
const DELAY = 40 // ms

const right = unix => unix - EPOCH + 1000 * LEAP_SECONDS
const offsets = [0, 1, 250, 500, 999, 1000].map(ms => toGPSMS(START + ms) - right(START + ms))
console.log(`toGPSMS at 0, 1, 250, 500, 999 and 1000 ms: ${offsets.join(', ')} ms late`)

const back = [0, 250, 999].map(ms => toUnixMS(right(START + ms)) - (START + ms))
console.log(`toUnixMS at 0, 250 and 999 ms: ${back.join(', ')} ms late`)

const delays = [0, 100, 200, 960].map(ms => toGPSMS(START + ms + DELAY) - right(START + ms))
console.log(`one-way delays of packets sent at 0, 100, 200 and 960 ms: ${delays.join(', ')} ms`)

const told = [offsets, back, delays].join('; ')
process.exit(told === '0,500,500,500,500,0; 0,0,0; 540,540,540,40' ? 0 : 1)
END
node run.js
