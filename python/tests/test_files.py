"""Scenarios that name other files."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import airtcp
from airtcp.runs.job import Job
from tests.fakes import kept

TEXT = """
duration = "2 s"
node = [{ name = "AP", position = ["0 m", "0 m"] }, { name = "MH", mobility = { file = "m.tcl" } }]
wlan = [{ name = "cell", stations = ["AP", "MH"] }]
flow = [{ from = "AP", to = "MH", bytes = "20 kB" }]
"""
NEAR, FAR = "$node_(0) set X_ 10\n", "$node_(0) set X_ 9000\n"


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "m.tcl").write_text(NEAR)
    file = tmp_path / "cell.toml"
    file.write_text(TEXT)
    return file


def goodput(scenario: airtcp.Scenario) -> float:
    return float(scenario.run().flows["goodput"].iloc[0])


def test_a_file_is_found_beside_the_scenario(scenario: Path) -> None:
    assert goodput(airtcp.Scenario.load(scenario)) > 0
    (scenario.parent / "far.tcl").write_text(FAR)
    far = airtcp.Scenario.load(scenario, set={"node.MH.mobility.file": "far.tcl"})
    assert goodput(far) == 0


def test_a_scenario_pickles_with_the_files_that_it_names(scenario: Path) -> None:
    loaded = airtcp.Scenario.load(scenario)
    assert loaded.source.files == (("m.tcl", NEAR),)
    (scenario.parent / "m.tcl").unlink()
    copied = pickle.loads(pickle.dumps(loaded))
    assert copied.source == loaded.source
    assert goodput(copied) == goodput(loaded)


def test_a_missing_file_is_named(scenario: Path) -> None:
    (scenario.parent / "m.tcl").unlink()
    with pytest.raises(
        airtcp.ScenarioError, match=r"node\.MH\.mobility\.file: .*m\.tcl: there is no such file"
    ):
        airtcp.Scenario.load(scenario)


def test_a_run_is_done_again_when_a_file_has_changed(scenario: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    near = airtcp.sweep(scenario, {}, 1, keep=folder)
    assert len(kept(folder)) == 1
    (scenario.parent / "m.tcl").write_text(FAR)
    far = airtcp.sweep(scenario, {}, 1, keep=folder)
    assert len(kept(folder)) == 2
    assert near["goodput"].iloc[0] > far["goodput"].iloc[0] == 0


def test_a_swept_file_is_part_of_its_run(scenario: Path) -> None:
    (scenario.parent / "far.tcl").write_text(FAR)
    table = airtcp.sweep(scenario, {"node.MH.mobility.file": ["m.tcl", "far.tcl"]}, 1)
    near, far = table["goodput"]
    assert near > far == 0


def test_a_job_without_files_keeps_its_name() -> None:
    job = Job("a.toml", "text", (), 1, ())
    assert job.address("build") == "61053900e85bbc62c70afa5242dde860"
    with_file = Job("a.toml", "text", (), 1, (), files=(("m.tcl", NEAR),))
    assert with_file.address("build") != job.address("build")
