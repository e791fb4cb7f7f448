from __future__ import annotations

import math
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import airtcp
from airtcp.study.stats import estimate
from airtcp.sweeps.command import axis, main
from airtcp.sweeps.plot import summary
from tests.fakes import FakeSimulator

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


def test_what_is_kept_is_not_run_again(scenario: Path, tmp_path: Path) -> None:
    table = airtcp.sweep(scenario, {LOSS: [0.01]}, 2, keep=tmp_path / "kept")
    times = {file: file.stat().st_mtime_ns for file in (tmp_path / "kept").iterdir()}
    more = airtcp.sweep(scenario, {LOSS: [0.01]}, 3, keep=tmp_path / "kept")
    assert len(times) == 2
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
        ({LOSS: [0.1, 0.1]}, "listed twice"),
    ],
)
def test_a_wrong_grid_is_refused_before_anything_runs(
    scenario: Path, tmp_path: Path, grid: dict[str, list[object]], message: str
) -> None:
    with pytest.raises(ValueError, match=rf"(?s){message}"):
        airtcp.sweep(scenario, grid, 2, keep=tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_unknown_rows_are_refused(scenario: Path) -> None:
    with pytest.raises(ValueError, match=r"'flow': expected one of flows.*did you mean 'flows'"):
        airtcp.sweep(scenario, {}, 1, rows="flow")


# What a figure shows.


def table_of(values: dict[tuple[float, int], float]) -> pd.DataFrame:
    frame = pd.DataFrame(
        [{"x": x, "seed": seed, "flow": "a", "y": y} for (x, seed), y in values.items()]
    )
    frame.attrs["axes"] = ["x"]
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
    assert labels == ["tcp.recovery = reno", "tcp.recovery = sack"]
    with pytest.raises(KeyError, match="goodput"):
        airtcp.plot(table, x=LOSS, y="godput")
    with pytest.raises(ValueError, match="by="):
        airtcp.plot(pd.DataFrame(table.to_dict("list")), x=LOSS, y="goodput")


# The command.


def run(*arguments: str, simulator: FakeSimulator | None = None) -> int:
    return main(["one.toml", "--runs", "2", *arguments], simulator)


def test_the_command_writes_what_the_function_returns(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--axis", f"{LOSS}=0.01,0.05", "--axis", "tcp.recovery=reno,sack") == 0
    captured = capsys.readouterr()
    assert captured.out == "results/one.parquet: 16 rows, " + captured.out.split("rows, ")[1]
    assert "8 of 8 runs" in captured.err
    grid: dict[str, list[object]] = {LOSS: [0.01, 0.05], "tcp.recovery": ["reno", "sack"]}
    table = airtcp.sweep(scenario, grid, 2)
    written = pd.read_parquet("results/one.parquet")
    pd.testing.assert_frame_equal(written, table, check_dtype=False)
    assert written[LOSS].dtype == float
    axes = airtcp.plot(written, x=LOSS, y="goodput")
    assert axes.get_legend() is not None


@pytest.mark.usefixtures("scenario")
def test_the_same_command_runs_what_is_missing() -> None:
    assert run("--axis", f"{LOSS}=0.01", "--out", "a.parquet") == 0
    kept = {file: file.stat().st_mtime_ns for file in Path("a.runs").iterdir()}
    assert run("--axis", f"{LOSS}=0.01,0.02", "--rows", "links", "--out", "a.parquet") == 0
    assert all(file.stat().st_mtime_ns == time for file, time in kept.items())
    assert len(list(Path("a.runs").iterdir())) == 4
    assert len(pd.read_parquet("a.parquet")) == 2 * 2 * 2


@pytest.mark.usefixtures("scenario")
def test_a_damaged_kept_run_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--out", "a.parquet") == 0
    before = Path("a.parquet").read_bytes()
    damaged, other = sorted(Path("a.runs").iterdir())
    damaged.write_bytes(damaged.read_bytes()[:-1])
    time = other.stat().st_mtime_ns
    capsys.readouterr()
    assert run("--out", "a.parquet") == 0
    assert f"{damaged} is damaged; one.toml --seed" in capsys.readouterr().err
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
