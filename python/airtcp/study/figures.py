"""The figures of a study, as SVG and PNG; the same results give the same bytes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from airtcp.study.cells import Results
from airtcp.study.definition import Experiment, Figure, Key, Study, Variant, key_text

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

_MARKERS = "os^Dvxp"


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
        # Lay out once for both files: it takes longer than drawing.
        canvas.draw_without_rendering()
        canvas.set_layout_engine("none")
        svg, png = io.BytesIO(), io.BytesIO()
        canvas.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        canvas.savefig(png, format="png", metadata={"Software": None})
    return Drawing(figure.id, experiment.id, figure.title, svg.getvalue(), png.getvalue())


def _label(variant: Key, among: tuple[Variant, ...]) -> str:
    """The keys that tell a variant from the others of its figure."""
    shared = set(among[0].key).intersection(*(other.key for other in among[1:]))
    own = tuple(pair for pair in variant if pair not in shared or len(among) == 1)
    return ", ".join(f"{name} {value}" for name, value in own)


@dataclass(frozen=True)
class _Painter:
    study: Study
    experiment: Experiment
    figure: Figure
    results: Results

    def paint(self) -> Canvas:
        figure = self.figure
        panels = len(figure.variants) if figure.kind == "trace" else 1
        height = max(3.4, 0.26 * len(figure.variants) + 1.2) if figure.kind == "bars" else 3.8
        canvas = Canvas(
            figsize=(7.2, height if panels == 1 else 3.2 * panels), layout="constrained"
        )
        FigureCanvasAgg(canvas)
        axes = canvas.subplots(panels, 1, squeeze=False, sharex=True)[:, 0]
        paint = {"curve": self._curve, "bars": self._bars, "lines": self._lines}
        if figure.kind == "trace":
            for panel, variant in zip(axes, figure.variants, strict=True):
                self._trace(panel, variant)
            axes[-1].set_xlabel("time (s)")
        else:
            paint[figure.kind](axes[0])
            handles, labels = axes[0].get_legend_handles_labels()
            if len(handles) > 1 and figure.kind == "bars":
                canvas.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
            elif len(handles) > 1:
                axes[0].legend(fontsize=8)
        canvas.suptitle(f"{figure.id}: {figure.title}", fontsize=10)
        return canvas

    @property
    def _value_label(self) -> str:
        unit = f" ({self.figure.unit})" if self.figure.unit else ""
        return f"{self.figure.label}{unit}"

    def _curve(self, axes: Axes) -> None:
        for variant in self.figure.variants:
            curve = self.results.curves[self.experiment.id, self.figure.id, variant.key]
            band = curve.band(self.study.confidence)
            name = _label(variant.key, self.figure.variants)
            (line,) = axes.plot(curve.times, band.mean, label=name, linewidth=1.4)
            axes.fill_between(
                curve.times, band.low, band.high, color=line.get_color(), alpha=0.15, linewidth=0
            )
        axes.set_xlabel("time (s)")
        axes.set_ylabel(self._value_label)
        axes.set_xlim(*self.figure.window)
        axes.set_ylim(bottom=0)

    def _bars(self, axes: Axes) -> None:
        variants = self.figure.variants
        cells = [
            self.results.cell(self.experiment.id, variant.key, self.figure.metric)
            for variant in variants
        ]
        places = np.arange(len(cells))
        means = np.array([cell.ours.mean for cell in cells])
        half = np.nan_to_num(np.array([cell.ours.half_width for cell in cells]))
        axes.barh(places, means, xerr=half, height=0.7, color="#9ecae1", capsize=2, label="ours")
        for style, color, name in (("D", "#d62728", "paper"), ("x", "#333333", "reference")):
            known = [(i, getattr(cell, name)) for i, cell in enumerate(cells)]
            points = [(float(k.value), i) for i, k in known if k is not None]
            if points:
                x, y = zip(*points, strict=True)
                label = self.study.reference_title if name == "reference" else name
                axes.plot(x, y, style, color=color, label=label, markersize=5)
        axes.set_yticks(places, [_label(variant.key, variants) for variant in variants])
        axes.set_ylim(len(cells) - 0.4, -0.6)
        axes.set_xlabel(self._value_label)
        axes.grid(axis="y", visible=False)

    def _lines(self, axes: Axes) -> None:
        groups: dict[Key, list[tuple[float, Variant]]] = {}
        for variant in self.figure.variants:
            rest = tuple(pair for pair in variant.key if pair[0] != self.figure.x)
            at = float(dict(variant.key)[self.figure.x])
            groups.setdefault(rest, []).append((at, variant))
        shared = set.intersection(*(set(rest) for rest in groups))
        for rest, points in groups.items():
            cells = [
                (at, self.results.cell(self.experiment.id, variant.key, self.figure.metric))
                for at, variant in sorted(points, key=lambda point: point[0])
            ]
            name = key_text(tuple(p for p in rest if p not in shared)).replace("=", " ")
            line = axes.errorbar(
                [at for at, _ in cells],
                [cell.ours.mean for _, cell in cells],
                yerr=np.nan_to_num([cell.ours.half_width for _, cell in cells]),
                marker="o",
                markersize=4,
                capsize=2,
                label=name or "ours",
            )
            paper = [(at, float(cell.paper.value)) for at, cell in cells if cell.paper]
            if paper:
                axes.plot(
                    *zip(*paper, strict=True),
                    linestyle="--",
                    marker="D",
                    markerfacecolor="none",
                    color=line[0].get_color(),
                    label=f"{name} (paper)".strip(),
                )
        axes.set_xlabel(self.figure.x)
        axes.set_ylabel(self._value_label)

    def _trace(self, axes: Axes, variant: Variant) -> None:
        run = self.results.traces[self.experiment.id, self.figure.id, variant.key]
        start, end = self.figure.window
        for name, marker in zip(self.figure.series, _MARKERS, strict=False):
            series = run.array(name)
            inside = (series.time >= start) & (series.time < end)
            axes.plot(
                series.time[inside],
                series.value[inside] * self.figure.scale,
                marker,
                markersize=2.5,
                markeredgewidth=0.5,
                label=name.replace("_", " "),
            )
        for index, time in enumerate(self._paper_times(variant)):
            label = "the paper's times" if index == 0 else None
            axes.axvline(time, color="#d62728", linestyle=":", linewidth=1, label=label)
        axes.set_title(_label(variant.key, self.figure.variants), fontsize=9)
        axes.set_ylabel(self._value_label)
        axes.set_xlim(start, end)
        axes.legend(fontsize=8, loc="lower right")

    def _paper_times(self, variant: Variant) -> list[float]:
        """The moments in the window that the paper gives for a variant."""
        known = (
            self.results.cell(self.experiment.id, variant.key, metric).paper
            for metric in self.experiment.metrics
            if self.study.metrics[metric].unit == "s"
        )
        start, end = self.figure.window
        times = (float(paper.value) for paper in known if paper is not None)
        return sorted(time for time in times if start <= time < end)
