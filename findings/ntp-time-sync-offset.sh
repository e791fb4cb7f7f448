#!/bin/sh
# ntp-time-sync 0.5.0 (npm) halves the sum of the absolute values of T2 - T1 and T3 - T4 and gives the result the
# sign of T3 - T4 (collectSamples). Where the clock is off by less than half the round trip, the two have opposite
# signs, so their sum is the round trip: the offset told is always minus half the round trip, whatever the clock
# is. A clock that is right is set back by it: 50 ms on a path of 100 ms, 300 ms through a geostationary satellite.
# One-way delays measured with it are wrong by as much; `precision`, the deviation between the servers, stays
# small. No error is returned. RFC 5905, 8: the offset is ((T2 - T1) + (T3 - T4)) / 2. sntp 3.0.2 has it right.
#
# Seen, 150 ms each way, clock off by -400, -60, 0, 60 and 400 ms: about -400, -150, -150, -150 and 400 ms.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund ntp-time-sync@0.5.0 ntp-packet-parser@0.5.0 sntp@3.0.2
cat >run.js <<'END'
const dgram = require('dgram')
const { setTimeout: sleep } = require('timers/promises')
const { NtpTimeSync } = require('ntp-time-sync')
const sntp = require('sntp')

const DELAY = 150 // ms each way
const UNIX_EPOCH = 2208988800 // s after that of NTP

/** Writes a time in ms as an NTP timestamp. */
function write (reply, at, time) {
  reply.writeUInt32BE(Math.floor(time / 1000) + UNIX_EPOCH, at)
  reply.writeUInt32BE(Math.round((time % 1000) / 1000 * 2 ** 32), at + 4)
}

/** Offsets that both libraries find at a server whose clock is ahead by `ahead` ms, at the end of a path. */
async function offsets (ahead) {
  const server = dgram.createSocket('udp4')
  server.on('message', async (request, peer) => {
    await sleep(DELAY)
    const reply = Buffer.alloc(48)
    reply.set([0b00_100_100, 1, 4, 0xEC]) // version 4, server, stratum 1
    request.copy(reply, 24, 40, 48)
    for (const at of [16, 32, 40]) write(reply, at, Date.now() + ahead)
    await sleep(DELAY)
    server.send(reply, peer.port, peer.address)
  })
  await new Promise(resolve => server.bind(0, '127.0.0.1', resolve))
  const { port } = server.address()
  const client = new NtpTimeSync({ servers: [`127.0.0.1:${port}`], sampleCount: 1 })
  const told = [(await client.getTime(true)).offset, (await sntp.time({ host: '127.0.0.1', port })).t]
  server.close()
  return told
}

async function main () {
  let changed = false
  for (const [ahead, expected] of [[-400, -400], [-60, -DELAY], [0, -DELAY], [60, -DELAY], [400, 400]]) {
    const [told, right] = await offsets(ahead)
    console.log(`clock off by ${ahead} ms: ntp-time-sync ${told.toFixed(0)}, sntp ${right.toFixed(0)}`)
    changed ||= Math.abs(told - expected) > 30 || Math.abs(right - ahead) > 30
  }
  process.exit(changed ? 1 : 0)
}

main()
END
node run.js
