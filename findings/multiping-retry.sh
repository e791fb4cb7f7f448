#!/bin/sh
# multiping 1.1.2 (PyPI): the retries of multi_ping(addrs, timeout, retry) never help. Each send() gives its requests
# new identifiers, but receive() looks for those in _remaining_ids, which is filled by the first receive() alone
# (__init__.py); the reply to a second request comes back, matches nothing and is thrown away. The documentation says
# retries are there "because individual ICMP packets may get lost", and the README shows send() and receive() called
# again for the addresses that have not replied. On a link that loses packets a host is thus reported as silent as often
# with three retries as with none, after waiting for each of them.
#
# Seen, the host silent for a quarter of a second, then replying to all (2 s, 3 retries): 4 requests, 3 replies by the
# kernel's count, and told "no response". The same call a second later: response.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check multiping==1.1.2
cat >run.py <<'END'
import threading
from pathlib import Path

from multiping import multi_ping

ignore = Path("/proc/sys/net/ipv4/icmp_echo_ignore_all")


def counts() -> tuple[int, int]:
    lines = Path("/proc/net/snmp").read_text().splitlines()
    names, values = (line.split()[1:] for line in lines if line.startswith("Icmp:"))
    count = dict(zip(names, map(int, values)))
    return count["InEchos"], count["OutEchoReps"]


ignore.write_text("1")
threading.Timer(0.25, ignore.write_text, ["0"]).start()
told = multi_ping(["127.0.0.1"], timeout=2, retry=3)
print("silent at first:", *counts(), *told)
assert told == ({}, ["127.0.0.1"])
assert counts() == (4, 3)

results, silent = multi_ping(["127.0.0.1"], timeout=2, retry=3)
print("then:", *counts(), results, silent)
assert list(results) == ["127.0.0.1"] and not silent
assert counts() == (5, 4)
END
unshare --net sh -c 'ip link set lo up; env/bin/python run.py'
