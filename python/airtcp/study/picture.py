"""Charts as SVG, PNG and PDF, for papers and READMEs; the same chart gives the same bytes."""

from __future__ import annotations

import io
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator, NullLocator

from airtcp.study.chart import Chart, Panel, Series
from airtcp.words import plain

_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.dpi": 110,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    # TrueType, as publishers want it: they refuse Type 3.
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "airtcp",
}

_LINES = {"": "none", "solid": "-", "dash": "--", "dashdot": "-.", "dot": ":"}
_MARKERS = {
    "": "",
    "circle": "o",
    "square": "s",
    "triangle-up": "^",
    "diamond": "D",
    "triangle-down": "v",
    "x": "x",
    "star": "*",
    "pentagon": "p",
    "hexagon": "h",
}

_FEW_DECADES = 30
"""Ratio of maximum to minimum up to which a logarithmic axis has labels between decades."""

_MARK_STEP = 0.05
"""Distance between marks above each other, as a fraction of the axis."""


FORMATS: dict[str, dict[str, None]] = {
    ".svg": {"Date": None, "Creator": None},
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""The formats by the ends of files' names, and what is left out so that the bytes are the same."""


def draw(chart: Chart, *suffixes: str) -> dict[str, bytes]:
    """Draws a chart in some of `FORMATS`: the files by the ends of their names."""
    files = {}
    with mpl.rc_context(_STYLE):
        canvas = _paint(chart)
        # Lay out once for all files: this takes longer than drawing.
        canvas.draw_without_rendering()
        canvas.set_layout_engine("none")
        for suffix in suffixes:
            file = io.BytesIO()
            canvas.savefig(file, format=suffix.removeprefix("."), metadata=FORMATS[suffix])
            files[suffix] = file.getvalue()
    return files


def _paint(chart: Chart) -> Canvas:
    wide = chart.columns
    high = -(-len(chart.panels) // wide)
    places = max(len(panel.places) for panel in chart.panels)
    height = max(3.4, 0.26 * places + 1.2) if places else max(3.8, 2.6 * high + 0.9)
    canvas = Canvas(figsize=(max(7.2, 2.9 * wide + 0.6), height), layout="constrained")
    FigureCanvasAgg(canvas)
    grid = canvas.subplots(
        high, wide, squeeze=False, sharex=True, sharey="row" if chart.share_y else "none"
    )
    for index, (axes, panel) in enumerate(zip(grid.flat, chart.panels, strict=False)):
        _panel(axes, panel)
        first_row = index < wide
        if panel.title and (first_row or panel.title != chart.panels[index - wide].title):
            axes.set_title(plain(panel.title), fontsize=9)
        if index % wide == 0:
            axes.set_ylabel(plain(panel.y.label))
        if index + wide >= len(chart.panels):
            axes.set_xlabel(plain(panel.x.label))
            axes.tick_params(labelbottom=True)
    for axes in grid.flat[len(chart.panels) :]:
        axes.set_visible(False)
    _legend(canvas)
    title = f"{chart.id}: {chart.title}" if chart.id else chart.title
    canvas.suptitle(plain(title), fontsize=10)
    return canvas


def _legend(canvas: Canvas) -> None:
    entries: dict[str, Any] = {}
    for axes in canvas.axes:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(name, handle)
    if len(entries) > 1:
        canvas.legend(
            list(entries.values()),
            list(entries),
            loc="outside lower center",
            ncols=min(4, len(entries)),
            fontsize=8,
        )


def _panel(axes: Axes, panel: Panel) -> None:
    for start, end in panel.shade:
        axes.axvspan(start, end, color="#000000", alpha=0.08, linewidth=0)
    for series in panel.series:
        if len(series.x):
            _series(axes, series, bool(panel.places))
    for index, time in enumerate(panel.times):
        label = panel.times_name if index == 0 else None
        axes.axvline(time, color="#d62728", linestyle=":", linewidth=1, label=label)
    for mark in panel.marks:
        if panel.places:
            axes.text(
                *(0.01, mark.place),
                plain(mark.text),
                transform=axes.get_yaxis_transform(),
                color=mark.color,
                verticalalignment="center",
                fontsize=8,
            )
        else:
            axes.text(
                *(mark.x, 1 - _MARK_STEP * mark.place),
                plain(mark.text),
                transform=axes.get_xaxis_transform(),
                color=mark.color,
                horizontalalignment="center",
                verticalalignment="top",
                fontsize=8,
            )
    _axes(axes, panel)


def _series(axes: Axes, series: Series, places: bool) -> None:
    ends = None
    if series.low is not None and series.high is not None and not series.band:
        middle = series.x if places else series.y
        ends = np.nan_to_num([middle - series.low, series.high - middle])
    if series.bars:
        axes.barh(
            series.y,
            series.x,
            xerr=ends,
            height=0.7,
            color=series.color,
            capsize=2,
            label=plain(series.name),
        )
        return
    if series.band and series.low is not None and series.high is not None:
        axes.fill_between(
            series.x, series.low, series.high, color=series.color, alpha=0.15, linewidth=0
        )
    many = not series.line and ends is None and not places
    axes.errorbar(
        series.x,
        series.y,
        xerr=ends if places else None,
        yerr=None if places else ends,
        color=series.color,
        linestyle=_LINES[series.line],
        linewidth=1.3,
        drawstyle="steps-post" if series.step else "default",
        marker=_MARKERS[series.marker],
        markersize=2.5 if many else 4.5,
        markeredgewidth=0.5 if many else None,
        capsize=2,
        label=plain(series.name),
    )


def _axes(axes: Axes, panel: Panel) -> None:
    if panel.x.log:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        if panel.x.ticks:
            axes.set_xticks(panel.x.ticks, [f"{tick:g}" for tick in panel.x.ticks])
            axes.xaxis.set_minor_locator(NullLocator())
    if panel.y.log:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        low, high = axes.get_ylim()
        axes.yaxis.set_minor_formatter("{x:g}" if high / low < _FEW_DECADES else "")
    if panel.x.range:
        axes.set_xlim(*panel.x.range)
    if panel.y.zero:
        axes.set_ylim(bottom=0)
    if panel.places:
        axes.set_yticks(range(len(panel.places)), [plain(place) for place in panel.places])
        axes.set_ylim(len(panel.places) - 0.4, -0.6)
        axes.grid(axis="y", visible=False)
