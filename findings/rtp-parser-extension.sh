#!/bin/sh
# rtp-parser 1.0.0 (npm) tells of an RTP packet that it has padding or a header extension, but leaves both in its
# payload (parseRtpPacket in index.js); by RFC 3550, 5.1 and 5.3.1, neither is part of it. And it reads contributing
# sources three bytes too early, from within the SSRC on. WebRTC puts an extension into each packet, for transport-wide
# congestion control, and libwebrtc probes for bandwidth with packets of padding alone. So the rate of media includes
# both: 248 bytes for a probe that has none, 8 to 20 more for each packet of voice of 160. Nothing is said. werift-rtp
# 0.8.9 (npm) reads the same packets right.
#
# Seen, 160 bytes of payload: plain 160; with an extension of one word 168; with the contributing sources 33333333 and
# 44444444 160, and 22222233 and 33333344 for these. A probe with 248 bytes of padding: 248, right is 0.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund rtp-parser@1.0.0 werift-rtp@0.8.9
cat >run.js <<'END'
const { parseRtpPacket } = require('rtp-parser')
const { RtpPacket } = require('werift-rtp')

const SOURCE = 0x11222222
const [PADDING, EXTENSION] = [0x20, 0x10]

/** An RTP packet of version 2. */
function packet (flags, sources, rest) {
  const header = Buffer.alloc(12 + 4 * sources.length)
  header[0] = 0x80 | flags | sources.length
  header[1] = 96
  header.writeUInt16BE(1000, 2)
  header.writeUInt32BE(90000, 4)
  header.writeUInt32BE(SOURCE, 8)
  sources.forEach((source, index) => header.writeUInt32BE(source, 12 + 4 * index))
  return Buffer.concat([header, rest])
}

const media = Buffer.alloc(160, 0xaa)
// One word with the number of transport-wide congestion control (RFC 8285, 4.2).
const extension = Buffer.from([0xbe, 0xde, 0, 1, 0x11, 0, 7, 0])
const padding = Buffer.alloc(248)
padding[247] = 248

let seen = ''
for (const [name, flags, sources, rest] of [
  ['plain', 0, [], media],
  ['extension', EXTENSION, [], Buffer.concat([extension, media])],
  ['sources', 0, [0x33333333, 0x44444444], media],
  ['probe', PADDING, [], padding]
]) {
  const bytes = packet(flags, sources, rest)
  const told = parseRtpPacket(bytes)
  const right = RtpPacket.deSerialize(bytes)
  const hex = list => list.map(source => source.toString(16).padStart(8, '0')).join(' ')
  console.log(`${name}: payload ${told.payload.length}, right ${right.payload.length}; ` +
    `sources [${hex(told.csrc)}], right [${hex(right.header.csrc)}]`)
  seen += `${told.payload.length} [${hex(told.csrc)}] `
}
process.exit(seen === '160 [] 168 [] 160 [22222233 33333344] 248 [] ' ? 0 : 1)
END
node run.js
