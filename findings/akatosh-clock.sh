#!/bin/sh
# Akatosh 3.1.7 (PyPI), a discrete event simulator "without time step", steps by a millisecond, and does not wait for
# what happens in it: each event's action runs in a thread (event.py, asyncio.to_thread) while the simulated clock goes
# on (universe.py). An action that computes for a while, or a loaded machine, is thus over later in simulated time,
# after events that were due after it, and differently in each run; what is not over at the end is dropped. In a
# discrete event simulation time passes between events only. Resource is to "provide all functionalities as it is in
# Simpy", where a request waits until there is enough. Here distribute() refuses it by False, yet takes all that is
# left, also where that is exactly what was asked for (">" in resource.py). It books the level after taking it, which is
# 0: the user holds nothing, and what was taken never comes back, nor does it where a user asks for all there is.
#
# Seen, an action of 50 ms at 1 s, another at 1.001: the second is over first, at 1.001, the first between 1.7 and 3 s.
# Capacity 10: 6 granted, 8 refused, level 0; all given back: level 6. Another 10: 10 refused, given back: level 0.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check Akatosh==3.1.7 colorlog==6.8.2
cat >run.py <<'END'
import asyncio
import logging
import time

from Akatosh.entity import Entity
from Akatosh.event import event
from Akatosh.resource import Resource
from Akatosh.universe import Mundus

done = []


@event(at=1, till=1, once=True)
def slow():
    end = time.perf_counter() + 0.05
    while time.perf_counter() < end:
        time.sleep(0.001)
    done.append(("due at 1", Mundus.time))


@event(at=1.001, till=1.001, once=True)
def quick():
    done.append(("due at 1.001", Mundus.time))


Mundus.set_logging_level(logging.ERROR)
asyncio.run(Mundus.simulate(30))
print(*done)
assert [what for what, _ in done] == ["due at 1.001", "due at 1"]
assert done[1][1] > 1.01

link, other = Resource(10), Resource(10)
first, second = Entity(0, 9, "first"), Entity(0, 9, "second")
told = [
    (link.distribute(first, 6), link.level),
    (link.distribute(second, 8), link.level),
    (link.collect(first), link.level),
    (link.collect(second), link.level),
    (other.distribute(first, 10), other.level),
    (other.collect(first), other.level),
]
print(*told)
assert told == [(True, 4), (False, 0), (True, 6), (True, 6), (False, 0), (True, 0)]
END
env/bin/python run.py
