"""A sequence diagram of a run: what each of three nodes sent, and what became of it.

A host, an edge node and a host are lifelines. Time runs down, but not to scale: each gap is bounded
at both ends, so that a back-off of seconds and a train of segments fit on one page.
"""

from __future__ import annotations

import itertools
import math
import statistics
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from airtcp.scenario import Scenario, check_seeds
from airtcp.study.fields import seconds
from airtcp.timeline.capture import Packet, read_packets
from airtcp.timeline.model import NotPlottableError
from airtcp.words import counted

_LIFELINES = (130.0, 400.0, 670.0)
_WIDTH = 800.0
_TOP = 50.0
_MOST_ARROWS = 80
"""More are no diagram that can be read."""
_SAME_TRAIN = 0.05
"""Segments of a kind that leave within this time of each other are one arrow, s."""
_LEAST_GAP, _MOST_GAP = 14.0, 46.0
_PER_SECOND = 700.0

_LETTER, _LINE = 6.0, 11.0
"""Width of a letter; distance between letters of different labels that do not touch."""
_ABOVE, _BELOW = -4.0, 12.0
"""From an arrow to the base line of its label."""

_LATEST = 2.0
"""A packet arrives within this time of the diagram's end, or is shown as lost, s."""

_MOST_PACKETS = 20_000
"""In the captures of a run: finding each again on the next leg takes its number squared."""

_FORWARDED = 1e-3
"""What the edge node sends on leaves it within this time, or as soon as the link is free, s."""

_COLOURS = {
    "data": "#1f77b4",
    "sent again": "#d62728",
    "probe": "#b8620b",
    "ACK": "#2ca02c",
    "window 0": "#9467bd",
}
"""The kinds of arrows. A probe is a segment without data below what its sender has sent."""


@dataclass(frozen=True)
class Arrow:
    """Packets of one kind that a node sent one after another.

    Attributes:
        begin: Which lifeline they leave.
        end: Which one they go to.
        sent: When the last of them left, s.
        arrived: When that arrived, s; `None`: lost.
        kind: What they are, a word of the legend.
        first: The first byte, or the acknowledgement number.
        last: The end of the last byte, or the last acknowledgement number.
        count: How many.
        made: The edge node made them: they did not come from a host.
        kept: They went no further than the edge node.
    """

    begin: int
    end: int
    sent: float
    arrived: float | None
    kind: str
    first: int
    last: int
    count: int = 1
    made: bool = False
    kept: bool = False

    def label(self) -> str:
        """What the arrow is called in the diagram."""
        if self.kind in ("data", "sent again"):
            many = f"{self.count} × " if self.count > 1 else ""
            what = f"{many}{self.kind}, {self.first}–{self.last}"
        else:
            what = {
                "probe": "probe",
                "ACK": f"ACK {self.last}",
                "window 0": f"ACK {self.last}, window 0",
            }[self.kind]
        return what


def sequence_svg(
    path: Path, overrides: Mapping[str, object], seed: int, span: tuple[float, float | None]
) -> bytes:
    """Runs a scenario of three nodes and draws its flow between these times.

    Raises:
        NotPlottableError: It has other nodes or flows, or there is nothing to draw, or too much.
        ScenarioError: It is wrong.
    """
    scenario = Scenario.load(path, overrides)
    text = tomllib.loads(path.read_text(encoding="utf-8"))
    names = _path(path, text, overrides, len(scenario.flows))
    start, until = span
    check_seeds([seed])
    end = scenario.duration if until is None else min(until, scenario.duration)
    if not 0 <= start < end:
        raise NotPlottableError(f"{path}: nothing from {start:g} s until {end:g} s")
    # What happens later does not show.
    if until is not None and "duration" not in overrides:
        duration = min(seconds(text["duration"]), until + _LATEST)
        scenario = Scenario.load(path, {**overrides, "duration": f"{duration:.9f} s"})
    with tempfile.TemporaryDirectory() as folder:
        scenario.run(seed, pcap=folder, snaplen=96)
        packets = [
            [
                packet
                for file in sorted(Path(folder).iterdir())
                if file.name.removesuffix(".pcapng").replace("@", ".").split(".")[0] == name
                for packet in read_packets(file)
            ]
            for name in names
        ]
    for of_node in packets:
        of_node.sort(key=lambda packet: packet.time)
    if (count := sum(map(len, packets))) > _MOST_PACKETS:
        raise NotPlottableError(
            f"{path}: {count} packets (expected at most {_MOST_PACKETS}): choose an early time "
            "with --until, or a slower link"
        )
    arrows = _trains(
        arrow
        for arrow in _arrows(packets)
        if arrow.sent >= start and (until is None or arrow.sent <= until)
    )
    if not arrows:
        raise NotPlottableError(f"{path}: no segment is sent in this time")
    if len(arrows) > _MOST_ARROWS:
        raise NotPlottableError(
            f"{path}: {len(arrows)} arrows (expected at most {_MOST_ARROWS}): choose a time with "
            "--from and --until"
        )
    known = not any("outage" in key for key in overrides)
    return _draw(names, arrows, _outages(text) if known else []).encode()


