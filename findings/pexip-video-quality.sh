#!/bin/sh
# @pexip/peer-connection-stats 18.2.0 (npm) grades calls by their packet loss, from good to terrible. For video it
# compares the loss with a variable where it should assign it (calculateQuality in statsCollector.js: == for =), so the
# grade of a video stream is "ok" whatever is lost, and onCallQuality never fires for it again. And of a stream that is
# sent it divides the lost packets by the sum of those sent and those lost, although the lost ones were sent: half of
# the packets lost is told as a third. Nothing is said. Audio that is received is right in both. In WebRTC Statistics
# (W3C) packetsSent counts each packet sent, packetsLost is that of RFC 3550, 6.4.1: packets expected less received.
#
# Seen, 0, 2, 5 and 50 % of the packets lost, grades from 0 (good) to 3 (terrible): audio 0, 1, 2, 3, video 1, 1, 1, 1.
# Sent with 50 % lost: 33.3 %.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
# It is written for bundlers: its imports have no file names.
npm install --silent --no-audit --no-fund --ignore-scripts @pexip/peer-connection-stats@18.2.0 esbuild@0.25.12
cat >run.js <<'END'
import { createStatsCollector } from '@pexip/peer-connection-stats'

const REPORTS = 20
const PACKETS = 100 // in each

/** What getStats() of a peer connection with one stream gives. */
function report (kind, sent, loss, count) {
  const timestamp = 1000 * count
  const total = PACKETS * count
  const packetsLost = Math.round(total * loss)
  const seen = { kind, timestamp, packetsLost, jitter: 0.005 }
  const received = total - packetsLost
  const inbound = { ...seen, id: 'in', type: 'inbound-rtp', packetsReceived: received, bytesReceived: 1000 * received }
  const outbound = { kind, timestamp, id: 'out', type: 'outbound-rtp', packetsSent: total, bytesSent: 1000 * total }
  const remote = { ...seen, id: 'remote', type: 'remote-inbound-rtp', localId: 'out' }
  const rows = sent ? [{ ...outbound, remoteId: 'remote' }, remote] : [inbound]
  return new Map(rows.map(row => [row.id, { ...row, framesPerSecond: 30 }]))
}

/** The grade of a stream and the percentage lost, after some reports. */
function grade (kind, sent, loss) {
  let count = 0
  let quality = 0
  return new Promise(resolve => {
    const done = ({ totalPercentageLost }) => {
      if (count < REPORTS) return
      collector.cleanup()
      resolve([quality, (100 * totalPercentageLost).toFixed(1)])
    }
    const collector = createStatsCollector({
      input: { getStats: async () => report(kind, sent, loss, ++count) },
      interval: 5,
      signals: {
        onCallQuality: { emit: value => { quality = value } },
        onRtcStats: { emit: done },
        onCallQualityStats: { emit: () => {} }
      }
    })
  })
}

async function main () {
  const told = {}
  for (const kind of ['audio', 'video']) {
    for (const sent of [false, true]) {
      const grades = []
      for (const loss of [0, 0.02, 0.05, 0.5]) grades.push(await grade(kind, sent, loss))
      const name = `${kind} ${sent ? 'sent' : 'received'}`
      told[name] = grades.flat().join(' ')
      console.log(`${name}: ${grades.map(([quality, lost]) => `${quality} (${lost} %)`).join(', ')}`)
    }
  }
  const same = JSON.stringify(told) === JSON.stringify({
    'audio received': '0 0.0 1 2.0 2 5.0 3 50.0',
    'audio sent': '0 0.0 1 2.0 2 4.8 3 33.3',
    'video received': '1 0.0 1 2.0 1 5.0 1 50.0',
    'video sent': '1 0.0 1 2.0 1 4.8 1 33.3'
  })
  process.exit(same ? 0 : 1)
}

globalThis.window = globalThis
main()
END
npx esbuild run.js --bundle --platform=node --log-level=warning --outfile=bundle.js
node bundle.js
