"""Ctrl-C in a real process: a clean stop, and nothing lost."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fakes import kept, started, write_study
from tests.test_testbed import SCENARIO
from tests.test_testbed import STUDY as WITH_TESTBED

STUDY = WITH_TESTBED.replace('["simulator", "real"]', '"simulator"').split("[[testbed]]")
STUDY_TEXT = STUDY[0] + "[[axis" + STUDY[1].split("[[axis", 1)[1]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    small = write_study(tmp_path, STUDY_TEXT.replace("runs = 2", "runs = 12"), "")
    (small / "paper.csv").unlink()
    # Half a second of work for a run.
    slow = SCENARIO.replace('duration = "2 s"', 'duration = "1500 s"')
    (small / "scenarios" / "one.toml").write_text(slow)
    return small


def command(small: Path) -> list[str]:
    out = str(small.parent / "out")
    return [sys.executable, "-m", "airtcp", "study", "run", str(small), "--jobs", "2", "--out", out]


def interrupted_once(small: Path, signals: int) -> tuple[int, str]:
    """Exit code and standard error of a run that gets SIGINT once two runs are kept."""
    with started(command(small), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        runs = small.parent / "out" / "runs"
        while len(kept(runs)) < 2 and process.poll() is None:
            time.sleep(0.01)
        for _ in range(signals):
            process.send_signal(signal.SIGINT)
            time.sleep(0.05)
        _, said = process.communicate(timeout=60)
        return process.returncode, said


@pytest.mark.parametrize("signals", [1, 3])
def test_ctrl_c_stops_cleanly_and_the_next_run_does_the_rest(small: Path, signals: int) -> None:
    code, said = interrupted_once(small, signals)
    assert "Traceback" not in said, said
    assert code == 1
    assert "interrupted" in said
    runs = small.parent / "out" / "runs"
    finished = len(kept(runs))
    assert 2 <= finished < 24
    times = {file: file.stat().st_mtime_ns for file in runs.iterdir()}
    assert {file.suffix for file in times} == {".gz"}
    again = subprocess.run(command(small), capture_output=True, text=True, check=True, timeout=300)
    assert f"{finished} of 24 runs" in again.stderr.splitlines()[0]
    assert all(file.stat().st_mtime_ns == times[file] for file in times)
    assert (small.parent / "out" / "report.html").exists()


def test_ctrl_c_ends_all_studies_and_keeps_those_that_are_finished(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    studies = tmp_path / "studies"
    for name in ("a-first", "b-second", "c-third"):
        shutil.copytree(small, studies / name)
    toml = studies / "a-first" / "study.toml"
    toml.write_text(toml.read_text().replace("runs = 12", "runs = 1"))
    monkeypatch.setenv("AIRTCP_STUDIES", str(studies))
    monkeypatch.chdir(tmp_path)
    with started(
        [sys.executable, "-m", "airtcp", "study", "all"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        runs = Path("results/b-second/runs")
        while len(kept(runs)) < 2 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in said, said
    assert "runs are kept in results/b-second/runs" in said
    assert Path("results/a-first/report.html").exists()
    assert not Path("results/c-third").exists()


def limited(size: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a command that cannot write files of more than this many blocks of 512 bytes.

    To the command it is as if the disk was full: a write fails.
    """
    shell = f'ulimit -f {size}; exec "$@"'
    return subprocess.run(
        ["sh", "-c", shell, "sh", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_full_disk_ends_the_command_and_what_is_kept_stays(small: Path) -> None:
    (small / "scenarios" / "one.toml").write_text(SCENARIO)
    first = [*command(small), "--runs", "2"]
    full = limited(0, *first)
    assert full.returncode == 1
    assert "Traceback" not in full.stderr
    runs = small.parent / "out" / "runs"
    assert f"cannot write to {runs}: File too large; 0 of 4 runs are kept in" in full.stderr
    assert list(runs.iterdir()) == []

    # The runs fit, the tables do not.
    full = limited(16, *first)
    assert full.returncode == 1
    assert "Traceback" not in full.stderr
    assert full.stderr.endswith(": File too large\n")
    before = {file: file.stat().st_mtime_ns for file in runs.iterdir()}
    assert len(kept(runs)) == 4
    again = subprocess.run(first, capture_output=True, text=True, check=False, timeout=300)
    assert again.returncode in (0, 3), again.stderr
    assert "4 of 4 runs" in again.stderr.splitlines()[0]
    assert {file: file.stat().st_mtime_ns for file in runs.iterdir()} == before


def test_ctrl_c_ends_a_plot_of_a_run_as_it_ends_runs(tmp_path: Path) -> None:
    scenario = tmp_path / "endless.toml"
    scenario.write_text(SCENARIO.replace('duration = "2 s"', 'duration = "1000000000 s"'))
    out = tmp_path / "x.svg"
    command = [sys.executable, "-m", "airtcp", "plot", str(scenario), "--out", str(out)]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with started(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment
    ) as process:
        while not list(tmp_path.glob("tmp*/.airtcp-*")) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1, said
    assert "airtcp: interrupted; 0 of 1 run complete" in said
    assert said.endswith(f"airtcp plot: {scenario}: the run was not completed\n")
    assert not out.exists()


def test_ctrl_c_while_modules_load_is_no_traceback(small: Path) -> None:
    with started(command(small), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        loaded = Path(f"/proc/{process.pid}/maps")
        while "/scipy/" not in loaded.read_text() and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert "Traceback" not in said, said
    assert process.returncode == 1
