#!/bin/sh
# nfcapd of nfdump 1.7.1 (Debian 12) exchanges the start and the end of IPFIX flows with times relative to the start of
# the exporter (flowStartSysUpTime and flowEndSysUpTime, elements 22 and 21), which softflowd 1.1.0 sends by default.
# So such a flow ends before it begins, its duration is 2^64 ms less a few seconds, its rate 0, and sorting by time and
# limits on the duration go wrong. Nothing is said. Absolute times of the same flow (elements 152 and 153) are right,
# as is NetFlow v5. By IANA's registry of IPFIX elements 22 is the first packet and 21 the last, in milliseconds since
# systemInitTimeMilliseconds (160). tshark 4.0.17 gives such a flow of softflowd a duration of 10.85 s.
#
# Seen, 1000 kB from 23:03:20.000 to 23:03:30.850: with elements 152 and 153 so, 10.850 s, 737327 bit/s; with 22 and 21
# from 23:03:30.850 to 23:03:20.000, 18446744073709540.000 s, 0 bit/s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet nfdump=1.7.1-2+deb12u1 librrd8 libpcap0.8 libdbus-1-3 >log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu" TZ=UTC
cat >send.py <<'END'
import socket
import struct
import sys

BOOT, EXPORT = 1_700_000_000_000, 1_700_003_600  # ms, s
START, END = 3_000_000, 3_010_850  # ms after the exporter's start
exporter = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def data_set(number: int, content: bytes) -> bytes:
    return struct.pack(">HH", number, 4 + len(content)) + content


def fields(*pairs: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">HH", *pair) for pair in pairs)


def template(times: list[tuple[int, int]]) -> bytes:
    """Addresses, times, octets, packets, ports, protocol and flags."""
    pairs = [(8, 4), (12, 4), *times, (1, 4), (2, 4), (7, 2), (11, 2), (4, 1), (6, 1)]
    return data_set(2, struct.pack(">HH", 1024, len(pairs)) + fields(*pairs))


def flow(times: bytes) -> bytes:
    addresses = bytes([10, 0, 0, 1, 10, 0, 0, 2])
    return data_set(1024, addresses + times + struct.pack(">IIHHBB", 10**6, 1000, 40000, 80, 6, 27))


options = data_set(3, struct.pack(">HHH", 256, 2, 1) + fields((143, 4), (160, 8)))
start = data_set(256, struct.pack(">IQ", 1, BOOT))
relative = template([(22, 4), (21, 4)]), flow(struct.pack(">II", START, END))
absolute = template([(152, 8), (153, 8)]), flow(struct.pack(">QQ", BOOT + START, BOOT + END))
for number, sets in enumerate((options + start, *(relative if sys.argv[1] == "relative" else absolute))):
    header = struct.pack(">HHIII", 10, 16 + len(sets), EXPORT, number, 0)
    exporter.sendto(header + sets, ("127.0.0.1", 9995))
END
cat >run.sh <<'END'
set -eu
ip link set lo up
for times in absolute relative; do
    mkdir $times
    usr/bin/nfcapd -w $times -b 127.0.0.1 -p 9995 >log 2>&1 &
    collector=$!
    sleep 1
    python3 send.py $times
    sleep 1
    kill $collector
    wait
    printf '%s: ' $times
    usr/bin/nfdump -R $times -q -N -o "fmt:%ts to %te, %td s, %bps bit/s" | tr -s ' '
done
END
unshare --net sh run.sh | tee told
day=2023-11-14
cat >expected <<END
absolute: $day 23:03:20.000 to $day 23:03:30.850, 10.850 s, 737327 bit/s
relative: $day 23:03:30.850 to $day 23:03:20.000, 18446744073709540.000 s, 0 bit/s
END
diff -b expected told
