#!/bin/sh
# Three packages of PyPI that make tables of flows from captures, netflower 1.1.0, nexusflowmeter 0.1.5 and cicflowmeter
# 0.2.0, add up the bytes that a capture kept of each packet instead of the packets' lengths. A capture of headers only,
# as usual for TCP on fast or private links (tcpdump -s 96), says how long each packet was (Original Packet Length,
# draft-ietf-opsawg-pcap, 5; the IP header too, RFC 791, 3.1). So octets and rates of such a file are those of its
# headers, acknowledgements seem to be as much as the data, and packets are all 82 or 96 bytes long. Nothing is said;
# numbers of packets and times are right. tshark 4.0.17 (-z conv,ip) takes the length from the capture's record.
#
# Seen, 100 segments of 1000 bytes in 9.9 s: whole, 104000 octets by netflower, 105400 by the others, 10.6 to 10.8 kB/s
# with the acknowledgements; of 96 bytes each, 8200 and 9600, 0.9 to 1.1 kB/s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
# The last scapy whose sessions cicflowmeter works with.
env/bin/pip install --quiet --disable-pip-version-check netflower==1.1.0 nexusflowmeter==0.1.5 cicflowmeter==0.2.0 \
    scapy==2.5.0 numpy==1.26.4 scipy==1.15.3 pandas==2.2.3
cat >capture.py <<'END'
import struct

from scapy.all import IP, TCP, Ether

ENDS = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}
packets = []
for index in range(100):
    data = TCP(sport=40000, dport=80, flags="A", seq=1 + 1000 * index, ack=1) / bytes(1000)
    packets.append((0.1 * index, Ether(**ENDS) / IP(src="10.0.0.1", dst="10.0.0.2") / data))
for index in range(20):
    ack = TCP(sport=80, dport=40000, flags="A", seq=1, ack=2001 + 5000 * index)
    packets.append((0.15 + 0.49 * index, Ether(**ENDS) / IP(src="10.0.0.2", dst="10.0.0.1") / ack))
for name, length in (("whole", 65535), ("headers", 96)):
    with open(f"{name}.pcap", "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, length, 1))
        for time, packet in sorted(packets, key=lambda pair: pair[0]):
            full = bytes(packet)
            kept = full[:length]
            header = struct.pack("<IIII", 1_700_000_000 + int(time), round(time % 1 * 1e6), len(kept), len(full))
            file.write(header + kept)
END
env/bin/python capture.py
cat >check.py <<'END'
import csv
import sys

import netflower

changed = False
for name, right in (("whole", True), ("headers", False)):
    netflower.convert_pcap_to_csv(f"{name}.pcap", f"{name}-netflower.csv")
    for tool, octets, rate, told in (
        ("netflower", "totlen_fwd_pkts", "flow_byts_s", 104_000 if right else 8200),
        ("nexusflowmeter", "forward_bytes", "bytes_per_second", 105_400 if right else 9600),
        ("cicflowmeter", "totlen_fwd_pkts", "flow_byts_s", 105_400 if right else 9600),
    ):
        [flow] = csv.DictReader(open(f"{name}-{tool}.csv"))
        print(f"{name}, {tool}: {float(flow[octets]):.0f} octets forward, {float(flow[rate]) / 1e3:.1f} kB/s")
        changed |= float(flow[octets]) != told
sys.exit(changed)
END
for name in whole headers; do
    env/bin/nexusflowmeter $name.pcap $name-nexusflowmeter.csv >log 2>&1
    env/bin/cicflowmeter -f $name.pcap -c $name-cicflowmeter.csv >log 2>&1
done
env/bin/python check.py