def _path(
    path: Path, text: Mapping[str, Any], overrides: Mapping[str, object], by_tcp: int
) -> tuple[str, str, str]:
    """The names of the sender, the node between and the receiver."""
    tables = text.get("node", [])
    nodes = [str(node["name"]) for node in tables]
    # Of groups alone.
    counts = [overrides.get(f"node.{node['name']}.count", node.get("count")) for node in tables]
    flows = text.get("flow", [])
    if len(nodes) == len(_LIFELINES) and not any(counts) and len(flows) == by_tcp == 1:
        ends = [flows[0]["from"], flows[0]["to"]]
        between = [node for node in nodes if node not in ends]
        if len(between) == 1:
            return ends[0], between[0], ends[1]
    count = sum(int(str(members or 1)) for members in counts)
    raise NotPlottableError(
        f"{path}: a sequence diagram needs one TCP flow, and no other, between two of three nodes "
        f"that are no group (it has {counted(count, 'node')} and {counted(by_tcp, 'TCP flow')})"
    )


def _outages(text: Mapping[str, Any]) -> list[tuple[float, float]]:
    """The listed outages of nodes and links."""
    return [
        (seconds(begin), seconds(end))
        for part in (*text.get("node", []), *text.get("link", []))
        for begin, end in part.get("outage", {}).get("listed", [])
    ]


def _arrows(packets: Sequence[Sequence[Packet]]) -> list[Arrow]:
    """An arrow for each packet on each of the two legs, in order of time."""
    sender = next(packet.source for packet in packets[0] if packet.sent)
    legs = {
        (begin, end): _leg(
            [packet for packet in packets[begin] if (packet.source == sender) == (begin < end)],
            [packet for packet in packets[end] if (packet.source == sender) == (begin < end)],
        )
        for begin, end in ((0, 1), (1, 2), (2, 1), (1, 0))
    }
    arrows: list[Arrow] = []
    for (begin, end), leg in legs.items():
        # The way on from the edge, and the way to it.
        on, to = legs[1, 2 if begin < end else 0], legs[0 if begin < end else 2, 1]
        highest = 0
        for sent in leg:
            packet, arrival = sent.packet, sent.arrival
            first, last = packet.seq, packet.seq + packet.length
            if packet.length:
                kind = "sent again" if last <= highest else "data"
            elif first < highest:
                kind = "probe"
            else:
                kind = "ACK" if packet.window else "window 0"
                first = last = packet.ack
            highest = max(highest, packet.seq + packet.length)
            came = [earlier.arrival for earlier in to if earlier.arrival]
            made = begin == 1 and not any(_forwarded(other, sent) for other in came)
            kept = end == 1 and arrival is not None
            kept = kept and not any(_forwarded(arrival, later) for later in on if arrival)
            time = arrival.time if arrival else None
            arrows.append(Arrow(begin, end, packet.time, time, kind, first, last, 1, made, kept))
    return sorted(arrows, key=lambda arrow: (arrow.sent, arrow.begin, arrow.first))


@dataclass(frozen=True)
class _Sent:
    """What a node sends on a leg.

    Attributes:
        packet: As it leaves.
        arrival: As it arrives; none if it is lost.
        busy_since: Start of the time for which the link has been busy when it leaves, s.
    """

    packet: Packet
    arrival: Packet | None
    busy_since: float


