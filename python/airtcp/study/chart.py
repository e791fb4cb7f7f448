"""What a figure shows, whatever draws it: `picture` makes files of it, `interactive` a page's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from airtcp.stats import Floats

Line = Literal["", "solid", "dash", "dashdot", "dot"]
Marker = Literal[
    "",
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "triangle-down",
    "x",
    "star",
    "pentagon",
    "hexagon",
]


@dataclass(frozen=True)
class Series:
    """Points of one name, joined or not, or bars.

    Attributes:
        name: Entry of the legend; series of one name in several panels have one entry.
        color: As `#rrggbb`.
        x: Bars: their lengths, along the x axis.
        y: Bars: their places, from 0, at the top.
        low: Lower ends of the intervals, NaN where there is none; of y, or of x for places.
        high: Upper ends, likewise.
        band: The intervals are drawn as a band, not as error bars.
        line: How the points are joined; empty: they are not.
        step: A value is in force until the next; else points are joined straight.
        marker: Empty: none.
        bars: Drawn as bars.
        texts: What is shown about each point on request; empty: its numbers.
    """

    name: str
    color: str
    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None
    band: bool = False
    line: Line = ""
    step: bool = False
    marker: Marker = ""
    bars: bool = False
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mark:
    """A word where a number is missing.

    Attributes:
        x: On the x axis; the mark stands at the top. With places: at the left.
        place: On the y axis, in panels with places; else the marks above each other are counted.
        text: The word.
        about: What is shown about it on request.
    """

    x: float
    place: float
    text: str
    color: str
    about: str


@dataclass(frozen=True)
class Axis:
    """An axis.

    Attributes:
        range: Its ends; `None`: as the data need.
        zero: It begins at 0.
        ticks: The only ticks; none: as the range needs.
    """

    label: str
    log: bool = False
    range: tuple[float, float] | None = None
    zero: bool = False
    ticks: tuple[float, ...] = ()


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        places: Words along the y axis, from the top; none: it has numbers.
        shade: Spans of x that are shaded.
        times: Values of x marked by lines, called `times_name`.
    """

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    marks: tuple[Mark, ...] = ()
    places: tuple[str, ...] = ()
    shade: tuple[tuple[float, float], ...] = ()
    times: tuple[float, ...] = ()
    times_name: str = ""


@dataclass(frozen=True)
class Chart:
    """A figure.

    Attributes:
        panels: By rows.
        columns: Panels in a row.
        share_y: Panels of a row have one y axis.
        note: A sentence below it; may be empty.
    """

    id: str
    experiment: str
    title: str
    panels: tuple[Panel, ...]
    columns: int = 1
    share_y: bool = False
    note: str = ""

    @property
    def names(self) -> dict[str, Series]:
        """The legend: each name once, with the first series of it."""
        entries: dict[str, Series] = {}
        for panel in self.panels:
            for series in panel.series:
                entries.setdefault(series.name, series)
        return entries
