#!/bin/sh
# ra 3.0.8.2 (argus-client of Debian 12), which prints the records of flows that argus makes, tells a jitter of TCP
# connections that is larger than the connection was long. sjit, "source jitter (mSec)", is the standard deviation of
# the times between packets. argus keeps two sets of these, one for packets sent while data was under way (active) and
# one for those sent when all had been acknowledged (idle). Where a connection has both, ra, by its numbers, adds up
# their squares as a thousand times what they are, and takes the squared mean off in its own unit. So the jitter is
# about 32 times the root mean square. The mean of both (sintpkt) is right, and so is the jitter of UDP, which has the
# active set alone.
#
# Seen, a connection of 440 ms that sends a segment each 10 ms, 100 ms after its handshake of 100 ms: 1021 ms; right is
# 26.4. With pauses of 200 ms after each five segments: 2891 ms, right is 77.2. UDP with the same times: 26.4 and 77.2.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet argus-server=2:3.0.8.2-2.2 argus-client=1:3.0.8.2-6.1+b3 libgeoip1 libwrap0 libpcap0.8 \
	libdbus-1-3 >log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu:$dir/lib/x86_64-linux-gnu"
cat >captures.py <<'END'
import struct
from statistics import pstdev

ADDRESSES = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
SYN, PUSH, ACK = 0x02, 0x08, 0x10


def frame(back: bool, protocol: int, transport: bytes) -> bytes:
    """A frame of Ethernet from the first address to the second, or back."""
    source, destination = ADDRESSES[::-1] if back else ADDRESSES
    length = 20 + len(transport)
    ipv4 = struct.pack(">BBHHHBBH4s4s", 0x45, 0, length, 0, 0, 64, protocol, 0, source, destination)
    return bytes(12) + b"\x08\x00" + ipv4 + transport


def segment(back: bool, sequence: int, acknowledged: int, flags: int, data: bytes = b"") -> bytes:
    ports = (80, 1000) if back else (1000, 80)
    return frame(back, 6, struct.pack(">HHIIBBHHH", *ports, sequence, acknowledged, 0x50, flags, 65535, 0, 0) + data)


def write(name: str, packets: list[tuple[int, bytes]]) -> None:
    """Writes a capture of packets with their times in milliseconds."""
    with open(name, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for time, packet in sorted(packets):
            seconds, milliseconds = divmod(time, 1000)
            size = len(packet)
            file.write(struct.pack("<IIII", 10**9 + seconds, 1000 * milliseconds, size, size) + packet)


def capture(name: str, times: list[int]) -> None:
    """Segments of 1000 bytes at these times, after a handshake; and datagrams at the times of the same packets."""
    tcp = [(0, segment(False, 0, 0, SYN)), (50, segment(True, 0, 1, SYN | ACK)), (100, segment(False, 1, 1, ACK))]
    for index, time in enumerate(times):
        tcp.append((time, segment(False, 1 + 1000 * index, 1, PUSH | ACK, bytes(1000))))
        tcp.append((time + 50, segment(True, 1, 1001 + 1000 * index, ACK)))
    write(f"tcp-{name}.pcap", tcp)
    sent = [0, 100, *times]
    datagram = frame(False, 17, struct.pack(">HHHH", 4000, 5000, 108, 0) + bytes(100))
    write(f"udp-{name}.pcap", [(time, datagram) for time in sent])
    gaps = [after - before for before, after in zip(sent, sent[1:])]
    print(f"{name}: right is {pstdev(gaps):.1f}")


capture("plain", [200 + 10 * i for i in range(20)])
capture("pauses", [200 + 10 * i + i // 5 * 200 for i in range(60)])
END
python3 captures.py
for name in tcp-plain udp-plain tcp-pauses udp-pauses; do
	usr/sbin/argus -X -J -r $name.pcap -w $name.argus
	echo "$name: $(usr/bin/ra -X -nr $name.argus -c, -p 1 -s proto spkts dur sintpkt sjit | tail -n 1)"
done | tee told
cat >expected <<'END'
tcp-plain: tcp,22,0.4,18.6,1021.0
udp-plain: udp,22,0.4,18.6,26.4
tcp-pauses: tcp,62,3.0,49.0,2890.8
udp-pauses: udp,62,3.0,49.0,77.2
END
diff expected told
