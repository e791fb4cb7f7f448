"""Captures: what tshark reads, pcap and pcapng among them, also recordings of the gateway."""

from __future__ import annotations

import shutil
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
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

_FIELDS = (
    "frame.time_epoch",
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
    "tcp.flags",
    "tcp.options.sack_le",
    "tcp.options.sack_re",
)
_SYN, _ACK = 0x02, 0x10


@dataclass(frozen=True)
class _Segment:
    time: float
    seq: int
    length: int
    ack: int
    window: int
    flags: int
    sack: tuple[tuple[int, int], ...]


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
        highest = 0
        for segment in data:
            if segment.length:
                first = stream.position(segment.seq)
                end = first + segment.length
                (sent if end > highest else resent).append((segment.time, first, end))
                highest = max(highest, end)
        stream, acked, window, sacked = Stream(base), [], [], []
        for segment in acks:
            if segment.flags & _ACK and not segment.flags & _SYN:
                position = stream.position(segment.ack)
                acked.append((segment.time, position))
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
        reason = done.stderr.strip().splitlines() or ["no reason given"]
        raise NotPlottableError(f"{path}: tshark cannot read it: {reason[-1]}")
    return done.stdout.splitlines()


def read_capture(path: Path) -> Contents:
    """The TCP connections in a capture that carry data, those with most segments first.

    Raises:
        NotPlottableError: tshark is missing or refuses the file, or there is no connection in it.
    """
    lines = _tshark(path, _FIELDS, "-o", "tcp.relative_sequence_numbers:FALSE")
    connections: dict[str, _Connection] = defaultdict(_Connection)
    began: float | None = None
    for line in lines:
        time, stream, ip4, ip6, port, to4, to6, to_port, *numbers, left, right = line.split("\t")
        began = float(time) if began is None else began
        seq, length, ack, window, flags = (int(number or "0", 0) for number in numbers)
        lefts, rights = (
            [int(edge) for edge in edges.split(",") if edge] for edges in (left, right)
        )
        of = connections[stream].by_source
        source = f"{ip4 or ip6}:{port}"
        of.setdefault(f"{to4 or to6}:{to_port}", [])
        sack = tuple(zip(lefts, rights, strict=False))
        of[source].append(_Segment(float(time) - began, seq, length, ack, window, flags, sack))
    timelines = [
        connection.timeline() for connection in connections.values() if connection.has_data()
    ]
    if not timelines:
        raise NotPlottableError(f"{path}: no TCP connection with data in it")
    timelines.sort(key=lambda timeline: -len(timeline.sent))
    return Contents({timeline.name: timeline for timeline in timelines})
