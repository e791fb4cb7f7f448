#!/bin/sh
# D-ITG 2.8.1 (r1023 of Debian 12), a traffic generator that many papers measure with, logs only the time of day of
# each packet, in UTC, and its decoder ITGDec does not notice that a day ends. A measurement across midnight UTC, which
# is 9 in the morning in Tokyo, lasted 24 hours for it, and bitrate and packet rate are over these. Packets that were
# under way then have a delay of minus one day, and average and jitter have a share of it.
# Nothing is said; the manual (3.5.3) computes the total time from the first and the last packet, and lays absurd delays
# to the clocks. All packets are counted. iperf3 3.12 measures across midnight as at noon. What helps with D-ITG: to end
# before midnight UTC.
#
# Seen, 80 kbit/s for 3 s through 100 ms: at noon 2.9 s, 80.0 kbit/s, average delay 0.102 s; across midnight 86400.0 s,
# 0.0026 kbit/s, about -3000 s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet d-itg=2.8.1-r1023-6 libfaketime=0.9.10-2.1 >log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
cat >run.py <<'END'
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time

HERE, PATH = "127.0.0.1", "127.0.0.2"
PORT = 8999  # of ITGRecv
DELAY = 0.1  # s
RATE, SIZE, DURATION = 50, 200, 3000  # packets/s, bytes, ms
DAY = 86400  # s
(FAKETIME,) = pathlib.Path("usr/lib").glob("*/faketime/libfaketime.so.1")


def forward(path: socket.socket) -> None:
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    while datagram := path.recv(65536):
        threading.Timer(DELAY, out.sendto, (datagram, (HERE, PORT))).start()


def measure(name: str, second: int) -> dict[str, float]:
    """What ITGDec tells of a flow that begins at this second of the day."""
    ahead = second - int(time.time()) % DAY
    environment = os.environ | {"LD_PRELOAD": str(FAKETIME.absolute()), "FAKETIME": f"{ahead:+}s"}
    quiet = {"env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    receiver = subprocess.Popen(["usr/bin/ITGRecv", "-a", HERE], **quiet)
    time.sleep(0.5)
    flow = f"-Sda {HERE} -a {PATH} -T UDP -t {DURATION} -C {RATE} -c {SIZE} -x {name}"
    subprocess.run(["usr/bin/ITGSend", *flow.split()], check=True, **quiet)
    time.sleep(1)
    receiver.terminate()
    receiver.wait()
    text = subprocess.run(["usr/bin/ITGDec", name], capture_output=True, text=True, check=True).stdout
    told = {key: float(value) for key, value in re.findall(r"^(.*?) *= *(-?[\d.]+)", text, re.MULTILINE)}
    print("{}: {Total time:.1f} s, {Average bitrate:.4f} kbit/s, delay {Average delay:.3f} s".format(name, **told))
    return told


path = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
path.bind((PATH, PORT))
threading.Thread(target=forward, args=(path,), daemon=True).start()
noon, midnight = measure("noon", DAY // 2), measure("midnight", DAY - 2)
sys.exit(
    not (
        2 < noon["Total time"] < 4
        and abs(noon["Average bitrate"] - RATE * SIZE * 8 / 1000) < 8
        and 0.1 < noon["Average delay"] < 0.2
        and abs(midnight["Total time"] - DAY) < 1
        and midnight["Average bitrate"] < 0.01
        and midnight["Average delay"] < -1000
    )
)
END
python3 run.py
