"""Captures: what tshark reads, pcap and pcapng among them, also recordings of the gateway."""

from __future__ import annotations

import shutil
import subprocess
import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from airtcp.timeline.model import (
    Contents,
    FlowTimeline,
    NotPlottableError,
    Points,
    Ranges,
    Stream,
    signed,
)

MAGIC = (
    b"\x0a\x0d\x0d\x0a",  # pcapng
    b"\xa1\xb2\xc3\xd4",
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",  # nanoseconds
    b"\x4d\x3c\xb2\xa1",
)
"""How a capture begins."""

GZIP = b"\x1f\x8b"
"""How a file begins that gzip compressed. tshark reads captures of this form."""

_FIELDS = (
    "frame.time_epoch",
    "frame.interface_name",
    "frame.protocols",
    "tcp.stream",
    "ip.src",
    "ipv6.src",
    "tcp.srcport",
    "ip.dst",
    "ipv6.dst",
    "tcp.dstport",
    "tcp.seq",
    "tcp.len",
    "tcp.ack",
    "tcp.window_size",
    "tcp.window_size_scalefactor",
    "tcp.flags",
    "tcp.options.sack_le",
    "tcp.options.sack_re",
)
_SIDES = {"fixed", "mobile"}
"""The interfaces of a gateway's recording, which has what it forwards at both."""

_SYN, _ACK = 0x02, 0x10
_UNKNOWN_SCALE = -1
"""tshark's word for a window whose factor stood in a SYN that the capture lacks."""

_CUT_SHORT = "cut short in the middle of a packet"
"""What tshark says of a file whose writer was killed; before, it prints what is whole."""


@dataclass(frozen=True)
class _Segment:
    time: float
    seq: int
    length: int
    ack: int
    window: int | None
    flags: int
    sack: tuple[tuple[int, int], ...]


class _Seen:
    """The parts of a stream that a capture has so far."""

    def __init__(self) -> None:
        # Disjoint and ascending: each range's first byte, and the position after its last.
        self._firsts: list[int] = []
        self._ends: list[int] = []

    def add(self, first: int, end: int) -> bool:
        """Adds a range; whether the whole of it was there before."""
        at = bisect_left(self._ends, first)
        until = at
        while until < len(self._firsts) and self._firsts[until] <= end:
            until += 1
        if until > at:
            if self._firsts[at] <= first and end <= self._ends[at]:
                return True
            first, end = min(first, self._firsts[at]), max(end, self._ends[until - 1])
        self._firsts[at:until], self._ends[at:until] = [first], [end]
        return False


@dataclass
class _Connection:
    """The segments of a connection, by the end that sent them."""

    by_source: dict[str, list[_Segment]] = field(default_factory=lambda: defaultdict(list))

    def has_data(self) -> bool:
        return any(segment.length for found in self.by_source.values() for segment in found)

    def timeline(self) -> FlowTimeline:
        sent_by = {end: sum(s.length for s in found) for end, found in self.by_source.items()}
        sender = max(sent_by, key=lambda end: sent_by[end])
        data = self.by_source[sender]
        ends = [end for end in self.by_source if end != sender]
        acks = [segment for end in ends for segment in self.by_source[end]]
        base = next((s.seq + 1 for s in data if s.flags & _SYN), data[0].seq)
        name = f"{sender} > {ends[0]}" if ends else sender

        stream = Stream(base)
        sent: list[tuple[float, int, int]] = []
        resent: list[tuple[float, int, int]] = []
        seen = _Seen()
        for segment in data:
            if segment.length:
                # A SYN has a sequence number of its own, before that of its data (RFC 7413).
                first = stream.position(segment.seq + bool(segment.flags & _SYN))
                end = first + segment.length
                (resent if seen.add(first, end) else sent).append((segment.time, first, end))
        stream, acked, window, sacked = Stream(base), [], [], []
        for segment in acks:
            if segment.flags & _ACK and not segment.flags & _SYN:
                position = stream.position(segment.ack)
                acked.append((segment.time, position))
                if segment.window is not None:
                    window.append((segment.time, position + segment.window))
                for left, right in segment.sack:
                    first = position + signed(left - segment.ack)
                    sacked.append((segment.time, first, first + (right - left) % 2**32))
        return FlowTimeline(
            name,
            sent=Ranges.of(sent),
            retransmitted=Ranges.of(resent),
            acked=Points.of(acked),
            window=Points.of(window),
            sacked=Ranges.of(sacked),
        )


@dataclass(frozen=True)
class Packet:
    """A TCP segment as one of a run's interfaces captured it.

    Attributes:
        time: Simulated time, s.
        sent: The interface sent it; else it received it.
        source: Address that it is from.
        seq: Relative sequence number.
        length: Bytes of payload.
        ack: Relative acknowledgement number.
        window: Window offered, bytes.
        flags: TCP's flags.
    """

    time: float
    sent: bool
    source: str
    seq: int
    length: int
    ack: int
    window: int
    flags: int

    def same_as(self, other: Packet) -> bool:
        """Whether both are the same segment, perhaps at two interfaces."""
        return (self.source, self.seq, self.length, self.ack, self.window, self.flags) == (
            other.source,
            other.seq,
            other.length,
            other.ack,
            other.window,
            other.flags,
        )


