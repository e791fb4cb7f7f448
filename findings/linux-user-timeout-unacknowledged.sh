#!/bin/sh
# Linux 6.18: TCP_USER_TIMEOUT does not limit how long data stay unacknowledged, nor how long a window stays closed, as
# tcp(7) and RFC 5482 have it ("how long transmitted data may remain unacknowledged"; "or buffered data may remain
# untransmitted (due to zero window size)"). The time runs from the first retransmission, or from the first probe of a
# closed window with nothing outstanding (net/ipv4/tcp_timer.c, tcp_write_timeout and tcp_probe_timer). A peer that
# acknowledges a segment whenever the sender's timer is about to expire lets neither happen; as each of these ACKs tells
# a longer round trip, the timer grows with the time passed, so that a segment for each half more of it is enough. So a
# program that sets 10 s to notice a path that carries nothing (gRPC sets 20 s, with its keep-alive) may hear nothing of
# it for a minute.
#
# Seen, a limit of 10 s and 20 segments under way: a peer that falls silent, ETIMEDOUT after 10 or 11 s. One that
# acknowledges a segment now and then and never opens the window: no error in 60 s, though 4 or 5 of the 20 have waited
# since the start, as has what is in the buffer.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check dpkt==1.9.8
cat >run.py <<'END'
import fcntl
import os
import select
import socket
import struct
import subprocess
import threading
import time

from dpkt.ip import IP
from dpkt.tcp import TCP, TH_ACK, TH_SYN, parse_opts

LIMIT, WATCHED, RTT = 10, 60, 0.1
US, PEER = "10.9.0.1", "10.9.0.2"


class Peer(threading.Thread):
    """The other end, at a tun interface: takes what comes for two round trips, then is slow or silent."""

    def __init__(self, tun, port, slow):
        super().__init__(daemon=True)
        self.tun, self.port, self.slow = tun, port, slow
        self.seq, self.ack, self.segments = 1000, 0, []
        self.tsval, self.over = 0, False

    def send(self, flags, window, options=b""):
        stamps = struct.pack("!BBBBII", 1, 1, 8, 10, int(time.monotonic() * 1000) & 0xFFFFFFFF, self.tsval)
        tcp = TCP(sport=self.port, dport=9000, seq=self.seq, ack=self.ack, flags=flags, win=window)
        tcp.opts = options + stamps
        tcp.off = (20 + len(tcp.opts)) // 4
        ip = IP(src=socket.inet_aton(PEER), dst=socket.inet_aton(US), p=6, ttl=64, data=tcp)
        ip.len = len(bytes(ip))
        os.write(self.tun, bytes(ip))

    def read(self, until):
        """Notes what comes by then, a segment each; returns an answer to SYN, if there is one."""
        while (left := until - time.monotonic()) > 0:
            if not select.select([self.tun], [], [], left)[0]:
                return None
            packet = os.read(self.tun, 2048)
            if packet[0] >> 4 != 4:
                continue
            ip = IP(packet)
            if not isinstance(ip.data, TCP) or ip.data.dport != self.port:
                continue
            tcp = ip.data
            stamp = dict(parse_opts(tcp.opts)).get(8)
            if tcp.flags & TH_SYN:
                self.tsval = struct.unpack("!I", stamp[:4])[0]
                return tcp
            end = tcp.seq + len(tcp.data)
            if tcp.data and all(end != other for other, _ in self.segments) and end > self.ack:
                self.segments.append((end, struct.unpack("!I", stamp[:4])[0]))
        return None

    def take(self, count, right):
        """Acknowledges the next segments; the right edge of the window stays where it is."""
        for end, stamp in self.segments[:count]:
            self.ack, self.tsval = end, stamp
        del self.segments[:count]
        self.send(TH_ACK, right - self.ack)

    def run(self):
        mss = struct.pack("!BBH", 2, 4, 1000)
        self.send(TH_SYN, 60000, mss)
        answer = self.read(time.monotonic() + 5)
        self.seq, self.ack = self.seq + 1, answer.seq + 1
        self.send(TH_ACK, 60000)
        self.read(time.monotonic() + RTT)
        right = self.ack + 60000
        self.take(len(self.segments), right)
        since = time.monotonic()
        self.read(since + RTT)
        # No more than is under way may come.
        self.under_way = len(self.segments)
        right = self.segments[-1][0]
        while self.slow and self.segments and not self.over:
            self.take(1, right)
            now = time.monotonic()
            self.read(now + max(RTT, (now - since) / 2))
        while not self.over:
            self.read(time.monotonic() + RTT)


def run(tun, listener, port, slow):
    peer = Peer(tun, port, slow)
    peer.start()
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * LIMIT)
    connection.setblocking(False)
    begin = time.monotonic()
    while time.monotonic() < begin + WATCHED:
        try:
            connection.send(bytes(1000))
        except BlockingIOError:
            time.sleep(0.1)
        except OSError as error:
            peer.over = True
            peer.join()
            return round(time.monotonic() - begin), error.errno, peer
    return WATCHED, 0, peer


subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH14x", b"tun0", 0x1001))
for command in ("addr add 10.9.0.1/24 dev tun0", "link set tun0 up"):
    subprocess.run(["ip", *command.split()], check=True)
with open("/proc/sys/net/ipv6/conf/tun0/disable_ipv6", "w") as file:
    file.write("1")
listener = socket.create_server((US, 9000))
seconds, errno, peer = run(tun, listener, 5001, False)
print(f"silent peer: {os.strerror(errno)} after {seconds} s, {peer.under_way} segments under way")
assert errno == 110 and LIMIT <= seconds <= 2 * LIMIT + 1, (errno, seconds)
seconds, errno, peer = run(tun, listener, 5002, True)
left = len(peer.segments)
print(f"slow peer: error {errno} in {seconds} s, {left} of {peer.under_way} segments not acknowledged since the start")
assert (seconds, errno) == (WATCHED, 0) and left > 0, (seconds, errno, left)
END
if [ "$(id -u)" != 0 ]; then set -- --user --map-root-user; fi
unshare "$@" --net env/bin/python run.py
