#!/bin/sh
# The NTP server of ntp-time 2.1.1 (npm) serves whole seconds. It cuts the fraction off the time at which a request came
# and off the transmit timestamp of the client that it returns as the origin (parse in src/server.js); in the example of
# its README the handler cuts the transmit timestamp too. So a clock that is set by it is up to half a second slow, and
# measures a round trip of up to a second where there is none: both follow the fraction of the second in which it asks.
# And a client has to drop a reply whose origin is not what it sent (RFC 5905, 8: "bogus"), so ntpd or chrony never hear
# from it, and nothing says why. The client of the same package does not check. The timestamps have 32 bits of fraction
# for this (RFC 5905, 6).
#
# Seen over the loopback interface, with the package's client, asking 0.1, 0.5 and 0.9 s after a full second: offsets of
# -0.05, -0.25 and -0.45 s, delays of 0.1, 0.5 and 0.9 s, where all are 0. The origin in the reply is never the
# timestamp that was sent.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund ntp-time@2.1.1
cat >run.js <<'END'
const assert = require("node:assert");
const dgram = require("node:dgram");
const { setTimeout: sleep } = require("node:timers/promises");
const { Client, Server } = require("ntp-time");

const EPOCH = 2208988800; // seconds from 1900 to 1970

async function raw(port) {
  const socket = dgram.createSocket("udp4");
  const request = Buffer.alloc(48);
  request[0] = 0x23; // version 4, client
  const now = Date.now();
  request.writeUInt32BE(Math.floor(now / 1000) + EPOCH, 40);
  request.writeUInt32BE(Math.floor(((now % 1000) / 1000) * 2 ** 32), 44);
  const reply = await new Promise((resolve) => {
    socket.once("message", resolve);
    socket.send(request, port, "127.0.0.1");
  });
  socket.close();
  return request.subarray(40, 48).equals(reply.subarray(24, 32));
}

async function main() {
  const server = new Server();
  server.handle((message, response) => {
    message.transmitTimestamp = Math.floor(Date.now() / 1000);
    response(message);
  });
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.socket.once("listening", resolve));
  const port = server.address().port;
  for (const wanted of [100, 500, 900]) {
    await sleep((wanted - (Date.now() % 1000) + 1000) % 1000);
    const fraction = (Date.now() % 1000) / 1000;
    const { t: offset, d: delay } = await new Client("127.0.0.1", port).syncTime();
    console.log(`fraction ${fraction}: offset ${offset.toFixed(3)} s, delay ${delay.toFixed(3)} s`);
    assert(Math.abs(offset + fraction / 2) < 0.02 && Math.abs(delay - fraction) < 0.04);
    const same = await raw(port);
    console.log(`origin is what was sent: ${same}`);
    assert(!same);
  }
}

main().then(() => process.exit());
END
node run.js
