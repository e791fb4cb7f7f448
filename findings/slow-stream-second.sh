#!/bin/sh
# slow-stream 0.0.4 (npm), a stream "for testing when you need things to slow down", lets one piece through in each
# maxWriteInterval, in milliseconds. It compares that with the time since the last piece, of which it keeps only the
# nanoseconds and drops the seconds (flush in slow-stream.js: interval[1] of process.hrtime, which tells both). So
# where the interval is a second or longer, as for a satellite messenger or LoRa, the time is never long enough: not
# even the first piece comes out, no end and no error either, and who writes waits for a "drain" that never comes.
# Nothing is said; by its README pieces go through "at a rate of one per" interval.
#
# Seen, four pieces: every 500 ms all four, 500 to 2000 ms after they were written; every 1000 or 2000 ms none in ten
# seconds.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund slow-stream@0.0.4
cat >run.js <<'END'
const SlowStream = require('slow-stream')

/** When four pieces come out that are written at once, in ms, as far as they do in ten seconds. */
function times (interval) {
  const stream = new SlowStream({ maxWriteInterval: interval })
  const told = []
  const start = Date.now()
  stream.on('data', () => told.push(Date.now() - start))
  stream.on('error', error => { throw error })
  for (let i = 0; i < 4; i++) stream.write('x')
  stream.end()
  return new Promise(resolve => setTimeout(() => {
    console.log(`every ${interval} ms: ${told.join(' ') || 'none'}`)
    resolve(told)
  }, 10_000))
}

Promise.all([500, 1000, 2000].map(times)).then(([half, ...longer]) => {
  const right = half.length === 4 && half[3] >= 1400 && half[3] < 3000
  process.exit(right && longer.every(told => told.length === 0) ? 0 : 1)
})
END
node run.js
