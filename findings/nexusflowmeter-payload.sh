#!/bin/sh
# nexusflowmeter 0.1.5 (PyPI), which makes tables of flows from captures, counts the headers of TCP and UDP, and the
# padding of short frames, as payload (add_packet in converter.py: the length of what follows the IP header). So pure
# acknowledgements carry 32 bytes each, and each download has an upload. "Forward" is the direction from the address
# that sorts first as text, not the one that opened the connection: 10.0.0.10 comes before 10.0.0.9. And --flow-timeout,
# 60 s by default, is kept and never looked at: connections an hour apart on the same ports are one of an hour. Nothing
# is said. RFC 9293, 3.1, has the data begin after the header (Data Offset).
#
# Seen, 10.0.0.9 asks 10.0.0.10 with 200 bytes for 100 kB in 1 s, with timestamps, and once more after 3600 s: one flow
# of 3601 s; forward, which is the answer, 206528 bytes of payload, backward 6992; right are 200000 and 400, in two of 1
# s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check nexusflowmeter==0.1.5 scapy==2.5.0 pandas==2.2.3
cat >capture.py <<'END'
from scapy.all import IP, TCP, Ether, wrpcap

CLIENT, SERVER = ("10.0.0.9", 40000), ("10.0.0.10", 80)
packets = []


def send(time: float, source: tuple[str, int], flags: str, sequence: int, ack: int, length: int = 0) -> None:
    target = SERVER if source == CLIENT else CLIENT
    options = [("NOP", None), ("NOP", None), ("Timestamp", (1, 1))]
    ports = {"sport": source[1], "dport": target[1]}
    tcp = TCP(**ports, flags=flags, seq=sequence, ack=ack, options=options) / bytes(length)
    packet = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src=source[0], dst=target[0]) / tcp
    packet.time = 1_700_000_000 + time
    packets.append(packet)


for start in (0, 3600):
    send(start, CLIENT, "S", 0, 0)
    send(start, SERVER, "SA", 0, 1)
    send(start, CLIENT, "PA", 1, 1, 200)
    for index in range(100):
        send(start + 0.01 * index, SERVER, "A", 1 + 1000 * index, 201, 1000)
        send(start + 0.01 * index, CLIENT, "A", 201, 1001 + 1000 * index)
    send(start + 1, CLIENT, "FA", 201, 100_001)
    send(start + 1, SERVER, "FA", 100_001, 202)
wrpcap("twice.pcap", packets)
END
env/bin/python capture.py
env/bin/nexusflowmeter twice.pcap flows.csv --flow-timeout 60 >log 2>&1
cat >check.py <<'END'
import csv
import sys

FIELDS = "src_ip", "duration_seconds", "forward_payload_bytes", "backward_payload_bytes", "syn_count"
flows = [tuple(flow[field] for field in FIELDS) for flow in csv.DictReader(open("flows.csv"))]
for flow in flows:
    print(", ".join(f"{field} {value}" for field, value in zip(FIELDS, flow)))
sys.exit(flows != [("10.0.0.10", "3601.0", "206528", "6992", "2")])
END
env/bin/python check.py
