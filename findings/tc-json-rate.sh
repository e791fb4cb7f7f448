#!/bin/sh
# tc of iproute2 6.1.0 (Debian 12) gives rates in JSON (-j) in bytes per second, as bare numbers. As text it gives bits
# per second, and by its manual (tc(8), Rates) so is a bare number that it is given. So who reads a shaper back and sets
# it again gets an eighth of its rate: a 10 Mbit/s link is one of 1.25. Times agree: in JSON the latency of a token
# bucket is in microseconds, as is a bare number (by the source netem's delay is not: in JSON it is in seconds, a
# fraction of a microsecond when set again). And classes of HTB are printed as text with -j too, which no reader of JSON
# takes. The manual says of -j only that it is JSON.
#
# Seen: tbf of 10 Mbit/s, as JSON rate 1250000 and lat 50000; set again by these 1250Kbit and 50ms. tc -j class: "class
# htb 2:1 root prio 0 rate 10Mbit".
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet iproute2=6.1.0-3 libbpf1 libelf1 libmnl0 libtirpc3 libcap2 \
    >log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu:$dir/lib/x86_64-linux-gnu"
cat >run.sh <<'END'
set -eu
tc() { sbin/tc "$@"; }
field() { python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["options"][sys.argv[1]])' "$1"; }
tc qdisc add dev lo root handle 1: tbf rate 10mbit burst 10k latency 50ms
tc qdisc show dev lo
rate=$(tc -json qdisc show dev lo | field rate) latency=$(tc -json qdisc show dev lo | field lat)
echo "JSON: rate $rate, lat $latency"
tc qdisc replace dev lo root handle 1: tbf rate "$rate" burst 10k latency "$latency"
tc qdisc show dev lo
tc qdisc replace dev lo root handle 2: htb default 1
tc class add dev lo parent 2: classid 2:1 htb rate 10mbit
tc -json class show dev lo
END
sbin/tc -V
unshare --net sh run.sh | sed 's/ *$//' | tee told
cat >expected <<'END'
qdisc tbf 1: root refcnt 2 rate 10Mbit burst 10Kb lat 50ms
JSON: rate 1250000, lat 50000
qdisc tbf 1: root refcnt 2 rate 1250Kbit burst 10Kb lat 50ms
class htb 2:1 root prio 0 rate 10Mbit ceil 10Mbit burst 1600b cburst 1600b
END
diff expected told
