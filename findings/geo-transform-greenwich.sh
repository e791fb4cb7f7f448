#!/bin/sh
# Two Perl modules for positions move them far away, and nothing is said. Geo::Coordinates::Transform 0.10
# (libgeo-coordinates-transform-perl of Debian 12) writes degrees as an integer where it turns them into degrees and
# minutes, or seconds (_cnv_to_ddm and _cnv_to_dms in Transform.pm: sprintf("%d ...", int(-0.5))), which has no sign
# where it is 0. So what is less than a degree west of Greenwich, as London and Accra, or south of the equator, as
# Quito, is mirrored; -1 degree and beyond are right. GPS::Point 0.20 (libgps-point-perl) hands the latitude over as
# latitude and as longitude where it computes coordinates from the centre of the Earth (ecef in Point.pm: $self->lat,
# $self->lat, $self->alt).
#
# Seen, -0.1278 degrees: "0 7 40.08" and "0 7.668", which read back are 18 km further east. The point at 51.5 N 0.1278
# W: what is handed over is 51.5, 51.5 (a stand-in for Geo::ECEF, which Debian lacks, tells it), a place in Kazakhstan.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet libgeo-coordinates-transform-perl=0.10-3 libgps-point-perl=0.20-5 >log 2>&1 || {
	cat log >&2
	exit 2
}
for package in ./*.deb; do dpkg -x "$package" .; done
mkdir -p stand-in/Geo
cat >stand-in/Geo/ECEF.pm <<'END'
package Geo::ECEF;
sub new { return bless {} }
sub ecef { shift; return @_ }
1;
END
cat >run.pl <<'END'
use strict;
use warnings;
use GPS::Point;
use Geo::Coordinates::Transform;

my $transform = Geo::Coordinates::Transform->new;
for my $degrees (-0.1278, -0.5, -1.5) {
    my ($seconds) = @{ $transform->cnv_to_dms([$degrees]) };
    my ($minutes) = @{ $transform->cnv_to_ddm([$degrees]) };
    my ($back) = @{ $transform->cnv_to_dd([$seconds]) };
    print "$degrees: $seconds, $minutes, back $back\n";
}
my $point = GPS::Point->new(lat => 51.5, lon => -0.1278, alt => 11);
print "handed over: @{[$point->ecef]}\n";
END
perl -Istand-in -Iusr/share/perl5 run.pl | tee told
cat >expected <<'END'
-0.1278: 0 7 40.08000, 0 7.66800, back 0.1278000
-0.5: 0 30 0.00000, 0 30.00000, back 0.5000000
-1.5: -1 30 0.00000, -1 30.00000, back -1.5000000
handed over: 51.5 51.5 11
END
diff expected told
