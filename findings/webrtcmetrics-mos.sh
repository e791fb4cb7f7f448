#!/bin/sh
# webrtcmetrics 5.5.0 (npm) rates calls with two formulas that it feeds with the wrong number. mos_in has the loss
# impairment of Cole and Rosenbluth (CCR 31, 2001) for G.711, 30 ln(1 + 15 e), where e is a share, 0 to 1; it gets a
# percentage. So one packet lost in a thousand costs a whole grade, and one in a hundred makes every call the worst
# there is. mos_emodel_in goes through a parabola that has its lowest point at R = 77.5: from 16 % loss on the rating
# rises again, and 30 % lost are "good". Nothing is said; the percentage itself is right, and so is mos_fullband_in as
# far as it falls with the loss. ITU-T G.107, 7.5: R is 93.2 - Id - Ie,eff, and falls with the loss; with the formula
# of Cole and Rosenbluth 1 % of G.711 costs 4.2 of 93.2 points.
#
# Seen, round trip of 40 ms, jitter 5 ms, loss of 0, 0.1, 1, 5, 15 and 30 %: mos_in 4.4, 3.3, 1.0, 1.0, 1.0, 1.0; right
# is 4.4, 4.4, 4.3, 3.8, 2.9, 2.1. mos_emodel_in 4.3, 4.3, 4.1, 3.3, 2.3 and 4.1.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts webrtcmetrics@5.5.0
cat >run.js <<'END'
const devices = { addEventListener () {}, removeEventListener () {} }
Object.defineProperty(globalThis, 'navigator', { value: { userAgent: 'node', mediaDevices: devices } })
globalThis.self = globalThis.window = globalThis

const ROUND_TRIP = 0.04 // s
const JITTER = 0.005 // s
const REPORTS = 5

globalThis.RTCPeerConnection = class {
  constructor (loss) {
    this.loss = loss
    this.count = 0
  }

  addEventListener () {}
  removeEventListener () {}
  getSenders () { return [] }
  getReceivers () { return [] }

  async getStats () {
    this.count++
    const total = 1000 * this.count
    const packetsLost = Math.round(total * this.loss)
    const rows = [
      { id: 'transport', type: 'transport', selectedCandidatePairId: 'pair' },
      {
        id: 'pair', type: 'candidate-pair', state: 'succeeded', nominated: true, currentRoundTripTime: ROUND_TRIP,
        totalRoundTripTime: ROUND_TRIP * this.count, responsesReceived: this.count
      },
      {
        id: 'in', type: 'inbound-rtp', kind: 'audio', mediaType: 'audio', ssrc: 1, transportId: 'transport',
        packetsReceived: total - packetsLost, packetsLost, bytesReceived: 160 * (total - packetsLost), jitter: JITTER
      }
    ]
    return new Map(rows.map(row => [row.id, { ...row, timestamp: 1000 * this.count }]))
  }
}

const WebRTCMetrics = require('webrtcmetrics')

/** The last of some reports on a stream that loses a share of its packets. */
function measure (loss) {
  return new Promise(resolve => {
    const metrics = new WebRTCMetrics({ refreshEvery: 1000, silent: true })
    const probe = metrics.createProbe(new RTCPeerConnection(loss))
    let count = 0
    probe.onreport = report => {
      if (++count < REPORTS) return
      metrics.stopAllProbes()
      resolve(Object.values(report.audio)[0])
    }
    metrics.startAllProbes()
  })
}

function right (loss) {
  const delay = 1000 * (ROUND_TRIP + JITTER) / 2 + 30 // ms, as webrtcmetrics has it
  const rating = 93.2 - 0.024 * delay - 30 * Math.log(1 + 15 * loss)
  return 1 + 0.035 * rating + 7e-6 * rating * (rating - 60) * (100 - rating)
}

const LOSSES = [0, 0.001, 0.01, 0.05, 0.15, 0.3]
Promise.all(LOSSES.map(measure)).then(streams => {
  const told = streams.map(stream => [stream.mos_in, stream.mos_emodel_in].map(mos => mos.toFixed(1)).join(' '))
  streams.forEach((stream, index) => {
    const lost = stream.percent_packets_lost_in
    console.log(`${lost} % lost: mos_in, mos_emodel_in ${told[index]}, right ${right(LOSSES[index]).toFixed(1)}`)
  })
  process.exit(told.join(', ') === '4.4 4.3, 3.3 4.3, 1.0 4.1, 1.0 3.3, 1.0 2.3, 1.0 4.1' ? 0 : 1)
})
END
node run.js
