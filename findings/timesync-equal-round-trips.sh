#!/bin/sh
# timesync 1.0.11 (npm), which keeps the clocks of web pages in step with a server, once an hour by default, does
# nothing where the round trips are equal. Of five requests it takes those whose round trip is below the median plus a
# standard deviation (_syncWithPeer in timesync.js). Where all five took the same number of milliseconds, as on a
# quiet path, the deviation is 0, none is below the median, and the offset stays what it was. That is the one of the
# very first request, which it takes as it comes. So the better the path, the longer a clock runs away, and a first
# request that was slow one way stays in the offset. The same holds with repeat: 1, always. Nothing is said: "sync"
# ends with "end" as ever, only "change" is missing. By the algorithm in its README "all samples above approximately 1
# standard-deviation from the median are discarded", and the median is not above itself.
#
# Seen, a clock that gains 20 ppm, synchronised once a day, server ahead by 5 s at first. Round trips of 20, 20, 20,
# 20 and 21 ms: 5000, 3272 and 1544 ms, right. All 20 ms, or one request each time: 5000, 5000 and 5000 ms.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund timesync@1.0.11
cat >run.js <<'END'
const timesync = require('timesync/dist/timesync.js')

const START = 1_700_000_000_000
const GAIN = 20e-6
const DAY = 24 * 3_600_000

/** Offsets on three days, by requests that take so many ms each day. */
async function offsets (roundTrips) {
  let time = 0
  const client = timesync.create({
    interval: null,
    delay: 0,
    repeat: roundTrips.length,
    peers: 'server',
    now: () => Math.floor(START + time * (1 + GAIN))
  })
  let sent = 0
  client.send = async (peer, request) => {
    const half = roundTrips[sent++ % roundTrips.length] / 2
    time += half
    const result = Math.floor(START + 5000 + time)
    time += half
    setTimeout(() => client.receive(peer, { jsonrpc: '2.0', id: request.id, result }), 0)
  }
  const told = []
  for (let day = 0; day < 3; day++) {
    time = day * DAY
    await client.sync()
    told.push(Math.round(client.offset))
  }
  console.log(`${roundTrips.join(', ')} ms: offset ${told.join(', ')} ms`)
  return told.join(' ')
}

async function main () {
  const right = await offsets([20, 20, 20, 20, 21])
  const equal = await offsets([20, 20, 20, 20, 20])
  const single = await offsets([20])
  process.exit(right === '5000 3272 1544' && equal === '5000 5000 5000' && single === equal ? 0 : 1)
}
main()
END
node run.js
