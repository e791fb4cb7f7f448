#!/bin/sh
# ntpclient 1.16.1 (npm), an NTP client, asks another server than it was told to where there are two clients. The
# constructor takes the object with the defaults for the client's own, and where the server is a string writes it, and
# a port or time-out with it, into that (dist/index.js: this.config = defaultConfig). So all clients made with a
# string have one configuration, that of the last, and one made later without a server asks that server and port
# instead of pool.ntp.org. Who compares two servers, or looks for a bad one, compares one with itself and finds them
# to agree. Nothing is said; by its README new NTPClient('de.pool.ntp.org', 123, 40 * 1000) is the same as with an
# object, which is copied.
#
# Seen, a server that is right at 127.0.0.1 and one that is an hour ahead at 127.0.0.2: made with strings, both
# clients tell an hour ahead; with objects, 0 and 3600 s. A client made later with the port alone asks 127.0.0.2 too.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund ntpclient@1.16.1
cat >run.js <<'END'
import { createSocket } from 'node:dgram'
import { NTPClient } from 'ntpclient'

const UNIX_EPOCH = 2208988800 // s after that of NTP

/** Serves a time that is ahead by so many seconds. */
function serve (address, port, ahead) {
  const server = createSocket('udp4')
  server.on('message', (_, peer) => {
    const reply = Buffer.alloc(48)
    reply.set([0b00_011_100, 1])
    for (const at of [16, 24, 32, 40]) reply.writeUInt32BE(Math.round(Date.now() / 1000) + UNIX_EPOCH + ahead, at)
    server.send(reply, peer.port, peer.address)
  })
  return new Promise(resolve => server.bind(port, address, () => resolve(server)))
}

const ahead = async client => Math.round((await client.getNetworkTime() - Date.now()) / 10_000) * 10

const right = await serve('127.0.0.1', 0, 0)
const { port } = right.address()
const fast = await serve('127.0.0.2', port, 3600)
const told = []
for (const make of [server => new NTPClient(server, port), server => new NTPClient({ server, port })]) {
  const clients = ['127.0.0.1', '127.0.0.2'].map(make)
  told.push(...await Promise.all(clients.map(ahead)))
}
told.push(await ahead(new NTPClient({ port })))
console.log(`strings ${told.slice(0, 2)}, objects ${told.slice(2, 4)}, no server ${told[4]} s ahead`)
right.close()
fast.close()
process.exit(String(told) === '3600,3600,0,3600,3600' ? 0 : 1)
END
node run.js
