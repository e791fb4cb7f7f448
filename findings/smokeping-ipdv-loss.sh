#!/bin/sh
# SmokePing 2.7.3 (Debian 12) can record the delay variation of a path with IRTT (probe IRTT, metric ipdv, send_ipdv or
# receive_ipdv). What a target has fewer values of than it sent pings it stores and alerts on as packet loss
# (rrdupdate_string in probes/base.pm). A variation takes two packets in a row, both received (RFC 3393). As there is
# one pair fewer than packets, the probe adds one value, "so there isn't a lost packet reported" (pingone in
# probes/IRTT.pm). But each packet that is lost takes two pairs with it, and counts twice: a path that loses 10 % of its
# packets one by one loses 20 %, and one of 50 % may lose all. With writeto and readfrom the metrics of one run of IRTT
# show two losses of one path. Nothing is said. With the metrics rtt, send and receive the loss is right.
#
# Seen, 20 pings of which one and of which four are lost: rtt loses 1 and 4, ipdv 2 and 8.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet smokeping=2.7.3-4.1 irtt=0.9.0-2+b24 libsnmp-session-perl librrds-perl librrd8 libdbi1 \
    libcgi-pm-perl libcgi-fast-perl libfcgi-perl libhtml-parser-perl liburi-perl libpath-tiny-perl \
    libconfig-grammar-perl libdigest-hmac-perl libwww-perl libhttp-message-perl >log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu"
cat >relay.py <<'END'
"""Hands on what goes to and from a server, but for some of what goes there, by its number."""
import select
import socket
import sys

lost = {int(number) for number in sys.argv[1].split()}
near, far = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
near.bind(("127.0.0.1", 0))
far.connect(("127.0.0.1", int(sys.argv[2])))
print(near.getsockname()[1], flush=True)
count = client = 0
while True:
    for ready in select.select([near, far], [], [])[0]:
        if ready is near:
            datagram, client = near.recvfrom(2000)
            if count not in lost:
                far.send(datagram)
            count += 1
        else:
            near.sendto(far.recv(2000), client)
END
cat >run.pl <<'END'
use strict;
use warnings;
use Smokeping::probes::IRTT;

my ($port, $pings) = (@ARGV, 20);
my $cfg = {General => {datadir => '.', dyndir => '.'}, Database => {pings => $pings, step => 300}};
my $probe = Smokeping::probes::IRTT->new({binary => 'usr/bin/irtt', tmpdir => 'results'}, $cfg, 'IRTT');
for my $metric ('rtt', 'ipdv') {
    my $from = $metric eq 'rtt' ? 'writeto' : 'readfrom';
    my %vars = (pings => $pings, interval => 0.05, metric => $metric, $from => 'run', readfrompollinterval => 1);
    my $target = {addr => "127.0.0.1:$port", vars => \%vars};
    $probe->add($target, $metric);
    my @values = $probe->pingone($target);
    $probe->{rtts}{$target} = \@values;
    my ($age, $loss) = split /:/, $probe->rrdupdate_string($target);
    print "$metric: $loss of $pings lost\n";
}
END
port=$(python3 -c 'from socket import *; s = socket(AF_INET, SOCK_DGRAM); s.bind(("", 0)); print(s.getsockname()[1])')
usr/bin/irtt server -b "127.0.0.1:$port" >server 2>&1 &
server=$!
trap 'kill "$server"; rm -rf "$dir"' EXIT
PERL5LIB="usr/share/perl5:$(echo usr/lib/*/perl5/5.36)"
export PERL5LIB
# The first packet opens the session; then come the pings.
for lost in "5" "5 9 13 17"; do
    rm -f relay
    python3 relay.py "$lost" "$port" >relay &
    relay=$!
    while ! [ -s relay ]; do sleep 0.1; done
    perl run.pl "$(cat relay)" 2>>log || echo failed
    kill "$relay"
done | tee told
cat >expected <<'END'
rtt: 1 of 20 lost
ipdv: 2 of 20 lost
rtt: 4 of 20 lost
ipdv: 8 of 20 lost
END
diff expected told || { cat log >&2; exit 1; }
