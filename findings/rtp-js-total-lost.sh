#!/bin/sh
# rtp.js 0.15.5 (npm) reads 12 of the 24 bits of the cumulative loss in reception reports (getTotalLost of
# ReceptionReport masks with 0x0fff). So the count begins at 0 again with the 4096th lost packet, after 14 minutes of a
# stream of 500 packets/s that loses 1 %, and the difference of two reports, by which loss is followed, is negative
# there. A negative count, from a path that duplicates, comes out as some 4000 lost packets; and setTotalLost writes
# one as magnitude and sign, which others read as minus eight million. In NACKs the sequence numbers after 65535 are
# 65536 and so on, which no packet has (parseNackItem), and createNackItem sorts them as text, so 9 and 10 are an
# error. Else no error is thrown. RFC 3550, 6.4.1 and A.3: a signed number of 24 bits in two's complement; RFC 4585,
# 6.2.1: modulo 2^16. aiortc 1.16.0 reads and writes the counts right.
#
# Seen: 4095, 4096, 5000 and -2 lost are read as 4095, 0, 904 and 4094; -2 is written as 0x800002, right is 0xfffffe. A
# NACK of 65535 and 0 is read as 65535 and 65536.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts rtp.js@0.15.5
cat >run.js <<'END'
const { packets: { ReceiverReportPacket, ReceptionReport, createNackItem, parseNackItem } } = require('rtp.js')

/** A receiver report on one stream, as a peer sends it. */
function packet (lost) {
  const view = new DataView(new ArrayBuffer(32))
  view.setUint32(0, 0x81c90007) // version 2, one report, type 201, 8 words
  view.setUint32(4, 8)
  view.setUint32(8, 7)
  view.setUint32(12, lost & 0xffffff)
  view.setUint32(16, 100000)
  return view
}

const told = [4095, 4096, 5000, -2].map(lost => new ReceiverReportPacket(packet(lost)).getReports()[0].getTotalLost())
const report = new ReceptionReport()
report.setTotalLost(-2)
const buffer = new DataView(new ArrayBuffer(report.getByteLength()))
report.serialize(buffer.buffer, 0)
const written = (buffer.getUint32(4) & 0xffffff).toString(16)
const nack = parseNackItem(65535, 1).join()
let thrown = false
try {
  createNackItem([9, 10])
} catch (error) {
  thrown = true
}
console.log(`lost ${told.join(', ')}; -2 written as 0x${written}; NACK of ${nack}; of 9 and 10 an error: ${thrown}`)
const same = told.join() === '4095,0,904,4094' && written === '800002' && nack === '65535,65536' && thrown
process.exit(same ? 0 : 1)
END
node run.js
