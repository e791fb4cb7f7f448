#!/bin/sh
# aioptcp 1.0.2 (PyPI), sessions that outlive their TCP connection, stands still after it has resumed one, if the
# program goes on sending. It keeps what was not acknowledged and sends it again on the new connection, block by block
# (_maintain_connection in __init__.py). But the session counts as established before that, so when this waits for the
# connection, a new block of send gets in between. The receiver takes only the block it expects, drops any other
# without keeping it, and acknowledges the last in order (_process_frame). Nothing sends the missing ones again: there
# is no timer, as TCP loses nothing. So an upload is over after a handover, with both ends in state ESTABLISHED, until
# the connection breaks again. Nothing is said. By its documentation it is for "interface handovers (Wi-Fi to LTE)" and
# resumes "without any data loss".
#
# Seen, 16 MB over 8 MB/s, the connection broken after 0.5 s: received about half, and nothing more in 5 s. Of 4 MB,
# given to send before the break as its buffer of 5 MB allows, all. Without a break all of 16.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check aioptcp==1.0.2
cat >run.py <<'END'
import asyncio
import logging
import socket

from aioptcp import PTCPClient, PTCPServer

logging.disable(logging.CRITICAL)
BLOCK, RATE = 16_384, 8_000_000


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


async def transfer(blocks, break_after):
    server_port, relay_port, writers = free_port(), free_port(), []

    async def pump(reader, writer, rate):
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
                await asyncio.sleep(len(data) / rate)
        except OSError:
            pass

    async def relay(reader, writer):
        there, back = await asyncio.open_connection("127.0.0.1", server_port)
        writers.extend((writer, back))
        await asyncio.gather(pump(reader, back, RATE), pump(there, writer, 1e12))

    server = PTCPServer("127.0.0.1", server_port)
    await server.start()
    await asyncio.start_server(relay, "127.0.0.1", relay_port)
    client = PTCPClient("127.0.0.1", relay_port)
    await client.connect()
    session = await server.accept()
    received = 0

    async def receive():
        nonlocal received
        while True:
            received += len(await session.recv(1 << 20))

    async def send():
        for _ in range(blocks):
            await client.send(bytes(BLOCK))

    tasks = [asyncio.create_task(receive()), asyncio.create_task(send())]
    if break_after:
        await asyncio.sleep(break_after)
        for writer in writers:
            writer.transport.abort()
    before = -1
    while received > before and received < blocks * BLOCK:
        before = received
        await asyncio.sleep(5)
    states = f"{client.state.name}, {session.state.name}"
    for task in tasks:
        task.cancel()
    return received / (blocks * BLOCK), states


def show(name, blocks, break_after=None):
    async def run():
        share, states = await transfer(blocks, break_after)
        print(f"{name}: {'all' if share == 1 else 'not all'} received ({states})", flush=True)

    asyncio.run(run())


show("16 MB", 1000)
show("16 MB, broken after 0.5 s", 1000, 0.5)
show("4 MB, broken after 0.2 s", 250, 0.2)
END
env/bin/python run.py 2>log | tee told
cat >expected <<'END'
16 MB: all received (ESTABLISHED, ESTABLISHED)
16 MB, broken after 0.5 s: not all received (ESTABLISHED, ESTABLISHED)
4 MB, broken after 0.2 s: all received (ESTABLISHED, ESTABLISHED)
END
diff expected told || { cat log >&2; exit 1; }
