from __future__ import annotations

import math

import numpy as np
import pytest

from airtcp.run import Run, Series
from airtcp.study.measure import REDUCERS, Measure, measure, sample

#                   before | window [2, 8)          | after
TIME = np.array([0.0, 1.0, 2.0, 3.0, 5.0, 6.0, 7.5, 8.0, 9.0])
VALUE = np.array([1.0, 4.0, 4.0, 2.0, 2.0, 9.0, 3.0, 10.0, 0.0])


@pytest.mark.parametrize(
    ("reducer", "expected"),
    [
        ("last", 3.0),
        ("mean", (4 * 1 + 2 * 2 + 2 * 1 + 9 * 1.5 + 3 * 0.5) / 6),
        ("min", 2.0),
        ("max", 9.0),
        ("range", 9.0 - 2.0),
        ("increase", 3.0 - 4.0),
        ("count", 5.0),
        ("first-time", 2.0),
        ("last-time", 7.5),
        ("first-record-time", 6.0),
        ("repeats", 1.0),
        ("first-repeat-time", 2.0),
        ("last-repeat-time", 2.0),
        ("repeats-end-time", 6.0),
        ("repeated-value", 4.0),
        ("repeats-end-value", 9.0),
        ("gap-start", 3.0),
        ("gap-end", 5.0),
    ],
)
def test_reducer(reducer: str, expected: float) -> None:
    assert REDUCERS[reducer](TIME, VALUE, 2.0, 8.0) == pytest.approx(expected)


def test_repeats_are_those_of_the_first_value_repeated() -> None:
    value = np.array([1.0, 2.0, 2.0, 2.0, 3.0, 3.0])
    time = np.arange(6.0)
    assert REDUCERS["repeats"](time, value, 0.0, 9.0) == 2
    assert REDUCERS["first-repeat-time"](time, value, 0.0, 9.0) == 2
    assert REDUCERS["last-repeat-time"](time, value, 0.0, 9.0) == 3
    assert REDUCERS["repeats-end-time"](time, value, 0.0, 9.0) == 4


def test_every_reducer_takes_an_empty_series() -> None:
    empty = np.array([])
    values = {name: reduce(empty, empty, 0.0, 1.0) for name, reduce in REDUCERS.items()}
    zero = {name for name, value in values.items() if value == 0}
    assert zero == {"increase", "count", "repeats"}
    assert all(math.isnan(value) for name, value in values.items() if name not in zero)


def test_a_value_set_before_the_window_is_in_force_in_it() -> None:
    assert REDUCERS["mean"](np.array([1.0]), np.array([7.0]), 2.0, 3.0) == 7.0
    assert REDUCERS["max"](np.array([1.0]), np.array([7.0]), 2.0, 3.0) == 7.0


def run() -> Run:
    flows = [
        {"name": "a", "goodput": 1000.0, "download_time": None},
        {"name": "b", "goodput": 3000.0, "download_time": 4.0},
    ]
    series = Series(TIME, np.array([0, 1] * 4 + [0], np.uint32), VALUE)
    links = [{"name": "A>B", "queue_drops": 3}]
    return Run({"duration": 10.0, "flows": flows, "links": links}, {"cwnd": series})


def metric(kind: str, field: str, **other: object) -> Measure:
    values: dict[str, object] = {
        "name": "m",
        "unit": "",
        "definition": "",
        "kind": kind,
        "owner": "",
        "field": field,
        "scale": 1.0,
        "missing": None,
        "reduce": "",
        "windows": (),
        "since": "",
        "lasting": 0.0,
        "until": "",
        "absent": "",
        "equals": None,
        "over": "mean",
        "minus": (),
        "per": "",
    }
    return Measure(**(values | other))  # type: ignore[arg-type]


@pytest.mark.parametrize(("over", "expected"), [("mean", 2), ("sum", 4), ("min", 1), ("max", 3)])
def test_flows_are_combined(over: str, expected: float) -> None:
    assert measure(run(), metric("flow", "goodput", over=over, scale=1e-3)) == expected


def test_one_owner_can_be_chosen() -> None:
    assert measure(run(), metric("flow", "goodput", owner="b")) == 3000
    assert measure(run(), metric("link", "queue_drops", owner="A>B")) == 3
    assert measure(run(), metric("trace", "cwnd", owner="a", reduce="count")) == 5


def test_windows_are_combined() -> None:
    windows = ((0.0, 2.0), (2.0, 9.0), (9.0, 10.0))
    counts = {
        over: measure(
            run(), metric("trace", "cwnd", owner="a", reduce="count", windows=windows, over=over)
        )
        for over in ("min", "max", "sum")
    }
    assert counts == {"min": 1, "max": 3, "sum": 5}


def test_a_window_begins_at_the_first_point_of_another_series_and_is_of_its_flow() -> None:
    def count(times: list[float], flows: list[int]) -> float:
        restarts = Series(np.array(times), np.array(flows, np.uint32), np.ones(len(times)))
        ours = Run(run().metrics, {**run().series, "restarts": restarts})
        return measure(
            ours, metric("trace", "cwnd", reduce="count", since="restarts", lasting=4.0, over="sum")
        )

    # From 4 to 8 s flow a has points at 5 and 7.5 s, flow b at 6 s.
    assert count([4.0, 5.0], [0, 1]) == 2
    assert count([4.0, 5.0], [1, 0]) == 1
    assert math.isnan(count([], []))


def test_a_missing_value_is_left_out_or_counts_as_told() -> None:
    assert measure(run(), metric("flow", "download_time")) == 4
    assert measure(run(), metric("flow", "download_time", missing=0.0)) == 2
    assert math.isnan(measure(run(), metric("flow", "download_time", owner="a")))


@pytest.mark.parametrize(
    ("kind", "owner", "field", "message"),
    [
        ("flow", "c", "goodput", "no flow 'c'"),
        ("flow", "", "goodputs", "a flow has no 'goodputs'; known: download_time, goodput, name"),
        ("trace", "", "rto", "'rto' was not recorded"),
    ],
)
def test_what_a_run_does_not_have_is_named(kind: str, owner: str, field: str, message: str) -> None:
    with pytest.raises(LookupError, match=message):
        measure(run(), metric(kind, field, owner=owner, reduce="count"))


def test_sample_adds_flows_up_and_holds_values() -> None:
    series = Series(
        np.array([1.0, 2.0, 3.0]), np.array([0, 1, 0], np.uint32), np.array([10.0, 5.0, 20.0])
    )
    times = np.array([0.0, 1.0, 2.5, 3.0])
    assert list(sample(series, times, "value", 2.0)) == [0, 20, 30, 50]
    assert list(sample(series, times, "mean-rate", 1.0)) == [0, 80, 48, pytest.approx(200 / 3)]
