"""A timeline as a chart: a panel for each view, above each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from airtcp.study.chart import Axis, Chart, Panel, Series
from airtcp.timeline.model import (
    NO_POINTS,
    Floats,
    FlowTimeline,
    LinkTimeline,
    NotPlottableError,
    Points,
    Ranges,
)

BLUE, ORANGE, GREEN, RED, PURPLE = "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd"
GREY, TEAL, BROWN = "#7f7f7f", "#008080", "#8c564b"
PINK, OLIVE, NAVY = "#e377c2", "#bcbd22", "#003f5c"
"""The panels share a legend: each series has a colour of its own."""
_BINS = 100
"""Intervals over which a rate is the mean."""

_TICK = 1e-3
"""The logs of links have whole milliseconds, s."""

_CURVES = (BLUE, ORANGE, GREEN, RED, PURPLE, BROWN, PINK, GREY, OLIVE, TEAL)
_MOST_STEPS = 2000
"""More are finer than a pixel."""

_LOG_FROM = 20
"""With such a ratio of the largest value to the smallest, a logarithmic axis shows more."""

CDFS = {"rtt": "round trip", "completion": "completion time", "delay": "delay"}
"""What cumulative distributions are of: labels by name."""

_MOST_SHADED = 200
"""More outages would be a shade on all of the picture."""

MEGA = 1e6

Span = tuple[float, float]


def flow_chart(flow: FlowTimeline, views: Sequence[str], span: Span, title: str) -> Chart:
    """Draws views of a flow.

    Args:
        flow: The flow.
        views: Names of `FLOW_VIEWS`; none: all for which the file has data.
        span: Times between which to draw, s.
        title: Title of the chart.

    Raises:
        NotPlottableError: The file has no data for a view that was asked for, or for none.
    """
    drawn = {view: make(flow, span) for view, make in FLOW_VIEWS.items()}
    return _chart(drawn, views, span, f"{flow.name}, {title}", flow.up, flow.outages)


def link_chart(link: LinkTimeline, views: Sequence[str], span: Span, title: str) -> Chart:
    """Draws views of a link; see `flow_chart`."""
    drawn = {view: make(link, span) for view, make in LINK_VIEWS.items()}
    return _chart(drawn, views, span, title, (), link.outages)


def _chart(
    drawn: dict[str, tuple[str, tuple[Series, ...]]],
    views: Sequence[str],
    span: Span,
    title: str,
    up: Sequence[float],
    outages: Sequence[tuple[float, float]],
) -> Chart:
    with_data = [view for view, (_, series) in drawn.items() if any(len(s.x) for s in series)]
    if lacking := [view for view in views if view not in with_data]:
        expected = ", ".join(with_data) or "none"
        raise NotPlottableError(f"the file has no data for {lacking[0]!r} (it has: {expected})")
    if not with_data:
        raise NotPlottableError(f"nothing happened between {span[0]:g} s and {span[1]:g} s")
    shown = [(max(start, span[0]), min(end, span[1])) for start, end in outages]
    shade = tuple((start, end) for start, end in shown if start < end)
    panels = tuple(
        Panel(
            title="",
            x=Axis("time (s)", range=span),
            y=Axis(drawn[view][0], log=view == "rtt", zero=view not in ("sequence", "rtt")),
            series=tuple(series for series in drawn[view][1] if len(series.x)),
            shade=shade if len(shade) <= _MOST_SHADED else (),
            times=tuple(time for time in up if span[0] <= time <= span[1]),
            times_name="outage over",
        )
        for view in with_data
        if view in views or not views
    )
    return Chart("", "", title, panels)


def cdf_chart(what: str, curves: Mapping[str, Sequence[Points]], span: Span, title: str) -> Chart:
    """Draws cumulative distributions, one for each name.

    Args:
        what: A name of `CDFS`.
        curves: By the names of curves, the values that each is of.
        span: Times of which values count, s.
        title: Title of the chart.

    Raises:
        NotPlottableError: There are no values, or too many curves to tell apart.
    """
    values = {
        name: np.sort(np.concatenate([_within(part, span).value for part in parts]))
        for name, parts in curves.items()
    }
    values = {name: ordered for name, ordered in values.items() if len(ordered)}
    if not values:
        raise NotPlottableError(f"there is no {CDFS[what]} from {span[0]:g} s to {span[1]:g} s")
    if len(values) > len(_CURVES):
        raise NotPlottableError(
            f"{len(values)} curves cannot be told apart: --flow draws one (at most {len(_CURVES)})"
        )
    least = min(float(ordered[0]) for ordered in values.values())
    most = max(float(ordered[-1]) for ordered in values.values())
    unit, factor = ("s", 1.0) if most >= 1 else ("ms", 1e3)
    series = tuple(
        Series(name, color, *_cumulated(ordered * factor), line="solid", step=True)
        for (name, ordered), color in zip(values.items(), _CURVES, strict=False)
    )
    y = Axis("share of values", range=(0.0, 1.0))
    x = Axis(f"{CDFS[what]} ({unit})", log=least > 0 and most / least >= _LOG_FROM)
    panel = Panel(title="", x=x, y=y, series=series)
    return Chart("", "", title, (panel,))


def _cumulated(ordered: Floats) -> tuple[Floats, Floats]:
    """The steps of a distribution: values, and the share of those up to each."""
    shares = np.arange(1, len(ordered) + 1) / len(ordered)
    if len(ordered) > _MOST_STEPS:
        # The ends stay.
        chosen = np.linspace(0, len(ordered) - 1, _MOST_STEPS).round().astype(int)
        ordered, shares = ordered[chosen], shares[chosen]
    return np.concatenate([ordered[:1], ordered]), np.concatenate([[0.0], shares])


def end_of(parts: Sequence[Points | Ranges]) -> float:
    """The last instant of these, s; 0 if there are none."""
    return max((float(part.time[-1]) for part in parts if len(part)), default=0.0)


def _sequence(flow: FlowTimeline, span: Span) -> tuple[str, tuple[Series, ...]]:
    unit, factor = _bytes_unit(float(flow.sent.end.max()) if len(flow.sent) else 0.0)
    series = (
        _step("window's end", ORANGE, flow.window, span, factor),
        _step("acknowledged", GREEN, flow.acked, span, factor),
        _bars("SACKed", PURPLE, flow.sacked, span, factor),
        _bars("sent", BLUE, flow.sent, span, factor),
        _bars("sent again", RED, flow.retransmitted, span, factor),
    )
    return f"sequence number ({unit})", series


def _window(flow: FlowTimeline, span: Span) -> tuple[str, tuple[Series, ...]]:
    unit, factor = _bytes_unit(float(flow.cwnd.value.max()) if len(flow.cwnd) else 0.0)
    series = (
        _step("in flight", GREY, flow.flight, span, factor),
        _step("ssthresh", BROWN, flow.ssthresh, span, factor, until_end=True),
        _step("cwnd", TEAL, flow.cwnd, span, factor, until_end=True),
        _crosses("time-out", flow, span, factor),
    )
    return f"window ({unit})", series


def _rtt(flow: FlowTimeline, span: Span) -> tuple[str, tuple[Series, ...]]:
    rtt = _within(flow.rtt, span)
    return "round trip (ms)", (
        Series("RTT", PINK, rtt.time, rtt.value * 1e3, marker="circle"),
        _step("RTO", OLIVE, flow.rto, span, 1e3, until_end=True),
    )


def _flow_rate(flow: FlowTimeline, span: Span) -> tuple[str, tuple[Series, ...]]:
    arrived = flow.delivered if len(flow.delivered) else flow.acked
    name = "delivered" if len(flow.delivered) else "acknowledged"
    # An ACK may be late, or of data from before the capture: neither takes anything back.
    reached = np.maximum.accumulate(np.maximum(arrived.value, 0.0))
    gained = Points(arrived.time, np.diff(reached, prepend=0.0))
    return _rates(np.linspace(*span, _BINS + 1), ((name, NAVY, gained),))


def _link_rate(link: LinkTimeline, span: Span) -> tuple[str, tuple[Series, ...]]:
    # An opportunity to send is at the end of its tick, all else in the one that begins at its time.
    # In the middle of a tick, no time is at an edge of an interval.
    half = _TICK / 2
    events = (
        ("arrived", ORANGE, link.arrived),
        ("departed", BLUE, link.departed),
        ("dropped", RED, link.dropped),
    )
    # The last tick of the log counts with the one before.
    last = end_of([link.capacity, *(points for _, _, points in events)])
    until = span[1] if last <= span[1] else math.inf
    kinds = [
        ("capacity", GREY, Points(link.capacity.time - half, link.capacity.value)),
        *(
            (name, color, Points(np.minimum(points.time + half, until), points.value))
            for name, color, points in events
        ),
    ]
    return _rates(_ticks(span), kinds)


def _ticks(span: Span) -> Floats:
    """Edges of at most `_BINS` intervals of whole ticks."""
    first, last = np.floor(span[0] / _TICK + 1e-6), np.ceil(span[1] / _TICK - 1e-6)
    width = max(1.0, np.ceil((last - first) / _BINS))
    return np.append(np.arange(first, last, width), last) * _TICK


def _delay(link: LinkTimeline, span: Span) -> tuple[str, tuple[Series, ...]]:
    delay = _within(link.delay, span)
    return "delay (ms)", (Series("delay", PINK, delay.time, delay.value * 1e3, marker="circle"),)


def _queue(link: LinkTimeline, span: Span) -> tuple[str, tuple[Series, ...]]:
    """Bytes that arrived and have neither departed nor been dropped."""
    time = np.concatenate([link.arrived.time, link.departed.time, link.dropped.time])
    change = np.concatenate([link.arrived.value, -link.departed.value, -link.dropped.value])
    order = np.argsort(time, kind="stable")
    held = Points(time[order], np.cumsum(change[order])) if len(time) else NO_POINTS
    unit, factor = _bytes_unit(float(held.value.max()) if len(held) else 0.0)
    return f"queue ({unit})", (_step("queue", TEAL, held, span, factor),)


FLOW_VIEWS: dict[str, Callable[[FlowTimeline, Span], tuple[str, tuple[Series, ...]]]] = {
    "sequence": _sequence,
    "window": _window,
    "rtt": _rtt,
    "rate": _flow_rate,
}
"""Views of a flow: its time-sequence graph, as tcptrace draws it, and others."""

LINK_VIEWS: dict[str, Callable[[LinkTimeline, Span], tuple[str, tuple[Series, ...]]]] = {
    "rate": _link_rate,
    "delay": _delay,
    "queue": _queue,
}
"""Views of a link."""


def _bytes_unit(most: float) -> tuple[str, float]:
    return ("MB", 1e-6) if most >= 2 * MEGA else ("kB", 1e-3)


def _within(points: Points, span: Span) -> Points:
    chosen = (points.time >= span[0]) & (points.time <= span[1])
    return Points(points.time[chosen], points.value[chosen])


def _step(
    name: str, color: str, points: Points, span: Span, factor: float, *, until_end: bool = False
) -> Series:
    """A value that is in force until the next, also before the span and after it."""
    before = points.time < span[0]
    chosen = _within(points, span)
    time, value = chosen.time, chosen.value
    if before.any():
        time = np.concatenate([[span[0]], time])
        value = np.concatenate([[points.value[before][-1]], value])
    if until_end and len(time):
        time, value = np.append(time, span[1]), np.append(value, value[-1])
    return Series(name, color, time, value * factor, line="solid", step=True)


def _bars(name: str, color: str, ranges: Ranges, span: Span, factor: float) -> Series:
    """A vertical bar for each range: one broken line."""
    chosen = (ranges.time >= span[0]) & (ranges.time <= span[1])
    time, first, end = (part[chosen] for part in (ranges.time, ranges.first, ranges.end))
    gap: Floats = np.full_like(time, np.nan)
    x = np.stack([time, time, gap], axis=1).ravel()
    y = np.stack([first, end, gap], axis=1).ravel()
    return Series(name, color, x, y * factor, line="solid")


def _crosses(name: str, flow: FlowTimeline, span: Span, factor: float) -> Series:
    """The expiries of the timer, at the window that they left."""
    time = np.array([at for at in flow.timeouts if span[0] <= at <= span[1]], np.float64)
    last = np.searchsorted(flow.cwnd.time, time, side="right") - 1
    value = flow.cwnd.value[np.maximum(last, 0)] if len(flow.cwnd) else np.zeros_like(time)
    return Series(name, RED, time, value * factor, marker="x")


def _rates(
    edges: Floats, kinds: Sequence[tuple[str, str, Points]]
) -> tuple[str, tuple[Series, ...]]:
    """Means between these times."""
    bits = [
        8 * np.histogram(points.time, edges, weights=points.value)[0] / np.diff(edges)
        if len(points)
        else np.array([])
        for _, _, points in kinds
    ]
    most = max((float(of.max()) for of in bits if len(of)), default=0.0)
    unit, factor = ("Mbit/s", 1e-6) if most >= MEGA else ("kbit/s", 1e-3)
    series = (
        Series(
            name,
            color,
            edges if len(of) else np.array([]),
            np.append(of, of[-1]) * factor if len(of) else np.array([]),
            line="solid",
            step=True,
        )
        for (name, color, _), of in zip(kinds, bits, strict=True)
    )
    return f"rate ({unit})", tuple(series)
