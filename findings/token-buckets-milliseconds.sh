#!/bin/sh
# Two token buckets of npm count time in whole milliseconds and round away what is left. Both give whole tokens only and
# move their clock by the time that these took. simple-token-bucket 2.0.0 rounds that time down (_fill in index.js), so
# the rest of the millisecond counts twice. With bytes as tokens a limit that is a whole number of bytes per millisecond
# is kept; one that is not is exceeded, and above 6 Mbit/s it does not exist: each look at the bucket brings a
# millisecond's worth of bytes and takes no time. stopcock 1.1.0 rounds up (refill in index.js), so 600 and 750 calls
# per second are 500, and 1500 are 1000. Nothing is said. A token bucket lets through its rate, to within its depth (RFC
# 2697, 3; RFC 2698, 3, where the count of tokens grows at the committed rate).
#
# Seen, Mbit/s of a sender that waits as told, 10 s, packets of 1500 bytes, depth of ten, limits of 1, 2.5, 4.9, 8 and
# 8.1 Mbit/s: 1.01, 3.13, 10.52, 8.01 and none (more than 100 Mbit in less than a second). Calls per second, limits of
# 500, 600, 750, 1000 and 1500: 500, 500, 500, 1000, 1000.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund simple-token-bucket@2.0.0 stopcock@1.1.0
cat >run.js <<'END'
import { mock } from 'node:test'
import { TokenBucket } from 'simple-token-bucket'
import stopcock from 'stopcock'

const PACKET = 1500 // bytes
const DEPTH = 10 * PACKET
const DURATION = 10 // s

mock.timers.enable({ apis: ['setTimeout', 'Date'] })

/** The rate in Mbit/s of a sender that always has a packet and waits as the bucket says. */
function send (limit) {
  const bucket = new TokenBucket({ capacity: DEPTH, fillQuantity: limit / 8, fillTime: 1000 })
  const start = Date.now()
  let count = 0
  while (Date.now() - start < 1000 * DURATION) {
    const wait = bucket.take(PACKET)
    if (wait > 0) {
      mock.timers.tick(wait)
    } else if (8 * PACKET * ++count > 1e8 && Date.now() - start < 1000) {
      return 'none'
    }
  }
  return (8 * PACKET * count / DURATION / 1e6).toFixed(2)
}

/** How many calls per second get through after the first burst. */
function call (limit) {
  let count = 0
  const limited = stopcock(() => count++, { limit, interval: 1000, bucketSize: 10 })
  for (let index = 0; index < 2 * limit * DURATION; index++) limited()
  count = 0
  for (let index = 0; index < 1000 * DURATION; index++) mock.timers.tick(1)
  return Math.round(count / DURATION)
}

const rates = [1e6, 2.5e6, 4.9e6, 8e6, 8.1e6].map(send)
console.log(`Mbit/s with limits of 1, 2.5, 4.9, 8 and 8.1: ${rates.join(' ')}`)
const calls = [500, 600, 750, 1000, 1500].map(call)
console.log(`calls per second with limits of 500, 600, 750, 1000 and 1500: ${calls.join(' ')}`)
process.exit(rates.join(' ') === '1.01 3.13 10.52 8.01 none' && calls.join(' ') === '500 500 500 1000 1000' ? 0 : 1)
END
node --no-warnings run.js
