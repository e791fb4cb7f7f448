#!/bin/sh
# traceanalyzer 1.0.4 (PyPI), which computes statistics of traces of ns-2, does not follow packets, so three of its four
# numbers are others than their names say (traceanalyzer.py). The "average EEdelay" (Eedelay) is the time between
# arrivals: the time of the last arrival divided by the number of arrivals, whatever the path. The packet delivery ratio
# (Pdr) divides receptions by transmissions of all hops: a packet that is lost on its second hop has been received once
# and sent twice; the node that it takes has no effect. And the throughput takes each packet so far to be as long as the
# last (Throughput). Nothing is said. Its documentation names the RFCs for these terms and has the formulas "Time/No.
# Sample" and "No.delivered Packet/No.Sent Packet". The delay of a packet is its arrival less its departure (RFC 7679,
# 3.4), and it is delivered if it arrives at its destination (RFC 7680, 2.4).
#
# Seen, in traces of ns-2 2.35 over two hops of 10 and 250 ms: delay 0.102 s with a packet every 100 ms and 0.201 with
# one every 200, right is 0.269 in both. Where the second hop takes half of what is sent: delay 0.205 s and delivery
# ratio 0.770, right is 1.142 and 0.540. With one packet of 100 bytes after a hundred of 1000: 7.9 kbit/s, right 78.0.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet ns2=2.35+dfsg-5 libotcl1 libtclcl1 libtcl8.6 libtk8.6 libpcap0.8 \
    >log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu:$dir/usr/lib" TCL_LIBRARY="$dir/usr/share/tcltk/tcl8.6"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check traceanalyzer==1.0.4
cat >two-hops.tcl <<'END'
# File, seconds between the packets, rate of the second hop, whether a short packet comes last.
lassign $argv file interval rate short
set sim [new Simulator]
set trace [open $file w]
$sim trace-all $trace
foreach node {0 1 2} { set n($node) [$sim node] }
$sim duplex-link $n(0) $n(1) 10Mb 10ms DropTail
$sim duplex-link $n(1) $n(2) $rate 250ms DropTail
$sim queue-limit $n(1) $n(2) 5

proc source {size interval start stop} {
    global sim n
    set udp [new Agent/UDP]
    set null [new Agent/Null]
    $sim attach-agent $n(0) $udp
    $sim attach-agent $n(2) $null
    $sim connect $udp $null
    set cbr [new Application/Traffic/CBR]
    $cbr set packetSize_ $size
    $cbr set interval_ $interval
    $cbr attach-agent $udp
    $sim at $start "$cbr start"
    $sim at $stop "$cbr stop"
}

set stop [expr {0.01 + 100 * $interval}]
source 1000 $interval 0.01 [expr {$stop - $interval / 2}]
if {$short} { source 100 $interval $stop [expr {$stop + $interval / 2}] }
$sim at 60 "$sim flush-trace; close $trace; exit"
$sim run
END
cat >run.py <<'END'
import sys

import traceanalyzer

for name in sys.argv[1:]:
    sent, arrived, octets = {}, {}, 0
    with open(name) as file:
        for line in file:
            event, time, start, end, _, size, *_, packet = line.split()
            if event == "+" and start == "0":
                sent[packet] = float(time)
            elif event == "r" and end == "2":
                arrived[packet] = float(time)
                octets += int(size)
    delay = sum(arrived[packet] - sent[packet] for packet in arrived) / len(arrived)
    right = delay, len(arrived) / len(sent), octets * 8 / 1000 / max(arrived.values())
    told = [kind(name, "2").value for kind in (traceanalyzer.Eedelay, traceanalyzer.Pdr, traceanalyzer.Throughput)]
    for what, number, true in zip(("delay in s", "delivery ratio", "kbit/s"), told, right):
        if f"{number:.3f}" != f"{true:.3f}":
            print(f"{name}: {what} {number:.3f}, right {true:.3f}")
END
usr/bin/ns two-hops.tcl every-100-ms 0.1 1Mb 0
usr/bin/ns two-hops.tcl every-200-ms 0.2 1Mb 0
usr/bin/ns two-hops.tcl slow 0.1 40kb 0
usr/bin/ns two-hops.tcl short-last 0.1 1Mb 1
MPLBACKEND=agg env/bin/python run.py every-100-ms every-200-ms slow short-last | tee told
cat >expected <<'END'
every-100-ms: delay in s 0.102, right 0.269
every-200-ms: delay in s 0.201, right 0.269
slow: delay in s 0.205, right 1.142
slow: delivery ratio 0.770, right 0.540
short-last: delay in s 0.102, right 0.269
short-last: kbit/s 7.867, right 77.968
END
diff expected told