def _leg(of_begin: Sequence[Packet], of_end: Sequence[Packet]) -> list[_Sent]:
    """What one node sends to another, of all that both have captured in this direction."""
    leaving = [packet for packet in of_begin if packet.sent]
    arriving = [packet for packet in of_end if not packet.sent]
    # The link takes so long for a packet: the next one never leaves sooner.
    takes: dict[int, float] = {}
    for packet, behind in itertools.pairwise(leaving):
        gap = behind.time - packet.time
        takes[packet.length] = min(gap, takes.get(packet.length, gap))
    leg: list[_Sent] = []
    free = -math.inf
    for packet, arrival in zip(leaving, _arrivals(leaving, arriving), strict=True):
        waited = packet.time <= free + _FORWARDED
        leg.append(_Sent(packet, arrival, leg[-1].busy_since if waited else packet.time))
        free = packet.time + takes.get(packet.length, 0)
    return leg


def _arrivals(leaving: Sequence[Packet], arriving: Sequence[Packet]) -> list[Packet | None]:
    """For each packet that leaves, its arrival; `None`: it is lost.

    Of equal packets the last one to leave is the last one to arrive: if an original and its copy
    leave and one arrives after both, it is the copy.
    """
    left = list(arriving)
    found: list[Packet | None] = []
    for packet in reversed(leaving):
        index = next(
            (
                index
                for index in reversed(range(len(left)))
                if left[index].time >= packet.time and left[index].same_as(packet)
            ),
            None,
        )
        found.append(None if index is None else left.pop(index))
    return found[::-1]


def _forwarded(came: Packet, sent: _Sent) -> bool:
    """Whether the edge node sent on what came, at once or after others that waited for the link."""
    earliest = min(sent.busy_since, sent.packet.time - _FORWARDED)
    return came.same_as(sent.packet) and earliest <= came.time <= sent.packet.time


def _trains(arrows: Iterable[Arrow]) -> list[Arrow]:
    """Joins what a node sends one after another."""
    joined: list[Arrow] = []
    for arrow in arrows:
        legs = [
            i for i, old in enumerate(joined) if (old.begin, old.end) == (arrow.begin, arrow.end)
        ]
        old = joined[legs[-1]] if legs else None
        if (
            old
            and (old.kind, old.made, old.kept) == (arrow.kind, arrow.made, arrow.kept)
            and (old.arrived is None) == (arrow.arrived is None)
            and arrow.sent - old.sent < _SAME_TRAIN
            and (arrow.kind not in ("data", "sent again") or arrow.first == old.last)
        ):
            del joined[legs[-1]]
            joined.append(replace(arrow, first=old.first, count=old.count + 1))
        else:
            joined.append(arrow)
    return joined


def _draw(
    names: Sequence[str], arrows: Sequence[Arrow], outages: Sequence[tuple[float, float]]
) -> str:
    begins = min(arrow.sent for arrow in arrows)
    ends = max(arrow.arrived or arrow.sent for arrow in arrows)
    outages = [
        (max(begin, begins), min(end, ends))
        for begin, end in outages
        if begin < ends and end > begins
    ]
    heights = _heights(arrows, outages)
    bottom = max(heights.values()) + 25
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {bottom + 50:.0f}" '
        'font-family="DejaVu Sans, sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        "<defs>",
        *(
            f'<marker id="{_id(kind)}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
            f'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="{colour}"/></marker>'
            for kind, colour in _COLOURS.items()
        ),
        "</defs>",
    ]
    for begin, end in outages:
        height = heights[end] - heights[begin]
        parts += [
            f'<rect x="{_LIFELINES[1] + 8:g}" y="{heights[begin]:.1f}" '
            f'width="{_WIDTH - _LIFELINES[1] - 16:g}" height="{height:.1f}" fill="#eee"/>',
            _text(_WIDTH - 14, heights[begin] + 13, "link down", "end", "#666"),
        ]
    for x, name in zip(_LIFELINES, names, strict=True):
        parts.append(f'<path d="M{x:g} {_TOP - 18:g}V{bottom:.1f}" stroke="#555"/>')
        parts.append(_text(x, _TOP - 26, name, "middle", "#000", bold=True))
    last = ""
    taken: list[tuple[float, float]] = []
    for arrow in arrows:
        parts += _arrow(arrow, heights, taken)
        time = f"{arrow.sent:.2f} s"
        if arrow.begin == 0 and time != last:
            parts.append(_text(_LIFELINES[0] - 10, heights[arrow.sent] + 4, time, "end", "#666"))
            last = time
    for index, (kind, colour) in enumerate(_COLOURS.items()):
        x = 130 + 130 * index
        parts.append(
            f'<path d="M{x} {bottom + 14:.1f}h24" stroke="{colour}" stroke-width="1.5" '
            f'marker-end="url(#{_id(kind)})"/>'
        )
        parts.append(_text(x + 30, bottom + 18, kind, "start", "#333"))
    marks = f"dashed: {names[1]} made it    ●: it goes no further    ✕: lost"
    parts.append(_text(_LIFELINES[0], bottom + 38, marks, "start", "#333"))
    return "\n".join([*parts, "</svg>", ""])


