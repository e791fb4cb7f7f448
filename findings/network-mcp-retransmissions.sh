#!/bin/sh
# find_tcp_issues of network-mcp 0.1.2 (PyPI), which analyses captures for assistants, finds losses in connections that
# have none (tools/pcap.py). It takes data for retransmitted if any segment had its sequence number before, also an
# acknowledgement without data, which has the number of the data to come (RFC 9293, 3.4). So whatever is sent after an
# acknowledgement counts: every request of a persistent connection, and every first request. And it takes the third
# segment with the same acknowledgement for the third duplicate, whether it has data or not, and whichever way it goes;
# by RFC 5681, 2, a duplicate has none, and the first is none yet. So each answer of three segments counts too. The
# advice is to look for congestion and faulty links. Nothing else is said. tshark 4.0.17 finds neither.
#
# Seen, 100 requests on one connection without a loss, each answered by five segments: 100 retransmissions, 100
# duplicate acknowledgements, both "medium"; right is none. A client that sends one request and gets one segment: 1, 0.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
# Without the packages for its server.
env/bin/pip install --quiet --disable-pip-version-check scapy==2.6.1 pydantic==2.11.7 pyyaml==6.0.2 dnspython==2.7.0
env/bin/pip install --quiet --disable-pip-version-check --no-deps network-mcp==0.1.2
cat >run.py <<'END'
import sys

from network_mcp.tools.pcap import find_tcp_issues
from scapy.all import IP, TCP, Ether, wrpcap

CLIENT, SERVER = ("10.0.0.1", 40000), ("10.0.0.2", 80)


def capture(requests: int, segments: int) -> dict[str, int]:
    """What is told of a connection with so many requests of 200 bytes, each answered by so many segments."""
    packets = []
    time, sent, got = 1_700_000_000.0, 1, 1

    def send(source: tuple[str, int], flags: str, sequence: int, ack: int, length: int = 0) -> None:
        target = SERVER if source == CLIENT else CLIENT
        base, other = (1000, 5_000_000) if source == CLIENT else (5_000_000, 1000)
        numbers = {"seq": base + sequence, "ack": other + ack if "A" in flags else 0}
        tcp = TCP(sport=source[1], dport=target[1], flags=flags, window=512, **numbers) / bytes(length)
        packet = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src=source[0], dst=target[0]) / tcp
        packet.time = time
        packets.append(packet)

    send(CLIENT, "S", 0, 0)
    send(SERVER, "SA", 0, 1)
    send(CLIENT, "A", 1, 1)
    for _ in range(requests):
        time += 0.1
        send(CLIENT, "PA", sent, got, 200)
        sent += 200
        time += 0.05
        for _ in range(segments):
            send(SERVER, "A", got, sent, 1000)
            got += 1000
        time += 0.05
        send(CLIENT, "A", sent, got)
    wrpcap("clean.pcap", packets)
    return {issue.issue_type: (issue.count, issue.severity) for issue in find_tcp_issues("clean.pcap").issues}


many, one = capture(100, 5), capture(1, 1)
print(f"100 requests, 5 segments each: {many}\n1 request, 1 segment: {one}")
right = {"retransmission": (100, "medium"), "duplicate_ack": (100, "medium")}
sys.exit(many != right or one != {"retransmission": (1, "low")})
END
env/bin/python run.py
