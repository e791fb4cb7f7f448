#!/bin/sh
# tcptrace 6.6.7, as Debian builds it for 64 bits, takes a SYN or a FIN for a segment of 4 GiB: it
# computes the length as if the one sequence number had wrapped around (rexmit.c, rtt_ackin). Only the
# longest segments so far count as full-sized (tcptrace.h), so wherever a SYN or a FIN is in the capture
# the lines "RTT full_sz" are of these alone. Nothing is said. Where data waits in a queue or for a slow
# radio, they tell the round trip of an empty path. Without SYN and FIN they are right, and so is
# tcp.analysis.ack_rtt of tshark 4.0.17, with the length of the segments beside it.
#
# Seen, 40 segments of 1460 bytes acknowledged after 100 ms, SYN and FIN after 20 ms: 42 samples, 2 of
# them full-sized, on average 20.0 ms; right is 40, 100.0 ms.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet tcptrace=6.6.7-6+b1 libpcap0.8 libdbus-1-3 >log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
cat >run.py <<'END'
import csv
import struct
import subprocess
import sys

MOBILE, SERVER = (bytes([10, 0, 0, 1]), 40000), (bytes([10, 0, 0, 2]), 80)
SYN, ACK, FIN = 0x02, 0x10, 0x01
packets: list[tuple[float, bytes]] = []


def checksum(data: bytes) -> bytes:
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">H", ~total & 0xFFFF)


def packet(time: float, source, to, seq: int, ack: int, flags: int, length: int = 0) -> None:
    ends, number = source[0] + to[0], len(packets)
    tcp = struct.pack(">HHIIHHI", source[1], to[1], seq, ack, 5 << 12 | flags, 65535, 0) + bytes(length)
    tcp = tcp[:16] + checksum(ends + struct.pack(">HH", 6, len(tcp)) + tcp) + tcp[18:]
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), number, 0, 64, 6, 0) + ends
    packets.append((time, ip[:10] + checksum(ip) + ip[12:] + tcp))


SIZE, COUNT = 1460, 40
packet(0.0, MOBILE, SERVER, 99, 0, SYN)
packet(0.001, SERVER, MOBILE, 999, 100, SYN | ACK)
packet(0.021, MOBILE, SERVER, 100, 1000, ACK)
for i in range(COUNT):
    packet(1 + 0.2 * i, SERVER, MOBILE, 1000 + SIZE * i, 100, ACK, SIZE)
    packet(1.1 + 0.2 * i, MOBILE, SERVER, 100, 1000 + SIZE * (i + 1), ACK)
end = 1000 + SIZE * COUNT
packet(20.0, SERVER, MOBILE, end, 100, FIN | ACK)
packet(20.02, MOBILE, SERVER, 100, end + 1, FIN | ACK)
packet(20.021, SERVER, MOBILE, end + 1, 101, ACK)

with open("download.pcap", "wb") as file:
    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
    for time, data in packets:
        micros = round(time * 1e6)
        header = 1_700_000_000 + micros // 10**6, micros % 10**6, len(data), len(data)
        file.write(struct.pack("<IIII", *header) + data)
command = ["usr/bin/tcptrace", "-lr", "--csv", "download.pcap"]
lines = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
[row] = csv.DictReader((line for line in lines if line and line[0] != "#"), skipinitialspace=True)
told = {name: row[f"RTT_{name}_b2a"].strip() for name in ("samples", "full_sz_smpls", "full_sz_avg")}
print(told)
sys.exit(told != {"samples": "42", "full_sz_smpls": "2", "full_sz_avg": "20.0"})
END
LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu:$dir/lib/x86_64-linux-gnu" python3 run.py
