#!/bin/sh
# wa1kpcap 0.2.0 (PyPI), which makes features of flows from captures, takes each TCP segment below the highest
# sequence number so far for a retransmission, also one that it has not seen before. By default it leaves
# retransmissions out (filter_retrans): a segment that was overtaken, or lost before it was captured and sent
# again, is missing from the packets, bytes and times of its flow. out_of_order_count stays 0. And min_window,
# the "minimum TCP window size observed", starts anew after each window of 0: a receiver that stopped the sender
# for a while does not show. Nothing is said. tshark 4.0.17 has such a segment as tcp.analysis.out_of_order, and
# the window as tcp.analysis.zero_window.
#
# Seen, ten segments in order: 10 segments, 0 retransmitted, 0 out of order; the fourth after the seventh: 9, 1
# and 0. Smallest of the windows 65000, 0 and 65535: 65535; of 65535 and 0: 0.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet wa1kpcap==0.2.0 numpy==2.2.6
cat >run.py <<'END'
import struct
import sys

from wa1kpcap import Wa1kPcap

MOBILE, SERVER = (bytes([10, 0, 0, 1]), 40000), (bytes([10, 0, 0, 2]), 80)
SYN, ACK = 0x02, 0x10
SIZE, COUNT = 1000, 10


def checksum(data: bytes) -> bytes:
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">H", ~total & 0xFFFF)


def read(order: list[int], windows: list[int]):
    """What is told of a download whose segments come in an order, and whose acknowledgements have windows."""
    packets: list[bytes] = []

    def packet(source, to, seq: int, ack: int, flags: int, length: int = 0, window: int = 65535) -> None:
        ends, number = source[0] + to[0], len(packets)
        tcp = struct.pack(">HHIIHHI", source[1], to[1], seq, ack, 5 << 12 | flags, window, 0) + bytes(length)
        tcp = tcp[:16] + checksum(ends + struct.pack(">HH", 6, len(tcp)) + tcp) + tcp[18:]
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), number, 0, 64, 6, 0) + ends
        packets.append(bytes(12) + b"\x08\x00" + ip[:10] + checksum(ip) + ip[12:] + tcp)

    packet(MOBILE, SERVER, 99, 0, SYN)
    packet(SERVER, MOBILE, 999, 100, SYN | ACK)
    packet(MOBILE, SERVER, 100, 1000, ACK)
    for segment in order:
        packet(SERVER, MOBILE, 1000 + SIZE * segment, 100, ACK, SIZE)
    for window in windows:
        packet(MOBILE, SERVER, 100, 1000 + SIZE * COUNT, ACK, window=window)
    with open("download.pcap", "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for number, data in enumerate(packets):
            file.write(struct.pack("<IIII", 1_700_000_000, 1000 * number, len(data), len(data)) + data)
    [flow] = Wa1kPcap().analyze_file("download.pcap")
    return flow.metrics


changed = False
for name, order, expected in (
    ("in order", list(range(COUNT)), (COUNT, 0, 0)),
    ("overtaken", [0, 1, 2, 4, 5, 6, 3, 7, 8, 9], (COUNT - 1, 1, 0)),
):
    flow = read(order, [65535])
    segments = flow.down_packet_count - 1  # less the SYN
    told = segments, flow.retrans_count, flow.out_of_order_count
    print("{}: {} segments, {} retransmitted, {} out of order".format(name, *told))
    changed |= told != expected
smallest = read(list(range(COUNT)), [65000, 0, 65535]).min_window
last = read(list(range(COUNT)), [65535, 0]).min_window
print(f"minimum of the windows 65000, 0, 65535: {smallest}; of 65535, 0: {last}")
sys.exit(changed or (smallest, last) != (65535, 0))
END
venv/bin/python run.py
