#!/bin/sh
# o2despy 0.0.7 (PyPI) simulates discrete events and measures queues with hour counters. percentile and histogram leave
# out the time since the count last changed, unlike average_count, which brings the counter up to date
# (hour_counter.py); so what they tell depends on whether the average was asked for before. histogram gives "the amount
# of time spent at each range", by lower bound; a count equal to a bound goes into the range below, except 0, so that at
# an interval of 1 an idle server and a busy one are in the same range. add_hour_counter(keep_history=True) forgets the
# argument (sandbox.py). And each Sandbox, also one made within a run, by default with seed 0, seeds the generators of
# Python and numpy that all share ("Random seed" of the sandbox, by its description): after it, the draws begin anew for
# the whole model.
#
# Seen, busy for one of ten hours: median 1, after asking for the average (0.1) 0; histogram(1): all ten hours at 0;
# history None. Draws after each new sandbox: the same.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check o2despy==0.0.7 numpy==1.26.4 pandas==2.0.3 \
    sortedcontainers==2.4.0
cat >run.py <<'END'
import random
from datetime import timedelta

from o2despy.sandbox import Sandbox


class Server(Sandbox):
    def __init__(self):
        super().__init__(seed=1)
        self.busy = self.add_hour_counter(keep_history=True)
        self.schedule(lambda: self.busy.observe_change(1))
        self.schedule(lambda: self.busy.observe_change(-1), timedelta(hours=1))


server = Server()
server.run(duration=timedelta(hours=10))
median = server.busy.percentile(50)
average = server.busy.average_count
after = server.busy.percentile(50)
print("median", median, "average", average, "median", after)
assert (median, average, after) == (1, 0.1, 0)
print("histogram", server.busy.histogram(1), "history", server.busy.history)
assert server.busy.histogram(1) == {0: (10.0, 1.0, 1.0)}
assert server.busy.history is None

draws = []
for customer in range(3):
    server.add_child(Sandbox())
    draws.append(random.expovariate(1))
print("draws", draws)
assert draws[0] == draws[1] == draws[2]
END
env/bin/python run.py
