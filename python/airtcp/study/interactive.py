"""Charts for pages that open without a network: one Plotly figure for each panel, as JSON.

The page arranges the panels by its width, and has one legend for all panels of a chart.
"""

from __future__ import annotations

import json
import shlex
from importlib import resources
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from airtcp.stats import Floats
from airtcp.study.chart import Axis, Chart, Panel, Series

_ROW, _PANEL = 26, 300
"""Height of a place, and of a panel with a numeric axis, in pixels."""
_LEFT = 72
"""Room for the numbers of a numeric axis, and what they are, in pixels."""

_MARK_STEP = 0.06
"""Distance between marks above each other, as a fraction of the axis."""

_GRID, _DIGITS = "#e6e6e6", 6


def chart_page(chart: Chart, command: str, version: str) -> bytes:
    """A page with one chart, and in its footer the command and the version that made it."""
    template = ENVIRONMENT.get_template("chart_page.html.j2")
    return template.render(chart=chart, command=command, version=version).encode()


def chart_json(chart: Chart) -> Markup:
    """What the page's script draws, safe inside a `script` element."""
    panels = [{"data": _data(panel), "layout": _layout(panel)} for panel in chart.panels]
    text = json.dumps(panels, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("</", "<\\/"))


def _plotly() -> Markup:
    """Plotly's library for browsers, which its package carries."""
    script = resources.files("plotly") / "package_data" / "plotly.min.js"
    # Nothing in a script may look like its end.
    return Markup(script.read_text(encoding="utf-8").replace("</script", "<\\/script"))


ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("airtcp.study"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)
"""Templates of pages; `chart.html.j2` has what draws a chart."""
ENVIRONMENT.filters["chart_json"] = chart_json
ENVIRONMENT.filters["shell"] = shlex.quote
ENVIRONMENT.globals["plotly"] = _plotly


def _numbers(values: Floats) -> list[float | None]:
    return [float(f"{v:.{_DIGITS}g}") if np.isfinite(v) else None for v in values]


def _data(panel: Panel) -> list[dict[str, Any]]:
    return [trace for series in panel.series for trace in _traces(series, bool(panel.places))]


def _traces(series: Series, places: bool) -> list[dict[str, Any]]:
    x, y = _numbers(series.x), _numbers(series.y)
    # The page's legend toggles all traces of a name.
    shared: dict[str, Any] = {"name": series.name, "meta": series.name}
    traces = []
    if series.band and series.low is not None and series.high is not None:
        known = np.isfinite(series.low)
        around = np.concatenate([series.x[known], series.x[known][::-1]])
        ends = np.concatenate([series.high[known], series.low[known][::-1]])
        traces.append(
            {
                **shared,
                "x": _numbers(around),
                "y": _numbers(ends),
                "fill": "toself",
                "fillcolor": f"{series.color}26",
                "line": {"width": 0},
                "mode": "lines",
                "hoverinfo": "skip",
            }
        )
    main = {**shared, "x": x, "y": y}
    if series.texts:
        main |= {"text": series.texts, "hovertemplate": "%{text}<extra></extra>"}
    else:
        main["hovertemplate"] = "%{x:.4g}: %{y:.4g}<extra>%{meta}</extra>"
    if series.bars:
        main |= {"type": "bar", "orientation": "h", "marker": {"color": series.color}}
        main["textposition"] = "none"
    else:
        # Of dots without lines there are many, except those beside bars.
        size = 7 if series.line or places or series.low is not None else 4
        main |= {
            "mode": "+".join(
                part
                for part, there in (("lines", series.line), ("markers", series.marker))
                if there
            ),
            "line": {
                "color": series.color,
                "width": 1.8,
                "dash": series.line or "solid",
                "shape": "hv" if series.step else "linear",
            },
            "marker": {"color": series.color, "symbol": series.marker or "circle", "size": size},
        }
    if series.low is not None and series.high is not None and not series.band:
        middle = series.x if places else series.y
        main["error_x" if places else "error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": [end or 0 for end in _numbers(series.high - middle)],
            "arrayminus": [end or 0 for end in _numbers(middle - series.low)],
            "color": "#333333" if series.bars else series.color,
            "thickness": 1.2,
            "width": 3,
        }
    return [*traces, main]


def _axis(axis: Axis) -> dict[str, Any]:
    plotly: dict[str, Any] = {
        "title": {"text": axis.label, "standoff": 8},
        "type": "log" if axis.log else "linear",
        "gridcolor": _GRID,
        "zerolinecolor": "#bbbbbb",
        "automargin": True,
        "exponentformat": "none",
    }
    if axis.range:
        plotly["range"] = list(np.log10(axis.range)) if axis.log else list(axis.range)
    elif axis.zero:
        plotly["rangemode"] = "tozero"
    if axis.ticks:
        plotly |= {"tickvals": axis.ticks, "ticktext": [f"{tick:g}" for tick in axis.ticks]}
    elif axis.log:
        plotly["dtick"] = 1
        plotly["minor"] = {"dtick": "D2", "gridcolor": "#f2f2f2"}
    return plotly


def _layout(panel: Panel) -> dict[str, Any]:
    height = _ROW * len(panel.places) + 90 if panel.places else _PANEL
    layout: dict[str, Any] = {
        "height": max(height, 170),
        "margin": {"l": 8 if panel.places else _LEFT, "r": 12, "t": 36, "b": 8},
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": "#222222"},
        "xaxis": _axis(panel.x),
        "yaxis": _axis(panel.y),
        "showlegend": False,
        "hovermode": "closest",
        "barmode": "overlay",
        "plot_bgcolor": "#ffffff",
        "paper_bgcolor": "#ffffff",
    }
    if panel.title:
        layout["title"] = {"text": panel.title, "font": {"size": 13}, "x": 0.5, "y": 0.98}
    # Panels above each other have one time at one place.
    layout["yaxis"]["automargin"] = bool(panel.places)
    if panel.places:
        layout["yaxis"] |= {
            "tickvals": list(range(len(panel.places))),
            "ticktext": panel.places,
            "range": [len(panel.places) - 0.4, -0.6],
            "showgrid": False,
            "zeroline": False,
        }
    layout["shapes"] = [
        {
            "type": "rect",
            "yref": "paper",
            **{"x0": start, "x1": end, "y0": 0, "y1": 1},
            "fillcolor": "#000000",
            "opacity": 0.08,
            "line": {"width": 0},
        }
        for start, end in panel.shade
    ] + [
        {
            "type": "line",
            "yref": "paper",
            **{"x0": time, "x1": time, "y0": 0, "y1": 1},
            "line": {"color": "#d62728", "width": 1, "dash": "dot"},
        }
        for time in panel.times
    ]
    layout["annotations"] = [
        {
            "text": mark.text,
            "hovertext": mark.about,
            "showarrow": False,
            "font": {"color": mark.color, "size": 11},
            **(
                {"xref": "paper", "x": 0.005, "xanchor": "left", "y": mark.place}
                if panel.places
                else {
                    "x": float(np.log10(mark.x)) if panel.x.log else mark.x,
                    "yref": "paper",
                    "y": 1 - _MARK_STEP * mark.place,
                }
            ),
        }
        for mark in panel.marks
    ]
    if panel.times:
        layout["annotations"].append(
            {
                "text": panel.times_name,
                "x": panel.times[0],
                **{"yref": "paper", "y": 1, "yanchor": "bottom"},
                "showarrow": False,
                "font": {"color": "#d62728", "size": 11},
            }
        )
    return layout
