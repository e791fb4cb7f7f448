#!/bin/sh
# pypacker 5.4 has eight TCP flags: the ninth, AE (once NS), is in no attribute. So a SYN that offers
# Accurate ECN (AE, CWR and ECE; RFC 9768, 3.1.1) looks like one that offers classic ECN (CWR and ECE;
# RFC 3168, 6.1.1), and the counter of marks in later segments (AE, CWR and ECE as a number of three
# bits) comes out modulo four. dpkt 1.9.8 and scapy have the bit.
#
# Seen: pypacker 0xc2 for 0x1c2, dpkt 0x1c2.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet pypacker==5.4 dpkt==1.9.8
cat >"$dir/run.py" <<'END'
import struct
import sys

import dpkt
from pypacker.layer4.tcp import TCP

SYN, ECE, CWR, AE = 0x002, 0x040, 0x080, 0x100
flags = AE | CWR | ECE | SYN
syn = struct.pack(">HHIIHHHH", 49152, 80, 1, 0, 5 << 12 | flags, 65535, 0, 0)
by_pypacker, by_dpkt = TCP(syn).flags, dpkt.tcp.TCP(syn).flags
print(f"pypacker {by_pypacker:#x} dpkt {by_dpkt:#x}")
names = [name for name in dir(TCP(syn)) if name.strip("_") in ("flag_ae", "flag_ns", "ae", "ns")]
sys.exit((by_pypacker, by_dpkt, names) != (CWR | ECE | SYN, flags, []))
END
"$dir/venv/bin/python" "$dir/run.py"
