#!/bin/sh
# persistent-websocket 1.0.2 (npm), a WebSocket that connects again by itself with "good backoff practices", goes
# wrong in two ways. It never begins its delays anew when a connection was made (_onWebsocketOpen; reset is called
# only after a failed reachability test, which is off by default), though by its README initialBackoffDelayMillis is
# the "delay before first reconnection attempt". So the delay goes on from one outage to the next, however many hours
# lie between, towards the maximum of two minutes, while the event beforereconnect calls it attempt 1. And it keeps no
# number of the timer that limits an attempt to connect (_scheduleWebsocketConnectionCheck; connectTimeoutMillis, 3 s:
# "how long to wait for the websocket connection to reach a WebSocket.OPEN ready state"), so none is ever stopped, and
# each goes off for whichever attempt is then under way. Where connecting takes most of that time, as on a slow radio
# link, one quick failure so ends several attempts that would have succeeded. Nothing is said.
#
# Seen, one blink of the connection an hour: it waits 0.5 s before it connects again, and 14 s by the twelfth. First
# attempt refused, then 2.5 s to connect: three attempts are ended after 2.4, 0.1 and 2.3 s; the fourth connects.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund persistent-websocket@1.0.2
cat >run.js <<'END'
// A clock of its own, random numbers that repeat, and the WebSocket of a browser.
const timers = new Map()
let [now, count, seed] = [0, 0, 1]
globalThis.setTimeout = (action, delay) => timers.set(++count, { at: now + delay, action }) && count
globalThis.clearTimeout = number => timers.delete(number)
Math.random = () => (seed = seed * 16807 % 2147483647) / 2147483647

function until (time) {
  for (;;) {
    const [number, timer] = [...timers].sort((a, b) => a[1].at - b[1].at)[0] ?? []
    if (timer === undefined || timer.at > time) break
    timers.delete(number)
    now = timer.at
    timer.action()
  }
  now = time
}

let attempts, outcome
globalThis.WebSocket = class {
  readyState = 0
  start = now

  constructor () {
    const [delay, opens] = outcome(attempts.push(this))
    this.timer = setTimeout(() => {
      if (!opens) return this.close(1006)
      this.readyState = 1
      this.onopen({ target: this })
    }, delay)
  }

  close (code) {
    if (this.readyState === 3) return
    clearTimeout(this.timer)
    this.readyState = 3
    this.code = code
    this.end = now
    this.onclose({ code })
  }
}
const { PersistentWebsocket } = require('persistent-websocket')

function open (what) {
  attempts = []
  outcome = what
  const socket = new PersistentWebsocket('ws://localhost/')
  socket.open()
  return socket
}

const waits = []
open(() => [50, true]).onbeforereconnect = event => {
  if (event.attemptNumber !== 1) throw new Error('another attempt')
  waits.push(event.waitMillis)
}
for (let hour = 1; hour <= 12; hour++) {
  until(hour * 3_600_000)
  attempts.at(-1).close(1006)
}
console.log('once an hour:', waits.join(' '))

timers.clear()
seed = 1
open(number => number === 1 ? [100, false] : [2500, true])
until(now + 60_000)
const ended = attempts.filter(attempt => attempt.code === 4000).map(attempt => attempt.end - attempt.start)
console.log(`ended after ${ended.join(', ')} ms; state of the last: ${attempts.at(-1).readyState}`)
const changed = waits[0] !== 500 || Math.max(...waits) < 10_000 || ended.length !== 3 || Math.max(...ended) > 2500
process.exit(changed ? 1 : 0)
END
node run.js
