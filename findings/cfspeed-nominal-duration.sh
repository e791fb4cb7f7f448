#!/bin/sh
# cfspeed 1.0.3 (PyPI), a speed test against Cloudflare's servers, divides the bytes it transferred by the duration that
# was asked for (run_download and run_upload, client.py: "elapsed = dur"), while the requests that are under way when
# that time has passed are finished and counted. With the defaults, four streams that ask for 10 MiB at a time for 10 s,
# any slower link is thus told as 33.55 Mbit/s, in either direction, and one of 34 to 67 as 67.11. With a timeout that
# ends the phase earlier it is too little, as that divides by the full duration too. And a refusal (429 Too Many
# Requests, RFC 6585, 4) is no failure: its text counts as downloaded.
#
# Seen, at a tenth of the defaults (1 MiB, 1 s): 8, 16 and 24 Mbit/s told as 33.55, 48 as 67.11; by the time that passed
# they are right. 8 Mbit/s in pieces of 16 KiB: about 8; the same with a timeout of a quarter of a second: about 2. All
# requests refused: 0.04 Mbit/s, no failed stream.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check cfspeed==1.0.3
cat >run.py <<'END'
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import cfspeed

STREAMS, PIECE = 4, 16384
link = {"rate": 8e6, "status": 200}


class Server(BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.send_response(200)
        self.end_headers()

    def do_GET(self):
        self.send_response(link["status"])
        self.end_headers()
        if link["status"] != 200:
            time.sleep(0.01)
            return self.wfile.write(b"too many requests")
        start, size = time.monotonic(), int(self.path.partition("bytes=")[2])
        for sent in range(PIECE, size + 1, PIECE):
            time.sleep(max(0, start + sent * 8 / (link["rate"] / STREAMS) - time.monotonic()))
            self.wfile.write(bytes(PIECE))

    def do_POST(self):
        start, size = time.monotonic(), int(self.headers["Content-Length"])
        for read in range(PIECE, size + 1, PIECE):
            time.sleep(max(0, start + read * 8 / (link["rate"] / STREAMS) - time.monotonic()))
            self.rfile.read(PIECE)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()


def test(what: str, run: str = "run_download", size: int = 1 << 20, timeout=None, **change) -> tuple[float, float, int]:
    link.update(change)
    client = cfspeed.Client(
        base_url=f"http://127.0.0.1:{server.server_port}",
        parallel_streams=STREAMS,
        measure_duration_secs=1.0,
        download_payload_bytes=size,
        upload_payload_bytes=size,
    )
    start = time.monotonic()
    told, _, count, failed = getattr(client, run)(timeout)
    right = count * 8 / (time.monotonic() - start) / 1e6
    print(f"{what}: told {told:.2f} Mbit/s, by time {right:.1f}, failed streams {failed}")
    return told, right, failed


for rate in 8, 16, 24:
    for run in "run_download", "run_upload":
        told, right, _ = test(f"link of {rate} Mbit/s, {run}", run, rate=rate * 1e6)
        assert round(told, 2) == 33.55 and 0.6 * rate < right < 1.1 * rate
told, right, _ = test("link of 48 Mbit/s", rate=48e6)
assert 55 < told < 68 and right < 50
told, *_ = test("8 Mbit/s in small pieces", size=PIECE, rate=8e6)
assert 6.5 < told < 9
told, *_ = test("the same for a quarter of a second", size=PIECE, timeout=0.25)
assert 1.3 < told < 2.8
told, _, failed = test("all refused", status=429)
assert 0 < told and failed == 0
END
env/bin/python run.py
