"""What a figure of a study shows: a class for each `kind` in `study.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Len

from airtcp.study.definition.variants import Variant
from airtcp.study.document import one_of
from airtcp.study.fields import Only, Period, Span


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of an experiment.

    Attributes:
        id: File name, and what the paper calls it.
        title: What is said above it.
        variants: The variants drawn, in this order.
        note: A sentence below it; may be empty.
        at: `file:line` where it is written.
    """

    id: str
    title: str
    variants: tuple[Variant, ...]
    note: str = ""
    at: str

    @property
    def recorded(self) -> set[str]:
        """The time series that it draws."""
        return set()

    @property
    def metrics(self) -> set[str]:
        """The metrics that it draws."""
        return set()


@dataclass(frozen=True, kw_only=True)
class Curve(Figure):
    """A series against time, as the mean over the seeds.

    Attributes:
        series: The series.
        metric: Name of its points in `cells.csv`.
        label: Label of the y axis, without the unit.
        unit: Unit of the y axis.
        scale: Factor from SI to `unit`.
        transform: `value`, or `mean-rate`: value / time, for a count of bytes so far.
        window: Start and end, s.
        step: Distance between points in `cells.csv`, s.
        shade: Spans of time that are shaded (outages, say), s.
    """

    series: Only
    metric: str
    label: str
    unit: str
    scale: float = 1.0
    transform: Annotated[str, one_of(("value", "mean-rate"))] = "value"
    window: Span
    step: Period = 1.0
    shade: tuple[Span, ...] = ()

    @property
    def recorded(self) -> set[str]:
        """The time series that it draws."""
        return {self.series}


@dataclass(frozen=True, kw_only=True)
class Bars(Figure):
    """A metric, one bar per variant.

    Attributes:
        metric: The metric.
        label: Label of the x axis, without the unit.
    """

    metric: str
    label: str

    @property
    def metrics(self) -> set[str]:
        """The metrics that it draws."""
        return {self.metric}


@dataclass(frozen=True)
class MetricRow:
    """A row of panels: a metric.

    Attributes:
        metric: The metric.
        label: Label of the y axis, without the unit.
        log: Whether the y axis is logarithmic.
    """

    metric: str
    label: str
    log: bool = False


@dataclass(frozen=True, kw_only=True)
class Lines(Figure):
    """Metrics against one key of the variants, one line per combination of the other keys.

    Attributes:
        x: The key along the x axis.
        x_label: Label of the x axis.
        log_x: Whether the x axis is logarithmic.
        columns: Keys; the figure has a column of panels for each combination of their values.
        best: A key; of the variants that differ in it alone, the one with the highest mean is
            drawn. Empty: all are.
        rows: The metrics drawn.
    """

    x: str
    x_label: str
    log_x: bool = False
    columns: tuple[str, ...] = ()
    best: str = ""
    rows: tuple[MetricRow, ...]

    @property
    def metrics(self) -> set[str]:
        """The metrics that it draws."""
        return {row.metric for row in self.rows}


@dataclass(frozen=True, kw_only=True)
class Trace(Figure):
    """Every point of some series of the run with the first seed, one panel per variant.

    Attributes:
        series: The series.
        label: Label of the y axis, without the unit.
        unit: Unit of the y axis.
        scale: Factor from SI to `unit`.
        window: Start and end, s.
        shade: Spans of time that are shaded, s.
    """

    series: Annotated[tuple[str, ...], Len(1)]
    label: str
    unit: str
    scale: float = 1.0
    window: Span
    shade: tuple[Span, ...] = ()

    @property
    def recorded(self) -> set[str]:
        """The time series that it draws."""
        return set(self.series)


@dataclass(frozen=True)
class SeriesRow:
    """A row of panels: a series.

    Attributes:
        series: The series.
        label: Label of the y axis, without the unit.
        unit: Unit of the y axis.
        scale: Factor from SI to `unit`.
        log: Whether the y axis is logarithmic.
    """

    series: Only
    label: str
    unit: str
    scale: float = 1.0
    log: bool = False


@dataclass(frozen=True, kw_only=True)
class Timeline(Figure):
    """Series of the run with the first seed as step functions, the variants in one panel.

    Attributes:
        rows: The series drawn.
        window: Start and end, s.
        shade: Spans of time that are shaded, s.
    """

    rows: tuple[SeriesRow, ...]
    window: Span
    shade: tuple[Span, ...] = ()

    @property
    def recorded(self) -> set[str]:
        """The time series that it draws."""
        return {row.series for row in self.rows}


KINDS: Mapping[str, type[Curve] | type[Bars] | type[Lines] | type[Trace] | type[Timeline]] = {
    "curve": Curve,
    "bars": Bars,
    "lines": Lines,
    "trace": Trace,
    "timeline": Timeline,
}
"""By the `kind` in `study.toml`."""
