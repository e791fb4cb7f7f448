"""From a run to numbers: the metrics a study defines, over fields of the run and its series."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from airtcp.run import Run, Series
from airtcp.study.document import one_of
from airtcp.study.fields import OneOrMore, Seconds, Span

Floats = npt.NDArray[np.float64]


FIELD_SOURCES: Mapping[str, str] = {
    "call": "calls",
    "flow": "flows",
    "link": "links",
    "middlebox": "middleboxes",
    "quic": "quic",
    "station": "stations",
    "transfer": "transfers",
    "udp": "udp",
    "video": "videos",
    "run": "",
}
"""The parts of a run's metrics that can hold a field, and their keys in the metrics."""

Reducer = Callable[[Floats, Floats, float, float], float]
"""Times, values, window start and end → a number, or NaN if there is none."""


def _inside(time: Floats, start: float, end: float) -> npt.NDArray[np.bool_]:
    return (time >= start) & (time < end)


def _at(time: Floats, value: Floats, when: float) -> float:
    """The value in force just before `when`."""
    index = int(np.searchsorted(time, when, side="left")) - 1
    return float(value[index]) if index >= 0 else np.nan


def _steps(time: Floats, value: Floats, start: float, end: float) -> tuple[Floats, Floats]:
    """The step function within the window: its values, and how long each is in force."""
    inside = _inside(time, start, end)
    times, values = time[inside], value[inside]
    before = _at(time, value, start)
    if not np.isnan(before):
        times, values = np.insert(times, 0, start), np.insert(values, 0, before)
    return values, np.diff(np.append(times, end))


def _mean(time: Floats, value: Floats, start: float, end: float) -> float:
    values, durations = _steps(time, value, start, end)
    total = float(durations.sum())
    return float((values * durations).sum()) / total if total > 0 else np.nan


def _extreme(choose: Callable[[Floats], Any]) -> Reducer:
    def reduce(time: Floats, value: Floats, start: float, end: float) -> float:
        values, _ = _steps(time, value, start, end)
        return float(choose(values)) if len(values) else np.nan

    return reduce


def _increase(time: Floats, value: Floats, start: float, end: float) -> float:
    before, after = _at(time, value, start), _at(time, value, end)
    return float(np.nan_to_num(after) - np.nan_to_num(before))


def _count(time: Floats, _value: Floats, start: float, end: float) -> float:
    return float(_inside(time, start, end).sum())


def _first(times: Floats) -> float:
    return float(times[0]) if len(times) else np.nan


def _last(times: Floats) -> float:
    return float(times[-1]) if len(times) else np.nan


def _first_time(time: Floats, _value: Floats, start: float, end: float) -> float:
    return _first(time[_inside(time, start, end)])


def _last_time(time: Floats, _value: Floats, start: float, end: float) -> float:
    return _last(time[_inside(time, start, end)])


def _records(time: Floats, value: Floats, start: float, end: float) -> float:
    if not len(value):
        return np.nan
    highest = np.concatenate(([-np.inf], np.maximum.accumulate(value)[:-1]))
    return _first(time[(value > highest) & _inside(time, start, end)])


def _repeats(time: Floats, value: Floats, start: float, end: float) -> npt.NDArray[np.intp]:
    """Points in the window at which the first value to repeat there is repeated."""
    same = np.concatenate(([False], value[1:] == value[:-1])) if len(value) else np.empty(0, bool)
    repeats = np.flatnonzero(same & _inside(time, start, end))
    return repeats[value[repeats] == value[repeats[0]]] if len(repeats) else repeats


def _repeats_end(time: Floats, value: Floats, start: float, end: float) -> npt.NDArray[np.intp]:
    """The point with the first greater value after these repeats."""
    repeats = _repeats(time, value, start, end)
    if not len(repeats):
        return repeats
    greater = (time > time[repeats[-1]]) & (value > value[repeats[-1]]) & (time < end)
    return np.flatnonzero(greater)[:1]