_PACKET_FIELDS = (
    "frame.time_epoch",
    "frame.packet_flags_direction",
    "ip.src",
    "tcp.seq",
    "tcp.len",
    "tcp.ack",
    "tcp.window_size",
    "tcp.flags",
)
_SENT = 2


def read_packets(path: Path) -> list[Packet]:
    """The TCP segments in a capture of a run with one connection.

    Raises:
        NotPlottableError: tshark is missing or refuses the file.
    """
    packets = []
    for line in _tshark(path, _PACKET_FIELDS):
        time, direction, source, *numbers = line.split("\t")
        seq, length, ack, window, flags = (int(number or "0", 0) for number in numbers)
        sent = int(direction, 0) == _SENT
        packets.append(Packet(float(time), sent, source, seq, length, ack, window, flags))
    return packets


def _tshark(path: Path, fields: Sequence[str], *options: str) -> list[str]:
    """A line of tab-separated fields for each TCP segment in a capture."""
    tshark = shutil.which("tshark")
    if tshark is None:
        raise NotPlottableError(
            f"{path}: reading captures needs tshark (Debian: apt install tshark)"
        )
    words = [word for name in fields for word in ("-e", name)]
    command = [tshark, "-n", "-r", str(path), *options]
    command += ["-Y", "tcp", "-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        if _CUT_SHORT not in reason:
            raise NotPlottableError(f"{path}: tshark cannot read it: {reason}")
        print(f"{path}: its last packet is cut short and left out", file=sys.stderr)
    return done.stdout.splitlines()


def read_capture(path: Path) -> Contents:
    """The TCP connections in a capture that carry data, those with most segments first.

    Of a gateway's recording, what is at its fixed side.

    Raises:
        NotPlottableError: tshark is missing or refuses the file, or there is no connection in it.
    """
    lines = _tshark(path, _FIELDS, "-o", "tcp.relative_sequence_numbers:FALSE")
    # Several interfaces, or several processors, may write in another order.
    rows = sorted((line.split("\t") for line in lines), key=lambda row: float(row[0]))
    if {row[1] for row in rows} == _SIDES:
        rows = [row for row in rows if row[1] == "fixed"]
    connections: dict[str, _Connection] = defaultdict(_Connection)
    began: float | None = None
    for time, _, protocols, stream, *fields in rows:
        *addressed, seq, length, ack, window, scale, flags, left, right = fields
        outer = protocols.split(":tcp")[0].split(":")
        # An error quotes a segment that was sent elsewhere.
        if "icmp" in outer or "icmpv6" in outer:
            continue
        began = float(time) if began is None else began
        source, target = _ends(outer, addressed)
        of = connections[stream].by_source
        of.setdefault(target, [])
        sack = tuple(zip(_numbers(left), _numbers(right), strict=False))
        of[source].append(
            _Segment(
                float(time) - began,
                _number(seq),
                _number(length),
                _number(ack),
                None if _number(scale) == _UNKNOWN_SCALE else _number(window),
                _number(flags),
                sack,
            )
        )
    timelines = [
        connection.timeline() for connection in connections.values() if connection.has_data()
    ]
    if not timelines:
        raise NotPlottableError(f"{path}: no TCP connection with data in it")
    # Ports are used again: the second connection of a name has its number beside it.
    named: dict[str, FlowTimeline] = {}
    for timeline in timelines:
        same = sum(other.split(" (")[0] == timeline.name for other in named)
        name = f"{timeline.name} ({same + 1})" if same else timeline.name
        named[name] = replace(timeline, name=name)
    return Contents(dict(sorted(named.items(), key=lambda item: -len(item[1].sent))))


def _ends(outer: Sequence[str], addressed: Sequence[str]) -> tuple[str, str]:
    """The connection's ends, of the innermost of the IP headers that stand before TCP's."""
    ip4, ip6, port, to4, to6, to_port = (values.split(",") for values in addressed)
    is_ip4 = [name == "ip" for name in outer if name in ("ip", "ipv6")]
    if is_ip4 and is_ip4[-1]:
        ends, which = (ip4, to4), sum(is_ip4) - 1
    else:
        ends, which = (ip6, to6), len(is_ip4) - sum(is_ip4) - 1
    return f"{ends[0][which]}:{port[0]}", f"{ends[1][which]}:{to_port[0]}"


def _number(values: str) -> int:
    """The first of a field's values: a message within TCP may quote another segment."""
    return int(values.split(",", maxsplit=1)[0] or "0", 0)


def _numbers(values: str) -> list[int]:
    return [int(value) for value in values.split(",") if value]
