#!/bin/sh
# ns.py 0.4.3 gives each TCP segment in flight a timer of its own, and each that expires doubles the
# one time-out of the connection. RFC 6298, 5, has one timer, for the earliest segment, started again
# when it expires (5.1 to 5.6): in an outage of 1 s on a path of 100 ms it expires once, or twice. Here
# it is once for each of 45 segments in flight, and the time-out 1.1 million years until an
# acknowledgement comes; what is sent or lost meanwhile waits for it.
#
# Seen: 45 expiries, longest time-out 3.52e+13 s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet ns.py==0.4.3 simpy==4.1.2
cat >"$dir/run.py" <<'END'
import sys

import simpy
from ns.flow.cc import TCPReno
from ns.flow.flow import Flow
from ns.packet.tcp_generator import TCPPacketGenerator
from ns.packet.tcp_sink import TCPSink
from ns.port.wire import Wire

OUTAGE, BACK, END = 3.0, 4.0, 4.5


class Reno(TCPReno):
    """Notes when timers expire."""

    def timer_expired(self, packet=None) -> None:
        expiries.append(env.now)
        super().timer_expired(packet)


expiries: list[float] = []
env = simpy.Environment()
flow = Flow(fid=0, src="server", dst="mobile", start_time=0.0, finish_time=END)
sender = TCPPacketGenerator(env, flow, cc=Reno(ssthresh=20 * 512))
sink = TCPSink(env, rec_waits=False)
there = Wire(env, lambda: 0.05, lambda packet_id: float(OUTAGE <= env.now < BACK))
back = Wire(env, lambda: 0.05)
sender.out, there.out, sink.out, back.out = there, sink, back, sender
most = 0.0
while env.peek() < END:
    env.step()
    most = max(most, sender.rto)
print(f"{len(expiries)} expiries, longest time-out {most:.3g} s")
sys.exit(len(expiries) != 45 or most != 2**45)
END
"$dir/venv/bin/python" "$dir/run.py"
