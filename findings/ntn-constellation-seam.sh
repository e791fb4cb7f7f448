#!/bin/sh
# ntn-constellation 0.1.0 (PyPI), which makes constellations of satellites for ns-3, links a Walker constellation as a
# grid: each satellite with two of its own plane and, by the documentation of isl.py, two of the planes beside it.
# grid_isl_topology_walker (ntn-fetch --isl-walker) links the last plane with the first in none. That is right for a
# Walker star, where these two move against each other. In a Walker delta, as Starlink's and Kuiper's are among its
# presets, they are neighbours like any other two and move the same way. So a route between the two goes around the
# Earth, through every other plane: hops and latencies of the simulation have a seam that the constellation has not.
#
# Seen, preset starlink-v1-shell1 (72 planes of 22): from the first plane to the nearest satellite of the next, 621 km
# away, 1 hop; to the nearest of the last plane, 621 km away too, 72 hops. 44 of 1584 satellites have 3 links.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check ntn-constellation==0.1.0
cat >run.py <<'END'
import math
from collections import deque
from datetime import datetime, timezone

from ntn_constellation.isl import grid_isl_topology_walker
from ntn_constellation.presets import PRESETS, from_preset
from ntn_constellation.propagator import Constellation

preset, when = PRESETS["starlink-v1-shell1"], datetime(2026, 1, 1, tzinfo=timezone.utc)
planes, each = preset.num_planes, preset.sats_per_plane
places = [state.r_eci_km for state in Constellation.from_tles(from_preset(preset, epoch=when)).state_vectors(when)]
links: list[list[int]] = [[] for _ in places]
for a, b in grid_isl_topology_walker(num_planes=planes, sats_per_plane=each):
    links[a].append(b)
    links[b].append(a)


def hops(start: int, end: int) -> int:
    distance, queue = {start: 0}, deque([start])
    while end not in distance:
        node = queue.popleft()
        for neighbour in links[node]:
            if neighbour not in distance:
                distance[neighbour] = distance[node] + 1
                queue.append(neighbour)
    return distance[end]


for name, plane in ("next", 1), ("last", planes - 1):
    near = min(range(plane * each, (plane + 1) * each), key=lambda index: math.dist(places[0], places[index]))
    print(f"{name} plane: {math.dist(places[0], places[near]):.0f} km, {hops(0, near)} hops")
print(f"with 3 links: {sum(len(ends) == 3 for ends in links)} of {len(links)}")
END
env/bin/python run.py | tee told
cat >expected <<'END'
next plane: 621 km, 1 hops
last plane: 621 km, 72 hops
with 3 links: 44 of 1584
END
diff expected told
