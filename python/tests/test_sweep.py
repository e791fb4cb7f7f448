from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes

import airtcp
from airtcp.congestion import Ack, CongestionControl, Loss, Timeout, Window
from airtcp.stats import estimate
from airtcp.sweeps.command import axis, main
from airtcp.sweeps.labels import key_label, metric_label, scale_of, unit_of
from airtcp.sweeps.plot import summary
from airtcp.sweeps.sweep import Axis
from airtcp.timeline.command import main as plot_main
from tests.fakes import FakeSimulator, kept

SCENARIO = """
duration = "2 s"

[[node]]
name = "A"
[[node]]
name = "B"

[[link]]
between = ["A", "B"]
rate = "2 Mbit/s"
delay = "20 ms"
loss = { kind = "bernoulli", p = 0.01 }

[[flow]]
name = "one"
from = "A"
to = "B"
[[flow]]
name = "two"
from = "A"
to = "B"
"""

LOSS = "link.A-B.loss.p"
GRID: dict[str, list[object]] = {LOSS: [0.0, 0.05], "tcp.recovery": ["reno", "sack"]}


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "one.toml"
    file.write_text(SCENARIO)
    return file


def test_a_row_is_a_flow_of_a_run_with_what_was_set(scenario: Path) -> None:
    table = airtcp.sweep(scenario, GRID, seeds=3)
    assert list(table.columns[:4]) == [LOSS, "tcp.recovery", "seed", "flow"]
    assert len(table) == 2 * 2 * 3 * 2
    row = table[
        (table[LOSS] == 0.05)
        & (table["tcp.recovery"] == "sack")
        & (table["seed"] == 2)
        & (table["flow"] == "two")
    ].iloc[0]
    overrides = {LOSS: 0.05, "tcp.recovery": "sack"}
    run = airtcp.Scenario.load(scenario, set=overrides).run(seed=2)
    assert row["goodput"] == run.flows.loc["two", "goodput"]
    assert set(run.flows.columns) <= set(table.columns)


def test_a_doubt_is_told_once_and_names_a_run(scenario: Path) -> None:
    late = 'outage = { listed = [["3 s", "4 s"]] }'
    scenario.write_text(SCENARIO.replace("loss =", f"{late}\nloss ="))
    with pytest.warns(UserWarning, match="nothing happens") as told:
        airtcp.sweep(scenario, {LOSS: [0.0, 0.05]}, seeds=3)
    (only,) = told
    assert re.match(rf"{scenario} --set {LOSS}=0\.0\d? --seed [123]: links? ", str(only.message))


@pytest.mark.parametrize(("rows", "name", "count"), [("links", "link", 2), ("runs", "seed", 1)])
def test_a_row_can_be_something_else(scenario: Path, rows: str, name: str, count: int) -> None:
    table = airtcp.sweep(scenario, {"duration": ["1 s", "3 s"]}, seeds=[5], rows=rows)
    assert len(table) == 2 * count
    assert name in table
    assert list(table["duration"].unique()) == ["1 s", "3 s"]
    assert list(table["seed"].unique()) == [5]


def test_a_scenario_with_overrides_keeps_them(scenario: Path) -> None:
    loaded = airtcp.Scenario.load(scenario, set={"duration": "1 s"})
    assert set(airtcp.sweep(loaded, {}, seeds=1, rows="runs")["duration"]) == {1.0}


def test_the_table_does_not_depend_on_the_number_of_jobs(scenario: Path) -> None:
    one, four = (airtcp.sweep(scenario, {LOSS: [0.01, 0.02]}, 4, jobs=jobs) for jobs in (1, 4))
    pd.testing.assert_frame_equal(one, four)


def test_keys_in_a_tuple_change_together(scenario: Path) -> None:
    grid: dict[Axis, list[object]] = {
        (LOSS, "link.A-B.delay"): [(0.01, "5 ms"), (0.02, "20 ms")],
        "tcp.recovery": ["newreno", "sack"],
    }
    table = airtcp.sweep(scenario, grid, 2)
    # Of two flows.
    assert len(table) == 2 * 2 * 2 * 2
    assert table.attrs["axes"] == [[LOSS, "link.A-B.delay"], ["tcp.recovery"]]
    pairs = {*zip(table[LOSS], table["link.A-B.delay"], strict=True)}
    assert pairs == {(0.01, "5 ms"), (0.02, "20 ms")}
    same = {"link.A-B.delay": "20 ms", "tcp.recovery": "newreno"}
    alone = airtcp.sweep(airtcp.Scenario.load(scenario, set=same), {LOSS: [0.02]}, 2)
    of_pair = table[(table[LOSS] == 0.02) & (table["tcp.recovery"] == "newreno")]
    assert list(of_pair["goodput"]) == list(alone["goodput"])
    # Along one of them the other tells nothing apart.
    assert len(airtcp.plot(table, x=LOSS, y="goodput").containers) == 2


