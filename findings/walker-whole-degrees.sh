#!/bin/sh
# WalkerConstellation of satellite-constellation 0.2.2 (PyPI) cuts the spacing of the satellites of a plane to whole
# degrees (Constellation.py, __perigee_positions) and goes around by it as often as fits: where 360 is not a multiple of
# their number, each plane gets one place too many, and the planes after it take theirs from the places left over. So
# the eleven satellites of an Iridium plane are 32 degrees apart, with 8 degrees at one point of most planes and a hole
# at another. A Walker pattern has the same spacing all around (Walker, J. Brit. Interplanetary Soc. 37, 1984: 360
# degrees by the satellites per plane, which need not be whole). Hops between satellites, their delays and the coverage
# are those of another constellation. Nothing is said; where 360 is a multiple, as with OneWeb's 20 per plane, all is
# right.
#
# Seen, from one satellite to the next of its plane: Iridium 998 to 7580 km, right is 4030 (to the longest of them the
# Earth is in the way); Starlink's first shell, 22 per plane, 966 to 3815 km, right 1970; OneWeb 2369 km, right.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check numpy==2.4.6 satellite-constellation==0.2.2
cat >run.py <<'END'
import math
import sys

from satellite_constellation.Constellation import WalkerConstellation

Point = tuple[float, float, float]


def place(radius: float, inclination: float, node: float, argument: float) -> Point:
    """The place of a satellite in a circular orbit, in km, from angles in degrees."""
    i, o, u = map(math.radians, (inclination, node, argument))
    x, y = math.cos(u), math.sin(u) * math.cos(i)
    return (
        radius * (math.cos(o) * x - math.sin(o) * y),
        radius * (math.sin(o) * x + math.cos(o) * y),
        radius * math.sin(u) * math.sin(i),
    )


def gaps(places: list[Point], count: int) -> str:
    """The shortest and the longest way to the next satellite of the plane."""
    planes = [places[index : index + count] for index in range(0, len(places), count)]
    ways = [math.dist(a, b) for plane in planes for a, b in zip(plane, plane[1:] + plane[:1])]
    return f"{min(ways):.0f} to {max(ways):.0f} km"


def measure(total: int, planes: int, phasing: int, inclination: float, altitude: float) -> tuple[str, str]:
    """The gaps of the package's satellites, and those of a Walker pattern."""
    told = WalkerConstellation(total, planes, phasing, inclination, altitude, 0, 60)
    radius, count = told.satellites[0].true_alt, total // planes
    right = [
        place(radius, inclination, 360 / planes * plane, 360 / count * index + 360 / total * phasing * plane)
        for plane in range(planes)
        for index in range(count)
    ]
    # Argument of perigee plus true anomaly, as its as_dict and as_xml hand them on.
    seen = [place(radius, s.inclination, s.right_ascension, s.perigee + s.ta) for s in told.satellites]
    return gaps(seen, count), gaps(right, count)


found = []
for name, *pattern in (
    ("Iridium", 66, 6, 2, 86.4, 781),
    ("Starlink", 1584, 72, 17, 53, 550),
    ("OneWeb", 720, 36, 1, 87.9, 1200),
):
    seen, right = measure(*pattern)
    print(f"{name}, {pattern[0]}/{pattern[1]}/{pattern[2]}: {seen}, right {right}")
    found.append(seen)
sys.exit(0 if found == ["998 to 7580 km", "966 to 3815 km", "2369 to 2369 km"] else 1)
END
env/bin/python run.py
