#!/bin/sh
# progress-stream 2.0.0 (npm), which tells speed, time left and share of a download, measures the speed with speedometer
# 1.1.0 and hands it a window of 5000 (index.js). speedometer takes seconds, so for the first 83 minutes the speed is
# the mean since the start of the stream. By its README the window is 5 s. On a path that becomes slow, as at the edge
# of a cell, the old speed stays for minutes, and so does the time left. By the README the length of an HTTP response is
# read from it; but the length begins as the number 0, and where it is a number none is read (on "pipe"). So share and
# time left are 0 to the end. And speedometer itself is low: the bytes that it divides by its window are those of a time
# that is one and a half ticks of 250 ms shorter, by 7 % of 5 s and by 37 % of 1 s. throughput 1.0.2, a copy with ticks
# of 100 ms, is 3 % low. Nothing is said.
#
# Seen, 30 MB, 20 s at 1 MB/s, then 20 s at 100 kB/s: 543 kB/s and 15 s left, right are 100 and 80; with a window of 5
# given, 90 and 89. At 1 MB/s speedometer tells 926 kB/s on average with a window of 5 s, 630 with 1 s. An HTTP response
# of 1 MB, all of it received: length 0, 0 %.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund progress-stream@2.0.0 speedometer@1.1.0 throughput@1.0.2
cat >run.js <<'END'
const http = require('http')
const { mock } = require('node:test')

// Clocks that move only when told, so that each chunk comes at its time.
let now = 0 // ms
process.hrtime = () => [Math.floor(now / 1000), now % 1000 * 1e6]
mock.timers.enable({ apis: ['setInterval', 'Date'] })
const progress = require('progress-stream')
const speedometer = require('speedometer')
const throughput = require('throughput')

const GAP = 10 // ms from chunk to chunk

/** Hands chunks to a consumer, for some seconds at a rate in bytes per second. */
function feed (consumer, seconds, rate) {
  for (let count = 0; count < seconds * 1000 / GAP; count++) {
    mock.timers.tick(GAP)
    now += GAP
    consumer(rate * GAP / 1000)
  }
}

/** The mean in kB/s of what a meter tells in the last ten seconds of forty at 1 MB/s. */
function mean (meter) {
  let sum = 0
  feed(meter, 30, 1e6)
  feed(bytes => { sum += meter(bytes) }, 10, 1e6)
  return (sum / (10 * 1000 / GAP) / 1000).toFixed(0)
}

/** Speed in kB/s and time left in s of a download that has become slow. */
function slow (options) {
  let told
  const stream = progress({ length: 30e6, drain: true, ...options }, update => { told = update })
  const write = bytes => stream.write(Buffer.alloc(bytes))
  feed(write, 20, 1e6)
  feed(write, 20, 1e5)
  return `${(told.speed / 1000).toFixed(0)} kB/s, ${told.eta} s left`
}

/** Length and share of a response when its last chunk is there. */
function response (print) {
  const updates = []
  const server = http.createServer((_, reply) => {
    reply.setHeader('Content-Length', 1e6)
    reply.end(Buffer.alloc(1e6))
  })
  server.listen(0, '127.0.0.1', () => {
    http.get({ port: server.address().port, host: '127.0.0.1', agent: false }, reply => {
      const stream = reply.pipe(progress({ drain: true }, ({ length, percentage }) => {
        updates.push(`length ${length}, ${percentage} %`)
      }))
      stream.on('end', () => {
        server.close()
        print(updates[updates.length - 2])
      })
    })
  })
}

console.log(`progress-stream: ${slow({})}; with a window of 5: ${slow({ speed: 5 })}`)
console.log(`speedometer: ${mean(speedometer(5))} kB/s in 5 s, ${mean(speedometer(1))} in 1 s`)
console.log(`throughput: ${mean(throughput(5))} kB/s in 5 s`)
response(told => console.log(`a response of 1 MB: ${told}`))
END
node --no-warnings run.js | tee told
cat >expected <<'END'
progress-stream: 543 kB/s, 15 s left; with a window of 5: 90 kB/s, 89 s left
speedometer: 926 kB/s in 5 s, 630 in 1 s
throughput: 971 kB/s in 5 s
a response of 1 MB: length 0, 0 %
END
diff expected told
