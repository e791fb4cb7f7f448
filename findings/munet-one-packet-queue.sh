#!/bin/sh
# munet 0.17.3 (PyPI), which builds networks of namespaces, containers and virtual machines, gives a link with a rate a
# queue of 1518 bytes unless its configuration has a limit (DEFLIMIT in get_linux_tc_args, base.py): one packet waits,
# and what comes with it is dropped. A TCP sends its packets in bursts, two for each acknowledgement and ten at the
# start (RFC 6928, 2), so nearly all of a burst is lost and it goes from one timeout to the next. Whatever the rate, it
# gets a tenth of a Mbit/s. Nothing is said, and no packet is lost to a ping or a slow stream of datagrams. By its YANG
# model a rate is "bits per second maximum rate with possible limit and burst"; no default is given. tc-tbf(8): the
# limit is what can be queued waiting for tokens.
#
# Seen, one connection for 5 s over a veth pair with munet's tbf: 0.1 Mbit/s of 1, 10 and 100; with "limit: 30000" in
# the configuration 9.6 of 10.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet iproute2=6.1.0-3 libbpf1 libelf1 libmnl0 libtirpc3 libcap2 \
    >log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check munet==0.17.3
cat >shaper.py <<'END'
import sys

from munet.base import InterfaceMixin

rate, limit = sys.argv[1:]
config = {"rate": {"rate": rate, "limit": limit} if limit else {"rate": rate}}
netem, tbf = InterfaceMixin.get_linux_tc_args(None, "eth0", config)
assert not netem
print(tbf)
END
cat >peer.py <<'END'
import socket
import sys
import time

DURATION = 5  # s

if sys.argv[1] == "receive":
    connection, _ = socket.create_server(("", 5000)).accept()
    octets, end = 0, time.monotonic() + DURATION
    while (left := end - time.monotonic()) > 0:
        connection.settimeout(left)
        try:
            octets += len(connection.recv(65536))
        except TimeoutError:
            break
    print(f"{octets * 8 / DURATION / 1e6:.1f}")
else:
    connection = socket.create_connection(("10.0.0.2", 5000))
    connection.settimeout(DURATION)
    try:
        while True:
            connection.sendall(bytes(65536))
    except OSError:
        pass
END
cat >run.sh <<'END'
set -eu
library=$PWD/usr/lib/x86_64-linux-gnu:$PWD/lib/x86_64-linux-gnu
ip() { LD_LIBRARY_PATH=$library sbin/ip "$@"; }
unshare --net sleep 60 &
other=$!
sleep 0.5
ip link add va type veth peer name vb netns $other
ip address add 10.0.0.1/24 dev va
ip link set va up
nsenter --target $other --net env LD_LIBRARY_PATH="$library" sbin/ip address add 10.0.0.2/24 dev vb
nsenter --target $other --net env LD_LIBRARY_PATH="$library" sbin/ip link set vb up
LD_LIBRARY_PATH=$library sbin/tc qdisc add dev va root handle 1: tbf "$@"
nsenter --target $other --net python3 peer.py receive &
receiver=$!
sleep 1
python3 peer.py send &
wait $receiver
kill $other
END
changed=0
for case in 1M: 10M: 100M: 10M:30000; do
    tbf=$(env/bin/python shaper.py "${case%:*}" "${case#*:}")
    # The words are tc's arguments.
    # shellcheck disable=SC2086
    told=$(unshare --net sh run.sh $tbf)
    echo "$case tbf$tbf: $told Mbit/s"
    case $case:$told in *::0.[0-3] | 10M:30000:9.[3-9]) ;; *) changed=1 ;; esac
done
exit $changed
