from __future__ import annotations

import ast
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from airtcp.study import claims_page, definition
from airtcp.study.chart import Chart
from airtcp.study.command import main
from airtcp.study.document import StudyError
from tests.fakes import CATALOGUE, STUDY, FakeSimulator, write_study
from tests.needs import native

FILES = {"cells.csv", "cells.parquet", "claims.csv", "report.html", "figures", "runs"}


@dataclass(frozen=True)
class Finished:
    """A complete run of the small study."""

    folder: Path
    out: str
    err: str


@pytest.fixture(scope="module", autouse=True)
def the_second_of_january_1970() -> Iterator[None]:
    """Reports have a date."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "86400")
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("finished")
    small = write_study(folder)
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(
            ["run", str(small), "--jobs", "1", "--out", str(folder / "out")], FakeSimulator()
        )
    assert code == 0
    return Finished(folder / "out", out.getvalue(), err.getvalue())


@pytest.fixture
def studies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of one small study, whose figures are empty files: drawing takes most of a run's time."""

    def undrawn(_: Chart, *suffixes: str) -> dict[str, bytes]:
        return dict.fromkeys(suffixes, b"")

    monkeypatch.setattr("airtcp.study.picture.draw", undrawn)
    write_study(tmp_path / "studies")
    monkeypatch.setenv("AIRTCP_STUDIES", str(tmp_path / "studies"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "studies"


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def run(*arguments: str, simulator: FakeSimulator | None = None) -> int:
    return main(["run", "small", *arguments], simulator or FakeSimulator())


def test_a_run_writes_tables_report_and_figures(finished: Finished) -> None:
    assert {file.name for file in finished.folder.iterdir()} == FILES
    names = {file.name for file in (finished.folder / "figures").iterdir()}
    assert names == {
        f"{name}.{kind}"
        for name in ("E1", "E1-lines", "E2", "E2-timeline", "E2-bars")
        for kind in ("svg", "png", "pdf")
    }
    assert "1 of 1 claims hold, 0 undecided, 0 refuted (4 runs per variant)" in finished.out
    assert "1 of 1 numbers of the paper are met within 10 %" in finished.out
    assert f"report: {finished.folder / 'report.html'}" in finished.out
    assert "8 of 8 runs" in finished.err


def test_a_run_prints_counts_and_where_the_rest_is(
    studies: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = STUDY.replace(
        "runs = 4\n", 'runs = 4\nsummary = "What it shows."\nheadline = "E1-lines"\n'
    )
    (studies / "small" / "study.toml").write_text(text)
    assert run("--quick") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines[0] == ["A", "small", "study", "holds", "undecided", "refuted"]
    assert lines[2:4] == [["E1", "First", "1"], ["What", "it", "shows."]]
    assert lines[-2][:2] == ["figure:", "results/small/figures/E1-lines.svg"]
    assert (tmp_path / lines[-2][1]).exists()
    assert lines[-1][:2] == ["report:", "results/small/report.html"]
    assert not any("faster" in words for words in lines)
    assert run("--quick", "--claims") == 0
    assert "Size 2 is faster" in capsys.readouterr().out


def test_cells_have_the_columns_and_the_papers_numbers(finished: Finished) -> None:
    text = (finished.folder / "cells.csv").read_text()
    assert text.splitlines()[0] == (
        "study,experiment,variant,metric,unit,paper,ours,ci_low,ci_high,runs,calibrated"
    )
    cells = pd.read_csv(finished.folder / "cells.csv")
    assert len(cells) == 2 * 2 + 2 * 3 + 2
    fast = cells[(cells.variant == "size=2") & (cells.metric == "goodput")].iloc[0]
    assert (fast.study, fast.experiment, fast.unit, fast.paper) == ("small", "E1", "kbit/s", 200)
    assert fast.ci_low < fast.ours < fast.ci_high
    assert fast.runs == 4
    assert list(cells[cells.paper.notna()].variant) == ["size=2"]
    assert "size=2;t=5" in set(cells.variant)
    parquet = pd.read_parquet(finished.folder / "cells.parquet")
    pd.testing.assert_frame_equal(parquet, cells, check_dtype=False)


def test_claims_are_rows(finished: Finished) -> None:
    claims = pd.read_csv(finished.folder / "claims.csv")
    assert ",".join(claims.columns) == (
        "study,experiment,claim,judges,reading,text,verdict,shown,contradicted,calibrated,evidence,"
        "runs"
    )
    row = claims.iloc[0][["claim", "text", "verdict"]]
    assert row.tolist() == ["faster", "Size 2 is faster", "holds"]


def test_outputs_are_the_same_bytes_at_any_number_of_jobs(
    tmp_path: Path, finished: Finished
) -> None:
    small = write_study(tmp_path)
    arguments = ["run", str(small), "--jobs", "2", "--out", str(tmp_path / "out")]
    assert main(arguments, FakeSimulator()) == 0
    assert contents(tmp_path / "out") == contents(finished.folder)


def test_the_report_needs_no_other_file(finished: Finished) -> None:
    page = (finished.folder / "report.html").read_text()
    assert page.count('<figure class="chart">') == 5
    assert "<link" not in page
    assert "<script src" not in page
    assert "paper 200 kbit/s" in page
    assert "<q>It is faster.</q> §1" in page


WITHIN = 'test = "within"\nlow = 205'
"""Neither shown nor refuted: the goodput of size 2 is spread over 200 to 210 kbit/s."""


@pytest.mark.parametrize(
    ("test", "arguments", "code", "said"),
    [
        ('test = "increasing"', [], 0, "1 of 1 claims hold, 0 undecided, 0 refuted"),
        ('test = "decreasing"', [], 4, "0 of 1 claims hold, 0 undecided, 1 refuted"),
        ('test = "decreasing"', ["--quick"], 4, "0 of 1 claims hold, 0 undecided, 1 refuted"),
        (WITHIN, [], 3, "0 of 1 claims hold, 1 undecided, 0 refuted"),
        (WITHIN, ["--quick"], 0, "0 of 1 claims hold, 1 undecided, 0 refuted"),
    ],
)
def test_the_exit_code_tells_the_verdicts(
    studies: Path,
    test: str,
    arguments: list[str],
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = STUDY.replace('test = "increasing"', test)
    if test == WITHIN:
        text = text.replace("variants = [{ size = 1 }, { size = 2 }]", "variants = [{ size = 2 }]")
    (studies / "small" / "study.toml").write_text(text)
    assert run(*arguments) == code
    assert said in capsys.readouterr().out


CALIBRATED = """
[[calibrated]]
experiment = "E1"
metric = "goodput"
reason = "the rate was chosen to meet it"
"""


def test_a_calibrated_cell_leaves_the_score(
    studies: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (studies / "small" / "study.toml").write_text(STUDY + CALIBRATED)
    assert run() == 0
    score = "All numbers of the paper are calibrated, and not compared"
    out = tmp_path / "results" / "small"
    assert "calibrated" not in capsys.readouterr().out, "there is nothing to say of the numbers"
    assert score in (out / "report.html").read_text()
    cells = pd.read_csv(out / "cells.csv")
    assert set(cells[cells.calibrated].metric) == {"goodput"}
    assert set(cells[~cells.calibrated].metric) == {"goodput", "goodput_gain", "cwnd"}


def test_instants_leave_the_score(studies: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = STUDY.replace('reduce = "mean"', 'reduce = "first-time"')
    (studies / "small" / "study.toml").write_text(text)
    paper = studies / "small" / "paper.csv"
    paper.write_text(paper.read_text() + "E2,size=1,cwnd,segments,3,,\n")
    assert run() == 0
    assert "1 of 1 numbers of the paper are met within 10 %" in capsys.readouterr().out


def test_the_report_lists_what_is_not_judged(studies: Path, tmp_path: Path) -> None:
    text = STUDY.replace('id = "faster"', 'id = "faster"\njudges = ["P9-C1"]')
    (studies / "small" / "study.toml").write_text(text)
    (studies / "small" / "paper-claims.toml").write_text(CATALOGUE)
    assert run() == 0
    out = tmp_path / "results" / "small"
    assert pd.read_csv(out / "claims.csv").iloc[0].judges == "P9-C1"
    page = (out / "report.html").read_text()
    assert "claim P9-C1</summary>" in page
    assert "P9-C2, §2: it is cheap." in page
    assert "prices are not simulated" in page


@pytest.mark.usefixtures("studies")
def test_quick_runs_fewer_seeds_of_the_main_experiments(tmp_path: Path) -> None:
    simulator = FakeSimulator()
    assert run("--quick", simulator=simulator) == 0
    assert len(simulator.jobs) == 2 * 2
    cells = pd.read_csv(tmp_path / "results" / "small" / "cells.csv")
    assert set(cells.experiment) == {"E1"}
    assert set(cells.runs) == {2}


@pytest.mark.usefixtures("studies")
def test_only_and_runs_choose(tmp_path: Path) -> None:
    simulator = FakeSimulator()
    assert run("--only", "E2", "--runs", "3", simulator=simulator) == 0
    assert len(simulator.jobs) == 2 * 3
    cells = pd.read_csv(tmp_path / "results" / "small" / "cells.csv")
    assert set(cells.experiment) == {"E2"}


@pytest.mark.usefixtures("studies")
def test_a_variants_key_can_be_subtracted(studies: Path, tmp_path: Path) -> None:
    assert run("--only", "E2", "--out", "plain") == 0
    file = studies / "small" / "study.toml"
    file.write_text(STUDY.replace('reduce = "mean"', 'reduce = "mean"\nminus = "size"'))
    assert run("--only", "E2", "--out", "less") == 0
    plain, less = (pd.read_csv(tmp_path / name / "cells.csv") for name in ("plain", "less"))
    assert list((plain.ours - less.ours).round(6)) == [1, 2]


def test_a_metric_can_be_subtracted(studies: Path, tmp_path: Path) -> None:
    text = (
        STUDY.replace('metrics = ["cwnd"]', 'metrics = ["cwnd", "less"]')
        + """
[metric.less]
unit = "segments"
from = "trace.cwnd"
reduce = "mean"
minus = "cwnd"
definition = "the mean window less itself"
"""
    )
    (studies / "small" / "study.toml").write_text(text)
    assert run("--only", "E2") == 0
    cells = pd.read_csv(tmp_path / "results" / "small" / "cells.csv")
    assert set(cells[cells.metric == "less"].ours) == {0}


def test_a_metric_can_be_divided_by_another(studies: Path, tmp_path: Path) -> None:
    text = (
        STUDY.replace('metrics = ["cwnd"]', 'metrics = ["cwnd", "share", "none"]')
        + """
[metric.share]
unit = ""
from = "trace.cwnd"
reduce = "mean"
minus = ["cwnd", "cwnd"]
per = "cwnd"
definition = "the mean window, less itself twice, by itself"

[metric.none]
unit = ""
from = "flow.goodput"
equals = 0
per = "none"
definition = "0 / 0"
"""
    )
    (studies / "small" / "study.toml").write_text(text)
    assert run("--only", "E2") == 0
    cells = pd.read_csv(tmp_path / "results" / "small" / "cells.csv")
    assert list(cells[cells.metric == "share"].ours) == pytest.approx([-1, -1])
    assert set(cells[cells.metric == "none"].runs) == {0}


def test_an_experiment_can_have_fewer_runs(
    studies: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = STUDY.replace('title = "Second"', 'title = "Second"\nruns = 3')
    (studies / "small" / "study.toml").write_text(text)
    simulator = FakeSimulator()
    assert run(simulator=simulator) == 0
    assert "(3 to 4 runs per variant)" in capsys.readouterr().out
    results = tmp_path / "results" / "small"
    cells = pd.read_csv(results / "cells.csv").groupby("experiment").runs.unique()
    assert {name: set(runs) for name, runs in cells.items()} == {"E1": {4}, "E2": {3}}
    assert set(pd.read_csv(results / "claims.csv").runs) == {4}
    assert "over 3 to 4 runs of each variant" in (results / "report.html").read_text()


def test_the_quick_form_can_set_what_experiments_set(studies: Path) -> None:
    text = STUDY.replace("[quick]", "[quick]\nset = { duration = '1 s' }").replace(
        'title = "First"', 'title = "First"\nset = { duration = "9 s", name = "long" }'
    )
    (studies / "small" / "study.toml").write_text(text)
    for options, duration in (((), "9 s"), (("--quick",), "1 s")):
        simulator = FakeSimulator()
        assert run("--only", "E1", "--out", duration, *options, simulator=simulator) == 0
        common = ("duration", duration), ("name", "long")
        assert all(set(common) < set(job.overrides) for job in simulator.jobs)


def test_a_claim_of_our_own_judges_none_of_the_papers(studies: Path, tmp_path: Path) -> None:
    folder = studies / "small"
    (folder / "paper-claims.toml").write_text(CATALOGUE)
    ours = STUDY.replace('text = "Size 2 is faster"', 'ours = true\ntext = "Size 2 is faster"')
    (folder / "study.toml").write_text(ours)
    with pytest.raises(StudyError, match=r"P9-C1: no claim of study\.toml judges it"):
        definition.load(folder)
    other = """
[[experiment.claim]]
id = "other"
judges = ["P9-C1"]
text = "Size 1 is slower"
test = "lowest"
metric = "cwnd"
variants = [{ size = 1 }, { size = 2 }]
"""
    (folder / "study.toml").write_text(ours + other)
    run("--only", "E1")
    assert list(pd.read_csv(tmp_path / "results" / "small" / "claims.csv").claim) == ["faster"]
    page = claims_page.pages([definition.load(folder)])["small.md"]
    assert "| faster | §1 | Size 2 is faster | not run |" in page.partition("## Our claims")[2]
    both = ours.replace("ours = true", 'ours = true\njudges = ["P9-C1"]')
    (folder / "study.toml").write_text(both)
    with pytest.raises(StudyError, match="claim faster: ours: judges a claim of the paper"):
        definition.load(folder)


MODELLED = (
    STUDY.replace(
        "[[axis.size]]",
        """[model]
key = { by = "analysis" }
function = "dca-burst"

[[axis.analysis]]
key = { by = "analysis", attempts = 8, exchange = 4, product = ["w", "w-1"], w = [3, 6] }
[[axis.by]]
key = { by = "simulation", w = [3, 6] }

[metric.burst_success]
unit = ""
from = "flow.goodput"
equals = -1
definition = "share of bursts"

[[axis.size]]""",
        1,
    )
    + """
[[experiment]]
id = "E3"
title = "Third"
scenario = "scenarios/one.toml"
grid = [["analysis"], ["by"]]
metrics = ["burst_success"]

[[experiment.figure]]
id = "E3"
kind = "lines"
title = "bursts"
x = "w"
metric = "burst_success"
label = "share"

[[experiment.claim]]
id = "shrinks"
text = "Bursts of 6 arrive less often"
test = "decreasing"
metric = "burst_success"
variants = [{ by = "analysis", attempts = 8, exchange = 4, product = "w", w = [3, 6] }]
"""
)


def test_a_model_computes_variants_without_runs(studies: Path, tmp_path: Path) -> None:
    (studies / "small" / "study.toml").write_text(MODELLED)
    simulator = FakeSimulator()
    assert run("--only", "E3", "--runs", "2", simulator=simulator) == 0
    assert len(simulator.jobs) == 2
    results = tmp_path / "results" / "small"
    cells = pd.read_csv(results / "cells.csv").set_index("variant").ours
    key = "attempts=8;by=analysis;exchange=4;product={};w=6"
    assert cells[key.format("w")] == pytest.approx(0.962331, abs=5e-7)
    assert cells[key.format("w-1")] == pytest.approx(0.989339, abs=5e-7)
    assert cells["by=simulation;w=6"] == 0
    claims = pd.read_csv(results / "claims.csv")
    assert claims.verdict.tolist() == ["holds"]
    assert claims.evidence[0].endswith("; computed")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"dca-burst"', '"dca-brust"', "model.function: expected one of.*'dca-burst'"),
        (", exchange = 4", "", "model.function: .*: model dca-burst: no key 'exchange'"),
    ],
)
def test_a_wrong_model_is_named(studies: Path, old: str, new: str, message: str) -> None:
    (studies / "small" / "study.toml").write_text(MODELLED.replace(old, new))
    with pytest.raises(StudyError, match=message):
        definition.load(studies / "small")


@pytest.mark.usefixtures("studies")
def test_more_runs_do_only_the_missing_ones() -> None:
    assert run("--runs", "3") == 0
    simulator = FakeSimulator()
    assert run("--runs", "4", simulator=simulator) == 0
    assert {job.seed for job in simulator.jobs} == {4}


@pytest.mark.usefixtures("studies")
def test_json_is_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--json", "--out", "out") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["type"] for row in rows] == ["cell"] * 12 + ["claim", "report"]
    cell = next(row for row in rows if row.get("paper"))
    assert (cell["variant"], cell["paper"], cell["runs"]) == ("size=2", 200.0, 4)
    assert (rows[-2]["claim"], rows[-2]["verdict"]) == ("faster", "holds")
    assert rows[-1]["path"] == "out/report.html"


@pytest.mark.usefixtures("studies")
def test_a_failed_run_is_exit_1_and_writes_no_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--out", "out", simulator=FakeSimulator(fail=frozenset({2}))) == 1
    error = capsys.readouterr().err
    assert "scenarios/one.toml --set link.A-B.rate=1 Mbit/s --seed 2: " in error
    assert "2 of 8 runs failed" in error
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"runs", "figures"}


@pytest.mark.usefixtures("studies")
def test_a_damaged_run_is_named_and_that_run_alone_repeated(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("--out", "out") == 0
    before = contents(Path("out"))
    damaged = sorted(Path("out/runs").iterdir())[3]
    damaged.write_bytes(damaged.read_bytes()[:100])
    simulator = FakeSimulator()
    capsys.readouterr()
    assert run("--out", "out", simulator=simulator) == 0
    assert len(simulator.jobs) == 1
    assert f"{damaged} is damaged: run again" in capsys.readouterr().err
    assert contents(Path("out")) == before


def test_a_study_that_fails_does_not_keep_the_others_from_running(
    studies: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("broken", "sound"):
        (studies / name).mkdir()
        shutil.copytree(studies / "small", studies / name, dirs_exist_ok=True)
    (studies / "broken" / "study.toml").write_text("titel = 1")
    (studies / "sound" / "study.toml").write_text(STUDY.replace("runs = 4", "runs = 2"))
    # `small` has a seed 3, `sound` has not.
    assert main(["all"], FakeSimulator(fail=frozenset({3}))) == 2
    error = capsys.readouterr().err
    assert "airtcp study: broken: " in error
    assert "airtcp study: small: 2 of 8 runs failed" in error
    reports = [name for name in ("broken", "small", "sound") if _report(name).exists()]
    assert reports == ["sound"]
    shutil.rmtree(studies / "broken")
    assert main(["all"], FakeSimulator(fail=frozenset({3}))) == 1
    assert main(["all"], FakeSimulator()) == 0


@pytest.mark.usefixtures("studies")
def test_all_studies_have_a_quick_form() -> None:
    quick, full = FakeSimulator(), FakeSimulator()
    assert main(["all", "--quick"], quick) == 0
    assert len(quick.jobs) == 4
    # The full form has 8 runs, and continues where the quick one ended.
    assert main(["all"], full) == 0
    assert len(full.jobs) == 4


def _report(study: str) -> Path:
    return Path("results") / study / "report.html"


@pytest.mark.usefixtures("studies")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "smal"], "no study 'smal' (did you mean 'small'?)"),
        (
            ["run", "small", "--only", "E3"],
            "study small has no experiment 'E3'",
        ),
        (["run", "small", "--out", "studies/small/study.toml"], "cannot write to"),
    ],
)
def test_bad_input_is_exit_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments, FakeSimulator()) == 2
    assert message in capsys.readouterr().err


def test_a_wrong_scenario_is_exit_2_before_anything_runs(
    studies: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = studies / "small" / "study.toml"
    file.write_text(STUDY.replace("$size Mbit/s", "-$size Mbit/s"))
    simulator = FakeSimulator()
    assert run(simulator=simulator) == 2
    assert "negative rate" in capsys.readouterr().err
    assert simulator.jobs == []


@pytest.mark.usefixtures("studies")
@pytest.mark.parametrize("arguments", [["--runs", "0"], ["--jobs", "-1"], ["--runs", "many"]])
def test_a_nonsense_number_is_exit_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        run(*arguments)
    assert exit_.value.code == 2


def test_the_nearest_action_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["rn"])
    assert exit_.value.code == 2
    said = "'rn': expected one of list, check, schema, run, all, claims (did you mean 'run'?)"
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("studies")
def test_list_names_studies_and_experiments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "small: A small study"
    assert main(["list", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row == {"study": "small", "title": "A small study", "experiments": ["E1", "E2"]}


@pytest.mark.usefixtures("studies")
def test_list_loads_no_module_that_only_runs_need() -> None:
    code = "import sys; from airtcp.__main__ import main; main(); print([*sys.modules])"
    command = [sys.executable, "-c", code, "study", "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    head, *_, modules = done.stdout.splitlines()
    assert head == "small: A small study"
    assert not {"pandas", "numpy", "scipy", "matplotlib"} & {*ast.literal_eval(modules)}


def test_list_names_the_mistakes_of_a_study_that_it_cannot_list(
    studies: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = next(studies.glob("**/study.toml"))
    file.write_text(file.read_text().replace('title = "A small study"', 'titel = "A small study"'))
    assert main(["list"]) == 2
    assert "titel" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["sweep", "--help"], ["plot", "--help"], ["study", "run", "--help"]]
)
def test_a_terminal_with_ascii_alone_gets_no_traceback(arguments: list[str]) -> None:
    environment = os.environ | {"LANG": "C", "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-m", "airtcp", *arguments],
        capture_output=True,
        env=environment,
        check=True,
    )
    assert b"..." in done.stdout
    assert done.stderr == b""


class _Unread(io.StringIO):
    """Standard error whose reader has gone after a line, as of `2>&1 | head -1`."""

    def write(self, text: str) -> int:
        if text and self.getvalue():
            raise BrokenPipeError
        return super().write(text)


@pytest.mark.usefixtures("studies")
def test_a_run_whose_progress_nobody_reads_is_not_complete_and_keeps_what_is_finished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", _Unread())
        assert run() == 1
    assert not _report("small").exists()
    again = FakeSimulator()
    assert run(simulator=again) == 0
    assert len(again.jobs) < 8


@pytest.mark.usefixtures("studies")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_standard_stream_may_be_closed(closed: str) -> None:
    command = f'exec "{sys.executable}" -m airtcp study list --json {closed}'
    done = subprocess.run(command, shell=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert bool(done.stdout) == (closed in ("<&-", "2>&-"))


def test_the_report_says_which_command_and_build_made_it(finished: Finished) -> None:
    page = (finished.folder / "report.html").read_text()
    assert "<code>airtcp study run small --runs" in page
    assert f"airtcp {FakeSimulator().build}, 1970-01-02." in page


def test_a_study_is_checked_without_running_it(
    studies: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    simulator = FakeSimulator()
    for name in ("small", str(studies / "small"), str(studies / "small" / "study.toml")):
        assert main(["check", name], simulator) == 0
    assert capsys.readouterr().out == "small: ok\n" * 3
    text = (studies / "small" / "study.toml").read_text()
    (studies / "small" / "study.toml").write_text(text.replace("title", "titel", 1))
    assert main(["check", "small"], simulator) == 2
    assert "titel" in capsys.readouterr().err


def test_airtcp_check_uses_the_python_that_it_runs_in(tmp_path: Path) -> None:
    # Not below a checkout, whose environment it would find; and no Python is in the path.
    copy = shutil.copy(native(), tmp_path)
    study = Path(__file__).parents[2] / "studies" / "packet-control"
    environment = {
        **{name: value for name, value in os.environ.items() if name != "AIRTCP_PYTHON"},
        **{"AIRTCP_NATIVE": copy, "PATH": str(tmp_path / "nothing")},
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, "-m", "airtcp", "check", str(study)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == f"{study}: ok (study)\n", done.stderr


def test_what_was_meant_may_be_a_live_command() -> None:
    native()
    done = subprocess.run(
        [sys.executable, "-m", "airtcp", "gatewya"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "'gateway'" in done.stderr


def test_a_quiet_run_shows_no_progress(studies: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert studies.is_dir()
    assert run() == 0
    assert " of " in capsys.readouterr().err
    assert run("--quiet", "--out", "quiet") == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("action", ["list", "check", "run", "all", "claims"])
def test_every_action_says_its_exit_codes(action: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([action, "--help"])
    assert "Exit codes: 0" in capsys.readouterr().out
