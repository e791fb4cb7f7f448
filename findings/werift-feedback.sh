#!/bin/sh
# werift-rtp 0.8.9 (npm), the RTP of the WebRTC library werift, misreads the feedback of transport-wide congestion
# control (packetResults in twcc.js). It leaves out status vectors, the usual form where losses are scattered: packets
# reported by them are neither received nor lost. Each run of packets comes out one longer than it is and begins at the
# first packet of the report, not after the run before. And each difference of arrival times is cut to whole
# milliseconds, so packets 0.75 ms apart came at once. werift 0.25.2 estimates its bandwidth from these results
# (senderBWE.js). No error is returned; packetChunks and recvDeltas beside them are right. By
# draft-holmer-rmcat-transport-wide-cc-extensions-01, 3.1, chunks follow one another from the base sequence number on,
# and differences count 0.25 ms. tshark 4.0.17 reads all three reports.
#
# Seen, five packets from 10 on: all received, 0.75 ms apart, six at 65 ms; 12 lost, by runs, 10 to 12 received, 10 and
# 11 lost, 10 to 12 received; the same by a status vector, no packet.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund werift-rtp@0.8.9
cat >run.js <<'END'
const { TransportWideCC } = require('werift-rtp')

const FIRST = 10
const COUNT = 5
const REFERENCE = 1 // 64 ms
const [LOST, RECEIVED] = [0, 1]
const run = (status, length) => status << 13 | length
const vector = (...statuses) => statuses.reduce((bits, status, index) => bits | status << 13 - index, 0x8000)

/** A report on five packets, as "number received at ms" or "number lost". */
function read (chunks, quarters) {
  const fixed = Buffer.alloc(16)
  fixed.writeUInt16BE(FIRST, 8)
  fixed.writeUInt16BE(COUNT, 10)
  fixed.writeUIntBE(REFERENCE, 12, 3)
  const words = chunks.flatMap(chunk => [chunk >> 8, chunk & 255])
  const report = TransportWideCC.deSerialize(Buffer.concat([fixed, Buffer.from([...words, ...quarters])]))
  return report.packetResults.map(({ sequenceNumber, received, receivedAtMs }) =>
    `${sequenceNumber} ${received ? receivedAtMs : 'lost'}`).join(', ')
}

let changed = false
for (const [name, told, expected] of [
  ['all received, right 10 to 14 at 65, 65.75, 66.5, 67.25 and 68',
    read([run(RECEIVED, 5)], [4, 3, 3, 3, 3]),
    '10 65, 11 65, 12 65, 13 65, 14 65, 15 0'],
  ['12 lost, right 10, 11, 13 and 14 at 65 to 68',
    read([run(RECEIVED, 2), run(LOST, 1), run(RECEIVED, 2)], [4, 4, 4, 4]),
    '10 65, 11 66, 12 67, 10 lost, 11 lost, 10 68, 11 0, 12 0'],
  ['the same by a status vector',
    read([vector(RECEIVED, RECEIVED, LOST, RECEIVED, RECEIVED)], [4, 4, 4, 4]),
    '']
]) {
  console.log(`${name}: ${told || 'no packet'}`)
  changed = changed || told !== expected
}
process.exit(changed ? 1 : 0)
END
node run.js
