#!/bin/sh
# InfluxDB::LineProtocol 1.015 (libinfluxdb-lineprotocol-perl of Debian 12), which writes measurements as InfluxDB takes
# them, stamps them itself where no time is given, in milliseconds if told so (precision=ms). It takes the first three
# digits of the microseconds (ts_ms: substr($us, 0, 3)), which have no zeros in front: 45123 us is .451 s, not .045 s,
# and 999 us is .999 s. So every sample taken in the first 100 ms of a second, one in ten, is up to 0.9 s late, after
# samples that followed it. Rates and round trips computed from these times are wrong, and a second sample at .451 with
# the same tags replaces the first. Nothing is said. Microseconds (precision=us) are right.
#
# Seen, after a whole second: 50 ms are written as 500, 45.123 ms as 451, 0.999 ms as 999; 100, 150, ..., 950 ms are
# right.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet libinfluxdb-lineprotocol-perl=1.015-1 >log 2>&1 || { cat log >&2; exit 2; }
dpkg -x ./*.deb .
cat >run.pl <<'END'
use strict;
use warnings;

# The clock that the package reads, in microseconds after a whole second.
our $microseconds;
BEGIN {
    require Time::HiRes;
    no warnings 'redefine';
    *Time::HiRes::gettimeofday = sub () { (1_700_000_000, $microseconds) };
}

package Milliseconds;
use InfluxDB::LineProtocol qw(data2line precision=ms);
sub line { data2line('rtt', 23.5) }

package Microseconds;
use InfluxDB::LineProtocol qw(data2line precision=us);
sub line { data2line('rtt', 23.5) }

package main;
for (map({ 50_000 * $_ } 0 .. 19), 999, 45_123) {
    $microseconds = $_;
    my ($coarse) = Milliseconds::line() =~ /(\d+)$/;
    my ($fine) = Microseconds::line() =~ /(\d+)$/;
    my $off = $coarse - int($fine / 1000);
    print "$microseconds us: $coarse ms, $off ms late\n" if $off;
}
END
perl -Iusr/share/perl5 run.pl | tee told
cat >expected <<'END'
50000 us: 1700000000500 ms, 450 ms late
999 us: 1700000000999 ms, 999 ms late
45123 us: 1700000000451 ms, 406 ms late
END
diff expected told
