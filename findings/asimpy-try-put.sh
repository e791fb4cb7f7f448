#!/bin/sh
# asimpy 0.20.0 (PyPI), a discrete-event simulation library, has queues with operations that wait, put and get, and such
# that do not, try_put and try_get, which "raise on failure". Those look after nobody who waits (queue.py): an item of
# try_put stays in the queue while processes wait in get, and the place that try_get makes is not given to one that
# waits in put. The same holds for Container (container.py). So a network device that drops what does not fit, which is
# what try_put and QueueFull are for, never hands a packet to the sender that waits for one: the simulation ends without
# an error, with all packets in a queue and nothing sent.
#
# Seen, a packet each second for 3 s to a receiver that waits: put 3 received, try_put 0, 3 in the queue. A queue of one
# place, a second put waits, try_get takes the first: the second still waits. Tokens by try_put: the getter still waits.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check asimpy==0.20.0
cat >run.py <<'END'
from asimpy import Container, Environment, Process, Queue


class Run(Process):
    def init(self, body) -> None:
        self.body = body

    async def run(self) -> None:
        await self.body(self)


def receive(waiting: bool) -> str:
    environment, received = Environment(), []
    queue = Queue(environment, capacity=10)

    async def receiver(process) -> None:
        while True:
            received.append(await queue.get())

    async def sender(process) -> None:
        for packet in range(3):
            await process.timeout(1)
            if waiting:
                await queue.put(packet)
            else:
                queue.try_put(packet)

    Run(environment, receiver)
    Run(environment, sender)
    environment.run(100)
    return f"{len(received)} received, {queue.size()} in the queue"


def room() -> str:
    environment, done = Environment(), []
    queue = Queue(environment, capacity=1)

    async def sender(process) -> None:
        for packet in range(2):
            await queue.put(packet)
            done.append(packet)

    async def drain(process) -> None:
        await process.timeout(1)
        queue.try_get()

    Run(environment, sender)
    Run(environment, drain)
    environment.run(100)
    return f"{len(done)} of 2 put, {queue.size()} in the queue"


def tokens() -> str:
    environment, done = Environment(), []
    bucket = Container(environment, capacity=10)

    async def sender(process) -> None:
        done.append(await bucket.get(1))

    async def refill(process) -> None:
        await process.timeout(1)
        bucket.try_put(5)

    Run(environment, sender)
    Run(environment, refill)
    environment.run(100)
    return f"{len(done)} of 1 got a token, {bucket.level} left"


print("put:", receive(True))
print("try_put:", receive(False))
print("try_get:", room())
print("Container.try_put:", tokens())
END
env/bin/python run.py | tee told
cat >expected <<'END'
put: 3 received, 0 in the queue
try_put: 0 received, 3 in the queue
try_get: 1 of 2 put, 0 in the queue
Container.try_put: 0 of 1 got a token, 5 left
END
diff expected told
