#!/bin/sh
# wireguard-protocol 0.1.4 (PyPI), WireGuard in Python for HTTP without a network device, brings a TCP of its own
# (stack/tcp/tcp_fsm.py). Two losses are its end. Its SYN stays in the list of what is in flight when the connection is
# established (event_open and _state_syn_sent), until data is acknowledged. The time-out sends only the first of that
# list again (_retransmit). So where the first segments of data are lost, as a request or a TLS hello in one segment,
# the SYN goes out again and again, the data never. And a FIN is taken as soon as it arrives, even behind a gap
# (_process_otherwise): the byte it counts for is taken off the gap, the state is CLOSE-WAIT, and what then fills the
# gap is dropped. Nothing is said. By RFC 9293, 3.10.7.4, a segment with a later number is kept for when its turn comes,
# its FIN too; by RFC 6298, 5.4, the earliest segment not acknowledged is sent again, and the SYN was acknowledged.
#
# Seen: request lost, peer without loss from then on: in 200 s 7 SYNs, no data; not lost, it is acknowledged. Three
# segments of 1000 bytes, the last with FIN, the second lost and sent again: 1000 of 3000 bytes read, CLOSE-WAIT;
# without FIN all 3000.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check wireguard-protocol==0.1.4
cat >run.py <<'END'
from wireguard.stack.tcp import tcp_fsm, tcp_timers
from wireguard.stack.tcp.tcp_opt import TCPOptionKind
from wireguard.stack.tcp.tcp_pkt import TCPFlags, TCPPacket

MSS, START = 1000, 5000


class Path:
    """A connection, its clock and a peer that acknowledges what is in order."""

    def __init__(self):
        self.now = 0
        tcp_fsm.time_ms = tcp_timers.time_ms = lambda: self.now
        self.connection = tcp_fsm.TCPConnection()
        self.connection.event_open(1, 1000, 2, 80)
        self.next = self.sent()[0].seq_num + 1
        answer = TCPPacket(flags=TCPFlags.FG_SYN | TCPFlags.FG_ACK, seq_num=START, ack_num=self.next, window=60000)
        answer.opt_set(TCPOptionKind.OPT_MSS, mss=MSS)
        self.connection._recv_packet(answer)
        assert [packet.flags for packet in self.sent()] == [TCPFlags.FG_ACK]

    def sent(self):
        packets = list(self.connection.dst_retransmit)
        self.connection.dst_retransmit.clear()
        return packets

    def receive(self, offset=0, data=None, flags=0):
        flags |= TCPFlags.FG_ACK
        number = START + 1 + offset
        packet = TCPPacket(flags=flags, seq_num=number, ack_num=self.next, window=60000, payload=data)
        self.connection._recv_packet(packet)


def request(lost):
    """Numbers of SYNs and of segments of data that go out in 200 s, and whether the request arrives."""
    path = Path()
    path.connection.event_send(b"r" * 100)
    syns, data, arrived = 0, 0, False
    for path.now in range(0, 200_000, 50):
        path.connection.tick()
        for packet in path.sent():
            syns += bool(packet.flags & TCPFlags.FG_SYN)
            if packet.payload:
                data += 1
                if data > lost:
                    arrived, path.next = True, packet.seq_num + len(packet.payload)
            path.receive()
    print(f"request lost {lost} times: {syns} SYNs and {data} segments of data, arrived: {arrived}")
    return syns, data, arrived


def response(last):
    """Bytes read of three segments, the second of which comes after the third, with these flags, and the state."""
    path = Path()
    path.receive(0, b"a" * MSS)
    path.receive(2 * MSS, b"c" * MSS, last)
    path.receive(MSS, b"b" * MSS)
    path.receive(2 * MSS, b"c" * MSS, last)
    read = len(path.connection.event_receive(10 * MSS))
    print(f"last segment with flags {last!r}: {read} of {3 * MSS} bytes, {path.connection.state.name}")
    return read, path.connection.state


state = tcp_fsm.TCPState
told = [request(0), request(1), response(TCPFlags(TCPFlags.FG_FIN)), response(TCPFlags(TCPFlags.FG_PSH))]
expected = [
    (0, 1, True),
    (7, 1, False),
    (1000, state.STATE_CLOSE_WAIT),
    (3000, state.STATE_ESTABLISHED),
]
raise SystemExit(told != expected)
END
env/bin/python run.py
