#!/bin/sh
# TCPTracker of pcap 3.1.0 (npm, node_pcap) keeps for each acknowledgement number the time of the last segment that
# bears it, not of the first (send_acks and recv_acks in tcp_tracker.js). Each data segment of an answer acknowledges
# the request once more. So send_times, how long data took to be acknowledged, gives the time until the answer was
# complete: a request that is answered by a download of 10 s seems to have a round trip of 10 s. Duplicate
# acknowledgements after a loss, window updates and keep-alives do the same. Nothing is said; handshake, bytes and
# retransmissions are right. By RFC 7323, 4.1, a round trip is taken from the acknowledgement that advances the window,
# which is the first. tshark 4.0.17 (tcp.analysis.ack_rtt) gives 0.05 s for both.
#
# Seen, path of 50 ms, request of 200 bytes: 0.05 s without an answer, 9.95 s with one of 100 segments in 10 s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts pcap@3.1.0
cat >run.js <<'END'
const { decode } = require('pcap/decode')
const { TCPTracker } = require('pcap/tcp_tracker')

const CLIENT = { address: [10, 0, 0, 1], port: 40000 }
const SERVER = { address: [10, 0, 0, 2], port: 80 }
const [FIN, SYN, ACK] = [1, 2, 16]
const HEADERS = 54

/** A captured TCP segment as libpcap hands it over. */
function segment (time, from, flags, sequence, acknowledgement, length) {
  const buf = Buffer.alloc(HEADERS + length)
  const to = from === CLIENT ? SERVER : CLIENT
  buf.writeUInt16BE(0x0800, 12) // IPv4
  buf.set([0x45, 0, 0, 40 + length, 0, 0, 0, 0, 64, 6, 0, 0, ...from.address, ...to.address], 14)
  buf.writeUInt16BE(40 + length, 16)
  buf.writeUInt16BE(from.port, 34)
  buf.writeUInt16BE(to.port, 36)
  buf.writeUInt32BE(sequence, 38)
  buf.writeUInt32BE(acknowledgement, 42)
  buf.set([0x50, flags, 255, 255], 46)
  const header = Buffer.alloc(16)
  const times = [Math.floor(time), Math.round(time % 1 * 1e6)]
  ;[...times, buf.length, buf.length].forEach((value, index) => header.writeUInt32LE(value, 4 * index))
  return { buf, header, link_type: 'LINKTYPE_ETHERNET' }
}

/** How long a request of 200 bytes took to be acknowledged, with an answer of `count` segments after it. */
function watch (count) {
  const tracker = new TCPTracker()
  let times
  tracker.on('session', session => session.on('end', () => { times = session.session_stats().send_times }))
  const send = (...fields) => tracker.track_packet(decode(segment(...fields)))
  send(0, CLIENT, SYN, 100, 0, 0)
  send(0.05, SERVER, SYN | ACK, 500, 101, 0)
  send(0.05, CLIENT, ACK, 101, 501, 0)
  send(0.1, CLIENT, ACK, 101, 501, 200)
  send(0.15, SERVER, ACK, 501, 301, 0)
  let next = 501
  for (let index = 0; index < count; index++) {
    const time = 0.15 + 0.1 * index
    send(time, SERVER, ACK, next, 301, 1000)
    next += 1000
    send(time, CLIENT, ACK, 301, next, 0)
  }
  send(11, CLIENT, FIN | ACK, 301, next, 0)
  send(11.05, SERVER, FIN | ACK, next, 302, 0)
  send(11.05, CLIENT, ACK, 302, next + 1, 0)
  return times[301]
}

const [alone, answered] = [0, 100].map(watch)
console.log(`acknowledged after ${alone.toFixed(2)} s without an answer, ${answered.toFixed(2)} s with; right 0.05`)
process.exit(alone.toFixed(2) === '0.05' && answered.toFixed(2) === '9.95' ? 0 : 1)
END
node run.js
