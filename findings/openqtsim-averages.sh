#!/bin/sh
# OpenQTSim 0.5.1 (PyPI), which simulates queues in Kendall's notation, averages the numbers of customers over its log
# entries (Simulation.get_stats), as if each state lasted as long as any other: L_s and L_q, "average nr of customers",
# are too high, at low loads twice as high. "Server utilisation" is the mean queue divided by the servers, 3.1 for one
# server at a load of 0.8. And K and N, the places in the system and the population, which Queue documents and prints,
# have no effect: M/M/1/2 is M/M/1, nobody is refused, and waits are those of an endless buffer. Nothing is said. The
# times it measures are right, and by Little's law (Oper. Res. 9, 1961) they contradict its L. For M/M/1 L_s is
# rho / (1 - rho) and L_q is rho^2 / (1 - rho); M/M/1/2 refuses one in seven at rho = 0.5. ciw 3.2.7 refuses as many.
#
# Seen, one server: rho = 0.3, L_s 0.92, L_q 0.27; right is 0.43 and 0.13. rho = 0.5, L_s 1.48, L_q 0.73; right is 1 and
# 0.5. With K = 2 the same, all of 5000 customers served.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet openqtsim==0.5.1 ciw==3.2.7
cat >"$dir/run.py" <<'END'
import contextlib
import io
import re
import sys

import ciw
from openqtsim.arrival_process import ArrivalProcess
from openqtsim.queue import Queue
from openqtsim.service_process import ServiceProcess
from openqtsim.simulation import Simulation

CUSTOMERS = 5000


def simulate(load: float, places: float) -> dict[str, float]:
    queue = Queue(ArrivalProcess("M", load), ServiceProcess("M", 1.0), c=1, K=places)
    simulation = Simulation(queue, max_arr=CUSTOMERS, seed=1)
    simulation.run(CUSTOMERS)
    with contextlib.redirect_stdout(io.StringIO()) as text:
        simulation.get_stats()
    told = {name: float(value) for name, value in re.findall(r"(\w+):.*: ([\d.]+)", text.getvalue())}
    return told | {"served": len(simulation.log["c_id"])}


def refused(load: float, places: int) -> float:
    ciw.seed(1)
    simulation = ciw.Simulation(
        ciw.create_network(
            arrival_distributions=[ciw.dists.Exponential(load)],
            service_distributions=[ciw.dists.Exponential(1.0)],
            number_of_servers=[1],
            queue_capacities=[places - 1],
        )
    )
    simulation.simulate_until_max_time(CUSTOMERS / load)
    records = simulation.get_all_records()
    return sum(record.record_type == "rejection" for record in records) / len(records)


changed = False
for load in (0.3, 0.5):
    told = simulate(load, float("inf"))
    system, queue = load / (1 - load), load**2 / (1 - load)
    little = told["W_s"] / told["IAT"]
    print(f"rho {load}: L_s {told['L_s']:.2f}, right {system:.2f}, by Little's law {little:.2f}")
    print(f"rho {load}: L_q {told['L_q']:.2f}, right {queue:.2f}")
    changed |= not (abs(little - system) < 0.1 and told["L_s"] > 1.4 * system and told["L_q"] > 1.4 * queue)
few = simulate(0.5, 2)
print(f"rho 0.5, K = 2: L_s {few['L_s']:.2f}, served {few['served']} of {CUSTOMERS}; ciw refuses {refused(0.5, 2):.0%}")
changed |= few != told
sys.exit(changed)
END
"$dir/venv/bin/python" "$dir/run.py"
