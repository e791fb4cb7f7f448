#!/bin/sh
# pynbntnmodem 0.6.16 (PyPI; of a satellite operator) has a UdpSocketBridge, a "raw socket-like interface on the local
# host" to a modem of narrowband IoT by satellite. What arrives it sends to the port it is bound to itself
# (udpsocket.py), not to the program that sent to it: it receives it again a moment later and sends it back up to the
# satellite, which costs airtime both ways, and no program ever hears anything. Its timers of power saving are cut to a
# lower step: seconds_to_tau never takes the unit of ten minutes (3GPP TS 24.008, 10.5.7.4a), so that from 31 minutes to
# an hour T3412 is 0 hours. seconds_to_edrx_cycle, for the "nearest" cycle, takes the one below, also such as narrowband
# does not know and takes for 20.48 s (TS 24.008, 10.5.5.32).
#
# Seen, one datagram down, after three up: the program hears none, four go up, the last the one that came down. 45
# minutes: 00100000, no hours (10 min × 4 or 5 are possible). 160 s: 1000, 143.36 s, which narrowband takes for 20.48
# (163.84 is the nearest).
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check pynbntnmodem==0.6.16 pyatcommand==0.5.3
cat >run.py <<'END'
import queue
import socket
import time

from pynbntnmodem import EdrxConfig, PsmConfig, UdpSocketBridge

downlink, uplink = queue.Queue(), []


def opened(server, port):
    time.sleep(0.2)
    return True


def receive(size, raw):
    return b"" if downlink.empty() else downlink.get()


with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
bridge = UdpSocketBridge("192.0.2.1", port, opened, uplink.append, receive, lambda: True)
program = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
program.connect(("127.0.0.1", port))
program.settimeout(7)
for number in range(3):
    program.send(b"up %d" % number)
downlink.put(b"down")
try:
    raise SystemExit(f"heard {program.recv(1024)}")
except TimeoutError:
    print("the program heard nothing, the satellite", uplink)
bridge.close()
assert sorted(uplink) == [b"down", b"up 0", b"up 1", b"up 2"]

for minutes, told in (31, 31 * 60), (32, 0), (45, 0), (59, 0), (60, 3600), (119, 3600):
    mask = PsmConfig.seconds_to_tau(minutes * 60)
    print(minutes, "min:", mask, PsmConfig.tau_seconds(mask), "s")
    assert PsmConfig.tau_seconds(mask) == told
print("160 s:", EdrxConfig.seconds_to_edrx_cycle(160))
assert EdrxConfig.seconds_to_edrx_cycle(160) == "1000"
END
env/bin/python run.py
