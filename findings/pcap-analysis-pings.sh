#!/bin/sh
# pcap-analysis 0.1.1 (PyPI) tells from a capture whether a device pinged, how long replies took and whether it got an
# address. It tells pings by their sequence number (_analyzers/icmp.py), which begins anew with each run of ping; what
# tells the runs apart is the identifier (RFC 792). So each run overwrites the one before, although the "number of
# ping requests with a corresponding response" is asked for. One ping without a reply, which is what one looks for on a
# radio link, makes get_mean_rtt raise KeyError; after the second run nothing tells that the first lost half of its
# pings. DHCP it knows as discover, offer, request and acknowledgement alone (_analyzers/dhcp.py). A phone that comes
# back to a network begins with the request (RFC 2131, 3.2 and 4.3.2, INIT-REBOOT), so it "made no request" and
# "received no address".
#
# Seen, 10 pings of which 5 are answered after 20 ms, then 10 answered after 100 ms: 10 pings, mean 100 ms (15 and 73
# are right); the first run alone: KeyError. Four messages of DHCP: address received; the last two alone: no request.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check pcap-analysis==0.1.1 dpkt==1.9.8
cat >run.py <<'END'
import dpkt
from pcap_analysis import PacketAnalyzer

PHONE, ROUTER = bytes([192, 168, 1, 50]), bytes([192, 168, 1, 1])
NOBODY, ALL = bytes(4), bytes([255] * 4)
MAC = bytes([2, 0, 0, 0, 0, 1])


def frame(source: bytes, to: bytes, protocol: int, data) -> bytes:
    packet = dpkt.ip.IP(src=source, dst=to, p=protocol, ttl=64, data=data)
    packet.len = len(packet)
    return bytes(dpkt.ethernet.Ethernet(src=MAC, dst=b"\xff" * 6, data=packet))


def ping(identifier: int, start: float, count: int, reply_after: float, answered) -> list[tuple[float, bytes]]:
    frames = []
    for number in range(count):
        for kind, time in (8, start + number), (0, start + number + reply_after):
            echo = dpkt.icmp.ICMP.Echo(id=identifier, seq=number + 1, data=b"finding")
            ends = (PHONE, ROUTER) if kind == 8 else (ROUTER, PHONE)
            if kind == 8 or answered(number):
                frames.append((time, frame(*ends, 1, dpkt.icmp.ICMP(type=kind, data=echo))))
    return frames


def dhcp(time: float, kind: int, from_client: bool) -> tuple[float, bytes]:
    address = 0 if from_client else int.from_bytes(PHONE, "big")
    message = dpkt.dhcp.DHCP(op=1 if from_client else 2, chaddr=MAC, yiaddr=address, opts=((53, bytes([kind])),))
    ports, ends = ((68, 67), (NOBODY, ALL)) if from_client else ((67, 68), (ROUTER, PHONE))
    datagram = dpkt.udp.UDP(sport=ports[0], dport=ports[1], data=bytes(message))
    datagram.ulen = len(datagram)
    return time, frame(*ends, 17, datagram)


def read(frames) -> PacketAnalyzer:
    with open("finding.pcap", "wb") as file:
        writer = dpkt.pcap.Writer(file)
        for time, data in frames:
            writer.writepkt(data, time)
    return PacketAnalyzer("finding.pcap")


def pings(name: str, frames) -> None:
    analyzer, ends = read(frames).icmp, ("192.168.1.50", "192.168.1.1")
    try:
        mean = f"{analyzer.get_mean_rtt(*ends):.0f} ms"
    except KeyError:
        mean = "KeyError"
    print(f"{name}: {analyzer.get_ping_count(*ends)} pings, mean {mean}")


def address(name: str, frames) -> None:
    analyzer, mac = read(frames).dhcp, "02:00:00:00:00:01"
    print(f"{name}: request {analyzer.did_client_make_request(mac)}, got {analyzer.did_client_receive_ip_address(mac)}")


lossy = ping(1, 1000, 10, 0.02, lambda number: number % 2)
pings("both runs", lossy + ping(2, 2000, 10, 0.1, lambda number: True))
pings("first run", lossy)
messages = [dhcp(1000, 1, True), dhcp(1001, 2, False), dhcp(1002, 3, True), dhcp(1003, 5, False)]
address("new", messages)
address("comes back", messages[2:])
END
env/bin/python run.py | tee told
cat >expected <<'END'
both runs: 10 pings, mean 100 ms
first run: 5 pings, mean KeyError
new: request True, got True
comes back: request False, got False
END
diff expected told