def test_what_is_kept_is_not_run_again(scenario: Path, tmp_path: Path) -> None:
    table = airtcp.sweep(scenario, {LOSS: [0.01]}, 2, keep=tmp_path / "kept")
    times = {file: file.stat().st_mtime_ns for file in (tmp_path / "kept").iterdir()}
    more = airtcp.sweep(scenario, {LOSS: [0.01]}, 3, keep=tmp_path / "kept")
    assert len(kept(tmp_path / "kept")) == 3
    assert all(file.stat().st_mtime_ns == time for file, time in times.items())
    pd.testing.assert_frame_equal(more[more["seed"] < 3], table)


def test_a_damaged_kept_run_is_run_again(scenario: Path, tmp_path: Path) -> None:
    table = airtcp.sweep(scenario, {LOSS: [0.01]}, 2, keep=tmp_path / "kept")
    next((tmp_path / "kept").iterdir()).write_bytes(b"")
    pd.testing.assert_frame_equal(airtcp.sweep(scenario, {LOSS: [0.01]}, 2, keep="kept"), table)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"link.A-B.los.p": [0.1]}, "los.*loss"),
        ({LOSS: [0.1, 1.5]}, "1.5"),
        ({"tcp.recovery": ["sack", "newrena"]}, "newrena.*newreno"),
        ({LOSS: []}, "at least one value"),
        ({LOSS: 0.1}, "must be a list"),
        ({LOSS: [0.1, 0.1]}, "listed twice"),
        ({(LOSS, "tcp.recovery"): [(0.1, "sack"), (0.1, "sack")]}, "listed twice"),
        ({(LOSS, "tcp.recovery"): [(0.1, "sack"), 0.2]}, "0.2 is not a value for each of these"),
        ({(LOSS, "tcp.recovery"): [(0.1, "sack")], LOSS: [0.2]}, "p is in two axes"),
    ],
)
def test_a_wrong_grid_is_refused_before_anything_runs(
    scenario: Path, tmp_path: Path, grid: dict[str, list[object]], message: str
) -> None:
    with pytest.raises(ValueError, match=rf"(?s){message}"):
        airtcp.sweep(scenario, grid, 2, keep=tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_a_mistake_in_the_grid_names_the_key(scenario: Path) -> None:
    unknown = rf"^grid: {re.escape(LOSS)}x: unknown key"
    with pytest.raises(airtcp.ScenarioError, match=unknown) as error:
        airtcp.sweep(scenario, {LOSS + "x": [0.01]}, seeds=1)
    assert (error.value.file, error.value.line, error.value.column) == ("grid", None, None)
    assert error.value.key == LOSS + "x"
    shared = airtcp.Scenario.load(scenario, {"tcp.recovery": "sack"})
    grid: dict[str, list[object]] = {LOSS: [0.01, 2], "tcp.recovry": [1]}
    with pytest.raises(airtcp.ScenarioError) as several:
        airtcp.sweep(shared, grid, seeds=1)
    assert "--" not in str(several.value)


@pytest.mark.parametrize(
    ("override", "axis"),
    [("duration", "duration"), (LOSS, "link.A-B.loss"), (LOSS, ("duration", LOSS))],
)
def test_an_override_that_the_grid_replaces_is_refused(
    scenario: Path, override: str, axis: Axis
) -> None:
    shared = airtcp.Scenario.load(scenario, {override: "1 s" if override == "duration" else 0.5})
    key = axis if isinstance(axis, str) else LOSS
    message = rf"{re.escape(override)} = .* has no effect: {re.escape(key)} is in the grid"
    values: object = "x" if isinstance(axis, str) else ("1 s", 0.1)
    grid: dict[Axis, list[object]] = {axis: [values]}
    with pytest.raises(ValueError, match=message):
        airtcp.sweep(shared, grid, seeds=1)


def test_an_override_of_the_table_that_a_key_of_the_grid_is_in_has_an_effect(
    scenario: Path,
) -> None:
    shared = airtcp.Scenario.load(scenario, {"link.A-B.loss": '{ kind = "bernoulli", p = 0 }'})
    assert len(airtcp.sweep(shared, {LOSS: [0.01, 0.02]}, seeds=1, rows="runs")) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seeds": "x"}, "seeds = 'x': expected how many, or a list of them"),
        ({"seeds": 1.5}, "seeds = 1.5: expected how many"),
        ({"seeds": [1.5]}, "seed 1.5: expected a whole number"),
        ({"grid": [LOSS]}, "grid = .*: expected the values of each key"),
        ({"grid": {3: [1]}}, "key of grid = 3: expected a key of the scenario"),
        ({"client": 3}, "client = 3: expected a distributed.Client"),
        ({"congestion": 3}, "congestion = 3: expected controls by name"),
    ],
)
def test_an_argument_of_another_type_is_named(
    scenario: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        airtcp.sweep(scenario, **{"grid": {}, **arguments})


@pytest.mark.parametrize("jobs", [0, -1])
def test_there_is_a_job_at_least(scenario: Path, jobs: int) -> None:
    with pytest.raises(ValueError, match=rf"jobs = {jobs!r}: expected a number from 1"):
        airtcp.sweep(scenario, {}, jobs=jobs)


def test_seeds_may_be_numpys(scenario: Path) -> None:
    numpys: Any = np.arange(2, 4)
    table = airtcp.sweep(scenario, {}, numpys, rows="runs")
    assert list(table["seed"]) == [2, 3]


def test_unknown_rows_are_refused(scenario: Path) -> None:
    with pytest.raises(ValueError, match=r"'flow': expected one of flows.*did you mean 'flows'"):
        airtcp.sweep(scenario, {}, 1, rows="flow")


def test_a_combination_without_such_rows_is_refused(scenario: Path) -> None:
    grid = {"flow.two.transport": ["tcp", "quic"], "flow.one.transport": ["tcp", "quic"]}
    message = (
        r"rows = 'quic': a run with flow\.two\.transport = tcp and flow\.one\.transport = tcp "
        r"has none \(expected one of flows, links, runs\)"
    )
    with pytest.raises(ValueError, match=message):
        airtcp.sweep(scenario, grid, 1, rows="quic")


def test_rows_that_there_are_not_end_the_sweep_with_the_first_run(
    scenario: Path, tmp_path: Path
) -> None:
    # One job at a time; the runs that it finishes while the first result is read are kept.
    simulated = {"duration": ["20 s"]}
    with pytest.raises(ValueError, match="rows = 'stations': a run with duration = 20 s has none"):
        airtcp.sweep(scenario, simulated, 200, rows="stations", jobs=1, keep=tmp_path / "kept")
    assert 1 <= len(kept(tmp_path / "kept")) < 100


def test_a_plot_is_a_figure_of_its_own() -> None:
    table = table_of({(0.1, 1): 1.0, (0.2, 1): 2.0})
    first, second = (airtcp.plot(table, x="x", y="y", by=()) for _ in range(2))
    assert first.figure is not second.figure
    assert len(first.containers) == len(second.containers) == 1


def test_flows_by_tcp_and_quic_are_in_one_table(scenario: Path) -> None:
    grid = {"flow.two.transport": ["tcp", "quic"], "flow.one.transport": ["tcp", "quic"]}
    table = airtcp.sweep(scenario, grid, 1)
    assert len(table) == 2 * 4
    assert table["goodput"].notna().all()
    by_quic = table["packets_sent"].notna()
    assert (by_quic == table["timeouts"].isna()).all()
    assert by_quic.sum() == 4


# What a figure shows.


def table_of(values: dict[tuple[float, int], float]) -> pd.DataFrame:
    frame = pd.DataFrame(
        [{"x": x, "seed": seed, "flow": "a", "y": y} for (x, seed), y in values.items()]
    )
    frame.attrs["axes"] = [["x"]]
    return frame


def test_intervals_are_students_t_over_the_seeds() -> None:
    frame = table_of({(1, 1): 3.0, (1, 2): 5.0, (1, 3): 4.5, (2, 1): 9.0})
    points = summary(frame, "y", ["x"]).to_dict("list")
    of_one = estimate(np.array([3.0, 5.0, 4.5]), 0.95)
    first = [points[name][0] for name in ("x", "mean", "low", "high", "runs")]
    assert first == [1, *of_one]
    assert points["runs"] == [3, 1]
    assert math.isnan(points["low"][1])


def test_flows_of_a_run_count_as_one_value() -> None:
    frame = pd.concat([table_of({(1, 1): 3.0, (1, 2): 5.0})] * 2)
    points = summary(frame, "y", ["x"])
    assert points.loc[0, "runs"] == 2


def test_a_figure_has_a_line_for_each_combination_of_the_other_keys(scenario: Path) -> None:
    mpl.use("agg")
    table = airtcp.sweep(scenario, GRID, seeds=3)
    axes = airtcp.plot(table, x=LOSS, y="goodput")
    legend = axes.get_legend()
    assert legend is not None
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == ["reno", "sack"]
    assert legend.get_title().get_text() == "TCP recovery"
    assert axes.get_xlabel() == "loss probability, link A-B"
    assert re.fullmatch(r"goodput \([kM]bit/s\)", axes.get_ylabel())
    assert all(line.has_line() for line in drawn(axes))
    with pytest.raises(KeyError, match="goodput"):
        airtcp.plot(table, x=LOSS, y="godput")
    with pytest.raises(ValueError, match="by="):
        airtcp.plot(pd.DataFrame(table.to_dict("list")), x=LOSS, y="goodput")


@dataclass
class Line:
    """A line of a figure."""

    x: list[float]
    y: list[float]
    style: str

    def has_line(self) -> bool:
        return self.style != "None"


def drawn(axes: Axes) -> list[Line]:
    """The lines of a figure, without error bars."""
    lines = (container[0] for container in axes.containers)
    return [
        Line([*map(float, line.get_xdata())], [*map(float, line.get_ydata())], line.get_linestyle())
        for line in lines
    ]


@pytest.fixture
def axes() -> Iterator[Axes]:
    mpl.use("agg")
    figure, axes = pyplot.subplots()
    yield axes
    pyplot.close(figure)


def measured(key: str, values: list[object], by: list[object] | None = None) -> pd.DataFrame:
    """A table in which goodput is 1, 2, … Mbit/s, a little more with each seed."""
    rows = [
        {key: value, "tcp.recovery": group, "seed": seed, "goodput": 1e6 * (at + seed / 10)}
        for group in by or ["sack"]
        for at, value in enumerate(values, start=1)
        for seed in (1, 2, 3)
    ]
    frame = pd.DataFrame(rows)
    frame.attrs["axes"] = [[key], *([["tcp.recovery"]] if by else [])]
    return frame


def test_categories_are_not_joined_and_stand_side_by_side(axes: Axes) -> None:
    table = measured("tcp.congestion", ["cubic", "reno", "bbr"], by=["sack", "rack"])
    airtcp.plot(table, x="tcp.congestion", y="goodput", ax=axes)
    first, second = drawn(axes)
    assert not first.has_line()
    assert not second.has_line()
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["cubic", "reno", "bbr"]
    assert first.x == pytest.approx([-0.05, 0.95, 1.95])
    assert second.x == pytest.approx([0.05, 1.05, 2.05])
    assert axes.get_xlabel() == "TCP congestion"


def test_names_are_shown_as_they_are(axes: Axes) -> None:
    # Those that begin with `_` matplotlib keeps out of the legend.
    rows = [(flow, x, seed, 1.0 + seed) for flow in ("_a", "b") for x in (1, 2) for seed in (1, 2)]
    table = pd.DataFrame(rows, columns=["flow", "x", "seed", "goodput"])
    legend = airtcp.plot(table, x="x", y="goodput", by="flow", ax=axes).get_legend()
    assert legend is not None
    assert [text.get_text().strip() for text in legend.get_texts()] == ["_a", "b"]


def test_truth_values_are_categories(axes: Axes) -> None:
    airtcp.plot(measured("tcp.sack", [False, True]), x="tcp.sack", y="goodput", ax=axes)
    assert not drawn(axes)[0].has_line()
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["False", "True"]


def test_quantities_are_numbers_in_their_unit(axes: Axes) -> None:
    table = measured("link.A-B.delay", ["5 ms", "0.1 s", "20 ms"])
    airtcp.plot(table, x="link.A-B.delay", y="goodput", ax=axes)
    (line,) = drawn(axes)
    assert line.x == pytest.approx([5, 20, 100])
    assert line.has_line()
    assert axes.get_xlabel() == "delay, link A-B (ms)"


def test_quantities_of_different_kinds_are_categories(axes: Axes) -> None:
    airtcp.plot(measured("x", ["5 ms", "20 kB"]), x="x", y="goodput", ax=axes)
    assert not drawn(axes)[0].has_line()


def test_data_stay_in_si_units_and_the_axis_is_scaled(axes: Axes) -> None:
    airtcp.plot(measured("x", [1, 2]), x="x", y="goodput", ax=axes)
    assert drawn(axes)[0].y == pytest.approx([1.2e6, 2.2e6])
    assert axes.get_ylabel() == "goodput (Mbit/s)"
    assert axes.yaxis.get_major_formatter()(1.5e6) == "1.5"


def test_seeds_are_no_key_and_a_confidence_is_a_share(axes: Axes) -> None:
    table = measured("x", [1, 2], ["sack", "reno"])
    with pytest.raises(ValueError, match="'seed' is no key to draw by"):
        airtcp.plot(table, x="seed", y="goodput", by="x", ax=axes)
    for wrong in (0, 1, 95):
        with pytest.raises(ValueError, match=rf"confidence = {wrong}: expected a share"):
            airtcp.plot(table, x="x", y="goodput", confidence=wrong, ax=axes)
    airtcp.plot(table, x="x", y="goodput", by="tcp.recovery", ax=axes)


def test_names_are_no_metric(axes: Axes) -> None:
    table = measured("x", [1, 2]).assign(flow="ftp")
    with pytest.raises(ValueError, match="'flow' has no numbers to draw, such as 'ftp'"):
        airtcp.plot(table, x="x", y="flow", ax=axes)


@pytest.mark.parametrize(
    ("metric", "largest", "label"),
    [
        ("goodput", 3e9, "goodput (Gbit/s)"),
        ("goodput", 900.0, "goodput (bit/s)"),
        ("download_time", 20.0, "download time (s)"),
        ("rtt_p95", 0.05, "RTT 95th percentile (ms)"),
        ("queueing_delay_p99", 5e-5, "queueing delay 99th percentile (µs)"),
        ("delivered_bytes", 2e6, "delivered (MB)"),
        ("cwnd", 500.0, "cwnd (bytes)"),
        ("timeouts", 3.0, "timeouts"),
        ("retransmission_ratio", 0.01, "retransmission ratio"),
        ("events", 1e6, "events"),
    ],
)
def test_metrics_are_named_in_words_with_their_unit(
    metric: str, largest: float, label: str
) -> None:
    assert metric_label(metric, scale_of(unit_of(metric), largest).unit) == label


@pytest.mark.parametrize(
    ("key", "label"),
    [
        ("duration", "duration"),
        ("tcp.rto.min", "TCP RTO min"),
        ("link.AP-phone.loss.p", "loss probability, link AP-phone"),
        ("node.n.mobility.speed", "mobility speed, node n"),
        ("wlan.cell.bit-error-rate", "bit error rate, WLAN cell"),
    ],
)
def test_keys_are_named_in_words(key: str, label: str) -> None:
    assert key_label(key) == label


# Controls of one's own.


class Halving(CongestionControl):
    def on_growth(self, window: Window, ack: Ack) -> None:
        window.grow(window.smss * min(ack.acked, window.cwnd) // window.cwnd)

    def on_fast_retransmit(self, window: Window, loss: Loss) -> None:
        window.cwnd = window.ssthresh = max(loss.flight // 2, 2 * window.smss)

    def on_timeout(self, window: Window, timeout: Timeout) -> None:
        window.ssthresh = max(timeout.flight // 2, 2 * window.smss)
        window.cwnd = window.smss


OWN = {"tcp.congestion": "custom", "tcp.control": "mine"}


def test_a_sweep_takes_controls_of_ones_own(scenario: Path) -> None:
    loaded = airtcp.Scenario.load(scenario, set=OWN)
    table = airtcp.sweep(loaded, {LOSS: [0.01, 0.05]}, 2, congestion={"mine": Halving})
    alone = airtcp.Scenario.load(scenario, set={**OWN, LOSS: 0.05})
    run = alone.run(seed=2, congestion={"mine": Halving})
    assert list(table["goodput"])[-2:] == list(run.flows["goodput"])


@pytest.mark.parametrize("other", ["keep", "client"])
def test_controls_of_ones_own_are_neither_kept_nor_sent(scenario: Path, other: str) -> None:
    loaded = airtcp.Scenario.load(scenario, set=OWN)
    more: dict[str, Any] = {other: "somewhere"}
    with pytest.raises(ValueError, match=rf"congestion=… does not go together with {other}=…"):
        airtcp.sweep(loaded, {}, 1, congestion={"mine": Halving}, **more)


def test_a_control_that_is_missing_is_named_before_anything_runs(scenario: Path) -> None:
    loaded = airtcp.Scenario.load(scenario, set=OWN)
    with pytest.raises(airtcp.ScenarioError, match="expected a program that brings it along"):
        airtcp.sweep(loaded, {}, 1)
    with pytest.raises(airtcp.ScenarioError, match="did you mean `mina`"):
        airtcp.sweep(loaded, {}, 1, congestion={"mina": Halving})


# Files.


@pytest.mark.parametrize(("ending", "read"), [("csv", pd.read_csv), ("parquet", pd.read_parquet)])
def test_the_ending_says_what_is_written(
    scenario: Path, ending: str, read: Callable[[str], pd.DataFrame]
) -> None:
    table = airtcp.sweep(scenario, {LOSS: [0.0, 0.05]}, 2, out=f"x.{ending}")
    pd.testing.assert_frame_equal(read(f"x.{ending}"), table, check_dtype=False)


def test_an_unknown_ending_is_refused_before_anything_runs(scenario: Path) -> None:
    with pytest.raises(ValueError, match=r"'x.xlsx': expected a name that ends in .csv or"):
        airtcp.sweep(scenario, {}, 1, out="x.xlsx")


def test_what_is_no_file_is_refused_before_anything_runs(scenario: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    with pytest.raises(ValueError, match="there is a folder of this name"):
        airtcp.sweep(scenario, {LOSS: [0.01]}, seeds=1, out=folder)


def test_a_missing_folder_is_named_before_anything_runs(scenario: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none/x\.csv: there is no folder none"):
        airtcp.sweep(scenario, {}, 1, out="none/x.csv", keep=tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


# The command.


def run(*arguments: str, simulator: FakeSimulator | None = None) -> int:
    return main(["one.toml", "--runs", "2", *arguments], simulator)


def test_the_command_writes_what_the_function_returns(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--axis", f"{LOSS}=0.01,0.05", "--axis", "tcp.recovery=reno,sack") == 0
    captured = capsys.readouterr()
    path = captured.out.split(":")[0]
    assert re.fullmatch(r"results/one-[0-9a-f]{8}\.csv", path)
    assert captured.out.startswith(f"{path}: 16 rows, ")
    assert "8 of 8 runs" in captured.err
    grid: dict[str, list[object]] = {LOSS: [0.01, 0.05], "tcp.recovery": ["reno", "sack"]}
    table = airtcp.sweep(scenario, grid, 2)
    written = pd.read_csv(path)
    pd.testing.assert_frame_equal(written, table, check_dtype=False)
    assert written[LOSS].dtype == float


@pytest.mark.usefixtures("scenario")
def test_every_sweep_has_a_file_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    commands = [
        ["--axis", f"{LOSS}=0.01"],
        ["--axis", f"{LOSS}=0.02"],
        ["--axis", f"{LOSS}=0.01", "--set", "tcp.recovery=sack"],
        ["--axis", f"{LOSS}=0.01", "--rows", "links"],
        ["--axis", f"{LOSS}=0.01", "--seed", "7"],
    ]
    assert [run(*command) for command in (*commands, commands[0])] == [0] * 6
    said = [line.split(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert len(set(said[:5])) == 5
    assert said[5] == said[0]
    assert {f"results/{path.name}" for path in Path("results").glob("*.csv")} == set(said)
    # What they have in common is run once.
    assert len(kept("results/one.runs")) == 2 * 4


@pytest.mark.usefixtures("scenario")
def test_a_key_changes_together_with_the_axis_before_it() -> None:
    axes = ["--axis", f"{LOSS}=0.01,0.02", "--with", "link.A-B.delay=5 ms,20 ms"]
    assert run(*axes, "--axis", "tcp.recovery=newreno,sack", "--out", "a.csv") == 0
    table = pd.read_csv("a.csv")
    pairs = {*zip(table[LOSS], table["link.A-B.delay"], strict=True)}
    assert (len(table), pairs) == (2 * 2 * 2 * 2, {(0.01, "5 ms"), (0.02, "20 ms")})


@pytest.mark.usefixtures("scenario")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--with", "a=1,2"], "--with a: there is no --axis before it"),
        (["--axis", "a=1,2", "--with", "b=1"], "--with b has 1 value, --axis a before it 2"),
        (["--axis", "a=1,2", "--with", "a=3,4"], "--with a: it is in that axis already"),
        (["--axis", "a=1", "--with", "b=1", "--axis", "b=1"], "--axis b is there twice"),
    ],
)
def test_what_cannot_change_together_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code: object = run(*arguments)
    except SystemExit as refused:
        code = refused.code
    assert code == 2
    assert message in capsys.readouterr().err


@pytest.mark.usefixtures("scenario")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--axis", "duration=5 s", "--set", "duration=6 s"],
            "--set duration=6 s has no effect: --axis duration replaces it",
        ),
        (
            ["--axis", "tcp.recovery=sack", "--with", f"{LOSS}=0.1", "--set", f"{LOSS}=0.2"],
            f"--set {LOSS}=0.2 has no effect: --with {LOSS} replaces it",
        ),
    ],
)
def test_a_set_that_an_axis_replaces_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    assert message in capsys.readouterr().err
    assert not Path("results").exists()


@pytest.mark.usefixtures("scenario")
@pytest.mark.parametrize("rows", ["quic", "stations", "udp", "calls"])
def test_rows_that_runs_do_not_have_are_exit_2(
    rows: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--rows", rows, "--out", "a.csv") == 2
    message = f"rows = '{rows}': a run has none (expected one of flows, links, runs)"
    assert message in capsys.readouterr().err
    # Of kept runs, too.
    assert run("--out", "a.csv") == 0
    assert run("--rows", rows, "--out", "a.csv") == 2
    assert message in capsys.readouterr().err


@pytest.mark.usefixtures("scenario")
def test_the_nearest_rows_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("--rows", "flow")
    assert "'flow': expected one of flows, quic" in (said := capsys.readouterr().err)
    assert "did you mean 'flows'?" in said


@pytest.mark.usefixtures("scenario")
def test_one_row_is_one_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["one.toml", "--runs", "1", "--rows", "runs"]) == 0
    assert re.search(r": 1 row, \d+ columns$", capsys.readouterr().out.strip())


@pytest.mark.usefixtures("scenario")
def test_a_file_of_another_kind_is_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    hint = "it has no key of a scenario (`airtcp check` tells what it is)"
    Path("link.toml").write_text('[up]\nrate = "1 Mbit/s"\n')
    for other in ("link.toml", f"{Path(__file__).parents[2]}/examples/gateway.toml"):
        assert main([other]) == 2
        assert f"{other}: {hint}" in capsys.readouterr().err
        assert plot_main([other]) == 2
        assert f"{other}: {hint}" in capsys.readouterr().err
    for text in ("", "x = \n", 'x = 1\nduration = "1 s"\n'):
        Path("link.toml").write_text(text)
        assert main(["link.toml"]) == 2
        assert hint not in capsys.readouterr().err


@pytest.mark.usefixtures("scenario")
def test_the_same_command_runs_what_is_missing() -> None:
    assert run("--axis", f"{LOSS}=0.01", "--out", "a.parquet") == 0
    before = {file: file.stat().st_mtime_ns for file in Path("a.runs").iterdir()}
    assert run("--axis", f"{LOSS}=0.01,0.02", "--rows", "links", "--out", "a.parquet") == 0
    assert all(file.stat().st_mtime_ns == time for file, time in before.items())
    assert len(kept("a.runs")) == 4
    assert len(pd.read_parquet("a.parquet")) == 2 * 2 * 2


@pytest.mark.usefixtures("scenario")
def test_a_damaged_kept_run_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--out", "a.parquet") == 0
    before = Path("a.parquet").read_bytes()
    (damaged,) = Path("a.runs").iterdir()
    assert run("--seed", "7", "--out", "a.parquet") == 0
    (other,) = {*Path("a.runs").iterdir()} - {damaged}
    damaged.write_bytes(damaged.read_bytes()[:-1])
    time = other.stat().st_mtime_ns
    capsys.readouterr()
    assert run("--out", "a.parquet") == 0
    assert f"airtcp sweep: {damaged} is damaged: run again" in capsys.readouterr().err
    assert other.stat().st_mtime_ns == time
    assert Path("a.parquet").read_bytes() == before


@pytest.mark.usefixtures("scenario")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--axis", "link.A-B.los.p=0.1"], "link.A-B.los"),
        (["--axis", f"{LOSS}=0.1,2"], "2"),
        (["--axis", f"{LOSS}=0.1", "--axis", f"{LOSS}=0.2"], f"--axis {LOSS} is there twice"),
        (["--set", "tcp.recovry=sack"], "recovery"),
        (["--out", "x.xls"], "'x.xls': expected a name that ends in .csv or .parquet"),
        (["--out", "results/x.csv"], "results/x.csv: there is no folder results"),
        (["--set", "tcp.congestion=custom", "--set", "tcp.control=mine"], "brings it along"),
        (["--seed=-1"], "seed -1"),
    ],
)
def test_a_wrong_key_or_value_is_exit_2_before_anything_runs(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    assert message in capsys.readouterr().err
    assert not Path("results").exists()


@pytest.mark.usefixtures("scenario")
@pytest.mark.parametrize("arguments", [["--axis", LOSS], ["--axis", f"{LOSS}=1,,2"], ["--runs=0"]])
def test_a_nonsense_argument_is_exit_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        run(*arguments)
    assert exit_.value.code == 2


@pytest.mark.usefixtures("scenario")
def test_a_scenario_that_is_not_there_is_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["two.toml"]) == 2
    assert "two.toml" in capsys.readouterr().err


def test_a_comma_in_brackets_or_quotes_is_part_of_a_value() -> None:
    table = '{ kind = "bernoulli", p = 0.1 }'
    assert axis(f"link.A-B.loss={table}, [1,2]") == ("link.A-B.loss", [table, "[1,2]"])
    assert axis('link."a=b".x="1,2",3') == ('link."a=b".x', ['"1,2"', "3"])


def test_presets_are_swept_like_any_key(scenario: Path) -> None:
    table = airtcp.sweep(scenario, {"tcp.preset": ["linux", "rfc"]}, seeds=3)
    said = airtcp.sweep(scenario, {}, seeds=3)
    linux, rfc = (
        table[table["tcp.preset"] == preset].reset_index(drop=True) for preset in ("linux", "rfc")
    )
    # The scenario says nothing of TCP.
    assert list(linux["goodput"]) == list(said["goodput"])
    assert list(rfc["goodput"]) != list(said["goodput"])
    with pytest.raises(airtcp.ScenarioError, match="did you mean `linux`"):
        airtcp.sweep(scenario, {"tcp.preset": ["linus"]}, seeds=1)


@pytest.mark.parametrize("by_axis", [False, True])
def test_a_table_does_not_take_the_place_of_a_file_that_is_read(
    by_axis: bool, scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = "time (s),rate (Mbit/s)\n0,2\n"
    path = scenario.with_name("path.csv")
    path.write_text(table)
    rate, file = 'rate = "2 Mbit/s"', '{ file = "path.csv" }'
    grid: dict[str, list[object]] = {"tcp.recovery": ["sack"]}
    if by_axis:
        grid["link.A-B.rate"] = ["2 Mbit/s", file]
    else:
        scenario.write_text(SCENARIO.replace(rate, f"rate = {file}"))
    with pytest.raises(ValueError, match=r"path\.csv: is read, too"):
        airtcp.sweep(scenario, grid, out=path)
    axes = [word for key, values in grid.items() for word in ("--axis", f"{key}={values[-1]}")]
    assert main([str(scenario), *axes, "--out", "path.csv"]) == 2
    assert "path.csv: is read, too" in capsys.readouterr().err
    assert path.read_text() == table
