#!/bin/sh
# simcraft 1.0.1 (PyPI), a discrete-event simulation library, counts the busy time of a Server up to its last change
# between busy and idle (ServerStats in server.py), not up to now. A link that is never idle again is not counted at
# all: offered twice its rate, its utilisation is 0, and its throughput, the departures in the idle time before the
# first packet, has no limit. Statistics that begin later are wrong too: after reset_stats, times count from time 0, and
# on_warmup_end, "Called when warmup period ends", where one would reset them, is never called (simulation.py). And the
# confidence interval of a Tally is the same for all levels up to 29 values, and for 98 % that of 95 beyond
# (confidence_interval in tally.py). Nothing is said. Means over time go up to the end of the run, and with few values
# the interval takes Student's t (Law, Simulation Modeling and Analysis, 1.4.1 and 4.5).
#
# Seen, 1000 s, packets of 1 s: one every 1.25 s, utilisation 80 % and 0.80/s, right; one every 0.5 s, 0 % and 999/s,
# right about 100 % and 1.00. One every 2 s, reset at 500 s: 25 % and 0.25/s, right 50 % and 0.50. Warm-up of 500 s: not
# called. Ten values, half width in standard errors: 2.33 for 90, 95 and 99 %, right 1.83, 2.26 and 3.25.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check simcraft==1.0.1
cat >run.py <<'END'
from math import sqrt
from statistics import stdev

from simcraft import Server, Simulation, Tally
from simcraft.core.simulation import SimulationConfig


class Link(Simulation):
    def __init__(self, gap, warmup=0):
        super().__init__(config=SimulationConfig(seed=1, warmup_duration=warmup))
        self.server, self.gap, self.warm = Server(self, service_time=1.0), gap, False

    def on_init(self):
        self.schedule(self.arrive, delay=1.0)

    def on_warmup_end(self):
        self.warm = True

    def arrive(self):
        self.server.enqueue(object())
        self.schedule(self.arrive, delay=self.gap)


def tell(name, link):
    link.run(until=1000)
    print(f"{name}: {link.server.stats.utilization:.0%}, {link.server.stats.throughput_rate:.2f}/s")


for gap in 1.25, 0.5:
    tell(f"every {gap} s", Link(gap))
link = Link(2)
link.run(until=500)
link.server.reset_stats()
tell("every 2 s, reset at 500 s", link)
link = Link(2, warmup=500)
link.run(until=1000)
print(f"warm-up: {link.warm}")

values = list(range(10))
tally = Tally()
tally.observe_batch(values)
for level in 0.9, 0.95, 0.99:
    low, high = tally.confidence_interval(level)
    print(f"{level:.0%}: {(high - low) / 2 / (stdev(values) / sqrt(10)):.2f} standard errors")
END
env/bin/python run.py | tee told
cat >expected <<'END'
every 1.25 s: 80%, 0.80/s
every 0.5 s: 0%, 999.00/s
every 2 s, reset at 500 s: 25%, 0.25/s
warm-up: False
90%: 2.33 standard errors
95%: 2.33 standard errors
99%: 2.33 standard errors
END
diff expected told
