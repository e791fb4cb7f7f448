#!/bin/sh
# dhcppython 0.1.4 (PyPI), a DHCP client in Python on which dora-dhcp-client stands, gets no lease from dnsmasq, the
# server of OpenWrt and of many hotspots. To an offer it answers with a request that has the offered address as its
# own (ciaddr) and neither the requested address nor the server's identifier among its options (Request in packet.py,
# get_lease in client.py). By RFC 2131, 4.3.2, a client that takes an offer must send both, and an own address of
# zero; what it sends is the renewal of a lease, which the server does not have and so does not answer. And it repeats
# each message every 0.2 s and gives up after some 2.5 s, where 4.1 has 4, 8, 16 s and so on, with some chance: a
# server that first looks whether the address is in use, as 2.2 recommends, or is behind a slow hop, gets a dozen of
# each. What it says is "Unable to obtain ack".
#
# Seen, dnsmasq 2.90 of Debian 12 in a network of its own: an offer, 13 requests in 2.3 s, no lease. With the two
# options and no address of its own: a lease after one request.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
packages="dnsmasq-base libnftables1 libnftnl11 libjansson4 libxtables12 libedit2 libbsd0 libmd0 libnetfilter-conntrack3
    libnfnetlink0 libidn2-0 libunistring2 libnettle8 libhogweed6 libgmp10 libdbus-1-3 libmnl0"
apt-get download --quiet $packages >log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check dhcppython==0.1.4
cat >run.py <<'END'
import time
from ipaddress import IPv4Address

from dhcppython import client, exceptions, options, packet

SERVER = "10.9.0.1"
REQUESTED, IDENTIFIER = 50, 54

request = packet.DHCPPacket.Request


def right_request(address, seconds, number, client_ip, option_list, **more):
    values = (REQUESTED, str(client_ip)), (IDENTIFIER, SERVER)
    both = options.OptionList([options.options.short_value_to_object(*value) for value in values])
    return request(address, seconds, number, option_list=both, client_ip=IPv4Address(0), **more)


def lease(address):
    """Whether there is a lease, after how many requests."""
    dhcp, requests = client.DHCPClient("client"), []
    send = dhcp.send_request
    dhcp.send_request = lambda *parts: requests.append(send(*parts))
    start = time.monotonic()
    try:
        given = dhcp.get_lease(address) is not None
    except exceptions.DHCPClientError as error:
        print(f"{error}", end="; ")
        given = False
    for socket in dhcp.listening_sockets:
        socket.close()
    print(f"lease: {given}, {len(requests)} requests in {time.monotonic() - start:.1f} s")
    return given, len(requests)


first = lease("02:00:00:00:00:01")
packet.DHCPPacket.Request = right_request
second = lease("02:00:00:00:00:02")
assert not first[0] and 10 <= first[1] <= 16 and second == (True, 1)
END
cat >run.sh <<'END'
set -eu
unshare --net sleep 60 &
peer=$!
sleep 0.5
ip link add server type veth peer name client netns "$peer"
ip address add 10.9.0.1/24 dev server
ip link set server up
nsenter --target "$peer" --net ip link set client up
LD_LIBRARY_PATH="$PWD/usr/lib/x86_64-linux-gnu:$PWD/lib/x86_64-linux-gnu" usr/sbin/dnsmasq --keep-in-foreground \
    --conf-file=/dev/null --port=0 --interface=server --bind-interfaces --no-ping --user=root --pid-file= \
    --dhcp-range=10.9.0.10,10.9.0.50,1h --dhcp-leasefile=leases --log-facility="$PWD/dnsmasq.log" &
server=$!
sleep 1
status=0
nsenter --target "$peer" --net env/bin/python run.py || status=$?
kill "$server" "$peer"
exit "$status"
END
if [ "$(id -u)" != 0 ]; then set -- --user --map-root-user; fi
unshare "$@" --net sh run.sh
