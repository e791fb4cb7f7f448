from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airtcp.run import Run, Series
from airtcp.scenario import Scenario

METRICS = {"duration": 1.0, "flows": [{"name": "a", "goodput": 1.5}, {"name": "b", "goodput": 2.5}]}


def series(points: list[tuple[float, int, float]]) -> Series:
    time, flow, value = zip(*points, strict=True) if points else ((), (), ())
    return Series(np.array(time, float), np.array(flow, np.uint32), np.array(value, float))


def test_flows_is_a_frame_by_name() -> None:
    run = Run(METRICS)
    assert list(run.flows.index) == ["a", "b"]
    assert run.flows.loc["b", "goodput"] == 2.5


def test_middleboxes_is_a_frame_by_node() -> None:
    run = Run({"middleboxes": [{"name": "AP", "freezes": 3}, {"name": "BS", "held": 1}]})
    assert run.middleboxes.loc["AP", "freezes"] == 3
    assert run.middleboxes["freezes"].isna().to_dict() == {"AP": False, "BS": True}


def test_what_applications_did_is_in_frames_by_name() -> None:
    run = Run(
        {
            "transfers": [{"name": "web", "completed": 3, "completion_cdf": [0.1, 0.2]}],
            "videos": [{"name": "film", "stalls": 1}],
            "calls": [{"name": "call", "mos": 4.1}],
            "quic": [{"name": "get", "goodput": 2.5}],
        }
    )
    assert run.transfers.loc["web", "completed"] == 3
    assert run.videos.loc["film", "stalls"] == 1
    assert run.calls.loc["call", "mos"] == 4.1
    assert run.quic.loc["get", "goodput"] == 2.5


def test_a_run_shows_its_flows_as_a_short_table() -> None:
    flow = {"name": "ftp", "goodput": 3.4272e6, "download_time": None, "timeouts": 2}
    metrics = {"scenario": "phone", "seed": 7, "duration": 60.0, "flows": [flow], "links": [{}, {}]}
    assert repr(Run(metrics)).splitlines() == [
        "Run of 'phone', seed 7, 60 s, 1 flow, 2 links",
        "flow  goodput Mbit/s  download s  retransmitted %  time-outs",
        "ftp            3.427           –                –          2",
    ]


def test_of_many_flows_ten_are_shown() -> None:
    many = [{"name": f"f{i}", "goodput": 1e6} for i in range(25)]
    lines = repr(Run({"flows": many})).splitlines()
    assert len(lines) == 2 + 10 + 1
    assert lines[-1] == "… and 15 more flows"
    assert repr(Run({"measured": {"goodput": 1.0}})) == "Run"


def test_a_part_the_scenario_does_not_have_is_an_empty_frame() -> None:
    run = Run({"stations": [{"name": "cell/AP", "retries": 3}], "links": []})
    assert run.stations.loc["cell/AP", "retries"] == 3
    assert run.links.empty
    assert run.links.index.name == "name"


def test_trace_names_the_flows() -> None:
    run = Run(METRICS, {"cwnd": series([(0.1, 1, 1000.0), (0.2, 0, 2000.0)])})
    frame = run.trace("cwnd")
    assert list(frame.columns) == ["time", "flow", "value"]
    assert list(frame["flow"]) == ["b", "a"]


def test_asking_for_a_series_that_was_not_recorded_says_how_to_record_it() -> None:
    run = Run(METRICS, {"cwnd": series([])})
    with pytest.raises(KeyError, match=r"'rto' was not recorded \(recorded: cwnd\).*trace="):
        run.trace("rto")


@given(st.lists(st.tuples(st.floats(0, 1e9), st.integers(0, 1), st.floats(allow_nan=False))))
def test_stored_and_read_back_is_the_same_run(points: list[tuple[float, int, float]]) -> None:
    run = Run(METRICS, {"cwnd": series(points), "rto": series([])})
    data = run.to_bytes()
    back = Run.from_bytes(data)
    assert back.metrics == METRICS
    for name in ("cwnd", "rto"):
        for column in Series._fields:
            ours, theirs = (getattr(r.array(name), column) for r in (run, back))
            assert np.array_equal(ours, theirs)
            assert ours.dtype == theirs.dtype
    assert back.to_bytes() == data


@pytest.mark.parametrize("text", [b"[1, 2]", b"3", b"null"])
def test_other_json_is_no_run(text: bytes) -> None:
    with pytest.raises(ValueError, match="not a stored run: no object"):
        Run.from_bytes(text)


@given(st.binary(max_size=200).filter(lambda data: data.strip() != b"{}"))
def test_bytes_that_are_no_run_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a stored run"):
        Run.from_bytes(data)


@given(st.integers(0, 10_000))
def test_a_truncated_run_is_refused(cut: int) -> None:
    data = Run(METRICS, {"cwnd": series([(0.0, 0, 1.0)])}).to_bytes()
    with pytest.raises(ValueError, match="not a stored run"):
        Run.from_bytes(data[: cut % len(data)])


SCENARIO = """
duration = "1 s"
[[node]]
name = "A"
[[node]]
name = "B"
[[link]]
between = ["A", "B"]
rate = "2 Mbit/s"
delay = "20 ms"
[[flow]]
from = "A"
to = "B"
"""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": "x"}, "seed 'x': expected a whole number"),
        ({"seed": 1.5}, "seed 1.5: expected a whole number"),
        ({"trace": 3}, "trace = 3: expected a name, or several"),
        ({"trace": [3]}, r"trace = \[3\]: expected a name, or several"),
        ({"between_slices": 3}, "between_slices = 3: expected a function"),
        ({"congestion": 3}, "congestion = 3: expected controls by name"),
        ({"pcap": "x", "pcap_nodes": 3}, "pcap_nodes = 3: expected a name, or several"),
        ({"pcap": "x", "pcap_monitor": "yes"}, "pcap_monitor = 'yes': expected True or False"),
    ],
)
def test_an_argument_of_another_type_is_named(arguments: dict[str, Any], message: str) -> None:
    scenario = Scenario.parse(SCENARIO)
    with pytest.raises(TypeError, match=message):
        scenario.run(**arguments)


def test_a_seed_may_be_numpys() -> None:
    scenario = Scenario.parse(SCENARIO)
    numpys: Any = np.int64(7)
    assert scenario.run(numpys).metrics == scenario.run(7).metrics
