#!/bin/sh
# Geo::Distance 0.25 (libgeo-distance-perl of Debian 12) finds the places in a database within some distance of a point,
# such as the cells near a phone (closest). It takes those out of the database that lie in a square of so many degrees
# of latitude and of longitude, and then leaves out what is too far (Distance.pm). But away from the equator a degree of
# longitude is shorter, by the cosine of the latitude: at 60 degrees north, as in Oslo or Helsinki, the square is half
# as wide as it is high, and what lies to the east or west at more than half the distance is not found. At 180 degrees
# east nothing is found on the other side. Nothing is said. Its documentation says that the first step is simplistic and
# that "more precise calculations are made to narrow down the result set": that lets nothing back in. Its distances
# between two points are right. What helps: to ask for the distance divided by the cosine, and to drop what is too far.
#
# Seen, within 10 km, four cells at 8 km: on the equator north, east, south and west; at 60 degrees north north and
# south.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet libgeo-distance-perl=0.25-3 libgis-distance-perl=0.19-2 libb-hooks-endofscope-perl \
    libclass-measure-perl libconst-fast-perl libdata-optlist-perl libdbd-sqlite3-perl libdbi-perl \
    libmodule-implementation-perl libmodule-runtime-perl libnamespace-clean-perl libpackage-stash-perl \
    libparams-util-perl libstrictures-perl libsub-exporter-perl libsub-exporter-progressive-perl libsub-identify-perl \
    libsub-install-perl libsub-name-perl libtry-tiny-perl libvariable-magic-perl libsqlite3-0 \
    >log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu"
cat >run.pl <<'END'
use strict;
use warnings;
use DBI;
use Geo::Distance;
use Math::Trig qw(deg2rad pi);

my ($away, $within) = (8, 10);    # km
my $degree = 6371 * pi / 180;     # km, of latitude
my $geo = Geo::Distance->new;
for my $latitude (0, 60) {
    my $cells = DBI->connect('dbi:SQLite:dbname=:memory:', '', '', {RaiseError => 1});
    $cells->do('CREATE TABLE cells (name TEXT, lon REAL, lat REAL)');
    my ($north, $east) = ($away / $degree, $away / $degree / cos deg2rad($latitude));
    my %at = (north => [0, $north], east => [$east, 0], south => [0, -$north], west => [-$east, 0]);
    for my $name (sort keys %at) {
        my ($lon, $lat) = (25 + $at{$name}[0], $latitude + $at{$name}[1]);
        $cells->do('INSERT INTO cells VALUES (?, ?, ?)', undef, $name, $lon, $lat);
        printf "latitude %d, %s: %.1f km\n", $latitude, $name,
            $geo->distance('kilometer', 25, $latitude => $lon, $lat);
    }
    my $found = $geo->closest(
        dbh => $cells, table => 'cells', fields => ['name'], unit => 'kilometer',
        lon => 25, lat => $latitude || 1e-9, distance => $within);    # 0 is refused, as if not given
    print "latitude $latitude, within $within km: ", join(' ', sort map { $_->{name} } @$found), "\n";
}
END
PERL5LIB="usr/share/perl5:$(echo usr/lib/*/perl5/5.36)" perl run.pl | tee told
cat >expected <<'END'
latitude 0, east: 8.0 km
latitude 0, north: 8.0 km
latitude 0, south: 8.0 km
latitude 0, west: 8.0 km
latitude 0, within 10 km: east north south west
latitude 60, east: 8.0 km
latitude 60, north: 8.0 km
latitude 60, south: 8.0 km
latitude 60, west: 8.0 km
latitude 60, within 10 km: north south
END
diff expected told
