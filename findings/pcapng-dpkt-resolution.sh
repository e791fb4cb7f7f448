#!/bin/sh
# dpkt 1.9.8 gives every packet of a pcapng file the time resolution of the file's first interface.
# With a second interface in nanoseconds its packets of 2023 are dated to the year 55840; nothing is
# raised. Each interface has a resolution of its own (if_tsresol; draft-ietf-opsawg-pcapng, 4.2 and
# 4.3). A capture over two interfaces, as mergecap makes of two files, is enough.
#
# Seen: [1700000000.0, 1700000000000.0]; right is 1700000000 for both.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet dpkt==1.9.8
cat >"$dir/run.py" <<'END'
import struct
import sys

import dpkt


def block(kind: int, body: bytes) -> bytes:
    return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))


def packet(interface: int, time: int) -> bytes:
    return block(6, struct.pack("<5I", interface, time >> 32, time & 0xFFFFFFFF, 4, 4) + bytes(4))


SECTION = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
ETHERNET = struct.pack("<HHI", 1, 0, 0)
MICROSECONDS = block(1, ETHERNET)
NANOSECONDS = block(1, ETHERNET + struct.pack("<HHBxxxHH", 9, 1, 9, 0, 0))
TIME = 1_700_000_000

with open(sys.argv[1], "wb") as file:
    file.write(SECTION + MICROSECONDS + NANOSECONDS)
    file.write(packet(0, TIME * 10**6) + packet(1, TIME * 10**9))
with open(sys.argv[1], "rb") as file:
    times = [time for time, _ in dpkt.pcapng.Reader(file)]
print(times)
sys.exit(times != [TIME, 1000 * TIME])
END
"$dir/venv/bin/python" "$dir/run.py" "$dir/two.pcapng"
