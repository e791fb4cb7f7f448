#!/bin/sh
# sctp 1.0.0 (npm), SCTP in plain JavaScript, never opens its congestion window. In slow start it lets the window grow
# if all of it was in use, but looks at that when the acknowledged bytes are no longer counted (onSack in
# association.js), so it never was; after slow start there is no growth at all. So 4380 bytes, the initial window, go in
# a round trip, whatever the path. A time-out, as each outage of a radio brings, ends the transfer: of what is then to
# be sent again one packet goes with each time-out, and from its acknowledgement the next one is computed, as if that
# were a round trip, so it grows to more than ten seconds. When all has been sent again, nothing follows. No error is
# told, and the association stays open. README.md says that the module is incomplete, and two or three times slower than
# Linux. By RFC 4960, 7.2.1, the window grows by up to one MTU for each acknowledgement if it was in full use before; by
# 6.3.3 what does not fit into the first packet is sent as the window allows; and by 6.3.1, C5, nothing that was sent
# again is measured.
#
# Seen over UDP, round trip of 100 ms, packets of 1000 bytes, the peer's window 16 kB: 3.8 packets in a round trip; in
# the 15 s after an outage of 2 s none to two packets.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund sctp@1.0.0
cat >run.js <<'END'
const dgram = require('dgram')
const sctp = require('sctp')

const SIZE = 1000
const ROUND_TRIP = 100
const host = '127.0.0.1'
const sleep = (time) => new Promise((resolve) => setTimeout(resolve, time))

const bind = () => new Promise((resolve) => {
  const socket = dgram.createSocket('udp4')
  socket.bind(0, host, () => resolve(socket))
})
const connect = (socket, peer) => new Promise((resolve) => socket.connect(peer.address().port, host, resolve))

/** A path: two ends of it, and whether its radio is there. */
async function path () {
  const [near, far, ...relays] = await Promise.all([bind(), bind(), bind(), bind()])
  const path = { near, far, up: true }
  for (const [from, to, end] of [[relays[0], relays[1], far], [relays[1], relays[0], near]]) {
    from.on('message', (message) => {
      if (path.up) setTimeout(() => to.send(message, end.address().port, host), ROUND_TRIP / 2)
    })
  }
  await connect(near, relays[0])
  await connect(far, relays[1])
  return path
}

async function main () {
  const link = await path()
  let packets = 0
  const server = sctp.connect({ passive: true, localPort: 5000, port: 5001, udpTransport: link.far })
  server.on('data', (data) => { packets += data.length / SIZE })
  const client = sctp.connect({ localPort: 5001, port: 5000, udpTransport: link.near })
  let ended = false
  for (const event of ['error', 'close']) client.on(event, () => { ended = true })
  await new Promise((resolve) => client.on('connect', resolve))
  const write = () => client.write(Buffer.alloc(SIZE), write)
  write()
  await sleep(6000)
  const inRoundTrip = packets / (6000 / ROUND_TRIP)
  link.up = false
  await sleep(2000)
  link.up = true
  packets = 0
  await sleep(15000)
  console.log(`${inRoundTrip.toFixed(1)} packets in a round trip; after an outage ${packets} in 15 s`)
  process.exit(inRoundTrip > 3 && inRoundTrip < 5 && packets < 20 && !ended ? 0 : 1)
}
main()
END
node run.js
