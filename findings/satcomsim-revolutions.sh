#!/bin/sh
# The satellites of satcomsim 0.1.1 (PyPI), a simulator of satellite communication, do not fly along their orbits. By
# default a step integrates with Runge and Kutta's method, into a state that the position is not taken from (orbit.py,
# _rk4_integration and get_position_point): the anomaly stays as it was. What moves them is the precession by the
# Earth's flattening, which lacks its factor, the mean motion, and is a thousand times too fast. So a geostationary
# satellite stands still among the stars and rises once a day, and a low one on a polar orbit comes twice as often as
# it should. Nothing is said. The period is 2 pi sqrt(a^3 / mu), and the node precesses by -1.5 J2 n (R/a)^2 cos i
# (Vallado, Fundamentals of Astrodynamics and Applications), a few degrees a day in low orbits. With
# update_position(dt, "basic") alone the same orbits are right.
#
# Seen, geostationary: 0.000 revolutions in 6 hours; right is 0.251. Polar, 550 km: 28.389 in a day; right is 15.055.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
# Without the packages for its window.
"$dir/venv/bin/pip" install --quiet --no-deps satcomsim==0.1.1
cat >"$dir/run.py" <<'END'
import math
import sys

from satcomsim.models.orbit import Orbit
from satcomsim.models.planet import Planet
from satcomsim.models.propulsion import Propulsion
from satcomsim.models.satellite import Satellite

DAY, HOUR = 86_400, 3600  # s
EARTH = Planet()


def revolutions(axis: float, inclination: float, time: int, basic: bool) -> float:
    """How often a satellite on a circular orbit goes around in a time, in steps of a second."""
    satellite = Satellite(Orbit(EARTH, axis, 0.0, math.radians(inclination)), EARTH, Propulsion())
    turned, before = 0.0, None
    for _ in range(time + 1):
        place = satellite.get_orbit().get_position_point()
        across, along = place.get_x(), place.get_y() if inclination == 0 else place.get_z()
        angle = math.atan2(along, across)
        if before is not None:
            turned += (angle - before + math.pi) % (2 * math.pi) - math.pi
        before = angle
        if basic:
            satellite.get_orbit().update_position(1.0, "basic")
        else:
            satellite.update(1.0)
    return turned / (2 * math.pi)


told = []
for name, axis, inclination, time in (("geostationary", 42164.2, 0.0, 6 * HOUR), ("polar", 6928.1366, 90.0, DAY)):
    right = time / (2 * math.pi * math.sqrt(axis**3 / EARTH.get_mu()))
    default, basic = (revolutions(axis, inclination, time, basic) for basic in (False, True))
    print(f"{name}: {abs(default):.3f} revolutions in {time // HOUR} h, basic {basic:.3f}, right {right:.3f}")
    told += [abs(round(default, 3)), abs(basic - right) < 0.001]
sys.exit(told != [0.0, True, 28.389, True])
END
"$dir/venv/bin/python" "$dir/run.py"
