#!/bin/sh
# tcpstat 1.5 (Debian 12) with -b tells for how long traffic would have overloaded a slower link. By its manual (NOTES)
# bytes over the limit move into the next interval. They move once: what does not fit there either is dropped.
# So after a burst every overload lasts two intervals, however slow the link. With -a it divides the bytes by whole
# intervals of 5 s and one too many, so that the rate of a capture of 5.1 s is a third. Nothing is said. A link that
# serves at its rate is busy for bytes * 8 / rate; capinfos 4.0.17 divides by the time of the capture.
#
# Seen, 1 MB in the first second of ten: 2.00 s over the limit at 4, 2, 1 and 0.5 Mbit/s; right is 2, 4, 8 and 10 or
# one interval less. 1 MB evenly in 5.1 s: 65.1 KB (of 1024) per second; right is 191.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet tcpstat=1.5-8+b1 libpcap0.8 libdbus-1-3 >log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu"
cat >captures.py <<'END'
import struct

PAYLOAD = 972  # so that an IPv4 packet has 1000 bytes
IPV4 = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 1000, 0, 0, 64, 17, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
FRAME = bytes(12) + b"\x08\x00" + IPV4 + struct.pack(">HHHH", 1000, 2000, 8 + PAYLOAD, 0) + bytes(PAYLOAD)


def write(name: str, times: list[int]) -> None:
    """Writes a capture of Ethernet with a frame at each time, in microseconds."""
    with open(name, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for time in times:
            seconds, microseconds = divmod(time, 10**6)
            file.write(struct.pack("<IIII", 10**9 + seconds, microseconds, len(FRAME), len(FRAME)) + FRAME)


write("burst.pcap", [1000 * i for i in range(1000)] + [9_500_000])
write("even.pcap", [5100 * i for i in range(1000)])
END
python3 captures.py
for limit in 4000000 2000000 1000000 500000; do
	usr/bin/tcpstat -r burst.pcap -b $limit 1 | tee told
	grep -q "2.00 sec" told
done
usr/bin/tcpstat -r even.pcap -a | tee told
grep -q "^Bytes/sec.* 65.1 KB" told
