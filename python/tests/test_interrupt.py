"""Ctrl-C in a real process: a clean stop, and nothing lost."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from airtcp.run import Run
from tests.fakes import write_study
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
    with subprocess.Popen(
        command(small), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        runs = small.parent / "out" / "runs"
        while len(list(runs.glob("*.npz"))) < 2 and process.poll() is None:
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
    kept = list((small.parent / "out" / "runs").iterdir())
    assert 2 <= len(kept) < 24
    for file in kept:
        assert file.suffix == ".npz"
        Run.from_bytes(file.read_bytes())
    times = {file: file.stat().st_mtime_ns for file in kept}
    again = subprocess.run(command(small), capture_output=True, text=True, check=True, timeout=300)
    assert f"{len(kept)} of 24 runs" in again.stderr.splitlines()[0]
    assert all(file.stat().st_mtime_ns == times[file] for file in kept)
    assert (small.parent / "out" / "report.html").exists()


def test_ctrl_c_while_modules_load_is_no_traceback(small: Path) -> None:
    with subprocess.Popen(
        command(small), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        loaded = Path(f"/proc/{process.pid}/maps")
        while "/pandas/" not in loaded.read_text() and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert "Traceback" not in said, said
    assert process.returncode == 1
