#!/bin/sh
# Linux 6.18, a rule of iptables with `NFQUEUE --queue-bypass`: from the moment at which a program binds the queue until
# it says what it wants of packets (the copy mode), every packet is dropped. By iptables-extensions(8) such a rule
# behaves like ACCEPT while no program listens, so who adds it counts on a program that is starting, or that failed
# half-way, to harm nobody. In the kernel (net/netfilter/nfnetlink_queue.c, nfqnl_enqueue_packet) a bound queue has
# NFQNL_COPY_NONE and answers -EINVAL; nf_queue accepts by the bypass flag at -ESRCH alone, when nothing is bound. The
# interface has the two as steps: bind and set_mode of fnfqueue 1.1.2 (PyPI), nfq_create_queue and nfq_set_mode of
# libnetfilter_queue. Who sends both in one netlink message, with NFQA_CFG_F_FAIL_OPEN, has no such gap.
#
# Seen, of 100 datagrams over the loopback interface: with nobody bound 100 arrive, once bound 0, with a mode and a
# program that accepts each 100, unbound again 100.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check fnfqueue==1.1.2
cat >run.py <<'END'
import socket
import subprocess
import threading

import fnfqueue

subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
rule = "-A OUTPUT -p udp --dport 9999 -j NFQUEUE --queue-num 7 --queue-bypass"
subprocess.run(["iptables", *rule.split()], check=True)
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("127.0.0.1", 9999))
receiver.settimeout(1)
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def arrive():
    for _ in range(100):
        try:
            sender.sendto(b"x", ("127.0.0.1", 9999))
        except OSError:  # what the rule drops may be an error of the sender
            pass
    count = 0
    try:
        while count < 100:
            receiver.recv(16)
            count += 1
    except TimeoutError:
        pass
    return count


found = [arrive()]
connection = fnfqueue.Connection()
queue = connection.bind(7)
found.append(arrive())
queue.set_mode(64, fnfqueue.COPY_PACKET)


def accept():
    for number, packet in enumerate(connection, 1):
        packet.accept()
        if number == 100:
            return


thread = threading.Thread(target=accept, daemon=True)
thread.start()
found.append(arrive())
thread.join(5)
queue.unbind()
found.append(arrive())
print("nobody bound, bound, with a mode, unbound:", *found)
assert found == [100, 0, 100, 100]
END
if [ "$(id -u)" != 0 ]; then set -- --user --map-root-user; fi
unshare "$@" --net env/bin/python run.py
