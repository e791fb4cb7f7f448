#!/bin/sh
# @casual-simulation/timesync 3.7.0 (npm), which keeps the clocks of devices in step for a shared simulation, asks the
# server every 30 s and never forgets an answer. It keeps the ten with the least latency of all time (addSample in
# TimeSync.js, _maxIncludedSamples) and means their offsets, however old they are. But clocks run apart, by 20 ppm or
# 1.7 s a day between ordinary ones, so the offset told stays behind by hours, and the more so the longer it runs,
# since it takes ever longer until an answer is among the ten best. NTP keeps eight and lets them age (RFC 5905, 10).
# Nothing is said but offsetSpreadMS, how far the ten lie apart.
#
# Seen, a clock that gains 20 ppm, 20 ms one way and 10 ms more on average by chance: off by 0.5 s after 12 hours and
# by 2.1 s after two days. A single answer is off by 56 ms at most.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund @casual-simulation/timesync@3.7.0
cat >run.js <<'END'
import { TimeSync } from './node_modules/@casual-simulation/timesync/TimeSync.js'

const GAIN = 20e-6
const HOUR = 3600

let seed = 1
const random = () => (seed = seed * 16807 % 2147483647) / 2147483647
const delay = () => 20 - 10 * Math.log(random())

const sync = new TimeSync()
const errors = []
let worst = 0
for (let time = 0, hour = 12; hour <= 48; time += sync.numTotalSamples < 15 ? 1 : 30) {
  const server = time * 1000
  const [there, back] = [delay(), delay()]
  const local = after => (server + after) * (1 + GAIN)
  sync.addSample({
    clientRequestTime: local(-there),
    serverReceiveTime: server,
    serverTransmitTime: server,
    currentTime: local(back)
  })
  const right = -server * GAIN
  const last = server - (local(-there) + local(back)) / 2
  worst = Math.max(worst, Math.abs(last - right))
  if (time >= hour * HOUR) {
    errors.push(Math.round(sync.offsetMS - right))
    console.log(`after ${hour} h: offset ${Math.round(sync.offsetMS)} ms, right ${Math.round(right)} ms`)
    hour += 12
  }
}
console.log(`a single answer is off by ${Math.round(worst)} ms at most`)
process.exit(errors[0] > 300 && errors[3] > 1000 && worst < 100 ? 0 : 1)
END
node run.js
