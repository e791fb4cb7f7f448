#!/bin/sh
# tracereport of libtrace 3.0.22 (libtrace-tools of Debian 12), which analyses captures, reports "on the number of flows
# observed in the trace" (-F). What it counts is how often a packet belongs to another flow than the packet before it.
# So one flow is right, and as soon as a second one, or the other direction of the first, takes turns with it, each
# packet is a new flow. Nothing is said. A flow is the packets with the same addresses, ports and protocol (RFC 7011,
# 2), here in one direction.
#
# Seen, 300 packets of one flow: 1. Of three flows in turn: 300, right is 3. Of the same three one after the other: 3. A
# datagram and its answer 150 times: 300, right is 2 (or 1 for both directions).
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet libtrace-tools=3.0.22-0.1 libtrace3 libpacketdump3 libwandio1 libpcap0.8 libdbus-1-3 \
	>log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH="$dir/usr/lib:$dir/usr/lib/x86_64-linux-gnu"
cat >captures.py <<'END'
import struct

HERE, THERE = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
Flow = tuple[bytes, bytes, int, int]


def write(name: str, flows: list[Flow]) -> None:
    """Writes a capture of Ethernet with a datagram each 10 ms, of these flows (addresses and ports)."""
    with open(name, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for index, (source, destination, *ports) in enumerate(flows):
            ipv4 = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 128, 0, 0, 64, 17, 0, source, destination)
            frame = bytes(12) + b"\x08\x00" + ipv4 + struct.pack(">HHHH", *ports, 108, 0) + bytes(100)
            seconds, hundredths = divmod(index, 100)
            file.write(struct.pack("<IIII", 10**9 + seconds, 10_000 * hundredths, len(frame), len(frame)) + frame)


three = [(HERE, THERE, port, 5000) for port in (4000, 4001, 4002)]
write("one.pcap", 300 * three[:1])
write("in-turn.pcap", 100 * three)
write("one-by-one.pcap", [flow for flow in three for _ in range(100)])
write("answered.pcap", 150 * [three[0], (THERE, HERE, 5000, 4000)])
END
python3 captures.py
for name in one in-turn one-by-one answered; do
	usr/bin/tracereport -F pcapfile:$name.pcap >log 2>&1
	echo "$name: $(cat flows.rpt)"
done | tee told
cat >expected <<'END'
one: Flows: 1
in-turn: Flows: 300
one-by-one: Flows: 3
answered: Flows: 300
END
diff expected told
