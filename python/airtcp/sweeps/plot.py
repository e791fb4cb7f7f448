"""`airtcp.plot`: a table of a sweep as a figure with confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from airtcp.study.stats import estimate
from airtcp.study.table import nearest

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def summary(
    frame: pd.DataFrame, y: str, by: Sequence[str], confidence: float = 0.95
) -> pd.DataFrame:
    """Mean and confidence interval over the seeds: Student's t.

    Rows of one run are not independent: their mean is one value.

    Args:
        frame: A table of `airtcp.sweep`, or a part of it.
        y: The metric.
        by: The columns that tell the means apart.
        confidence: That of the intervals.

    Returns:
        The columns `by`, `mean`, `low`, `high` and `runs`; in the order of the table.
    """
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
    by: Sequence[str] | None = None,
    *,
    confidence: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Draws a metric against one key of a sweep, with `summary`'s intervals as error bars.

    Args:
        frame: A table of `airtcp.sweep`, or a part of it.
        x: A key of the grid.
        y: A metric.
        by: Columns whose combinations get a line each; default: the other keys of the grid.
        confidence: That of the intervals.
        ax: Where to draw; default: matplotlib's current axes.

    Raises:
        KeyError: The table has no such column.
        ValueError: `by` is needed, because the table has lost its list of keys.
    """
    if by is None:
        if "axes" not in frame.attrs:
            raise ValueError("this table does not tell its keys: name the columns, by=(…)")
        by = [key for key in frame.attrs["axes"] if key != x]
    for column in (x, y, *by):
        if column not in frame:
            close = nearest(column, map(str, frame.columns))
            raise KeyError(f"the table has no column {column!r}{close}")
    if ax is None:
        from matplotlib import pyplot  # noqa: PLC0415 - needs no display only if not called

        ax = pyplot.gca()
    points = summary(frame, y, [*by, x], confidence)
    lines = points.groupby(list(by), sort=False, dropna=False) if by else [((), points)]
    for key, line in lines:
        ends = [line["mean"] - line["low"], line["high"] - line["mean"]]
        label = ", ".join(f"{name} = {value}" for name, value in zip(by, key, strict=True))
        ax.errorbar(line[x], line["mean"], yerr=ends, label=label, marker="o", capsize=3)
    ax.set(xlabel=x, ylabel=y)
    if by:
        ax.legend()
    return ax
