"""The figures of a study as charts: which numbers are drawn, as what, with which words."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from airtcp.run import Run
from airtcp.stats import Floats
from airtcp.study.cells import Cell, Results
from airtcp.study.chart import Axis, Chart, Line, Mark, Marker, Panel, Series
from airtcp.study.claims import interval, number
from airtcp.study.definition import (
    Bars,
    Curve,
    Experiment,
    Figure,
    Key,
    Lines,
    MetricRow,
    Study,
    Timeline,
    Trace,
    Variant,
)
from airtcp.study.document import StudyError
from airtcp.study.measure import Measure, sample

COLORS = ("#4e4e4e", "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9")
_BAR, _PAPER, _REFERENCE, _MARK = "#7fb3d5", "#d62728", "#333333", "#b3261e"

_MARKERS: tuple[Marker, ...] = get_args(Marker)[1:]
_LINES: tuple[Line, ...] = get_args(Line)[1:]
"""Lines that coincide can all be seen."""
_OTHERS: tuple[tuple[Line, Marker], ...] = (("solid", ""), ("dash", ""), ("dot", "x"))
"""How the numbers of others are drawn: the first source, the second, …"""

_WRAP = 3
"""Panels side by side before they wrap."""

_MANY_DECADES = 300
"""Ratio of maximum to minimum above which a logarithmic axis has ticks at decades only."""

_VANISHING = 0.02
"""Bars shorter than this fraction of the longest number cannot be read: the axis is logarithmic."""

_POINTS = {"seq_sent": "segments", "seq_retransmitted": "retransmissions", "ack_received": "acks"}
"""What the points of a trace are, where the name of the series says what their values are."""

_TIMELINE_POINTS = 2000
"""Number of points with which a line of a timeline is drawn."""


def chart_all(study: Study, experiments: Iterable[Experiment], results: Results) -> Iterator[Chart]:
    """The figures of the experiments.

    Raises:
        StudyError: A figure has no data; the message says where it is declared.
    """
    for experiment in experiments:
        for figure in experiment.figures:
            yield _Painter(study, experiment, figure, results).chart()


def _without(key: Key, names: Iterable[str]) -> Key:
    return tuple(pair for pair in key if pair[0] not in names)


def _value_label(label: str, unit: str) -> str:
    return f"{label} ({unit})" if unit else label


def _floats(values: Iterable[float]) -> Floats:
    return np.array(list(values), float)


@dataclass(frozen=True)
class _Painter:
    study: Study
    experiment: Experiment
    figure: Figure
    results: Results

    def chart(self) -> Chart:
        figure = self.figure
        panels, columns, share_y = self._drawn(figure)
        drawn = any(len(series.x) for panel in panels for series in panel.series)
        if not drawn and not any(panel.marks for panel in panels):
            raise StudyError(f"{figure.at}: figure {figure.id}: no run has data for it")
        return Chart(
            figure.id,
            self.experiment.id,
            figure.title,
            tuple(panels),
            columns,
            share_y,
            figure.note,
        )

    def _drawn(self, figure: Figure) -> tuple[list[Panel], int, bool]:
        """The panels, how many are side by side, and whether those in a row share a y axis."""
        match figure:
            case Curve():
                return [self._curve(figure)], 1, False
            case Bars():
                return [self._bars(figure)], 1, False
            case Lines():
                return self._lines(figure)
            case Trace():
                return self._trace(figure), 1, False
            case Timeline():
                return self._timeline(figure), 1, False
            case _:
                raise TypeError(f"no figure: {figure!r}")

    def _cell(self, variant: Variant, metric: str) -> Cell:
        return self.results.cell(self.experiment.id, variant.key, metric)

    def _label(self, variant: Variant) -> str:
        """What distinguishes a variant from the others of the figure."""
        return self._distinct(variant.key, [other.key for other in self.figure.variants])

    def _distinct(self, key: Key, among: Sequence[Key]) -> str:
        return self.study.labels.distinct(key, among)

    def _absent(self, cell: Cell) -> str:
        """The word for runs without a value, and how many these are; empty if there are none."""
        metric = self.study.metrics[cell.metric]
        if not isinstance(metric, Measure) or not metric.absent:
            return ""
        values = self.results.values[cell.experiment, cell.key, cell.metric]
        count = int(np.sum(np.isnan(values) | (values == metric.missing)))
        if count in (0, len(values)):
            return metric.absent if count else ""
        return f"{metric.absent}: {count} of {len(values)}"

    def _is_absent(self, value: float, metric: str) -> bool:
        """Whether this number of others stands for the absence of one."""
        measure = self.study.metrics[metric]
        return isinstance(measure, Measure) and bool(measure.absent) and value == measure.missing

    def _curve(self, figure: Curve) -> Panel:
        series = []
        for variant, line, color in zip(
            figure.variants, itertools.cycle(_LINES), itertools.cycle(COLORS), strict=False
        ):
            curve = self.results.curves[self.experiment.id, figure.id, variant.key]
            band = curve.band(self.study.confidence)
            series.append(
                Series(
                    self._label(variant),
                    color,
                    curve.times,
                    band.mean,
                    band.low,
                    band.high,
                    band=True,
                    line=line,
                )
            )
        axis = Axis(_value_label(figure.label, figure.unit), zero=True)
        return Panel("", _time(figure), axis, tuple(series), shade=figure.shade)

    def _bars(self, figure: Bars) -> Panel:
        variants, metric = figure.variants, self.study.metrics[figure.metric]
        cells = [self._cell(variant, figure.metric) for variant in variants]
        places = list(enumerate(cells))
        names = [self._label(variant) for variant in variants]
        absent = {place: word for place, cell in places if (word := self._absent(cell))}
        ours = [
            (place, cell)
            for place, cell in places
            if not math.isnan(cell.ours.mean)
            and not (place in absent and self._is_absent(cell.ours.mean, figure.metric))
        ]
        others: dict[tuple[str, bool], list[tuple[int, float]]] = {}
        marks: list[Mark] = []
        for place, cell in places:
            for known in cell.known:
                value = float(known.value)
                if not self._is_absent(value, figure.metric):
                    whose = (known.source, known is cell.paper)
                    others.setdefault(whose, []).append((place, value))
                elif place in absent:
                    absent[place] += f"; {known.source} likewise"
                else:
                    word = metric.absent if isinstance(metric, Measure) else ""
                    marks.append(Mark(0, place, f"{known.source}: {word}", _PAPER, names[place]))
        marks += [
            Mark(0, place, word, _MARK, f"{names[place]}: {word}") for place, word in absent.items()
        ]
        log = _vanish(
            [cell.ours.mean for _, cell in ours],
            [value for numbers in others.values() for _, value in numbers],
        )
        if log:
            # No bar begins at 0 there, and a 0 has no place.
            zeros = [(place, cell) for place, cell in ours if cell.ours.mean == 0]
            marks += [
                Mark(0, place, "0", _BAR, f"{names[place]}: 0 {cell.unit}") for place, cell in zeros
            ]
            ours = [pair for pair in ours if pair not in zeros]
        series = [
            Series(
                "ours",
                _BAR,
                _floats(cell.ours.mean for _, cell in ours),
                _floats(place for place, _ in ours),
                _floats(cell.ours.low for _, cell in ours),
                _floats(cell.ours.high for _, cell in ours),
                bars=not log,
                marker="circle" if log else "",
                texts=tuple(
                    f"{names[place]}: {interval(cell.ours, cell.unit)}" for place, cell in ours
                ),
            )
        ]
        for (source, is_paper), numbers in others.items():
            shown = [(place, value) for place, value in numbers if value > 0 or not log]
            series.append(
                Series(
                    source,
                    _PAPER if is_paper else _REFERENCE,
                    _floats(value for _, value in shown),
                    _floats(place for place, _ in shown),
                    marker="diamond" if is_paper else "x",
                    texts=tuple(
                        f"{names[place]}, {source}: {number(value)} {cells[place].unit}"
                        for place, value in shown
                    ),
                )
            )
        return Panel(
            "",
            Axis(_value_label(figure.label, metric.unit), log=log, zero=not log),
            Axis(""),
            tuple(series),
            tuple(marks),
            tuple(names),
        )

    def _lines(self, figure: Lines) -> tuple[list[Panel], int, bool]:
        columns = list(
            dict.fromkeys(
                tuple(pair for pair in variant.key if pair[0] in figure.columns)
                for variant in figure.variants
            )
        )
        rows = figure.rows
        # One quantity in many columns wraps into two rows of panels.
        wide = len(columns) if len(rows) > 1 or len(columns) <= _WRAP else -(-len(columns) // 2)
        panels = [
            self._lines_panel(figure, row, column, columns) for row in rows for column in columns
        ]
        return panels, wide, len(panels) == len(rows) * wide

    def _lines_panel(self, figure: Lines, row: MetricRow, column: Key, columns: list[Key]) -> Panel:
        apart = {figure.x, *figure.columns, figure.best}
        lines = list(dict.fromkeys(_without(variant.key, apart) for variant in figure.variants))
        series: list[Series] = []
        marks: list[Mark] = []
        for index, line in enumerate(lines):
            points = sorted(
                (
                    (float(dict(variant.key)[figure.x]), self._cell(variant, row.metric))
                    for variant in figure.variants
                    if _without(variant.key, apart) == line and set(column) <= set(variant.key)
                ),
                key=lambda point: point[0],
            )
            if figure.best:
                points = _highest(points)
            if points:
                name = self._distinct(line, lines) if len(lines) > 1 else ""
                series += self._line(figure, index, name, points)
                marks += [
                    Mark(at, index, "×", COLORS[index % len(COLORS)], f"{name} {word}".strip())
                    for at, cell in points
                    if (word := self._absent(cell))
                ]
        values = sorted({float(dict(variant.key)[figure.x]) for variant in figure.variants})
        few = figure.log_x and values[-1] <= _MANY_DECADES * values[0]
        return Panel(
            self._distinct(column, columns) if columns != [()] else "",
            Axis(figure.x_label, log=figure.log_x, ticks=tuple(values) if few else ()),
            Axis(_value_label(row.label, self.study.metrics[row.metric].unit), log=row.log),
            tuple(series),
            tuple(marks),
        )

    def _line(
        self, figure: Lines, index: int, name: str, points: list[tuple[float, Cell]]
    ) -> Iterator[Series]:
        """Our numbers, joined by a line unless others' numbers are drawn as one."""
        known: dict[str, list[tuple[float, float]]] = {}
        for at, cell in points:
            for one in cell.known:
                known.setdefault(one.source, []).append((at, float(one.value)))
        color = COLORS[index % len(COLORS)]
        own: Line = "solid" if index < len(COLORS) else "dash"
        known_here = [(at, cell) for at, cell in points if not math.isnan(cell.ours.mean)]
        yield Series(
            name or "ours",
            color,
            _floats(at for at, _ in known_here),
            _floats(cell.ours.mean for _, cell in known_here),
            _floats(cell.ours.low for _, cell in known_here),
            _floats(cell.ours.high for _, cell in known_here),
            line="" if known else own,
            marker=_MARKERS[index % len(_MARKERS)],
            texts=tuple(
                f"{name or 'ours'}, {figure.x_label} {at:g}{self._chosen(figure, cell)}: "
                f"{interval(cell.ours, cell.unit)}"
                for at, cell in known_here
            ),
        )
        for (line, marker), (source, numbers) in zip(
            itertools.chain(_OTHERS, itertools.repeat(_OTHERS[-1])), known.items(), strict=False
        ):
            yield Series(
                f"{name}: {source}" if name else source,
                color,
                _floats(at for at, _ in numbers),
                _floats(value for _, value in numbers),
                line=line,
                marker=marker,
            )

    def _chosen(self, figure: Lines, cell: Cell) -> str:
        """Which variant was the best, in words."""
        pair = tuple(pair for pair in cell.key if pair[0] == figure.best)
        return f", {self.study.labels.text(pair)}" if pair else ""

    def _first_run(self, figure: Figure, variant: Variant) -> Run:
        """The variant's run with the first seed."""
        return self.results.traces[self.experiment.id, figure.id, variant.key]

    def _trace(self, figure: Trace) -> list[Panel]:
        panels = []
        for variant in figure.variants:
            run = self._first_run(figure, variant)
            series = tuple(
                Series(
                    _POINTS.get(name, name.replace("_", " ")),
                    color,
                    *_points(run, name, figure),
                    marker=marker,
                )
                for name, marker, color in zip(
                    figure.series, _MARKERS, itertools.cycle(COLORS), strict=False
                )
            )
            panels.append(
                Panel(
                    self._label(variant),
                    _time(figure),
                    Axis(_value_label(figure.label, figure.unit)),
                    series,
                    shade=figure.shade,
                    times=tuple(self._paper_times(figure, variant)),
                    times_name="the paper's times",
                )
            )
        return panels

    def _timeline(self, figure: Timeline) -> list[Panel]:
        times = np.linspace(*figure.window, _TIMELINE_POINTS)
        panels = []
        for row in figure.rows:
            series = []
            for variant, color in zip(figure.variants, itertools.cycle(COLORS), strict=False):
                run = self._first_run(figure, variant)
                values = sample(run.array(row.series), times, "value", row.scale)
                series.append(
                    Series(self._label(variant), color, times, values, line="solid", step=True)
                )
            axis = Axis(_value_label(row.label, row.unit), log=row.log)
            panels.append(Panel("", _time(figure), axis, tuple(series), shade=figure.shade))
        return panels

    def _paper_times(self, figure: Trace, variant: Variant) -> list[float]:
        """The times in the window that the paper gives for a variant."""
        known = (
            self._cell(variant, metric).paper
            for metric in self.experiment.metrics
            if self.study.metrics[metric].unit == "s"
        )
        start, end = figure.window
        times = (float(paper.value) for paper in known if paper is not None)
        return sorted(time for time in times if start <= time < end)


def _time(figure: Curve | Trace | Timeline) -> Axis:
    return Axis("time (s)", range=figure.window)


def _points(run: Run, name: str, figure: Trace) -> tuple[Floats, Floats]:
    """Times and values of a series within the window."""
    start, end = figure.window
    series = run.array(name)
    inside = (series.time >= start) & (series.time < end)
    return series.time[inside], series.value[inside] * figure.scale


def _highest(points: Iterable[tuple[float, Cell]]) -> list[tuple[float, Cell]]:
    """The cell with the highest mean at each x; the points are in the order of x."""
    return [
        max(group, key=lambda point: point[1].ours.mean)
        for _, group in itertools.groupby(points, key=lambda point: point[0])
    ]


def _vanish(ours: list[float], others: list[float]) -> bool:
    """Whether some of our bars would be too short to be read beside the longest number."""
    values = ours + others
    positive = [value for value in ours if value > 0]
    if not positive or min(values) < 0:
        return False
    return min(positive) < _VANISHING * max(values)
