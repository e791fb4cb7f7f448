#!/bin/sh
# pcap-anonymize 0.3.0 (PyPI) replaces the MAC addresses in a capture and some application data, and builds each packet
# anew to "recompute its lengths and checksums" (rebuild_packet in pcap_anonymize.py). The new packet has neither the
# time nor the length on the wire of the old one. Its time is when the tool builds it, so a capture of ten minutes lasts
# as long as the tool runs: every round trip, gap and rate is the tool's. And of a capture with a snap length, what was
# kept of a packet becomes all of it, in the file and in the IP header: a throughput from it is a sixteenth of the true
# one, and between segments data seem to be missing. Nothing is said; by its README only addresses and application data
# change. The file format keeps both with each packet (pcap-savefile(5), timestamp and untruncated length).
#
# Seen, a capture from 2023, 600 s, 61 packets of 1514 bytes, of which 96 are kept: afterwards it is of the day, lasts
# less than 30 s, and the packets are of 96 bytes, 82 by IP.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check pcap-anonymize==0.3.0 scapy==2.6.1
cat >capture.py <<'END'
import struct

SNAP, LENGTH = 96, 1514
with open("capture.pcap", "wb") as file:
    file.write(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, SNAP, 1))
    for number in range(61):
        ethernet = bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0])
        ip = struct.pack(">BBHHHBBH", 0x45, 0, LENGTH - 14, number, 0x4000, 64, 6, 0)
        ip += bytes([10, 0, 0, 1, 10, 0, 0, 2])
        tcp = struct.pack(">HHIIBBHHH", 40_000, 5001, number * 1460, 1, 0x50, 16, 65_535, 0, 0)
        kept = (ethernet + ip + tcp + bytes(LENGTH))[:SNAP]
        file.write(struct.pack("<IIII", 1_700_000_000 + number * 10, 0, SNAP, LENGTH) + kept)
END
cat >tell.py <<'END'
import struct
import sys
import time

with open(sys.argv[1], "rb") as file:
    data = file.read()
at, times, lengths = 24, [], set()
while at < len(data):
    seconds, fraction, kept, length = struct.unpack_from("<IIII", data, at)
    times.append(seconds + fraction / 1e6)
    lengths.add((length, struct.unpack_from(">H", data, at + 16 + 16)[0]))
    at += 16 + kept
age = "new" if time.time() - times[0] < 3600 else "old"
duration = times[-1] - times[0]
for length, ip in lengths:
    print(f"{age}, {'less than 30' if duration < 30 else f'{duration:.0f}'} s, {length} bytes, {ip} by IP")
END
python3 capture.py
env/bin/pcap-anonymize --input capture.pcap --output anonymous.pcap
{ python3 tell.py capture.pcap && python3 tell.py anonymous.pcap; } | tee told
cat >expected <<'END'
old, 600 s, 1514 bytes, 1500 by IP
new, less than 30 s, 96 bytes, 82 by IP
END
diff expected told
