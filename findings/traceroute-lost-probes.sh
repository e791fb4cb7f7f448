#!/bin/sh
# Two parsers of traceroute on PyPI, jc 1.26.1 and trparse 0.3.0, leave out probes that were not answered. They look
# for an asterisk with blanks on both sides, of which the number before it has already taken the one and the end of the
# line lacks the other. A router that answered one probe of three has one probe with a round trip, and one that
# answered none has no probe, or one. So losses along a radio path come out as none, and how many probes were sent is
# lost too. Besides, trparse gives all probes of a line the address of the first router: where probes take two paths,
# as behind two gateways, it makes of both one router with a large jitter. Nothing is said. By traceroute's manual
# (2.1.2) each probe is a time, or an asterisk if no response came in time.
#
# Seen, 18 probes, 8 of them without an answer: jc 10 probes, 0 lost; trparse 11, 1 lost. Three probes, of which the
# second took another path: jc 10.1.0.1, 10.1.1.1 and 10.1.0.1; trparse 10.1.0.1 three times.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet jc==1.26.1 trparse==0.3.0
cat >"$dir/run.py" <<'END'
import sys

import jc
import trparse

ROUTE = """\
traceroute to server.example (192.0.2.9), 30 hops max, 60 byte packets
 1  gateway.example (10.0.0.1)  1.100 ms  1.200 ms  1.300 ms
 2  10.1.0.1 (10.1.0.1)  20.000 ms 10.1.1.1 (10.1.1.1)  45.000 ms 10.1.0.1 (10.1.0.1)  21.000 ms
 3  10.2.0.1 (10.2.0.1)  22.000 ms * *
 4  * * *
 5  * 10.3.0.1 (10.3.0.1)  30.000 ms *
 6  server.example (192.0.2.9)  31.000 ms * 33.000 ms
"""
told = {
    "jc": [[(probe["ip"], probe["rtt"]) for probe in hop["probes"]] for hop in jc.parse("traceroute", ROUTE)["hops"]],
    "trparse": [[(probe.ip, probe.rtt) for probe in hop.probes] for hop in trparse.loads(ROUTE).hops],
}
seen = {}
for name, hops in told.items():
    probes = [probe for hop in hops for probe in hop]
    lost = sum(round_trip is None for _, round_trip in probes)
    routers = [address for address, _ in hops[1]]
    print(f"{name}: {len(probes)} probes, {lost} lost; second hop {', '.join(routers)}")
    seen[name] = len(probes), lost, len(set(routers))
print(f"right: 18 probes, {ROUTE.count('*')} lost")
sys.exit(seen != {"jc": (10, 0, 2), "trparse": (11, 1, 1)})
END
"$dir/venv/bin/python" "$dir/run.py"
