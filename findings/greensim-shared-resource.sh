#!/bin/sh
# A Resource of greensim 2.3.1 (PyPI), a discrete-event simulation library, is for "limited commodities that processes
# need exclusive access to", such as a channel that stations share (Resource in __init__.py). release() wakes the first
# process that waits, but does not set its instance aside. If the process that released takes again at the same time,
# as a station with a queue of frames does, it has the channel; then the one that was woken takes it too, without a
# look at what is free. So two stations transmit at once over one channel, num_instances_free is -1, and nothing is
# said. Nor does release() look for a second one that waits: where one process gives back two instances, one of them
# stays idle until the next release. And an exception in a block of using(), as that of a timeout, keeps the instance
# for ever, although using() is to release it on exit.
#
# Seen, stations with 10 frames of 1 s each and one channel: one needs 10 s, two 11 s (20 are right) with 2 sending at
# once; two instances given back at 1 s, two processes wait, each for 5 s: begin at 1 s and 6 s; after a timeout in
# using(): nothing is free.
# It asks for greenlet 0.4.14, which does not build for Python 3.11; with 3.5.6 it runs.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check greenlet==3.5.6
env/bin/pip install --quiet --disable-pip-version-check --no-deps greensim==2.3.1
cat >run.py <<'END'
from greensim import Resource, Signal, Simulator, Timeout, advance, now


def channel(stations: int) -> str:
    channel, sending, most = Resource(1), 0, 0

    def station() -> None:
        nonlocal sending, most
        for _ in range(10):
            with channel.using():
                sending += 1
                most = max(most, sending)
                advance(1.0)
                sending -= 1

    with Simulator() as simulator:
        for _ in range(stations):
            simulator.add(station)
        simulator.run()
        return f"{stations} stations: {simulator.now():g} s, {most} at once"


def given_back() -> str:
    resource, begin = Resource(2), []

    def first() -> None:
        resource.take(2)
        advance(1.0)
        resource.release(2)

    def waits() -> None:
        resource.take(1)
        begin.append(now())
        advance(5.0)
        resource.release(1)

    with Simulator() as simulator:
        for process in (first, waits, waits):
            simulator.add(process)
        simulator.run()
    return f"two given back: begin at {begin}"


def timeout() -> str:
    resource = Resource(1)

    def process() -> None:
        try:
            with resource.using():
                Signal().turn_off().wait(timeout=2.0)
        except Timeout:
            pass

    with Simulator() as simulator:
        simulator.add(process)
        simulator.run()
    return f"after a timeout: {resource.num_instances_free} free"


print(channel(1), channel(2), given_back(), timeout(), sep="\n")
END
env/bin/python run.py | tee told
cat >expected <<'END'
1 stations: 10 s, 1 at once
2 stations: 11 s, 2 at once
two given back: begin at [1.0, 6.0]
after a timeout: 0 free
END
diff expected told
