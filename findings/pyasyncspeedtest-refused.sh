#!/bin/sh
# pyasyncspeedtest 0.1.0 (PyPI) measures against the servers of speedtest.net's list, where a server's url ends in
# /speedtest/upload.php; the pictures to download lie beside that, as speedtest-cli 2.1.3 has it
# (os.path.dirname(server['url'])). It appends to the url: it asks for /speedtest/upload.php/random4000x4000.jpg and
# posts to /speedtest/upload.php/upload, and it never looks at the status of the reply. So where a server says 404, the
# download is the rate of ten error pages and the upload that of the link, with nothing accepted, although the README
# has "No silent failures". Its first example prints the ping without having measured it, 0.0 ms. And an upload of 4 MiB
# that takes more than 30 s counts as nothing, so that a link below 1.1 Mbit/s is told as 0.
#
# Seen, a server with pictures of 2 MB and upload.php: all ten pictures and all uploads refused; download below 0.1
# Mbit/s, upload about 800, no exception. With the folder as url: download about 1000.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check pyasyncspeedtest==0.1.0 aiohttp==3.12.15
cat >run.py <<'END'
import asyncio
from collections import Counter

from aiohttp import web
from pyasyncspeedtest import AsyncSpeedtest

FILES = ("/speedtest/random4000x4000.jpg", "/speedtest/latency.txt", "/speedtest/upload.php", "/config", "/servers")
replies = Counter()


async def reply(request):
    await request.read()
    known = request.path in FILES
    replies[request.method, request.path, 200 if known else 404] += 1
    if request.path.endswith("/config"):
        return web.Response(text='<client ip="192.0.2.1" lat="48" lon="11" isp="finding"/>')
    if request.path.endswith("/servers"):
        url = f"http://127.0.0.1:{request.url.port}/speedtest/upload.php"
        return web.Response(text=f'<server url="{url}" lat="48" lon="11" name="here" country="DE" id="1"/>')
    await asyncio.sleep(0.02)
    if not known:
        raise web.HTTPNotFound()
    return web.Response(body=bytes(2_000_000) if request.path.endswith(".jpg") else b"size=500")


async def main():
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{path:.*}", reply)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    AsyncSpeedtest.CONFIG_URL, AsyncSpeedtest.SERVER_LIST_URL = (f"http://127.0.0.1:{port}{x}" for x in FILES[3:])

    test = AsyncSpeedtest(upload_test_duration=1)
    server = await test.get_best_server()
    await test.measure_download_speed()
    await test.measure_upload_speed()
    await test.measure_latency()
    for what, count in replies.items():
        print(count, *what)
    down, up = test.download * 8 / 1e6, test.upload * 8 / 1e6
    print(f"download {down:.2f} Mbit/s, upload {up:.0f} Mbit/s, ping {test.ping:.0f} ms")
    assert replies["GET", "/speedtest/upload.php/random4000x4000.jpg", 404] == 10
    assert replies["POST", "/speedtest/upload.php/upload", 404] > 0
    assert replies["POST", "/speedtest/upload.php", 200] == 0
    assert down < 1 and up > 50

    server["url"] = server["url"].removesuffix("/upload.php")
    await test.measure_download_speed()
    print(f"with the folder as url: download {test.download * 8 / 1e6:.0f} Mbit/s")
    assert test.download * 8 / 1e6 > 50


asyncio.run(main())
END
env/bin/python run.py
