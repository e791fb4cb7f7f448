#!/bin/sh
# uiperf3 0.1.2 (PyPI), an iperf3 in pure Python for small boards too, prints two numbers that are not the path's when
# it receives UDP (-u -R). It divides the lost datagrams by the received ones plus twice the lost (print_line in
# uiperf3.py: add_lost_packets has already counted the lost into what it adds them to again): a path that loses half
# loses "33.3%", and one that loses nearly all 50 %, as half is the most there is. And it prints 0.000 ms of jitter in
# each line, without having measured any. Nothing is said; it takes iperf3's columns and its results. iperf3 3.12 has
# the jitter of RFC 1889, A.8 (a comment in iperf_udp.c), and divides the lost by all that were sent.
#
# Seen, a path that drops every other datagram and lets the others through in pairs: uiperf3 "0.000 ms" and "(33.3%)",
# with about 4500 of 9000; iperf3 about 2.4 ms and 50 %.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
version=3.12-1+deb12u2 # of Debian 12
apt-get download --quiet iperf3=$version libiperf0=$version libsctp1 >log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check uiperf3==0.1.2
cat >run.py <<'END'
import re
import select
import socket
import subprocess
import sys
import threading
import time

PORT = 5201


def carry(control, near):
    """Carries a client at 127.0.0.2 to the server at 127.0.0.1; of the datagrams back every other, in pairs."""
    client, _ = control.accept()
    server = socket.create_connection(("127.0.0.1", PORT))
    far = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    far.connect(("127.0.0.1", PORT))
    count, held, address = 0, [], None
    while True:
        for ready in select.select([client, server, near, far], [], [])[0]:
            if ready in (client, server):
                if not (data := ready.recv(65536)):
                    return
                (server if ready is client else client).sendall(data)
            elif ready is near:
                data, address = near.recvfrom(65536)
                far.send(data)
            else:
                data = far.recv(65536)
                count += 1
                if count == 1:  # the answer by which the server takes the stream
                    near.sendto(data, address)
                elif count % 2 == 0:
                    held.append(data)
                if len(held) == 2:
                    for data in held:
                        near.sendto(data, address)
                    held = []


def receive(client):
    """Jitter (ms), datagrams lost and sent, and the share of them (%) that a client prints at the end."""
    server = subprocess.Popen(
        ["usr/bin/iperf3", "--server", "--one-off", "--bind", "127.0.0.1"],
        stdout=subprocess.DEVNULL,
    )
    while f":{PORT:04X} " not in open("/proc/net/tcp").read():
        time.sleep(0.1)
    control = socket.create_server(("127.0.0.2", PORT))
    near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    near.bind(("127.0.0.2", PORT))
    threading.Thread(target=carry, args=(control, near), daemon=True).start()
    arguments = [*client, "-c", "127.0.0.2", "-u", "-R"]
    said = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=True, timeout=40).stdout
    print(said, end="")
    server.wait(timeout=20)
    pattern = r"([\d.]+) ms +(\d+)/(\d+) +\(([\d.]+)%\) +(sender|receiver)"
    numbers = {line[-1]: [float(word) for word in line[:-1]] for line in re.findall(pattern, said)}
    return numbers["sender" if "uiperf3" in client else "receiver"]


uiperf3 = receive(["env/bin/python", "-m", "uiperf3"])
iperf3 = receive(["usr/bin/iperf3", "-b", "10M", "-l", "1458", "-t", "4"])
for name, (jitter, lost, sent, share) in {"uiperf3": uiperf3, "iperf3": iperf3}.items():
    right = 100 * lost / sent
    print(f"{name}: jitter {jitter} ms; {lost:.0f} of {sent:.0f} lost, {share} %, right {right:.1f} %")
jitter, lost, sent, share = uiperf3
wrong = abs(share - 100 * lost / (sent + lost)) < 0.1 and lost > 0.4 * sent
right = abs(iperf3[3] - 100 * iperf3[1] / iperf3[2]) < 1 and iperf3[0] > 1
sys.exit(0 if jitter == 0 and wrong and right else 1)
END
unshare --net sh -c 'ip link set lo up; python3 run.py'
