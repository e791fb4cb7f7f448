"""The report in a browser: headless Chromium, without a network, as wide as a phone."""

from __future__ import annotations

import html
import json
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from airtcp.study.command import main
from airtcp.timeline.command import main as plot
from tests.fakes import FakeSimulator, write_study
from tests.needs import need

PHONE, DESKTOP = 390, 1200
SPIKE = Path(__file__).parents[2] / "examples" / "spike.toml"

PROBE = (Path(__file__).parent / "probe.js").read_text()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("report")
    small = write_study(folder)
    assert main(["run", str(small), "--out", str(folder / "out")], FakeSimulator()) == 0
    return (folder / "out" / "report.html").read_text()


def probed(report: str, width: int, folder: Path) -> dict[str, Any]:
    """What the probe finds in the report, opened from a file in a window of this width."""
    chromium = shutil.which("chromium")
    need(chromium is not None, "chromium")
    # No window is as narrow as a phone, but a frame can be.
    frame = f'<iframe width="{width}" height="900" srcdoc="{html.escape(report)}"></iframe>'
    page = folder / "probe.html"
    page.write_text(f"<!doctype html><body>{frame}<script>{PROBE}</script>")
    command = [
        str(chromium),
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        f"--user-data-dir={folder / 'profile'}",
        *("--window-size=1300,1000", "--virtual-time-budget=60000", "--dump-dom"),
        page.as_uri(),
    ]
    dumped = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    match = re.search(r"<pre>(.*)</pre>", dumped, re.DOTALL)
    assert match, dumped[-2000:]
    found: dict[str, Any] = json.loads(html.unescape(match[1]))
    assert "failed" not in found, found
    return found


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_the_report_is_interactive_and_fits_the_window(
    report: str, width: int, tmp_path: Path
) -> None:
    found = probed(report, width, tmp_path)
    assert found["errors"] == []
    assert found["resources"] == []
    assert found["drawn"] == found["panels"] == 8
    # No horizontal scroll, and no panel too small to read.
    assert found["width"] <= width
    assert found["narrow"] == 0
    before, after = found["before"], found["after"]
    assert after[1] - after[0] < before[1] - before[0]
    assert "size 1" in found["hover"]
    assert found["off"] == [False, False]
    assert found["on"] == [True, True]


def test_a_plot_is_a_page_whose_panels_zoom_together(tmp_path: Path) -> None:
    out = tmp_path / "spike.html"
    assert plot([str(SPIKE), "--out", str(out)]) == 0
    page = out.read_text()
    assert f"airtcp plot {SPIKE} --out {out}</code>" in page
    found = probed(page, DESKTOP, tmp_path)
    assert (found["errors"], found["resources"]) == ([], [])
    assert found["drawn"] == found["panels"] == 4
    assert found["after"] != found["before"]
    assert found["together"] == [found["after"]] * 4


def test_the_report_leads_to_each_experiment_and_its_scenario(report: str) -> None:
    for experiment in ("E1", "E2"):
        assert f'<a href="#{experiment}">' in report
        assert f'<h2 id="{experiment}">' in report
    assert "<pre>made up</pre>" in report


def links(page: str) -> list[tuple[str, str, str]]:
    """The links of a page: where each leads, the name under which it saves, its text."""
    found = re.findall(r'<a href="([^"]*)"(?: download="([^"]*)")?>(.*?)</a>', page)
    return [(html.unescape(target), name, text) for target, name, text in found]


def test_a_report_that_is_sent_elsewhere_has_its_scenarios(tmp_path: Path) -> None:
    here = tmp_path / "of the sender"
    study = write_study(here)
    # A name that a shell would take for two.
    text = (study / "study.toml").read_text().replace("one.toml", "spike of E1.toml")
    (study / "study.toml").write_text(text)
    scenario = study / "scenarios" / "spike of E1.toml"
    scenario.write_text('# "Ends" & <pre> 100 %\n' + SPIKE.read_text(), encoding="utf-8")
    out = here / "out"
    assert main(["run", str(study), "--only", "E1", "--out", str(out)], FakeSimulator()) == 0
    report = (out / "report.html").read_text()
    assert str(tmp_path) not in report
    assert here.name not in report
    targets = links(report)
    # All others lead to a part of the page.
    ((target, name, _),) = [link for link in targets if not link[0].startswith("#")]
    with urllib.request.urlopen(target) as response:
        saved = tmp_path / name
        saved.write_bytes(response.read())
    assert saved.read_text() == scenario.read_text()
    (command,) = re.findall(r"<code>(airtcp run .*?)</code>", report)
    arguments = shlex.split(html.unescape(command))
    subprocess.run([sys.executable, "-m", *arguments], cwd=tmp_path, check=True)


def test_every_link_within_a_report_leads_somewhere(report: str) -> None:
    inner = [target for target, _, _ in links(report) if target.startswith("#")]
    assert inner
    for target in inner:
        assert f'id="{target[1:]}"' in report


def test_verdicts_have_a_colour_each(report: str) -> None:
    for verdict in ("holds", "undecided", "refuted"):
        assert re.search(rf"--{verdict}: #[0-9a-f]{{6}}", report)
    assert '<span class="chip holds">1 holds</span>' in report
