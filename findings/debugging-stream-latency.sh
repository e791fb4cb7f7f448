#!/bin/sh
# debugging-stream 3.1.0 (npm), which gives a stream a latency and a speed, takes bytes out of its queue when they
# arrive, not when they are sent (inflight in index.js). So bytes that are under way still count as if they waited for
# the sender: the delay of a chunk is the latency plus the time that all of the bytes in flight take at that speed. At
# half of the speed the delay is twice the latency, at nine tenths ten times, on a path where nothing queues. Who
# measures a protocol over it sees a queue that is not there, and a sender that reacts to delay slows down to a fraction
# of the speed. Nothing is said. The delay of a link is propagation, the time to send the chunk and the wait for those
# before it (RFC 7679, 3.5 and 3.6); with chunks evenly spaced there is no wait.
#
# Seen, latency of 100 ms, 1 MB/s, 1000 bytes every 10, 2 and 1.25 ms for 5 s: delay of about 112, 203 and 490 ms at the
# end; right is 101.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts debugging-stream@3.1.0 streamx@2.23.0
cat >run.js <<'END'
const DebuggingStream = require('debugging-stream')
const { PassThrough } = require('streamx')

const LATENCY = 100 // ms
const SPEED = 1e6 // bytes per second
const SIZE = 1000 // bytes
const TIME = 5000 // ms

/** The delay of the last chunks that are sent with this spacing, in ms. */
function delay (spacing) {
  const source = new PassThrough({ highWaterMark: 1e9 })
  const link = new DebuggingStream(source, { latency: LATENCY, speed: SPEED })
  const sent = []
  const delays = []
  link.on('data', () => { delays.push(performance.now() - sent[delays.length]) })
  const start = performance.now()
  return new Promise(resolve => {
    const timer = setInterval(() => {
      const elapsed = performance.now() - start
      while (sent.length * spacing < elapsed && elapsed < TIME) {
        sent.push(performance.now())
        source.write(Buffer.alloc(SIZE))
      }
      if (delays.length < sent.length || elapsed < TIME) return
      clearInterval(timer)
      const last = delays.slice(-100).sort((a, b) => a - b)
      resolve(last[50])
    }, 1)
  })
}

async function main () {
  const seen = []
  for (const spacing of [10, 2, 1.25]) {
    seen.push(await delay(spacing))
    console.log(`every ${spacing} ms: ${seen.at(-1).toFixed(0)} ms; right is ${LATENCY + SIZE / SPEED * 1e3}`)
  }
  // A link's own delay differs by nothing; a busy machine adds some milliseconds.
  process.exit(seen[0] < 140 && seen[1] > 170 && seen[2] > 350 ? 0 : 1)
}

main()
END
node run.js
