"""What the commands written in Python say, in a line, of files and of their output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from airtcp.errors import unreadable
from tests.fakes import write_study
from tests.test_sweep import SCENARIO

COMMANDS = [
    ["study", "list"],
    ["study", "list", "--json"],
    ["study", "check", "packet-control"],
    ["study", "--help"],
    ["sweep", "one.toml", "--runs", "1", "--quiet"],
    ["sweep", "--help"],
    ["plot", "one.toml"],
    ["plot", "--help"],
]
"""Some print more than a buffer holds, some less."""


def airtcp(
    arguments: list[str], folder: Path, output: str = "", buffered: bool = True
) -> subprocess.CompletedProcess[str]:
    """Runs the command, in a shell if something is done with its output."""
    (folder / "one.toml").write_text(SCENARIO)
    unbuffered = {"PYTHONUNBUFFERED": "" if buffered else "1"}
    return subprocess.run(
        ["sh", "-c", f'"$@" {output}', "sh", sys.executable, "-m", "airtcp", *arguments],
        cwd=folder,
        env=os.environ | unbuffered,
        capture_output=True,
        text=True,
        check=False,
    )


def last_words(stderr: str, command: str) -> str:
    """What the command itself says: `airtcp plot` also shows what the run of a scenario says."""
    said = stderr.splitlines()
    return said[-1] if command == "plot" and said else stderr.removesuffix("\n")


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_output_is_an_error_of_one_line(tmp_path: Path, arguments: list[str]) -> None:
    done = airtcp(arguments, tmp_path, ">/dev/full")
    message = f"airtcp {arguments[0]}: standard output: No space left on device"
    assert last_words(done.stderr, arguments[0]) == message
    assert done.returncode == 1


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_output_without_a_buffer_is_an_error_of_one_line(
    tmp_path: Path, arguments: list[str]
) -> None:
    done = airtcp(arguments, tmp_path, ">/dev/full", buffered=False)
    message = f"airtcp {arguments[0]}: standard output: No space left on device"
    assert (done.returncode, last_words(done.stderr, arguments[0])) == (1, message)


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("buffered", [True, False])
def test_a_reader_that_leaves_is_no_error(
    tmp_path: Path, arguments: list[str], buffered: bool
) -> None:
    done = airtcp(arguments, tmp_path, "| true", buffered)
    assert "Broken pipe" not in done.stderr
    assert "Exception" not in done.stderr


PLOTTED = "a scenario's .toml, events of `airtcp run --events`, a capture, or a log of"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plot", "nothing"], f"nothing: there is no such file (expected {PLOTTED}"),
        (["plot", "on.toml"], "(did you mean 'one.toml'?)"),
        (["plot", "./on.toml", "--sequence"], "on.toml: there is no such file (expected "),
        (["plot", "."], f".: this is a folder (expected {PLOTTED}"),
        (["sweep", "nothing"], "nothing: there is no such file (expected a scenario file)"),
        (["sweep", "on.toml"], "(did you mean 'one.toml'?)"),
        (["sweep", "."], ".: this is a folder (expected a scenario file)"),
    ],
)
def test_a_file_that_is_not_there_is_named_with_what_was_expected(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = airtcp(arguments, tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"airtcp {arguments[0]}: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_no_message_has_the_number_of_an_error(tmp_path: Path) -> None:
    small = write_study(tmp_path)
    (small / "scenarios" / "one.toml").unlink()
    (small / "paper.csv").unlink()
    commands = [
        ["study", "check", str(small)],
        ["study", "claims", "--out", "one.toml"],
        ["study", "run", "packet-control", "--quick", "--out", "one.toml"],
        ["sweep", "one.toml", "--runs", "1", "--out", "one.toml/x.csv"],
    ]
    for arguments in commands:
        done = airtcp(arguments, tmp_path)
        assert done.returncode in {1, 2}
        assert "Traceback" not in done.stderr
        assert "Errno" not in done.stderr


def test_what_is_no_text_is_said_without_a_traceback() -> None:
    error = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
    assert unreadable(Path("x.toml"), error).startswith("x.toml: 'utf-8' codec can't decode")
