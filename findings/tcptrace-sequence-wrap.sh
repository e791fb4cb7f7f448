#!/bin/sh
# tcptrace 6.6.7, as Debian builds it for 64 bits, forgets in two places that sequence numbers wrap
# around (RFC 9293, 3.4). An acknowledgement below 2^32 with a SACK block that ends above counts as a
# DSACK (trace.c compares with <=; RFC 2883, 4), so a plain loss there looks like needless
# retransmissions. And data in flight across 2^32 are computed in 64 bits: "max owin", "avg owin" and
# "wavg owin", which stand for the congestion window, are of the order of 10^18. Nothing is said. A
# download of 1 GB crosses 2^32 nearly once in four. tshark 4.0.17 finds no D-SACK in either capture,
# and the same bytes in flight (tcp.options.sack.dsack_le, tcp.analysis.bytes_in_flight).
#
# Seen, one of ten segments lost, sequence numbers from 1000: no DSACK, max owin 10001; from 2^32 - 5500:
# 5 DSACKs, max owin 18446744069414594321.
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
SYN, ACK = 0x02, 0x10
SACK_PERMITTED = bytes([1, 1, 4, 2])
SIZE, COUNT, LOST = 1000, 10, 3


def checksum(data: bytes) -> bytes:
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">H", ~total & 0xFFFF)


def number(sequence: int) -> bytes:
    return struct.pack(">I", sequence % 2**32)


def sack(left: int, right: int) -> bytes:
    return bytes([1, 1, 5, 10]) + number(left) + number(right)


def read(first: int) -> tuple[str, str]:
    packets: list[tuple[float, bytes]] = []

    def packet(time, source, to, seq, ack, flags, options=b"", length=0) -> None:
        offset = 5 + len(options) // 4
        tcp = struct.pack(">HH", source[1], to[1]) + number(seq) + number(ack)
        tcp += struct.pack(">HHI", offset << 12 | flags, 65535, 0) + options + bytes(length)
        ends = source[0] + to[0]
        tcp = tcp[:16] + checksum(ends + struct.pack(">HH", 6, len(tcp)) + tcp) + tcp[18:]
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), len(packets), 0, 64, 6, 0) + ends
        packets.append((time, ip[:10] + checksum(ip) + ip[12:] + tcp))

    packet(0.0, MOBILE, SERVER, 99, 0, SYN, SACK_PERMITTED)
    packet(0.001, SERVER, MOBILE, first - 1, 100, SYN | ACK, SACK_PERMITTED)
    packet(0.02, MOBILE, SERVER, 100, first, ACK)
    for i in range(COUNT):
        packet(0.03 + i / 1000, SERVER, MOBILE, first + SIZE * i, 100, ACK, length=SIZE)
    lost = first + SIZE * LOST
    for i in range(COUNT):
        end = first + SIZE * (i + 1)
        if i < LOST:
            packet(0.05 + i / 1000, MOBILE, SERVER, 100, end, ACK)
        if i > LOST:
            packet(0.05 + i / 1000, MOBILE, SERVER, 100, lost, ACK, sack(lost + SIZE, end))
    packet(0.07, SERVER, MOBILE, lost, 100, ACK, length=SIZE)
    packet(0.09, MOBILE, SERVER, 100, first + SIZE * COUNT, ACK)
    with open("loss.pcap", "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
        for time, data in packets:
            header = 1_700_000_000, round(time * 1e6), len(data), len(data)
            file.write(struct.pack("<IIII", *header) + data)
    command = ["usr/bin/tcptrace", "-lW", "--csv", "loss.pcap"]
    lines = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
    [row] = csv.DictReader((line for line in lines if line and line[0] != "#"), skipinitialspace=True)
    told = row["dsack_pkts_sent_a2b"].strip(), row["max_owin_b2a"].strip()
    print(f"from {first}: DSACKs {told[0]}, max owin {told[1]}")
    return told


low, high = read(1000), read(2**32 - 5500)
sys.exit((low, high) != (("0", "10001"), ("5", str(2**64 - 2**32 + 10001))))
END
LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu:$dir/lib/x86_64-linux-gnu" python3 run.py
