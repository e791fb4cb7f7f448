#!/bin/sh
# nping of nmap 7.93 (Debian 12) takes each reply for that to the probe it sent last. A probe goes out each second by
# default; so where a round trip takes longer, over a geostationary hop with a queue or a phone's radio that wakes up,
# it tells the rest above whole seconds: 1.5 s are told as 0.5. Nothing is said, and replies after the last second are
# lost. And it counts replies, not answered probes: where half of the probes are lost and the others are answered twice,
# as over redundant radios, it reports no loss, and the average is that of both copies. The sequence number in each
# reply tells which probe it is of (RFC 792, Echo); fping 5.1 goes by it and names duplicates.
#
# Seen, six probes, a second apart: path of 100 ms 100 to 120 ms, right. 1500 ms: about 500 ms, lost 16.67 %. Half lost,
# the others answered after 100 and 150 ms: 0.00 % lost, 125 ms on average; fping 50 % and 100 ms.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet nmap=7.93+dfsg1-1 fping=5.1-1 liblinear4 libblas3 liblua5.3-0 \
    >log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu:$dir/usr/lib/x86_64-linux-gnu/blas"
cat >path.py <<'END'
"""Hosts behind a TUN device that answer each echo request as the last byte of their address says."""

import fcntl
import os
import struct
import subprocess
import threading

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
REQUEST, REPLY = 8, 0
device = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", b"path", IFF_TUN | IFF_NO_PI))
for command in ("address add 192.0.2.1/24 dev path", "link set path up"):
    subprocess.run(["ip", *command.split()], check=True)
open("ready", "w").close()


def checksum(data: bytes) -> bytes:
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">H", ~total & 0xFFFF)


def reply(packet: bytes) -> bytes:
    ip = packet[:10] + bytes(2) + packet[16:20] + packet[12:16]
    icmp = bytes([REPLY]) + packet[21:22] + bytes(2) + packet[24:]
    return ip[:10] + checksum(ip) + ip[12:] + icmp[:2] + checksum(icmp + bytes(len(icmp) % 2)) + icmp[4:]


count = 0
while True:
    packet = os.read(device, 65535)
    if packet[0] != 0x45 or packet[9] != 1 or packet[20] != REQUEST:
        continue
    count += 1
    delays = {2: [0.1], 3: [1.5], 4: [0.1, 0.15] if count % 2 else []}[packet[19]]
    for delay in delays:
        threading.Timer(delay, os.write, (device, reply(packet))).start()
END
cat >run.sh <<'END'
set -eu
python3 path.py &
path=$!
trap 'kill $path' EXIT
while [ ! -e ready ]; do sleep 0.1; done
for host in 2 3 4; do
    usr/bin/nping --icmp --count 6 192.0.2.$host >nping.$host
    grep -E 'rtt:|Lost:' nping.$host
done
usr/bin/fping --count 6 --period 1000 --quiet 192.0.2.4 2>fping || true
tail -n 1 fping
END
unshare --net sh run.sh
cat >check.py <<'END'
import re
import sys


def told(host: int) -> tuple[float, str]:
    text = open(f"nping.{host}").read()
    return float(re.search(r"Avg rtt: ([\d.]+)ms", text)[1]), re.search(r"Lost: .*\((.*)\)", text)[1]


(near, near_lost), (far, far_lost), (twice, twice_lost) = map(told, (2, 3, 4))
changed = not (95 < near < 150 and 450 < far < 560 and 115 < twice < 160)
changed |= (near_lost, far_lost, twice_lost) != ("0.00%", "16.67%", "0.00%")
sys.exit(changed or "6/3/50%" not in open("fping").read())
END
python3 check.py
