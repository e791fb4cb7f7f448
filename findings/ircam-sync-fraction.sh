#!/bin/sh
# @ircam/sync 2.1.0 (npm), which keeps devices in step to play music together, estimates the offset and the rate of
# the clocks from the last quarter of an hour (longTermDataDuration in its README). It keeps that in a ring whose
# length is this duration divided by the mean time between its series of pings, and does not round it
# (longTermDataLength in client/index.js). Where that is no whole number, the index has a fraction after the first
# time around (++index % length), so what comes then is stored beside the array and never looked at: the estimate
# stays for ever that of the first quarter of an hour. By default it is 900 s / 15 s, 60; with pingSeriesDelay {min:
# 10, max: 25} it is 51.43, and the README lets both be chosen. As soon as a clock gets warmer, the time told runs
# away. The status stays "sync".
#
# Seen, the server's clock gains 40 ppm from the second hour on. {min: 10, max: 20} and {min: 10, max: 30} are off by
# no more than 1 ms; {min: 10, max: 25} by 145 ms after two hours and 433 ms after four.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund @ircam/sync@2.1.0
cat >run.js <<'END'
const HOUR = 3600
const GAIN = 40e-6

// A clock of its own, and random numbers that repeat.
const timers = new Map()
let [now, count, seed] = [0, 0, 1]
globalThis.setTimeout = (action, delay) => timers.set(++count, { at: now + delay / 1000, action }) && count
globalThis.clearTimeout = number => timers.delete(number)
Math.random = () => (seed = seed * 16807 % 2147483647) / 2147483647
const { default: SyncClient } = require('@ircam/sync/client')

const server = time => time + Math.max(0, time - HOUR) * GAIN
const delay = () => 0.01 + 0.002 * Math.random()

/** By how many ms the time told is off after each of four hours. */
function errors (pingSeriesDelay) {
  timers.clear()
  now = 0
  seed = 1
  const client = new SyncClient(() => now, { pingSeriesDelay })
  let receive, status
  const send = (id, sent) => {
    const there = delay()
    const time = server(now + there)
    setTimeout(() => receive(id, sent, time, time), 1000 * (there + delay()))
  }
  client.start(send, handler => { receive = handler }, report => { status = report.status })
  const told = []
  while (told.length < 4) {
    const [number, timer] = [...timers].sort((a, b) => a[1].at - b[1].at)[0]
    timers.delete(number)
    now = timer.at
    timer.action()
    if (now >= HOUR * (told.length + 1)) told.push(Math.abs(client.getSyncTime() - server(now)) * 1000)
  }
  console.log(`${JSON.stringify(pingSeriesDelay)}: ${told.map(error => error.toFixed(1)).join(', ')} ms, ${status}`)
  return told
}

const whole = [errors({ min: 10, max: 20 }), errors({ min: 10, max: 30 })].flat()
const fraction = errors({ min: 10, max: 25 })
process.exit(Math.max(...whole) < 2 && fraction[3] > 300 ? 0 : 1)
END
node run.js
