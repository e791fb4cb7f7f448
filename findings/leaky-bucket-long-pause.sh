#!/bin/sh
# leaky-bucket 4.1.4 (npm), a limiter for calls or bytes, never goes on after a pause that is longer than its interval.
# pause(seconds) puts an item in front of the queue that costs what the bucket gets in that time (pauseByCost in
# LeakyBucket.js). The bucket is never filled above its capacity, which is what it gets in an interval, so the item is
# never paid, a timer looks again each time, and all behind it waits for ever: no promise is settled, and the time-out
# ends none. So a sender of 10 messages a second that stays off the air for 2 s as asked is silent from then on. And
# clear() empties the queue but keeps its cost, by which later items are refused as too many. Nothing is said. By its
# documentation pause is "to pause the bucket for n seconds", with 2 as the example.
#
# Seen, 10 a second, the next call after a pause: of 0.5 and of 0.9 s 0.1 s later, of 1.1 and of 2 s not within 6 s.
# Room for 20, 15 called, cleared: of the next 20 calls 15 are let through, even after 3 s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund leaky-bucket@4.1.4
cat >run.mjs <<'END'
import { setTimeout as sleep } from 'node:timers/promises'
import LeakyBucket from 'leaky-bucket'

/** Whether the first call after a pause, in s, is let through. */
async function after (pause) {
  const bucket = new LeakyBucket({ capacity: 10, interval: 1, timeout: 60 })
  const start = performance.now()
  bucket.pause(pause)
  const call = bucket.throttle().then(() => (performance.now() - start) / 1000 - pause)
  const late = await Promise.race([call, sleep(6000)])
  bucket.end()
  return `pause of ${pause} s, next call: ${late === undefined ? 'not within 6 s' : late < 0.5 ? 'at its end' : 'late'}`
}

/** How many of 20 calls are let through. */
async function letThrough (bucket) {
  const calls = await Promise.allSettled(Array.from({ length: 20 }, () => bucket.throttle()))
  return calls.filter(({ status }) => status === 'fulfilled').length
}

async function cleared () {
  const [fresh, used] = [0, 1].map(() => new LeakyBucket({ capacity: 10, interval: 1, timeout: 2 }))
  for (let count = 0; count < 15; count++) used.throttle()
  used.clear()
  await sleep(3000)
  return `room for 20, let through: ${await letThrough(fresh)}; after a clear: ${await letThrough(used)}`
}

const told = await Promise.all([...[0.5, 0.9, 1.1, 2].map(after), cleared()])
console.log(told.join('\n'))
process.exit()
END
node run.mjs | tee told
cat >expected <<'END'
pause of 0.5 s, next call: at its end
pause of 0.9 s, next call: at its end
pause of 1.1 s, next call: not within 6 s
pause of 2 s, next call: not within 6 s
room for 20, let through: 20; after a clear: 15
END
diff expected told
