#!/bin/sh
# Mausezahn of netsniff-ng 0.6.8 (Debian 12) measures a path with RTP packets that carry their sending times (-T rtp).
# Of each 100 packets it tells the least, the mean and the largest delay against that of the second packet, its "true
# jitter" by its help. It adds them up as nanoseconds in 32 bits (jitter_avg in staging/rcv_rtp.c), which hold 4.29 s.
# So with 100 packets a mean of more than 43.8 ms comes out too small by that or a multiple of it, and with
# 10,000 (num=10000), which the help offers, one of more than 0.43 ms. A queue that fills faster may seem to be
# shorter. Nothing is said. Least, largest and the jitter of RFC 3550 are right.
#
# Seen, a queue that fills by 0.6 ms with each packet: mean 29.7 ms, largest 58.8; by 1 ms: mean 5.7 ms, largest 98.0,
# right is 49.5; by 1.4 ms: mean 25.5 ms, largest 137.2, right is 69.3.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet netsniff-ng=0.6.8-3 libcli1.10 libnet1 libpcap0.8 libnl-3-200 libnl-genl-3-200 libncurses6 \
    libtinfo6 libdbus-1-3 >log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
cat >send.py <<'END'
import socket
import struct
import sys
import time

COUNT, SPACING = 105, 0.005
growth = float(sys.argv[1]) / 1000
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
begin = time.time() + 0.1
for number in range(COUNT):
    under_way = number * growth
    time.sleep(max(0, begin + number * SPACING + under_way - time.time()))
    sent = time.time() - under_way
    header = struct.pack("!BBHI4s", 0x90, 0, number, number * 160, bytes.fromhex("cafefeed"))
    stamp = struct.pack("!HHII", 0xCACA, 4, int(sent), int(sent % 1 * 1e9))
    udp.sendto(header + stamp + bytes(144), ("127.0.0.1", 30000))
END
cat >run.sh <<'END'
set -eu
ip link set lo up
LD_LIBRARY_PATH="$PWD/usr/lib/x86_64-linux-gnu:$PWD/lib/x86_64-linux-gnu" usr/sbin/mausezahn lo -T rtp "txt, log" \
    >/dev/null 2>&1 &
sleep 1
python3 send.py "$1"
sleep 1
kill $!
cat rtp_avg_*
rm rtp_avg_*
END
changed=0
check() {
    mean=$(unshare --net sh run.sh "$1" | awk -F ', ' -v growth="$1" '!/^#/ {
        printf "grows by %s ms: mean %.1f ms, largest %.1f\n", growth, $3 / 1000, $4 / 1000 > "/dev/stderr"
        print int($3 / 1000)
    }')
    [ "$mean" -ge "$2" ] && [ "$mean" -le "$3" ] || changed=1
}
check 0.6 28 32
check 1.0 2 12
check 1.4 23 28
exit $changed
