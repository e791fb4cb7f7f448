#!/bin/sh
# scapy 2.6.1 and python-pcapng 2.1.1 ignore the offset of an interface's clock (if_tsoffset, seconds
# to add to each time; draft-ietf-opsawg-pcapng, 4.2) and raise nothing: a packet of 2023 in a file
# whose clock counts from a later epoch is dated to 1970. dpkt 1.9.8 and tshark 4.0 add it.
#
# Seen: scapy 5, python-pcapng 5.0, dpkt 1700000005.0; the last is right.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet scapy==2.6.1 python-pcapng==2.1.1 dpkt==1.9.8
cat >"$dir/run.py" <<'END'
import struct
import sys

import dpkt
import pcapng
from pcapng.blocks import EnhancedPacket
from scapy.utils import PcapNgReader


def block(kind: int, body: bytes) -> bytes:
    return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))


EPOCH = 1_700_000_000
OFFSET = struct.pack("<HHqHH", 14, 8, EPOCH, 0, 0)
with open(sys.argv[1], "wb") as file:
    file.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
    file.write(block(1, struct.pack("<HHI", 101, 0, 0) + OFFSET))
    file.write(block(6, struct.pack("<5I", 0, 0, 5_000_000, 4, 4) + bytes(4)))

by_scapy = [float(packet.time) for packet in PcapNgReader(sys.argv[1])]
with open(sys.argv[1], "rb") as file:
    blocks = [block for block in pcapng.FileScanner(file) if isinstance(block, EnhancedPacket)]
by_pcapng = [float(block.timestamp) for block in blocks]
with open(sys.argv[1], "rb") as file:
    by_dpkt = [time for time, _ in dpkt.pcapng.Reader(file)]
print(f"scapy {by_scapy} python-pcapng {by_pcapng} dpkt {by_dpkt}")
sys.exit((by_scapy, by_pcapng, by_dpkt) != ([5], [5], [EPOCH + 5]))
END
"$dir/venv/bin/python" "$dir/run.py" "$dir/offset.pcapng" 2>/dev/null
