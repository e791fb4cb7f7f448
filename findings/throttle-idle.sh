#!/bin/sh
# throttle 1.0.3 (npm), which limits a stream to a number of bytes a second, compares what went through since the
# stream was made with that rate times the time since then (throttle.js, _onchunk). So time in which nothing was to be
# sent counts as credit without a bound: after a pause the stream runs unlimited until it has made up for all of it.
# Who puts it into a proxy to imitate a slow radio has the rate for a single download only; requests on a connection
# that is kept open pass at the speed of the machine. Nothing is said; by its README data are not passed through faster
# than the limit. The credit of a token bucket ends at its burst (RFC 3290, 5.1.3). stream-throttle 0.1.3 holds a
# second's worth.
#
# Seen, 400 kB at 100 kB/s, at once and after a pause of 3 s: throttle 3.9 and 0.9 s, stream-throttle 4.0 and 3.0 s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts throttle@1.0.3 stream-throttle@0.1.3
cat >run.js <<'END'
const { Readable, Writable } = require('stream')
const Throttle = require('throttle')
const { Throttle: Bucket } = require('stream-throttle')

const RATE = 100e3 // bytes per second
const SIZE = 400e3

/** How long a message takes through a limiter that has been idle, in seconds. */
function send (limiter, idle) {
  return new Promise(resolve => {
    let start
    let received = 0
    limiter.pipe(new Writable({
      write (chunk, _, done) {
        received += chunk.length
        if (received === SIZE) resolve((Date.now() - start) / 1000)
        done()
      }
    }))
    setTimeout(() => {
      start = Date.now()
      Readable.from([Buffer.alloc(SIZE)]).pipe(limiter)
    }, idle)
  })
}

async function main () {
  let same = true
  for (const [idle, expected] of [[0, [3.9, 4]], [3000, [0.9, 3]]]) {
    const told = await Promise.all([new Throttle(RATE), new Bucket({ rate: RATE })].map(limiter => send(limiter, idle)))
    console.log(`idle for ${idle / 1000} s: throttle ${told[0].toFixed(1)} s, stream-throttle ${told[1].toFixed(1)} s`)
    same &&= told.every((time, index) => Math.abs(time - expected[index]) < 0.4)
  }
  process.exit(same ? 0 : 1)
}

main()
END
node run.js
