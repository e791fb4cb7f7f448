#!/bin/sh
# LatencyMiddleware of faulty 0.2.1, a TCP proxy on PyPI (`faulty start --delay`), "adds artificial latency"
# to one chunk of at most 64 KiB after the other: the next is read when the delay of the last is over. So a
# latency of 200 ms also limits the rate to 2.6 Mbit/s, whatever the windows of TCP, and so does jitter.
# Nothing is said. A path with latency carries many chunks at a time: by toxiproxy 2.12.0 (toxic "latency")
# the same download takes 0.02, 0.06 and 0.22 s.
#
# Seen, 2 MB with 0, 50 and 200 ms: 0.03, 1.66 and 6.28 s, a delay for each of 31 chunks.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet faulty==0.2.1
cat >"$dir/run.py" <<'END'
import asyncio
import sys
import time

from faulty.core import FaultyProxy
from faulty.middlewares import LatencyMiddleware

HOST, SIZE, CHUNK = "127.0.0.1", 2_000_000, 65536


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(bytes(SIZE))
    await writer.drain()
    writer.close()


def port(server: asyncio.Server) -> int:
    return server.sockets[0].getsockname()[1]


async def download(latency: int) -> float:
    """Seconds that a download takes, with a latency in ms."""
    server = await asyncio.start_server(serve, HOST, 0)
    proxy = FaultyProxy(HOST, 0, HOST, port(server))
    if latency:
        proxy.add_ingress_rule(LatencyMiddleware(min_ms=latency))
    async with server, proxy:
        began = time.monotonic()
        reader, writer = await asyncio.open_connection(HOST, port(proxy._server))
        writer.write(b"x")
        received = len(await reader.read())
        took = time.monotonic() - began
        writer.close()
    assert received == SIZE
    print(f"latency {latency} ms: {took:.2f} s")
    return took


plain, short, long = (asyncio.run(download(latency)) for latency in (0, 50, 200))
chunks = SIZE / CHUNK
sys.exit(not (plain < 1 and short > chunks * 0.05 and long > chunks * 0.2))
END
"$dir/venv/bin/python" "$dir/run.py" 2>/dev/null
