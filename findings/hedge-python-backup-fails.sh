#!/bin/sh
# hedge-python 0.3.0 (PyPI) sends a backup of an HTTP or gRPC request if the first has not been answered within the 90th
# percentile of latency; by its README "whichever response arrives first is returned". It takes the first task that
# ends, whatever the end is (execute_with_hedge in transport/_base.py, and both classes in interceptor/_grpc.py): an
# exception counts as a win. It cancels the other and raises it. So a backup that fails at once, as where a connection
# is refused, reset or has no route while a mobile changes its cell, ends a request that was only late and would have
# been answered. Hedging is to make the slow requests faster; these it makes fail, and only on a path that is slow.
# gRPC's hedging (gRFC A6) waits for the other attempts where one fails, unless the status is fatal.
#
# Seen, answered after 0.3 s, connections that come later are closed: httpx alone has 200, with the transport of
# hedge-python it raises RemoteProtocolError. If the first is closed after 0.1 s and the backup is answered after
# 0.3 s: RemoteProtocolError too.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check hedge-python==0.3.0 httpx==0.28.1
cat >run.py <<'END'
import asyncio

import httpx
from hedge import HedgeConfig
from hedge.transport import HedgedHttpxTransport

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


async def get(transport, fates: list[tuple[float, bytes]]) -> str:
    """The outcome of a request, the connections of which have these fates: a delay and an answer."""
    left = list(fates)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        delay, answer = left.pop(0)
        try:
            await reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(delay)
            writer.write(answer)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, httpx.AsyncClient(transport=transport) as client:
        try:
            outcome = str((await client.get("http://127.0.0.1:%d/" % server.sockets[0].getsockname()[1])).status_code)
        except httpx.HTTPError as error:
            outcome = type(error).__name__
        await asyncio.sleep(0.5)
    return outcome


def hedged() -> HedgedHttpxTransport:
    return HedgedHttpxTransport(config=HedgeConfig())


late, closed = (0.3, ANSWER), (0.0, b"")
print("alone:", asyncio.run(get(None, [late])))
print("backup fails:", asyncio.run(get(hedged(), [late, closed])))
print("first fails:", asyncio.run(get(hedged(), [(0.1, b""), late])))
print("neither fails:", asyncio.run(get(hedged(), [late, (0.0, ANSWER)])))
END
env/bin/python run.py | tee told
cat >expected <<'END'
alone: 200
backup fails: RemoteProtocolError
first fails: RemoteProtocolError
neither fails: 200
END
diff expected told
