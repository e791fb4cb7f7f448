#!/bin/sh
# dsns 1.0.0 (PyPI), a simulator of satellite networks, keeps state in attributes of its classes instead of its objects:
# the graphs of LookaheadRoutingDataProvider, the stored and delivered messages of MessageRoutingActor, the tables of
# PreprocessedLoggingActor. So a second simulation in the same process, with objects of its own, is routed over links
# of the first until the look-ahead has passed, and its log has the messages of both. Who varies a parameter in a loop
# gets results that depend on the order. Nothing is said. In a process of its own the second simulation is right.
#
# Seen, 30 messages over a relay, after a simulation with a direct link instead: delivered 19, in the log 107; alone 30
# and 57. (The log also has messages created after the end; their number varies.)
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
# Without the packages for its documentation and pictures.
"$dir/venv/bin/pip" install --quiet --no-deps dsns==1.0.0 networkit==11.2 numpy==2.2.6 pandas==2.3.3 scipy==1.15.3 \
    sgp4==2.27 tqdm==4.67.1 PyAstronomy==0.25.0 quantities==0.16.4 six==1.17.0 python-dateutil==2.9.0.post0 pytz==2025.2
cat >"$dir/run.py" <<'END'
import sys

import numpy as np
from dsns.constellation import FixedConstellation, FixedISLHelper
from dsns.events import Event
from dsns.helpers import IDHelper
from dsns.logging import PreprocessedLoggingActor
from dsns.message import MessageDeliveredEvent
from dsns.message_actors import LookaheadRoutingDataProvider, MessageRoutingActor
from dsns.multiconstellation import MultiConstellation
from dsns.simulation import Actor, Simulation
from dsns.traffic_sim import PointToPointTrafficActor

DIRECT, RELAYED = [(0, 2)], [(0, 1), (1, 2)]
PLACES = np.array([(0.0, 0.0, 0.0), (1e6, 1e6, 0.0), (2e6, 0.0, 0.0)])  # m
DURATION, INTERVAL = 300.0, 10.0  # s


class Counter(Actor):
    """Counts deliveries, in an attribute of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.delivered = 0

    def initialize(self) -> list[Event]:
        return []

    def handle_event(self, mobility: MultiConstellation, event: Event) -> list[Event]:
        self.delivered += isinstance(event, MessageDeliveredEvent)
        return []


def simulate(links: list[tuple[int, int]]) -> tuple[int, int]:
    """Messages from 0 to 2 that are delivered, and messages in the log."""
    network = MultiConstellation()
    network.add_constellation(FixedConstellation("links", PLACES, FixedISLHelper(links), IDHelper()))
    routing = LookaheadRoutingDataProvider(resolution=10, num_steps=6)
    actors = [MessageRoutingActor(routing, store_and_forward=True), PointToPointTrafficActor(0, 2, INTERVAL)]
    counter, log = Counter(), PreprocessedLoggingActor()
    simulation = Simulation(network, actors, [counter, log], [routing])
    simulation.initialize()
    simulation.run(DURATION)
    return counter.delivered, len(log.direct_messages)


if sys.argv[1] == "after":
    simulate(DIRECT)
delivered, logged = simulate(RELAYED)
print(f"{sys.argv[1]}: delivered {delivered}, in the log {logged}")
sys.exit((delivered, logged > 2 * 50) != {"alone": (30, False), "after": (19, True)}[sys.argv[1]])
END
for place in alone after; do "$dir/venv/bin/python" "$dir/run.py" $place; done
