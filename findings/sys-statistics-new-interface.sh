#!/bin/sh
# Sys::Statistics::Linux 0.66 (libsys-statistics-linux-perl of Debian 12), which tells the rates of a Linux host's
# interfaces from /proc/net/dev, knows only those that were there at its first look. It leaves out each without earlier
# values, which is right once, but keeps no values of it for the next time (_deltas in NetStats.pm: "delete
# $lstat->{$dev}", and $istat never gets a new one). So an interface that comes later, as ppp0 or wwan0 does when a
# modem connects, is never told, however long one asks: a gateway whose fibre failed over to the modem has no traffic at
# all. Nothing is said, and the documentation says nothing of it. get_raw lacks it too; raw alone, which reads the file,
# has it.
#
# Seen, four looks of which the second and all later have wwan0 with 1 MB more each: get tells of eth0 and lo only.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet libsys-statistics-linux-perl=0.66-5 >log 2>&1 || { cat log >&2; exit 2; }
dpkg -x ./*.deb .
cat >run.pl <<'END'
use strict;
use warnings;
use Sys::Statistics::Linux::NetStats;

# Writes what the kernel would show with these bytes received and as many sent.
sub write_counters {
    my %bytes = @_;
    open my $file, '>', 'proc/net/dev' or die $!;
    print $file "Inter-|   Receive                                                |  Transmit\n";
    print $file " face |bytes    packets errs drop fifo frame compressed multicast|",
        "bytes    packets errs drop fifo colls carrier compressed\n";
    printf $file "%6s: %d %d 0 0 0 0 0 0 %d %d 0 0 0 0 0 0\n", $_, map({ ($_, $_ / 1000) } ($bytes{$_}) x 2)
        for sort keys %bytes;
    close $file;
}

mkdir 'proc';
mkdir 'proc/net';
my $statistics = Sys::Statistics::Linux::NetStats->new(files => { path => 'proc' });
write_counters(lo => 1_000_000, eth0 => 1_000_000);
$statistics->init;
for my $look (1 .. 4) {
    select undef, undef, undef, 0.1;
    my $more = 1_000_000 * (1 + $look);
    write_counters(lo => $more, eth0 => $more, $look > 1 ? (wwan0 => $more) : ());
    print "look $look, told: @{[sort keys %{ $statistics->get }]}; there: @{[sort keys %{ $statistics->raw }]}\n";
}
END
perl -Iusr/share/perl5 run.pl | tee told
cat >expected <<'END'
look 1, told: eth0 lo; there: eth0 lo
look 2, told: eth0 lo; there: eth0 lo wwan0
look 3, told: eth0 lo; there: eth0 lo wwan0
look 4, told: eth0 lo; there: eth0 lo wwan0
END
diff expected told
