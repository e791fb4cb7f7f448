#!/bin/sh
# cicflowmeter 0.2.0 (PyPI), the port to Python of the tool that many data sets of flows were made with, hands the gap
# before a packet to a function that wants its time (update_active_idle in flow.py). So "active" and "idle" are
# differences of gaps: a wait of 10 s counts as active time, and so do 50 ms of a round trip as idle. Its initial
# window of the responder (init_bwd_win_byts) is that of the last packet, not of the SYN-ACK, because a check is
# missing that the other direction has. And cwr_flag_count is the number of URG flags of the first direction; CWR is
# never counted. Nothing is said. By the list of features of CICFlowMeter, the original, active is the time that a flow
# was active before it became idle; the window that a connection begins with is that of its SYN and SYN-ACK (RFC 9293,
# 3.1).
#
# Seen, a burst of 0.24 s, waits of 10 and 20 s, each followed by a request of 50 ms: active for up to 9.9 s, idle for
# at least 0.05 s; right is 0.24 and 9.96. Window of the SYN-ACK 65160, of later segments 509: 509. One CWR: 0.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
# The last scapy whose sessions it works with.
venv/bin/pip install --quiet cicflowmeter==0.2.0 scapy==2.5.0 numpy==1.26.4 scipy==1.15.3
cat >capture.py <<'END'
from scapy.all import IP, TCP, Ether, wrpcap

CLIENT, SERVER = ("10.0.0.1", 40000), ("10.0.0.2", 80)
packets = []


def send(time: float, source, flags: str, sequence: int, ack: int, window: int, length: int = 0) -> None:
    target = SERVER if source == CLIENT else CLIENT
    ports = {"sport": source[1], "dport": target[1]}
    tcp = TCP(**ports, flags=flags, seq=sequence, ack=ack, window=window)
    packet = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src=source[0], dst=target[0]) / tcp
    packets.append(packet / bytes(length))
    packets[-1].time = 1_700_000_000 + time


send(0.0, CLIENT, "S", 0, 0, 64240)
send(0.05, SERVER, "SA", 0, 1, 65160)
send(0.1, CLIENT, "A", 1, 1, 502)
send(0.1, CLIENT, "PA", 1, 1, 502, 100)
for index in range(5):
    send(0.15 + 0.01 * index, SERVER, "PA", 1 + 1000 * index, 101, 509, 1000)
    send(0.20 + 0.01 * index, CLIENT, "A", 101, 1001 + 1000 * index, 501)
send(10.2, CLIENT, "PAC", 101, 5001, 501, 100)
send(10.25, SERVER, "PA", 5001, 201, 509, 1000)
send(30.2, CLIENT, "PA", 201, 6001, 501, 100)
send(30.25, SERVER, "PA", 6001, 301, 509, 1000)
wrpcap("flow.pcap", sorted(packets, key=lambda packet: packet.time))
END
venv/bin/python capture.py
venv/bin/cicflowmeter -f flow.pcap -c flows.csv >log 2>&1
cat >check.py <<'END'
import csv
import sys

[flow] = csv.DictReader(open("flows.csv"))
active, idle = (float(flow[name]) / 1e6 for name in ("active_max", "idle_min"))
windows = flow["init_fwd_win_byts"], flow["init_bwd_win_byts"]
print(f"active for up to {active:.2f} s, idle for at least {idle:.2f} s, right 0.24 and 9.96")
print(f"initial windows {windows}, CWR {flow['cwr_flag_count']}; right 64240, 65160 and 1")
sys.exit((f"{active:.1f} {idle:.2f}", windows, flow["cwr_flag_count"]) != ("9.9 0.05", ("64240", "509"), "0"))
END
venv/bin/python check.py
