#!/bin/sh
# Two collectors of NetFlow v5, netflow 0.12.2 (PyPI) and node-netflowv9 0.2.16 (npm), give the last 16 bits of the
# header as the sampling interval. By Cisco's format of version 5 (NetFlow Export Datagram Format, table B-3) the first
# two of these are the sampling mode and only the other 14 the interval. So one packet in 100, counted out (mode 1),
# reads as one in 16484: who multiplies octets by it, as one must where packets are sampled, finds 165 times the
# traffic. Nothing is said. netflume 0.6.0 (PyPI) tells both parts apart.
#
# Seen, mode 1, interval 100: netflow and node-netflowv9 16484, netflume 100. With it the 75 kB that the exporter saw of
# a flow in 10 s stand for 6 Mbit/s; by the other two for 989.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check netflow==0.12.2 netflume==0.6.0
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund node-netflowv9@0.2.16
cat >run.py <<'END'
import struct

import netflow
from netflume import Decoder

MODE, INTERVAL, OCTETS = 1, 100, 75_000
header = struct.pack(">HHIIIIBBH", 5, 1, 60_000, 1_700_000_000, 0, 1, 0, 0, MODE << 14 | INTERVAL)
counts = struct.pack(">HHIIII", 1, 2, 50, OCTETS, 40_000, 50_000)
ends = struct.pack(">HHBBBBHHBBH", 40_000, 5001, 0, 24, 6, 0, 0, 0, 24, 24, 0)
datagram = header + bytes([10, 0, 0, 1, 10, 0, 0, 2, 0, 0, 0, 0]) + counts + ends
with open("datagram", "wb") as file:
    file.write(datagram)
packet, message = netflow.parse_packet(datagram, {}), Decoder().decode(datagram, "10.0.0.3")
read = {"netflow": (packet.flows[0].IN_OCTETS, packet.header.sampling_interval)}
read["netflume"] = message.flows[0]["octets"], message.sampling_rate
for name, (octets, interval) in read.items():
    print(f"{name}: {octets} octets, one packet in {interval}, {octets * interval * 8 / 10 / 1e6:.0f} Mbit/s")
END
cat >run.js <<'END'
const NetFlowV9 = require('node-netflowv9')
const { header, flows } = NetFlowV9.prototype.nf5PktDecode(require('fs').readFileSync('datagram'), { size: 72 })
const [octets, interval] = [flows[0].in_bytes, header.sampling_interval]
const rate = (octets * interval * 8 / 10 / 1e6).toFixed(0)
console.log(`node-netflowv9: ${octets} octets, one packet in ${interval}, ${rate} Mbit/s`)
process.exit()
END
{ env/bin/python run.py && node run.js; } | tee told
cat >expected <<'END'
netflow: 75000 octets, one packet in 16484, 989 Mbit/s
netflume: 75000 octets, one packet in 100, 6 Mbit/s
node-netflowv9: 75000 octets, one packet in 16484, 989 Mbit/s
END
diff expected told
