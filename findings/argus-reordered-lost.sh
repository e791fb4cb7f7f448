#!/bin/sh
# argus 3.0.8.2 (argus-server of Debian 12), which makes records of flows from captures, knows RTP by itself and tells
# how many packets of a stream were lost ("pkts retransmitted or dropped" by ra's manual: loss, sloss, ploss). A packet
# that was overtaken by three counts as three lost, one that was overtaken by one as one, though all arrived. So a path
# that only reorders, as one of several radio links does, is told to lose. And a gap in which the sequence number wraps
# around counts as none at all: an outage of 30 s, at 50 packets a second, has a chance of one in 44 not to show.
# Nothing is said. By RFC 3550, 6.4.1 and A.3, the loss is what was expected less what came, late packets included.
#
# Seen, 200 packets: one in twenty overtaken by three: 27 lost, 11.9 %; right is none. Overtaken by one: 9 lost, 4.3 %.
# A gap of 30 packets around the wrap: none lost, right is 30; the same gap without a wrap: 30, 15 %.
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

PAYLOAD = 160
IPV4 = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + PAYLOAD, 0, 0, 64, 17, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
HEADERS = bytes(12) + b"\x08\x00" + IPV4 + struct.pack(">HHHH", 20000, 30000, 20 + PAYLOAD, 0)


def write(name: str, numbers: list[int]) -> None:
    """Writes a capture of Ethernet with an RTP packet each 20 ms, of these sequence numbers before they wrap."""
    with open(name, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for index, number in enumerate(numbers):
            rtp = struct.pack(">BBHII", 0x80, 0, number & 0xFFFF, 160 * number, 0x1234)
            frame = HEADERS + rtp + bytes(PAYLOAD)
            seconds, milliseconds = divmod(20 * index, 1000)
            file.write(struct.pack("<IIII", 10**9 + seconds, 1000 * milliseconds, len(frame), len(frame)) + frame)


def overtaken(by: int) -> list[int]:
    """Two hundred numbers of which every twentieth comes so many packets later."""
    numbers = list(range(1000, 1200))
    for late in range(20, 200, 20):
        numbers.insert(late + by, numbers.pop(late))
    return numbers


def lost(start: int) -> list[int]:
    """Two hundred numbers without 30 of them."""
    return [start + i for i in range(200) if not 30 <= i < 60]


write("by-three.pcap", overtaken(3))
write("by-one.pcap", overtaken(1))
write("wrap.pcap", lost(65500))
write("no-wrap.pcap", lost(1000))
END
python3 captures.py
for name in by-three by-one wrap no-wrap; do
	usr/sbin/argus -X -r $name.pcap -w $name.argus
	echo "$name: $(usr/bin/ra -X -nr $name.argus -c, -s proto spkts sloss ploss | tail -n 1)"
done | tee told
cat >expected <<'END'
by-three: rtp,200,27,11.894273
by-one: rtp,200,9,4.306220
wrap: rtp,170,0,0.000000
no-wrap: rtp,170,30,15.000000
END
diff expected told