def _longest_gap(time: Floats, start: float, end: float) -> tuple[float, float]:
    times = time[_inside(time, start, end)]
    if len(times) < 2:  # noqa: PLR2004
        return np.nan, np.nan
    at = int(np.argmax(np.diff(times)))
    return float(times[at]), float(times[at + 1])


REDUCERS: Mapping[str, Reducer] = {
    "last": lambda time, value, _start, end: _at(time, value, end),
    "mean": _mean,
    "min": _extreme(np.min),
    "max": _extreme(np.max),
    "range": _extreme(np.ptp),
    "increase": _increase,
    "count": _count,
    "first-time": _first_time,
    "last-time": _last_time,
    "first-record-time": _records,
    "repeats": lambda *arguments: float(len(_repeats(*arguments))),
    "repeated-value": lambda time, value, *window: _first(value[_repeats(time, value, *window)]),
    "first-repeat-time": lambda time, *rest: _first(time[_repeats(time, *rest)]),
    "last-repeat-time": lambda time, *rest: _last(time[_repeats(time, *rest)]),
    "repeats-end-time": lambda time, *rest: _first(time[_repeats_end(time, *rest)]),
    "repeats-end-value": lambda time, value, *window: _first(
        value[_repeats_end(time, value, *window)]
    ),
    "gap-start": lambda time, _value, start, end: _longest_gap(time, start, end)[0],
    "gap-end": lambda time, _value, start, end: _longest_gap(time, start, end)[1],
}
"""Ways to reduce a series within a window [start, end) to a number.

`last`, `mean`, `min`, `max`, `range` (maximum minus minimum) and `increase` take the series as a
step function (a value is in force until the next); the others take its points as events. A record
is a value greater than all before it. A repeat is a point with the same value as the one before it;
if several values repeat, only the first counts, and its repeats end with the first greater value.
The gap is the longest time between two points.
"""

Reduce = Annotated[str, one_of(REDUCERS)]
"""The name of a reducer."""

_INSTANTS = {name for name in REDUCERS if name.endswith("-time")} | {"gap-start", "gap-end"}

_COMBINE: Mapping[str, Callable[[Floats], Any]] = {
    "mean": np.mean,
    "sum": np.sum,
    "min": np.min,
    "max": np.max,
}


@dataclass(frozen=True)
class Measure:
    """A metric read from a run.

    Attributes:
        kind: `flow`, `link`, `middlebox` or `run`: a field of the metrics; `trace`: a series.
        owner: Name of the one flow, link or middlebox meant; empty: all of them.
        field: Name of the field or the series.
        scale: Factor from SI to `unit`.
        missing: The value used for a run that has none (an unfinished download, say); `None`: the
            run is left out of the mean.
        absent: What figures call such a run (`aborted`, say); empty: they do not mark it.
        reduce: `trace`: name of the reducer.
        windows: `trace`: start and end (exclusive) of each, in seconds; none: the whole run.
        since: `trace`: a series; the window begins at the run's first point of it, and only the
            flow of that point counts; empty: as given.
        lasting: `trace`: the length of that window, in seconds.
        until: `trace`: each window ends at the first point of this series in it; empty: as given.
        equals: Count 1 for a value that is this number, else 0: the mean is a share; `None`: take
            the values as they are.
        over: How the values of several owners or windows are combined into one.
        minus: The metrics, or keys of the variants, whose values are subtracted.
        per: The metric by whose value the result is divided; empty: none. A run in which that is 0
            has no value.
    """

    name: str
    unit: str
    definition: str
    kind: str
    owner: str
    field: str
    scale: float = 1.0
    missing: float | None = None
    absent: str = ""
    reduce: str = ""
    windows: tuple[Span, ...] = ()
    since: str = ""
    lasting: Seconds = 0.0
    until: str = ""
    equals: float | None = None
    over: Annotated[str, one_of(_COMBINE)] = "mean"
    minus: OneOrMore = ()
    per: str = ""

    @property
    def is_instant(self) -> bool:
        """Whether it is a time on the run's clock, not a duration."""
        return self.reduce in _INSTANTS and not self.minus


