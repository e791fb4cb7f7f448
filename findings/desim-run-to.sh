#!/bin/sh
# desim-python 1.0.0 (PyPI) runs a simulation "up to a certain point in time" with run_to(t, …). It looks whether the
# time has come before each event, not at what the event's time is (desim.py), so the first event after that point
# happens too, and the clock stands at it; SimPy's run(until=…) stops at the time given, before what is due then.
# Statistics taken every so often, with run_to in a loop, thus already have what happens later, which may be an hour
# ahead, and where two of the points lie between two events, the second call does nothing. An event due exactly then is
# the last one, but those due with it are left for the next call. Events due at the same time happen in whatever order
# the heap has them ("processing scheduled actions in chronological order"; heapq, "Priority Queue Implementation
# Notes", has a counter for that), not as they were scheduled: packets that arrive together overtake each other.
#
# Seen, events at 5, 15 and 100: run_to(10) is at 15, run_to(20) at 100. Three events at 10: run_to(10) has one. Eight
# at 1: another order than they were added in.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check desim-python==1.0.0
cat >run.py <<'END'
from desim import DiscreteEvent, DiscreteEventQueue, run_to, run_to_end


class Packet(DiscreteEvent):
    def __init__(self, time, name):
        super().__init__(time)
        self.name = name

    def _run(self, arrived):
        arrived.append(self.name)
        return []


def queue(*times) -> tuple[DiscreteEventQueue, list[int]]:
    events = DiscreteEventQueue()
    events.add_events([Packet(time, name) for name, time in enumerate(times)])
    return events, []


events, arrived = queue(5, 15, 100)
for time, there, count in (10, 15, 2), (20, 100, 3), (50, 100, 3):
    run_to(time, events, arrived)
    print("run to", time, "is at", events.t, "after", len(arrived), "events")
    assert (events.t, len(arrived)) == (there, count)

events, arrived = queue(10, 10, 10)
run_to(10, events, arrived)
print("of three at 10:", len(arrived))
assert len(arrived) == 1

events, arrived = queue(*8 * [1])
run_to_end(events, arrived)
print("order of arrival", arrived)
assert sorted(arrived) == list(range(8)) != arrived
END
env/bin/python run.py