def _heights(arrows: Iterable[Arrow], outages: Iterable[tuple[float, float]]) -> dict[float, float]:
    """Where each instant is."""
    instants = {arrow.sent for arrow in arrows}
    instants |= {arrow.arrived for arrow in arrows if arrow.arrived is not None}
    instants |= {time for outage in outages for time in outage}
    heights: dict[float, float] = {}
    y, before = _TOP, min(instants)
    for time in sorted(instants):
        if time > before:
            y += min(max((time - before) * _PER_SECOND, _LEAST_GAP), _MOST_GAP)
        heights[time] = y
        before = time
    return heights


def _arrow(
    arrow: Arrow, heights: Mapping[float, float], taken: list[tuple[float, float]]
) -> Iterator[str]:
    x1, x2 = _LIFELINES[arrow.begin], _LIFELINES[arrow.end]
    y1 = heights[arrow.sent]
    colour = _COLOURS[arrow.kind]
    if arrow.arrived is None:
        x2 = x1 + 0.55 * (x2 - x1)
        y2 = y1 + 10
    else:
        y2 = heights[arrow.arrived]
    style = ' stroke-dasharray="5 3"' if arrow.made else ""
    head = "" if arrow.arrived is None else f' marker-end="url(#{_id(arrow.kind)})"'
    yield (
        f'<path d="M{x1:g} {y1:.1f}L{x2:g} {y2:.1f}" stroke="{colour}" stroke-width="1.5" '
        f'fill="none"{style}{head}/>'
    )
    if arrow.arrived is None:
        yield _text(x2, y2 + 5, "✕", "middle", colour, bold=True)
    if arrow.kept:
        yield f'<circle cx="{x2:g}" cy="{y2:.1f}" r="4" fill="{colour}"/>'
    label = arrow.label()
    x, y = _free_place((x1, y1), (x2, y2), label, taken)
    along = math.degrees(math.atan2(y2 - y1, abs(x2 - x1))) * (1 if x2 > x1 else -1)
    yield _text(x, y, label, "middle", colour, along=along)


def _free_place(
    begin: tuple[float, float],
    end: tuple[float, float],
    label: str,
    taken: list[tuple[float, float]],
) -> tuple[float, float]:
    """Where the base line of a label at this arrow has its middle, so that it is clear of others.

    `taken` has the places of all letters so far, and then this label's too.
    """
    length = math.dist(begin, end)
    most = max((1 - len(label) * _LETTER / length) / 2, 0.0)
    parts = [0.5, *(0.5 + sign * share * most for share in (0.5, 1.0) for sign in (-1, 1))]
    best: tuple[float, list[tuple[float, float]]] = (-1.0, [])
    for side, part in itertools.product((_ABOVE, _BELOW), parts):
        along = [part + (i - (len(label) - 1) / 2) * _LETTER / length for i in range(len(label))]
        letters = [
            (begin[0] + (end[0] - begin[0]) * at, begin[1] + (end[1] - begin[1]) * at + side)
            for at in along
        ]
        room = min((math.dist(one, other) for one in letters for other in taken), default=_LINE)
        best = max(best, (min(room, _LINE), letters), key=lambda place: place[0])
        if room >= _LINE:
            break
    taken += best[1]
    return statistics.fmean(x for x, _ in best[1]), statistics.fmean(y for _, y in best[1])


def _text(
    x: float,
    y: float,
    text: str,
    anchor: str,
    colour: str,
    *,
    bold: bool = False,
    along: float = 0.0,
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    turned = f' transform="rotate({along:.1f} {x:g} {y:.1f})"' if along else ""
    return (
        f'<text x="{x:g}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" stroke="#fff" '
        f'stroke-width="2" paint-order="stroke"{weight}{turned}>{escape(text)}</text>'
    )


def _id(kind: str) -> str:
    return kind.replace(" ", "-")