@dataclass(frozen=True)
class Gain:
    """A metric's improvement over a baseline variant, in percent of the baseline's mean.

    Attributes:
        same: Keys whose values the baseline shares with the variant.
    """

    name: str
    unit: str
    definition: str
    of: str
    baseline: tuple[tuple[str, str], ...]
    same: tuple[str, ...] = ()


Metric = Measure | Gain


def measure(run: Run, metric: Measure) -> float:
    """The metric's value in one run; NaN if it has none. A testbed gives values by metric.

    Raises:
        LookupError: The run has no such owner, field or series.
    """
    if "measured" in run.metrics:
        value = run.metrics["measured"].get(metric.name)
        return np.nan if value is None else float(value)
    values = _trace_values(run, metric) if metric.kind == "trace" else _field_values(run, metric)
    missing = np.nan if metric.missing is None else metric.missing
    scaled = np.array([missing if np.isnan(v) else v * metric.scale for v in values])
    known = scaled[~np.isnan(scaled)]
    if metric.equals is not None:
        known = (known == metric.equals).astype(float)
    return float(_COMBINE[metric.over](known)) if len(known) else np.nan


def _field_values(run: Run, metric: Measure) -> list[float]:
    part = FIELD_SOURCES[metric.kind]
    owners = run.metrics[part] if part else [run.metrics]
    if metric.owner:
        owners = [owner for owner in owners if owner["name"] == metric.owner]
        if not owners:
            raise LookupError(
                f"metric {metric.name}: the run has no {metric.kind} {metric.owner!r}"
            )
    values = []
    for owner in owners:
        if metric.field not in owner:
            known = ", ".join(sorted(owner))
            raise LookupError(
                f"metric {metric.name}: a {metric.kind} has no {metric.field!r}; known: {known}"
            )
        value = owner[metric.field]
        values.append(np.nan if value is None else float(value))
    return values


def _trace_values(run: Run, metric: Measure) -> list[float]:
    series = run.array(metric.field)
    windows = metric.windows or ((0.0, float(run.metrics["duration"])),)
    if metric.until:
        last = run.array(metric.until).time
        windows = tuple((start, _first(last[_inside(last, start, end)])) for start, end in windows)
        # Without such a point the window has no end, and the run no value.
        windows = tuple(window for window in windows if not np.isnan(window[1]))
        if not windows:
            return [np.nan]
    counted = range(len(run.metrics["flows"]))
    if metric.since:
        first = run.array(metric.since)
        if not len(first.time):
            return [np.nan]
        start, counted = float(first.time[0]), range(first.flow[0], first.flow[0] + 1)
        windows = ((start, start + metric.lasting),)
    values: list[float] = []
    for index in counted:
        if metric.owner in ("", run.metrics["flows"][index]["name"]):
            part = series.of_flow(index)
            reduce = REDUCERS[metric.reduce]
            values.extend(reduce(part.time, part.value, start, end) for start, end in windows)
    if not values:
        raise LookupError(f"metric {metric.name}: the run has no flow {metric.owner!r}")
    return values


def sample(series: Series, times: Floats, transform: str, scale: float) -> Floats:
    """A series as a step function at the given times; 0 before its first point.

    Args:
        series: The series; the values of its flows are added.
        times: Ascending, seconds.
        transform: `value`, or `mean-rate`: 8 × value / time, for bytes so far.
        scale: Factor applied to the result.
    """
    total = np.zeros_like(times)
    for flow in np.unique(series.flow):
        part = series.of_flow(int(flow))
        index = np.searchsorted(part.time, times, side="right") - 1
        total += np.where(index >= 0, part.value[np.maximum(index, 0)], 0.0)
    if transform == "mean-rate":
        total = np.divide(8.0 * total, times, out=np.zeros_like(total), where=times > 0)
    return total * scale
