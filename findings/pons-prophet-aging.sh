#!/bin/sh
# PRoPHETRouter of pons-dtn 0.2.1 (PyPI), a simulator of delay-tolerant networks, never ages its delivery
# predictabilities: its loop over the other nodes multiplies the entry of the node just met instead of theirs, by
# gamma to the power of 0 s (prophet.py, _age_predictabilities). And the transitive rule touches only destinations
# that a node has met itself, so no node learns of another through a third. Without either, messages are handed to
# nodes that met the destination long ago, and not along paths of several hops. `gamma` has no effect and `beta`
# nearly none; nothing is said. RFC 6693, 2.1, has both rules (equations 2 and 3). ProPHET of dtnsim 1.8 has them.
#
# Seen, A meets B once, and 90, 990 or 2990 s later C: A's predictability of B is then 0.5; right, with gamma = 0.999,
# is 0.457, 0.186 and 0.025. A meets B, who has met D: A's of D is 0; right is 0.22.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --no-deps \
    pons-dtn==0.2.1 simpy==4.1.1 networkx==3.3 python-dateutil==2.9.0.post0 six==1.17.0
cat >"$dir/run.py" <<'END'
import contextlib
import io
import logging
import sys

import pons
from pons.routing import PRoPHETRouter

A, B, C, D = NODES = range(4)
HOMES = [1000.0 * node for node in NODES]  # out of reach of each other
RANGE, CONTACT = 50, 10.0  # m, s
logging.disable(logging.CRITICAL)


def predictability(meetings: list[tuple[float, int, int]], destination: int) -> float:
    """A's predictability of a destination after meetings, for which the first node visits the second."""
    moves = [(0.0, node, HOMES[node], 0.0, 0.0) for node in NODES]
    for time, guest, host in meetings:
        moves.append((time, guest, HOMES[host], 1.0, 0.0))
        moves.append((time + CONTACT, guest, HOMES[guest], 0.0, 0.0))
    nodes = []
    for node in NODES:
        net = pons.NetworkSettings("radio", range=RANGE)
        nodes.append(pons.Node(node, net=[net], router=PRoPHETRouter(scan_interval=1)))
    end = int(meetings[-1][0] + 2 * CONTACT)
    simulation = pons.NetSim(end, nodes, (5000, 5000), sorted(moves))
    with contextlib.redirect_stdout(io.StringIO()):  # a progress bar
        simulation.setup()
        simulation.run()
    return nodes[A].router.predictabilities.get(destination, {"pred": 0.0})["pred"]


changed = False
for gap in (90, 990, 2990):
    told = predictability([(10.0, A, B), (10.0 + gap, A, C)], B)
    print(f"of B, {gap} s later: {told:.3f}, right {0.5 * 0.999**gap:.3f}")
    changed |= told != 0.5
told = predictability([(10.0, B, D), (30.0, A, B)], D)
print(f"of D, whom B has met: {told:.3f}, right {0.5 * 0.5 * 0.999**20 * 0.9:.3f}")
sys.exit(changed or told != 0)
END
"$dir/venv/bin/python" "$dir/run.py"
