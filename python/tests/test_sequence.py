"""Sequence diagrams: those of the pages are current, and what cannot be drawn is refused."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from airtcp.timeline import sequence
from airtcp.timeline.command import main
from tests.needs import need

ROOT = Path(__file__).parents[2]
COMMAND = re.compile(r"^airtcp plot (.*--sequence .*)$", re.MULTILINE)
SHOWN = [
    shlex.split(arguments)
    for page in sorted((ROOT / "docs" / "mechanisms").glob("*.md"))
    for arguments in COMMAND.findall(page.read_text())
]
AT_AN_END = {
    "tcp-dca": "tcp.ack.policy=dca",
    "tcp-karak": "tcp.congestion=karak",
    "freeze-tcp": "flow.download.receiver.on-link=freeze",
}
"""Mechanisms of the receiver or the sender, and their setting: the network does nothing."""
OUTAGE = "docs/mechanisms/outage.toml"


@pytest.mark.parametrize("arguments", SHOWN, ids=lambda arguments: Path(arguments[-1]).stem)
def test_a_diagram_is_as_its_command_draws_it(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(shutil.which("tshark") is not None, "tshark")
    monkeypatch.chdir(ROOT)
    *rest, option, committed = arguments
    assert option == "--out"
    drawn = tmp_path / "drawn.svg"
    assert main([*rest, option, str(drawn)]) == 0
    picture = drawn.read_text(encoding="utf-8")
    assert picture == (ROOT / committed).read_text(encoding="utf-8"), "run the command of the page"
    acts = "stroke-dasharray" in picture or "<circle" in picture
    at_edge = Path(committed).stem not in ("none", *AT_AN_END)
    assert acts == at_edge, "what the mechanism does is in the picture"


@pytest.mark.parametrize("name", AT_AN_END)
def test_a_mechanism_at_an_end_changes_the_picture(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(shutil.which("tshark") is not None, "tshark")
    monkeypatch.chdir(ROOT)
    (arguments,) = [arguments for arguments in SHOWN if Path(arguments[-1]).stem == name]
    *without, option, committed = arguments
    assert option == "--out"
    turned_on = without.index(AT_AN_END[name])
    del without[turned_on - 1 : turned_on + 1]
    drawn = tmp_path / "without.svg"
    assert main([*without, "--out", str(drawn)]) == 0
    assert drawn.read_text(encoding="utf-8") != (ROOT / committed).read_text(encoding="utf-8")


def test_every_mechanism_has_a_diagram() -> None:
    pages = {page.stem for page in (ROOT / "docs" / "mechanisms").glob("*.md")} - {
        "README",
        "at-the-ends",
    }
    assert {Path(arguments[-1]).stem for arguments in SHOWN} >= pages


def test_a_run_with_too_many_packets_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    need(shutil.which("tshark") is not None, "tshark")
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sequence, "_MOST_PACKETS", 10)
    assert main([OUTAGE, "--sequence"]) == 2
    assert "packets (expected at most 10): choose an early time" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["examples/manet.toml"], "(it has 30 nodes and 5 TCP flows)"),
        (["examples/dumbbell.toml"], "(it has 22 nodes and 10 TCP flows)"),
        (["examples/quic.toml"], "needs one TCP flow, and no other"),
        ([OUTAGE, "--views", "rate"], "--views has no effect with --sequence"),
        ([OUTAGE, "--out", "picture.png"], "draws a scenario's .toml, as .svg"),
        ([OUTAGE, "--from", "3", "--until", "2"], "nothing from 3 s until 2 s"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    arguments: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(ROOT)
    assert main([*arguments, "--sequence"]) == 2
    assert said in capsys.readouterr().err
