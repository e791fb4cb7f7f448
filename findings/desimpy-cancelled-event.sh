#!/bin/sh
# desimpy 0.48.0 (PyPI), a discrete-event simulation library, can cancel events by a condition, as a retransmission
# timer is when the acknowledgement comes. Its queue is a heap (event_queue of EventScheduler), which it uses as if it
# were a sorted list. cancel_next_event_by_condition, which "cancel[s] the next event that satisfies a given
# condition", takes the first one in the order of the array, which may be a later one, and next_event_by_condition and
# its other users with it. And all that cancel by a condition take events out of the array with remove(), after which
# it is no heap any more: from then on later events can run before earlier ones, and the time goes back. Nothing is
# said. By its README "the next event in a schedule is processed next" and the order is "purely temporal"; heapq of
# Python has an order of its elements for heap[0] alone (its documentation).
#
# Seen, events at 1, 10, 2, 11, 12, 3 and 4: of those after 2, the one at 10 is cancelled, right is the one at 3. Of
# 1000 runs with 20 events at random times, one of which is cancelled by its name, the time goes back in 251.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check desimpy==0.48.0
cat >run.py <<'END'
from random import Random

from desimpy import Event, EventScheduler


def run(times, condition, all_of_them):
    """When the events run that are left after cancelling those that fulfil a condition, or the next of them."""
    scheduler, told = EventScheduler(), []
    for number, time in enumerate(times):
        scheduler.schedule(Event(time, lambda: told.append(scheduler.now), {"number": number}))
    if all_of_them:
        scheduler.cancel_all_events_by_condition(lambda _, event: condition(event))
    else:
        scheduler.cancel_next_event_by_condition(lambda _, event: condition(event))
    scheduler.run(lambda _: False)
    return told


times = [1, 10, 2, 11, 12, 3, 4]
[cancelled] = set(times) - set(run(times, lambda event: event.time > 2, False))
back = 0
for seed in range(1000):
    random = Random(seed)
    times = [random.uniform(0, 10) for _ in range(20)]
    number = random.randrange(20)
    told = run(times, lambda event: event.context["number"] == number, True)
    assert sorted(told) == sorted(times[:number] + times[number + 1 :])
    back += told != sorted(told)
print(f"the next after 2: cancelled the one at {cancelled}; time goes back in {back} of 1000 runs")
assert cancelled == 10 and back > 100
END
env/bin/python run.py
