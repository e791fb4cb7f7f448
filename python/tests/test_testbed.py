"""Variants that a program measures: here one that makes its numbers up."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pandas as pd
import pytest

from airtcp.runs.execute import Simulator
from airtcp.study import definition, plan
from airtcp.study.command import main
from airtcp.study.document import StudyError
from tests.fakes import write_study

PROGRAM = """
import json, os
size, stack = os.environ["CASE"].split()
print("some words first")
print(json.dumps({"goodput": 100.0 * int(size)}))
"""

SCENARIO = """
duration = "2 s"
node = [{ name = "A" }, { name = "B" }]
link = [{ between = ["A", "B"], rate = "1 Mbit/s", delay = "1 ms" }]
flow = [{ name = "ftp", from = "A", to = "B" }]
tcp.preset = "rfc"
"""

STUDY = """
title = "Beside reality"
paper = "Nobody: Nothing"
runs = 2

[[testbed]]
key = { stack = "real" }
command = "PYTHON program.py"
variable = "CASE"
case = "$size $stack"

[[axis.size]]
key = { size = [1, 2] }
set = { "link.A-B.rate" = "$size Mbit/s" }
[[axis.stack]]
key = { stack = ["simulator", "real"] }

[metric.goodput]
unit = "kbit/s"
from = "flow.goodput"
scale = 1e-3
definition = "bytes delivered over time"

[[experiment]]
id = "E1"
title = "First"
scenario = "scenarios/one.toml"
grid = [["size", "stack"]]
metrics = ["goodput"]
"""


def write(folder: Path, study: str = STUDY) -> Path:
    small = write_study(folder, study.replace("PYTHON", sys.executable), "")
    (small / "paper.csv").unlink()
    (small / "scenarios" / "one.toml").write_text(SCENARIO)
    (folder.parent / "program.py").write_text(PROGRAM)
    return small


def test_measured_variants_stand_beside_simulated_ones(tmp_path: Path) -> None:
    small = write(tmp_path / "studies")
    assert main(["run", str(small), "--out", str(tmp_path / "out")], Simulator(build="1")) == 0
    cells = pd.read_csv(tmp_path / "out" / "cells.csv").set_index("variant").ours
    assert cells["size=1;stack=real"] == 100
    assert cells["size=2;stack=real"] == 200
    assert 900 < cells["size=1;stack=simulator"] < 1000


def test_the_first_testbed_that_has_the_pairs_of_a_variant_measures_it(tmp_path: Path) -> None:
    first = STUDY[STUDY.index("[[testbed]]") : STUDY.index("[[axis.size]]")]
    special = first.replace('stack = "real"', 'stack = "real", size = 2').replace("$size", "7")
    small = write(tmp_path / "studies", STUDY.replace(first, special + first))
    assert main(["run", str(small), "--out", str(tmp_path / "out")], Simulator(build="1")) == 0
    cells = pd.read_csv(tmp_path / "out" / "cells.csv").set_index("variant").ours
    assert cells["size=1;stack=real"] == 100
    assert cells["size=2;stack=real"] == 700


def test_a_program_that_measures_nothing_is_an_error_with_its_last_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUST_BACKTRACE", "1")
    small = write(tmp_path / "studies")
    program = "import os; print('no namespaces, trace', os.environ['RUST_BACKTRACE'])"
    (tmp_path / "program.py").write_text(program)
    assert main(["run", str(small), "--out", str(tmp_path / "out")], Simulator(build="1")) == 1
    said = capsys.readouterr().err
    assert "CASE='1 real'" in said
    assert "no namespaces, trace 0" in said


def test_a_null_is_a_run_without_a_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = write(tmp_path / "studies")
    (tmp_path / "program.py").write_text("print('{\"goodput\": null}')")
    assert main(["run", str(small), "--out", str(tmp_path / "out")], Simulator(build="1")) == 0
    cells = pd.read_csv(tmp_path / "out" / "cells.csv").set_index("variant")
    assert cells.runs["size=1;stack=real"] == 0
    capsys.readouterr()


def test_a_study_that_needs_root_says_so_before_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study = STUDY.replace('variable = "CASE"', 'variable = "CASE"\nneeds-root = true')
    small = write(tmp_path / "studies", study)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main(["run", str(small), "--out", str(tmp_path / "out")], Simulator(build="1")) == 2
    assert "needs root" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_study_that_compiles_says_so_where_there_is_no_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = STUDY.replace("PYTHON program.py", "cargo test")
    small = write(tmp_path / "studies", study)
    assert main(["run", str(small), "--out", str(tmp_path / "out")], Simulator(build="1")) == 2
    assert "run it in a checkout" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_case_that_names_no_key_is_refused_with_its_line(tmp_path: Path) -> None:
    small = write(tmp_path / "studies", STUDY.replace("$size $stack", "$speed"))
    with pytest.raises(StudyError, match=r"study\.toml:10: testbed\[0\]\.case: .*no key 'speed'"):
        definition.load(small)


def test_a_figure_of_series_cannot_draw_what_a_testbed_measures(tmp_path: Path) -> None:
    figure = """
[[experiment.figure]]
id = "E1"
kind = "trace"
title = "window"
series = ["cwnd"]
label = "window"
unit = "B"
window = ["0 s", "2 s"]
"""
    small = write(tmp_path / "studies", STUDY + figure)
    with pytest.raises(StudyError, match=r"study\.toml:31: figure E1: .*no series of size=1"):
        definition.load(small)


def test_the_live_study_measures_each_kernel_variant_with_a_case() -> None:
    study = definition.load(definition.find("live"))
    jobs = plan.jobs(study, study.experiments, 1)
    cases = {job.text for job in jobs if job.testbed is not None}
    assert {"m-tcp-plus cubic 10 late", "steady cubic 8 20 60 40", "mobile karak 1"} <= cases
    assert {"none reno 5 nothing", "none reno 5 nothing 1638"} <= cases
    assert len(cases) == 8 * 3 * 3 + 5 * 3 * 3 + 2 + 2 * 3
