#!/bin/sh
# utp 0.0.10 (npm), the transport protocol of BitTorrent in JavaScript, looks each 500 ms for packets to send again, and
# takes all that are under way, however young (_resend in index.js: their age is taken as "sent - now" without a sign,
# which is about 2^32 us and never below the 500,000 us that it is compared with). So without any loss a path with a
# round trip of 100 ms carries every fifth packet twice, one of 600 ms all of them. And it writes 0 where the peer
# expects the delay of its last packet (createPacket), so a peer that backs off as queues grow, which is what the
# protocol is for, sees none and keeps on. Nothing is said; its README calls it a work in progress. By BEP 29 (Timeouts;
# timestamp_difference_microseconds) a packet is sent again when it was not acknowledged for the round trip and four
# times its variation, but at least 500 ms, and the field is the receiver's time less the last packet's.
#
# Seen, a packet each 10 ms for 2 s, nothing lost: round trip of 4 ms, 204 sent for 200; of 100 ms, 240; of 300 ms, 320;
# of 600 ms, 440. Delays told: 0 us only, by both sides.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund utp@0.0.10
cat >run.js <<'END'
const dgram = require('dgram')
const utp = require('utp')

const COUNT = 200
const SPACING = 10
const PERIOD = 500
const DATA = 0 << 4 | 1 // type and version, the first byte

/** Sends packets through a relay that delays them (ms, each way); copies of each number, and delays told. */
async function run (delay) {
  const copies = new Map()
  const delays = new Set()
  const relay = dgram.createSocket('udp4')
  const listener = dgram.createSocket('udp4')
  const server = utp.createServer(socket => socket.on('data', () => {}))
  server.listen(listener)
  await new Promise(resolve => listener.bind(0, '127.0.0.1', resolve))
  await new Promise(resolve => relay.bind(0, '127.0.0.1', resolve))
  const port = listener.address().port
  let client
  relay.on('message', (message, from) => {
    delays.add(message.readUInt32BE(8))
    if (from.port === port) {
      setTimeout(() => relay.send(message, client, '127.0.0.1'), delay)
      return
    }
    client = from.port
    if (message[0] === DATA) {
      const number = message.readUInt16BE(16)
      copies.set(number, (copies.get(number) || 0) + 1)
    }
    setTimeout(() => relay.send(message, port, '127.0.0.1'), delay)
  })
  const socket = utp.connect(relay.address().port, '127.0.0.1')
  await new Promise(resolve => socket.on('connect', resolve))
  const begin = Date.now()
  for (let number = 0; number < COUNT; number++) {
    await new Promise(resolve => setTimeout(resolve, begin + number * SPACING - Date.now()))
    socket.write(Buffer.alloc(100))
  }
  await new Promise(resolve => setTimeout(resolve, 4 * delay + PERIOD))
  return { copies, delays }
}

async function main () {
  let changed = false
  for (const delay of [2, 50, 150, 300]) {
    const { copies, delays } = await run(delay)
    const sent = [...copies.values()].reduce((sum, count) => sum + count, 0)
    const expected = Math.round(COUNT * (1 + 2 * delay / PERIOD))
    console.log(`round trip of ${2 * delay} ms: ${sent} sent for ${copies.size}, expected about ${expected}; ` +
      `delays told: ${[...delays]} us`)
    changed ||= copies.size !== COUNT || sent < 0.9 * expected || delays.size !== 1 || !delays.has(0)
  }
  process.exit(changed ? 1 : 0)
}
main()
END
node run.js
