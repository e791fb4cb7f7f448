#!/bin/sh
# space-ml-sim 0.5.0 (PyPI), which simulates constellations of satellites and the links between them, forgets the
# argument of perigee when it reads a TLE (parse_tle in core/tle.py). Its orbits are circles, on which a satellite is
# placed by the angle from the ascending node; it takes the anomaly for that, which is the angle from the perigee, and
# the perigee may be anywhere. So each satellite is ahead of its place or behind it by its own argument of perigee, up
# to half of the orbit, neighbours in a plane are scattered over it, and the links between them, their delays and their
# handovers are others. Nothing is said; its README calls it to load real satellites. The angle from the node is the sum
# of both (Vallado, Fundamentals of Astrodynamics and Applications, 2.4, argument of latitude). Its own propagate_sgp4
# has the right places for the same lines.
#
# Seen, the TLE of its README at its epoch: 12,343 km from its place. Two satellites 550 km up and 20 degrees apart,
# 2408 km, with perigees at 90 and 300 degrees: 13,804 km apart, so that their link (max_range_km=5000) is not there.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check sgp4==2.27 pydantic==2.14.4 numpy==2.4.6 pandas==3.1.1
# Without what it draws and learns with.
env/bin/pip install --quiet --disable-pip-version-check --no-deps space-ml-sim==0.5.0
cat >run.py <<'END'
from math import dist

from space_ml_sim.core.orbit import position_at
from space_ml_sim.core.tle import parse_tle, propagate_sgp4
from space_ml_sim.environment.isl_network import ISLNetwork

README = (
    "1 25544U 98067A   24045.54783565  .00016717  00000+0  30057-3 0  9993",
    "2 25544  51.6416 247.4627 0006703 130.5360 229.6116 15.49815508441075",
)
told, right = position_at(parse_tle(*README), 0.0), propagate_sgp4(*README, 0.0)
print(f"README: {dist(told, right):.0f} km from its place")


def lines(perigee, anomaly):
    return (
        "1 99999U 20001A   26001.00000000  .00000000  00000-0  00000-0 0  9997",
        f"2 99999  53.0000 100.0000 0001000 {perigee:8.4f} {anomaly:8.4f} 15.05500000    10",
    )


plane = {"a": lines(90, 0), "b": lines(300, 170)}
for name, places in (
    ("told", {name: position_at(parse_tle(*tle), 0.0) for name, tle in plane.items()}),
    ("right", {name: propagate_sgp4(*tle, 0.0) for name, tle in plane.items()}),
):
    link = ISLNetwork.from_positions(places, max_range_km=5000.0).has_link("a", "b")
    print(f"neighbours, {name}: {dist(*places.values()):.0f} km apart, link {link}")
END
env/bin/python run.py | tee told
cat >expected <<'END'
README: 12343 km from its place
neighbours, told: 13804 km apart, link False
neighbours, right: 2408 km apart, link True
END
diff expected told
