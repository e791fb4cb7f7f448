"""`airtcp.plot`: a table of a sweep as a figure with confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from airtcp.sweeps.labels import (
    group_title,
    key_label,
    metric_label,
    quantities,
    scale_of,
    unit_of,
)
from airtcp.words import nearest, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DODGE = 0.1
"""Distance between intervals at the same category, where 1 is the distance of categories."""


def summary(
    frame: pd.DataFrame, y: str, by: Sequence[str], confidence: float = 0.95
) -> pd.DataFrame:
    """Mean and confidence interval over the seeds: Student's t.

    Rows of one run are not independent: their mean is one value.

    Args:
        frame: A table of `airtcp.sweep`, or a part of it.
        y: The metric.
        by: The columns that tell the means apart.
        confidence: That of the intervals, between 0 and 1.

    Returns:
        The columns `by`, `mean`, `low`, `high` (in the metric's unit) and `runs`; a row for each
        combination, in the order of the table. With fewer than two runs `low` and `high` are NaN.

    Raises:
        ValueError: `confidence` is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence = {confidence:g}: expected a share, such as 0.95")
    from airtcp.stats import estimate  # noqa: PLC0415 - SciPy is slow to load

    keys = list(by)
    of_run = frame.groupby([*keys, "seed"], sort=False, dropna=False)[y].mean().reset_index()
    rows = []
    for key, group in of_run.groupby(keys, sort=False, dropna=False):
        of_key = estimate(group[y].to_numpy(float), confidence)
        values = (of_key.mean, of_key.low, of_key.high, of_key.runs)
        rows.append((*key, *values))
    return pd.DataFrame(rows, columns=[*keys, "mean", "low", "high", "runs"])


def plot(
    frame: pd.DataFrame,
    x: str,
    y: str,
    by: str | Sequence[str] | None = None,
    *,
    confidence: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Draws a metric against one key of a sweep, with `summary`'s intervals as error bars.

    Numbers along the x axis, and quantities such as `"10 ms"`, are joined by lines. Other values
    (names of algorithms, say) are categories: they have no order and are not joined. Both axes name
    their unit; that of y is scaled (Mbit/s), while the data keep SI units.

    Args:
        frame: A table of `airtcp.sweep`, or a part of it.
        x: A key of the grid.
        y: A metric.
        by: The column, or the columns whose combinations, are told apart by colour; default: the
            other keys of the grid, without those that change together with `x`.
        confidence: That of the intervals, between 0 and 1.
        ax: Where to draw; default: the axes of a new figure.

    Returns:
        The axes.

    Raises:
        KeyError: The table has no such column.
        ValueError: `by` is needed, because the table has lost its list of keys; `y` has no numbers;
            `x` or `by` is the seed, over which the means are taken; or `confidence` is not between
            0 and 1.
    """
    groups = _groups(frame, x, by)
    for column in (x, y, *groups):
        if column not in frame:
            close = nearest(column, map(str, frame.columns))
            raise KeyError(f"the table has no column {column!r}{close}")
        if column == "seed":
            raise ValueError("each mean is over the seeds: 'seed' is no key to draw by")
    if not pd.api.types.is_numeric_dtype(frame[y]) or frame[y].isna().all():
        known = frame[y].dropna()
        found = f", such as {known.iloc[0]!r}" if len(known) else ""
        raise ValueError(f"{y!r} has no numbers to draw{found}")
    from matplotlib import pyplot  # noqa: PLC0415 - slow to load
    from matplotlib.ticker import FuncFormatter  # noqa: PLC0415

    axes = ax if ax is not None else pyplot.subplots()[1]
    points = summary(frame, y, [*groups, x], confidence)
    along = _along(points[x])
    points["place"] = along.places
    lines = list(points.groupby(groups, sort=False, dropna=False)) if groups else [((), points)]
    for index, (key, unsorted) in enumerate(lines):
        line = unsorted if along.categories else unsorted.sort_values("place")
        shift = _DODGE * (index - (len(lines) - 1) / 2) if along.categories else 0.0
        axes.errorbar(
            line["place"] + shift,
            line["mean"],
            yerr=[line["mean"] - line["low"], line["high"] - line["mean"]],
            label=plain(", ".join(map(str, key))),
            marker="o",
            linestyle="none" if along.categories else "-",
            capsize=3,
        )
    largest = float(np.nanmax(points["mean"].abs()))
    scale = scale_of(unit_of(y), largest)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / scale.factor:g}"))
    axes.set(xlabel=key_label(x, along.unit), ylabel=metric_label(y, scale.unit))
    if along.categories:
        axes.set_xticks(range(len(along.categories)), list(map(plain, along.categories)))
        axes.margins(x=0.15)
    if groups:
        # Among categories no corner is free.
        above: dict[str, Any] = {
            "loc": "lower center",
            "bbox_to_anchor": (0.5, 1.0),
            "ncols": min(4, len(lines)),
        }
        axes.legend(title=group_title(groups), **(above if along.categories else {}))
    return axes


def _groups(frame: pd.DataFrame, x: str, by: str | Sequence[str] | None) -> list[str]:
    """The columns that tell lines apart."""
    if by is not None:
        return [by] if isinstance(by, str) else list(by)
    if "axes" not in frame.attrs:
        raise ValueError("this table does not tell its keys: name the columns, by=(…)")
    # Keys that change together with x are the same along its axis.
    return [key for axis in frame.attrs["axes"] if x not in axis for key in axis]


class _Along(NamedTuple):
    """Where values are along the x axis.

    Attributes:
        places: For each value.
        unit: The unit of the places; empty: none is known.
        categories: The words at 0, 1, …; none: the places are numbers of the table.
    """

    places: npt.NDArray[np.float64]
    unit: str
    categories: list[str]


def _along(values: pd.Series[Any]) -> _Along:
    if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        return _Along(values.to_numpy(float), "", [])
    if (known := quantities(values)) is not None:
        return _Along(np.array(known.numbers), known.unit, [])
    texts = list(map(str, values))
    words = list(dict.fromkeys(texts))
    return _Along(np.array([words.index(text) for text in texts], float), "", words)
