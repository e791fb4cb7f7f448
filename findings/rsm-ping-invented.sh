#!/bin/sh
# rsm-ping 1.0.3 (PyPI), which judges paths by the jitter of ping, makes up round trips where there are none. In its
# default mode, auto, a measurement without a single reply goes on with random numbers of 20 ms on average (cli.py,
# main), which it prints and writes to its CSV file as those of the host; it exits with 0. So an outage looks like a
# good path. Losses are not told at all: lines without a time are left out, and the differences go over the gap.
# Nothing is said, neither in the output nor in the file. What helps: --mode ping. A round trip that did not come back
# is undefined, informally infinite (RFC 2681, 2.4); ping of iputils 20221126 says 100 % packet loss.
#
# Seen, a host behind a link that is down, 20 pings: 20 samples, average about 20 ms.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet rsm_ping==1.0.3 numpy==2.2.6
# Its ping is told beside it.
apt-get download --quiet iputils-ping=3:20221126-1+deb12u1 >log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
cat >run.sh <<'END'
set -eu
measure() {
    echo "$1"
    ping -c 20 -i 0.01 -q 127.0.0.1 2>&1 | grep packet || true
    venv/bin/rsm-ping --host 127.0.0.1 --count 20 --interval 0.01 --plot 0 --outdir "$1" | grep -E "Average|Samples"
}
ip link set lo up
measure up
ip link set lo down
measure down
END
unshare --net env PATH="$dir/bin:$PATH" sh run.sh | tee told
[ "$(grep -c 'Samples: *20$' told)" = 2 ]
average=$(sed -n '/^down/,$s/Average Latency: *\([0-9]*\).*/\1/p' told)
[ "$average" -ge 18 ] && [ "$average" -le 21 ]
[ "$(grep -c '^[0-9]*,[12]' down/*.csv)" = 20 ]
! grep -qi synth down/*.csv
