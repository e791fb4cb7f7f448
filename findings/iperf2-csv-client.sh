#!/bin/sh
# iperf 2.1.8 (Debian 12; iperf 2, not iperf3) leaves out of its CSV (-y C) what it prints as text. The client of a UDP
# test prints the report of the server, with the datagrams that were lost; in CSV there is only its own line, which
# ends with 0 lost of -1 datagrams, -0.000 %, whatever was lost. And without -i the time in the first column is 1
# January 1970, at the server too, of UDP and TCP alike. So measurements that a script collects at the clients have no
# loss, and no times to put them in order. Nothing is said; its manual does not describe the columns. What helps: CSV
# at the server, and -i. Lost are the datagrams that were sent and did not arrive (RFC 7680, 2.4).
#
# Seen, each tenth of 182 datagrams lost: by the client's text 18/182 (9.9 %), by the server's CSV 18,182,9.890, by the
# client's CSV 0,-1,-0.000; times without -i 19700101000000.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet iperf=2.1.8+dfsg-1 >log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
cat >run.py <<'END'
import re
import socket
import subprocess
import sys
import threading
import time

SERVER, RELAY = ("127.0.0.1", 5001), ("127.0.0.1", 5002)
IPERF = "usr/bin/iperf"
TEST = ["-u", "-b", "1M", "-t", "2"]


def relay() -> None:
    """Hands datagrams on to the server, but for each tenth, and answers back."""
    outer, inner = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    outer.bind(RELAY)
    inner.connect(SERVER)

    def back() -> None:
        while True:
            try:
                outer.sendto(inner.recv(65536), client[0])
            except ConnectionRefusedError:
                continue

    client, count = [SERVER], 0
    threading.Thread(target=back, daemon=True).start()
    while True:
        datagram, client[0] = outer.recvfrom(65536)
        count += 1
        last = datagram[0] >= 0x80  # a negative number: the end of the test
        if count % 10 or last:
            inner.send(datagram)


def run(*options: str) -> tuple[str, str]:
    """What the server and the client print."""
    server = subprocess.Popen([IPERF, "-s", "-u", *options], stdout=subprocess.PIPE, text=True)
    time.sleep(0.5)
    command = [IPERF, "-c", RELAY[0], "-p", str(RELAY[1]), *TEST, *options]
    client = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    time.sleep(0.5)
    server.kill()
    return server.communicate()[0], client.stdout


threading.Thread(target=relay, daemon=True).start()
_, text = run()
[told] = re.findall(r"Server Report:.*ms +(\d+/\d+ \(.*%\))", text, re.DOTALL)
print(f"client, text: {told}")
changed = not re.match(r"1[89]/18\d \((9.\d|10)%", told)
for interval in ([], ["-i", "2"]):
    for name, lines in zip(("server", "client"), run("-y", "C", *interval), strict=True):
        *_, last = lines.strip().splitlines()
        fields = last.split(",")
        day, lost = fields[0][:8], fields[-4:-1]
        print(f"{name}, CSV {' '.join(interval)}: time {fields[0]}, lost, total and per cent {lost}")
        changed |= (day == "19700101") == bool(interval)
        changed |= lost != ["0", "-1", "-0.000"] if name == "client" else not 9 < float(lost[2]) < 11
sys.exit(changed)
END
timeout 60 python3 run.py
