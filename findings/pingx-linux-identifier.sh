#!/bin/sh
# pingx 1.2.0 (PyPI), a ping monitor for macOS and Linux, never sees a reply on Linux. It pings from an unprivileged
# ICMP socket, for which Linux puts the socket's port in place of the identifier of the request (net/ipv4/ping.c,
# ping_v4_sendmsg) and gives the socket only what is sent back to that; and pingx takes none but replies with the
# identifier it wrote, its process id (_parse_reply). The README tells how to enable such sockets on Linux, and that is
# all the start checks; so any host is "down" from the fifth ping on, at 100.0 % loss. Its search for the route, a WAN
# failover, asks "route get default", as on macOS; on Linux that is "ip route".
#
# Seen, ten pings to the host itself: 10 transmitted, 0 received, 100.0 % loss, while the kernel counts 10 replies; ping
# of iputils from the same kind of socket: 10 received.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet iputils-ping=3:20221126-1+deb12u1 >log 2>&1 || { cat log >&2; exit 2; }
dpkg -x ./*.deb .
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check pingx==1.2.0 rich==14.0.0
cat >run.sh <<'END'
set -eu
ip link set lo up
echo 0 2147483647 >/proc/sys/net/ipv4/ping_group_range
TERM=dumb env/bin/pingx -c 10 -i 0.1 -W 0.3 127.0.0.1
awk '/^Icmp: [0-9]/ { print $11 " replies by the kernel" }' /proc/net/snmp
bin/ping -q -c 10 -i 0.2 127.0.0.1
END
unshare --net sh run.sh >told
grep -e transmitted -e kernel told
grep -q '^10 packets transmitted, 0 received, 100.0% packet loss' told
grep -q '^10 replies by the kernel$' told
grep -q '^10 packets transmitted, 10 received, 0% packet loss' told
