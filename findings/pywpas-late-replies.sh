#!/bin/sh
# pywpas 0.9.4 (PyPI) controls wpa_supplicant over its control socket. That answers each command with a datagram of its
# own (doc/ctrl_iface.doxygen of wpa_supplicant). For half of the commands, among them SCAN and all SET_NETWORK, pywpas
# sends and does not read (interface.py: _send), and the next command that does read takes the oldest answer for its
# own. So after each scan() everything lags by one: the first results are none, since it has read the OK of SCAN, then
# come those of the call before, and ping() fails. connect() lags by four, and that hides that it cannot work: it sends
# name and passphrase without the quotes that the configuration wants around a string. wpa_supplicant answers FAIL to
# both, which nobody reads; a network without a name is selected, as if all was well. And of access points with one
# name, as any roaming network has them, it keeps the last in the list.
#
# Seen, with a socket that answers as wpa_supplicant does: results after the first scan: none; after the second: -41
# dBm, the first's, where -42 was sent; two access points with one name: one network; connect() with FAIL twice: no
# error.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check pywpas==0.9.4
mkdir sockets
cat >run.py <<'END'
import socket
import threading
import time

from pywpas import Control, Profile

HEADER = "bssid / frequency / signal level / flags / ssid"
supplicant = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
supplicant.bind("sockets/wlan0")
sent: list[str] = []


def answer(command: str) -> str:
    name, *words = command.split(" ")
    if name == "SCAN_RESULTS":
        level = -40 - sent.count("SCAN")
        cells = ("02:00:00:00:00:01\t2412", level - 20), ("02:00:00:00:00:02\t5180", level)
        return "\n".join([HEADER, *(f"{cell}\t{signal}\t[WPA2-PSK-CCMP][ESS]\thouse" for cell, signal in cells)])
    if name == "SET_NETWORK" and words[1] in ("ssid", "psk") and not words[2].startswith('"'):
        return "FAIL"
    return {"PING": "PONG", "ADD_NETWORK": "0"}.get(name, "OK")


def serve() -> None:
    while True:
        data, peer = supplicant.recvfrom(4096)
        sent.append(data.decode())
        supplicant.sendto(answer(sent[-1]).encode() + b"\n", peer)


threading.Thread(target=serve, daemon=True).start()
control = Control("sockets")
interface = control.interface("wlan0")
interface.ping()
for number in ("first", "second"):
    interface.remove_results()
    interface.scan()
    results = [f"{network.ssid} {network.signal_level}" for network in interface.scan_results()]
    print(f"{number} scan: {results}")
try:
    interface.ping()
    print("ping: ok")
except AssertionError as error:
    print(f"ping: {error}")
interface = control.interface("wlan0")
sent.clear()
interface.connect(Profile(ssid="house", key_mgmt="WPA-PSK", proto="RSN", psk="correct horse"))
deadline = time.monotonic() + 5
while len(sent) < 6 and time.monotonic() < deadline:
    time.sleep(0.01)
print(f"connect: {[answer(command) for command in sent]}, no error")
END
env/bin/python run.py | tee told
cat >expected <<'END'
first scan: []
second scan: ['house -41']
ping: Did not receive proper reply
connect: ['0', 'FAIL', 'OK', 'OK', 'FAIL', 'OK'], no error
END
diff expected told
