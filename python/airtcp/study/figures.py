"""The figures of a study, as SVG and PNG; the same results give the same bytes."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator, NullLocator

from airtcp.run import Run
from airtcp.study.cells import Cell, Results
from airtcp.study.definition import Experiment, Figure, Key, Row, Study, Variant
from airtcp.study.measure import sample
from airtcp.study.stats import Floats

_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.prop_cycle": cycler(
        color=["#4e4e4e", "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9"]
    ),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.dpi": 110,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "airtcp",
}

_MARKERS = "os^Dvxp*h"
_STYLES = ("-", "--", "-.", ":")
"""Line styles of a curve figure: lines that coincide can all be seen."""

_WRAP = 3
"""Panels side by side before they wrap."""

_FEW_DECADES = 30
"""Ratio of maximum to minimum up to which a logarithmic axis has labels between decades."""

_MANY_DECADES = 300
"""Ratio of maximum to minimum above which a logarithmic axis has ticks at decades only."""

_TIMELINE_POINTS = 2000
"""Number of points with which a line of a timeline is drawn."""

_PAPER, _REFERENCE = "#d62728", "#333333"


@dataclass(frozen=True)
class Drawing:
    """A finished figure."""

    id: str
    experiment: str
    title: str
    svg: bytes
    png: bytes


def draw_all(
    study: Study, experiments: tuple[Experiment, ...], results: Results
) -> Iterator[Drawing]:
    """Draws the figures of the experiments."""
    for experiment in experiments:
        for figure in experiment.figures:
            yield draw(study, experiment, figure, results)


def draw(study: Study, experiment: Experiment, figure: Figure, results: Results) -> Drawing:
    """Draws one figure."""
    with mpl.rc_context(_STYLE):
        canvas = _Painter(study, experiment, figure, results).paint()
        # Lay out once for both files: this takes longer than drawing.
        canvas.draw_without_rendering()
        canvas.set_layout_engine("none")
        svg, png = io.BytesIO(), io.BytesIO()
        canvas.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        canvas.savefig(png, format="png", metadata={"Software": None})
    return Drawing(figure.id, experiment.id, figure.title, svg.getvalue(), png.getvalue())


def _short(key: Key, among: Iterable[Key]) -> str:
    """The pairs that distinguish a key from the others."""
    others = list(among)
    shared = set(others[0]).intersection(*others[1:])
    own = tuple(pair for pair in key if pair not in shared or len(others) == 1)
    return ", ".join(f"{name} {value}" for name, value in own)


def _label(variant: Variant, among: tuple[Variant, ...]) -> str:
    """What distinguishes a variant from the others of its figure."""
    return _short(variant.key, (other.key for other in among))


def _log_x(axes: Axes, points: list[float]) -> None:
    """Makes the x axis logarithmic, with ticks at the points, or at decades if these span many."""
    axes.set_xscale("log")
    if max(points) > _MANY_DECADES * min(points):
        axes.xaxis.set_major_formatter("{x:g}")
    else:
        axes.set_xticks(points, [f"{point:g}" for point in points])
        axes.xaxis.set_minor_locator(NullLocator())


def _log_y(axes: Axes, row: Row) -> None:
    """Makes the y axis logarithmic if the row says so, with plain numbers."""
    if row.log:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        low, high = axes.get_ylim()
        axes.yaxis.set_minor_formatter("{x:g}" if high / low < _FEW_DECADES else "")


def _value_label(row: Row) -> str:
    return f"{row.label} ({row.unit})" if row.unit else row.label


def _without(key: Key, names: Iterable[str]) -> Key:
    return tuple(pair for pair in key if pair[0] not in names)


@dataclass(frozen=True)
class _Painter:
    study: Study
    experiment: Experiment
    figure: Figure
    results: Results

    def paint(self) -> Canvas:
        figure = self.figure
        paint = {
            "curve": self._curve,
            "bars": self._bars,
            "lines": self._lines,
            "trace": self._trace,
            "timeline": self._timeline,
        }
        canvas = paint[figure.kind]()
        canvas.suptitle(f"{figure.id}: {figure.title}", fontsize=10)
        return canvas

    @staticmethod
    def _canvas(width: float, height: float) -> Canvas:
        canvas = Canvas(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(canvas)
        return canvas

    def _cell(self, variant: Variant, metric: str) -> Cell:
        return self.results.cell(self.experiment.id, variant.key, metric)

    def _timed(self, axes: Axes, row: Row) -> None:
        """Sets what all panels with a time axis have in common."""
        for start, end in self.figure.shade:
            axes.axvspan(start, end, color="#000000", alpha=0.08, linewidth=0)
        axes.set_xlim(*self.figure.window)
        axes.set_ylabel(_value_label(row))

    def _curve(self) -> Canvas:
        canvas = self._canvas(7.2, 3.8)
        axes = canvas.subplots()
        for variant, style in zip(self.figure.variants, itertools.cycle(_STYLES)):
            curve = self.results.curves[self.experiment.id, self.figure.id, variant.key]
            band = curve.band(self.study.confidence)
            name = _label(variant, self.figure.variants)
            (line,) = axes.plot(curve.times, band.mean, linestyle=style, linewidth=1.4, label=name)
            axes.fill_between(
                curve.times, band.low, band.high, color=line.get_color(), alpha=0.15, linewidth=0
            )
        self._timed(axes, self.figure.row)
        axes.set_xlabel("time (s)")
        axes.set_ylim(bottom=0)
        if len(self.figure.variants) > 1:
            axes.legend(fontsize=8)
        return canvas

    def _bars(self) -> Canvas:
        variants, row = self.figure.variants, self.figure.row
        canvas = self._canvas(7.2, max(3.4, 0.26 * len(variants) + 1.2))
        axes = canvas.subplots()
        cells = [self._cell(variant, row.metric) for variant in variants]
        places = np.arange(len(cells))
        means = np.array([cell.ours.mean for cell in cells])
        half = np.nan_to_num(np.array([cell.ours.half_width for cell in cells]))
        axes.barh(places, means, xerr=half, height=0.7, color="#9ecae1", capsize=2, label="ours")
        paper = [(i, cell.paper) for i, cell in enumerate(cells) if cell.paper]
        references = [(i, known) for i, cell in enumerate(cells) for known in cell.references]
        for style, color, numbers in (("D", _PAPER, paper), ("x", _REFERENCE, references)):
            for source in dict.fromkeys(known.source for _, known in numbers):
                points = [(float(k.value), i) for i, k in numbers if k.source == source]
                x, y = zip(*points, strict=True)
                axes.plot(x, y, style, color=color, label=source, markersize=5)
        axes.set_yticks(places, [_label(variant, variants) for variant in variants])
        axes.set_ylim(len(cells) - 0.4, -0.6)
        axes.set_xlabel(_value_label(row))
        axes.grid(axis="y", visible=False)
        handles, labels = axes.get_legend_handles_labels()
        if len(handles) > 1:
            canvas.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
        return canvas

    def _lines(self) -> Canvas:
        figure = self.figure
        columns = list(
            dict.fromkeys(
                tuple(pair for pair in variant.key if pair[0] in figure.columns)
                for variant in figure.variants
            )
        )
        rows = figure.rows
        # One quantity in many columns wraps into two rows of panels.
        wide = len(columns) if len(rows) > 1 or len(columns) <= _WRAP else -(-len(columns) // 2)
        high = len(rows) * -(-len(columns) // wide)
        canvas = self._canvas(max(7.2, 2.9 * wide + 0.6), max(3.8, 2.6 * high + 1.0))
        panels = canvas.subplots(
            high,
            wide,
            squeeze=False,
            sharex=True,
            sharey="row" if high == len(rows) else "none",
        )
        for index, (row, column) in enumerate(itertools.product(rows, columns)):
            axes = panels.flat[index]
            self._lines_panel(axes, row, column)
            if columns != [()] and (len(rows) == 1 or index < wide):
                axes.set_title(_short(column, columns), fontsize=9)
            if index % wide == 0:
                axes.set_ylabel(_value_label(row))
            if index >= (high - 1) * wide:
                axes.set_xlabel(figure.x_label)
        for axes in panels.flat[len(rows) * len(columns) :]:
            axes.set_visible(False)
        handles: dict[str, Any] = {}
        for axes in panels.flat:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        if len(handles) > 1:
            canvas.legend(
                list(handles.values()),
                list(handles),
                loc="outside lower center",
                ncols=min(4, len(handles)),
                fontsize=8,
            )
        return canvas

    def _lines_panel(self, axes: Axes, row: Row, column: Key) -> None:
        figure = self.figure
        apart = {figure.x, *figure.columns}
        lines = list(dict.fromkeys(_without(variant.key, apart) for variant in figure.variants))
        for index, line in enumerate(lines):
            points = sorted(
                (
                    (float(dict(variant.key)[figure.x]), self._cell(variant, row.metric))
                    for variant in figure.variants
                    if _without(variant.key, apart) == line and set(column) <= set(variant.key)
                ),
                key=lambda point: point[0],
            )
            if points:
                name = _short(line, lines) if len(lines) > 1 else ""
                self._line(axes, index, name, points)
        _log_y(axes, row)
        if figure.log_x:
            _log_x(
                axes, sorted({float(dict(variant.key)[figure.x]) for variant in figure.variants})
            )

    def _line(self, axes: Axes, index: int, name: str, points: list[tuple[float, Cell]]) -> None:
        """Draws our numbers, joined by a line unless others' numbers are drawn as one."""
        known: dict[str, list[tuple[float, float]]] = {}
        for at, cell in points:
            for number in (*((cell.paper,) if cell.paper else ()), *cell.references):
                known.setdefault(number.source, []).append((at, float(number.value)))
        colors = len(mpl.rcParams["axes.prop_cycle"])
        color = f"C{index % colors}"
        own = "-" if index < colors else "--"
        axes.errorbar(
            [at for at, _ in points],
            [cell.ours.mean for _, cell in points],
            yerr=np.nan_to_num([cell.ours.half_width for _, cell in points]),
            color=color,
            linestyle="none" if known else own,
            linewidth=1.3,
            marker=_MARKERS[index % len(_MARKERS)],
            markersize=4,
            capsize=2,
            label=name or "ours",
        )
        for style, (source, numbers) in zip(("-", "--", ":x"), known.items(), strict=False):
            label = f"{name}: {source}" if name else source
            axes.plot(
                *zip(*numbers, strict=True), style, color=color, linewidth=1, alpha=0.8, label=label
            )

    def _points(self, run: Run, name: str, scale: float) -> tuple[Floats, Floats]:
        """Times and values of a series within the window."""
        start, end = self.figure.window
        series = run.array(name)
        inside = (series.time >= start) & (series.time < end)
        return series.time[inside], series.value[inside] * scale

    def _trace(self) -> Canvas:
        variants, row = self.figure.variants, self.figure.row
        canvas = self._canvas(7.2, max(3.8, 3.2 * len(variants)))
        panels = canvas.subplots(len(variants), 1, squeeze=False, sharex=True)[:, 0]
        for axes, variant in zip(panels, variants, strict=True):
            run = self.results.traces[self.experiment.id, self.figure.id, variant.key]
            for name, marker in zip(row.series, _MARKERS, strict=False):
                axes.plot(
                    *self._points(run, name, row.scale),
                    marker,
                    markersize=2.5,
                    markeredgewidth=0.5,
                    label=name.replace("_", " "),
                )
            for index, time in enumerate(self._paper_times(variant)):
                label = "the paper's times" if index == 0 else None
                axes.axvline(time, color=_PAPER, linestyle=":", linewidth=1, label=label)
            axes.set_title(_label(variant, variants), fontsize=9)
            self._timed(axes, row)
            axes.legend(fontsize=8, loc="lower right")
        panels[-1].set_xlabel("time (s)")
        return canvas

    def _timeline(self) -> Canvas:
        variants, rows = self.figure.variants, self.figure.rows
        canvas = self._canvas(7.2, max(3.8, 2.6 * len(rows) + 0.8))
        panels = canvas.subplots(len(rows), 1, squeeze=False, sharex=True)[:, 0]
        for axes, row in zip(panels, rows, strict=True):
            for variant in variants:
                run = self.results.traces[self.experiment.id, self.figure.id, variant.key]
                times = np.linspace(*self.figure.window, _TIMELINE_POINTS)
                axes.plot(
                    times,
                    sample(run.array(row.series[0]), times, "value", row.scale),
                    drawstyle="steps-post",
                    linewidth=1.4,
                    label=_label(variant, variants),
                )
            self._timed(axes, row)
            _log_y(axes, row)
        panels[0].legend(fontsize=8)
        panels[-1].set_xlabel("time (s)")
        return canvas

    def _paper_times(self, variant: Variant) -> list[float]:
        """The times in the window that the paper gives for a variant."""
        known = (
            self._cell(variant, metric).paper
            for metric in self.experiment.metrics
            if self.study.metrics[metric].unit == "s"
        )
        start, end = self.figure.window
        times = (float(paper.value) for paper in known if paper is not None)
        return sorted(time for time in times if start <= time < end)
