#!/bin/sh
# dargslan-network-latency 1.0.0 (PyPI) runs the ping of Linux and reads its output (ping_host in __init__.py). Of the
# share of lost packets it takes the digits just before the per cent sign. But iputils prints that with up to six
# digits ("%g%%" in ping_common.c): of three packets with one lost it says 33.3333% packet loss, and the package tells a
# loss of 3333 %. One in six is 6667 %. Only shares that are whole numbers, as of its own commands with 5 or 10 packets,
# are right. And it gives ping 30 s, whatever the number of packets is, which go out one a second: from 31 on every host
# is unreachable, also one that answers all. Nothing is said.
#
# Seen, one packet lost: of 10 10 %, of 6 6667 %, of 3 3333 %; 31 packets, none lost: "No response".
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet iputils-ping=3:20221126-1+deb12u1 >log 2>&1 || { cat log >&2; exit 2; }
dpkg -x ./*.deb .
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check dargslan-network-latency==1.0.0
cat >run.py <<'END'
import os
import subprocess
import sys
import threading
import time

from dargslan_network_latency import ping_host

count, lost = int(sys.argv[1]), int(sys.argv[2])
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def lose():
    """Leaves the second echo request, which comes after 1 s, unanswered."""
    for wait, ignore in ((0.5, 1), (1, 0)):
        time.sleep(wait)
        with open("/proc/sys/net/ipv4/icmp_echo_ignore_all", "w") as file:
            file.write(str(ignore))


if lost:
    threading.Thread(target=lose).start()
told = ping_host("127.0.0.1", count)
told = told.get("error") or f"{told['packet_loss']} % lost"
print(f"{lost} of {count}: {told}")
END
export PATH="$PWD/bin:$PATH"
for case in "1 10" "1 6" "1 3" "0 31"; do
    unshare --net env/bin/python run.py "${case#* }" "${case% *}" >"told.${case#* }" &
done
wait
cat told.10 told.6 told.3 told.31 | tee told
cat >expected <<'END'
1 of 10: 10 % lost
1 of 6: 6667 % lost
1 of 3: 3333 % lost
0 of 31: No response
END
diff expected told
