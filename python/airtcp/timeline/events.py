"""Event logs of `airtcp run --events`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airtcp.timeline.model import (
    Contents,
    FlowTimeline,
    NotPlottableError,
    Points,
    Ranges,
    Stream,
)

_OF_RECEIVER = frozenset({"delivered", "transfer_completed"})
_OF_EITHER = frozenset({"outage_over"})
"""Events that count from the receiver. All others do from the sender: a receiver has a window and a
round trip, too, and acknowledgements of what it sends itself."""

TRANSFER = "/"
"""Stands between a flow's name and the number of a transfer with a connection of its own."""

_NO_SSTHRESH = 0xFFFF_FFFF
"""The threshold before the first loss."""


@dataclass
class _Flow:
    """The events of a flow so far."""

    stream: Stream | None = None
    ranges: dict[str, list[tuple[float, float, float]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    points: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))

    def take(self, event: str, time: float, row: dict[str, Any]) -> None:
        points = self.points
        match event:
            case "segment_sent":
                self.stream = self.stream or Stream(row["seq"])
                first = self.stream.position(row["seq"])
                kind = "retransmitted" if row["retransmission"] else "sent"
                self.ranges[kind].append((time, first, first + row["len"]))
            case "ack_received":
                if self.stream:
                    points["acked"].append((time, self.stream.position(row["ack"])))
            case "delivered":
                points["delivered"].append((time, row["total"]))
            case "window":
                points["cwnd"].append((time, row["cwnd"]))
                points["flight"].append((time, row["flight"]))
                if row["ssthresh"] < _NO_SSTHRESH:
                    points["ssthresh"].append((time, row["ssthresh"]))
            case "rtt":
                points["rtt"].append((time, row["sample"]))
                points["rto"].append((time, row["rto"]))
            case "rto_expired":
                points["timeouts"].append((time, 0))
                points["rto"].append((time, row["rto"]))
            case "transfer_completed":
                points["completed"].append((time, row["time"]))
            case "outage_over":
                points["up"].append((time - row["dead"], 0))

    def timeline(self, name: str) -> FlowTimeline:
        points, ranges = self.points, self.ranges
        return FlowTimeline(
            name,
            sent=Ranges.of(ranges["sent"]),
            retransmitted=Ranges.of(ranges["retransmitted"]),
            acked=Points.of(points["acked"]),
            delivered=Points.of(points["delivered"]),
            cwnd=Points.of(points["cwnd"]),
            ssthresh=Points.of(points["ssthresh"]),
            flight=Points.of(points["flight"]),
            rtt=Points.of(points["rtt"]),
            rto=Points.of(points["rto"]),
            completed=Points.of(points["completed"]),
            timeouts=tuple(time for time, _ in points["timeouts"]),
            up=tuple(time for time, _ in points["up"]),
        )


def read_events(path: Path) -> Contents:
    """The TCP flows in an event log; without any, nothing.

    Raises:
        NotPlottableError: A line is not an event.
    """
    with path.open(encoding="utf-8", errors="replace") as lines:
        flows = _flows(path, lines)
    return Contents({name: flow.timeline(name) for name, flow in flows.items()})


def _flows(path: Path, lines: Iterable[str]) -> dict[str, _Flow]:
    flows: dict[str, _Flow] = {}
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            words = row["source"].split(" ")
            if words[0] == "flow" and words[-1] in ("sender", "receiver"):
                name, event = " ".join(words[1:-1]), row["event"]
                if "transfer" in row:
                    name = f"{name}{TRANSFER}{row['transfer']}"
                flow = flows.setdefault(name, _Flow())
                if event in _OF_EITHER or (event in _OF_RECEIVER) == (words[-1] == "receiver"):
                    flow.take(event, row["t"], row)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise NotPlottableError(
                f"{path}: line {number}: {line.strip()[:60]!r} is not an event "
                "(expected a line of `airtcp run --events`)"
            ) from error
    return flows
