#!/bin/sh
# NanoPcap 1.0.4 (PyPI) gets three things of captures wrong. Its summary (Tools/Summary.py) says how much of the slowest
# line that fits (10 Mbit/s, 100 and so on) was used at the peak, by dividing bytes a second by bits a second: a line
# that is full is at 12.5 %, and the warning above 80 % never comes. IPv4Packet takes the version for the header length
# and the header length for the version (RFC 791, 3.1, has the version first), so a payload begins four bytes early,
# within the destination address. And EthernetPacket takes the last four bytes of each frame for its checksum, which
# captures do not have unless their header says so (FCS len, draft-ietf-opsawg-pcap, 4): of TCP the last four bytes are
# gone. Nothing is said; times, lengths and their quantiles are right.
#
# Seen, frames of 1250 bytes each millisecond, 10 Mbit/s: line 10M, 12.5 %. Their IPv4: version 5, header of 16 bytes,
# payload of 1216, from 0a000002 on; right is 4, 20 and 1216, but from the TCP port 9c40 on.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check NanoPcap==1.0.4
cat >capture.py <<'END'
import struct

LENGTH = 1250
ethernet = bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0])
ip = struct.pack(">BBHHHBBH", 0x45, 0, LENGTH - 14, 0, 0, 64, 6, 0) + bytes([10, 0, 0, 1, 10, 0, 0, 2])
tcp = struct.pack(">HHIIBBHHH", 40000, 5001, 1, 1, 0x50, 16, 512, 0, 0)
frame = (ethernet + ip + tcp).ljust(LENGTH - 4, b"\0") + b"last"
with open("full.pcap", "wb") as file:
    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    for index in range(500):
        file.write(struct.pack("<IIII", 1_700_000_000, 1000 * index, LENGTH, LENGTH) + frame)
END
cat >read.py <<'END'
from NanoPcap.Listener import PcapListener
from NanoPcap.Parser import parseFile
from NanoPcap.Protocols.Ethernet import EthernetPacket
from NanoPcap.Protocols.IPv4 import IPv4Packet


class Listener(PcapListener):
    count = 0

    def onPcapHeader(self, header):
        pass

    def onPcapRecord(self, header, data):
        self.count += 1
        if self.count == 1:
            ip = IPv4Packet(EthernetPacket(data).payload())
            payload = ip.payload()
            begin = payload[:4].hex()
            print(f"version {ip.version()}, header {ip.headerLength()}, payload {len(payload)} from {begin}")
            print(f"last bytes there: {b'last' in payload}")


parseFile("full.pcap", Listener())
END
env/bin/python capture.py
env/bin/python -m NanoPcap.Tools.Summary --use-units full.pcap >summary
{ grep -o "line rate must be at least.*\|WARNING.*" summary && env/bin/python read.py; } | tee told
cat >expected <<'END'
line rate must be at least: 10M with peak utilization of 12.5%
version 5, header 16, payload 1216 from 0a000002
last bytes there: False
END
diff expected told
