#!/bin/sh
# migrate-to-systemd-networkd 2.1 (PyPI) turns /etc/network/interfaces into files of systemd-networkd, and loses which
# of two uplinks comes first. The metric of a static interface is that of its default gateway (interfaces(5)). It
# becomes RouteMetric= of the address (handle_iface in ifupdown.py), which is the metric of the route to the subnet
# (systemd.network(5), [Address]); the gateway gets none. So the default routes by Ethernet and by modem have the same
# metric, the kernel's, and neither is the spare of the other any more. Of "ip route add" in post-up it takes the
# destination, via and table, and drops the rest, such as metric and initcwnd; a command in up, which is another name
# for post-up (interfaces(5)), is dropped whole, and so are wpa-ssid and all other options that it does not know.
# Nothing is said.
#
# Seen, eth0 of metric 100, wwan0 of 700: both with Gateway= and no metric. Of a route with metric 50 and initcwnd 4
# destination and gateway; of one in up nothing.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check migrate-to-systemd-networkd==2.1
cat >interfaces <<'END'
auto eth0
iface eth0 inet static
    address 192.0.2.10
    netmask 255.255.255.0
    gateway 192.0.2.1
    metric 100

auto wwan0
iface wwan0 inet static
    address 198.51.100.10
    netmask 255.255.255.0
    gateway 198.51.100.1
    metric 700
    post-up ip route add 203.0.113.0/25 via 198.51.100.1 metric 50 initcwnd 4
    up ip route add 203.0.113.128/25 via 198.51.100.1
END
mkdir networkd
printf 'y\ny\n' | env/bin/ifupdown-to-systemd-networkd --systemd-version 252 --interfaces interfaces --tables none \
    --output networkd --config tables.conf >log 2>&1 || { cat log >&2; exit 2; }
for name in eth0 wwan0; do grep -v '^#' "networkd/$name.network" | grep . ; done | tee told
cat >expected <<'END'
[Match]
Name = eth0
[Address]
Address = 192.0.2.10/24
RouteMetric = 100
[Network]
Gateway = 192.0.2.1
[Match]
Name = wwan0
[Address]
Address = 198.51.100.10/24
RouteMetric = 700
[Network]
Gateway = 198.51.100.1
[Route]
Destination = 203.0.113.0/25
Gateway = 198.51.100.1
END
diff expected told
