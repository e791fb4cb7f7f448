from __future__ import annotations

import re
from pathlib import Path

import pytest

from airtcp.study import claims_page, definition
from airtcp.study.command import main
from tests.fakes import CATALOGUE, STUDY, FakeSimulator, write_study

PAGE = Path(__file__).parents[2] / "docs" / "claims.md"


def studies() -> list[definition.Study]:
    return [definition.load(definition.find(name)) for name in definition.names()]


def test_the_committed_page_is_current() -> None:
    assert PAGE.read_text() == claims_page.page(studies()), "airtcp study claims > docs/claims.md"


def test_every_claim_of_every_catalogue_has_a_row_with_a_verdict() -> None:
    page = PAGE.read_text()
    verdict = r"(holds|undecided|refuted|not judged|not run)"
    for study in studies():
        for entry in study.catalogue.values():
            row = re.search(rf"^\| {entry.id} \|.*\| {verdict} \|", page, re.MULTILINE)
            assert row, f"docs/claims.md has no {entry.id}"


def test_the_verdicts_on_file_are_of_claims_that_exist() -> None:
    for study in studies():
        own = {claim.id for experiment in study.experiments for claim in experiment.claims}
        gone = {row["claim"] for row in claims_page.committed(study)} - own
        assert not gone, f"{study.name}: run `make study-all`: its claims.csv has {gone}"


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    text = STUDY.replace('id = "faster"', 'id = "faster"\njudges = ["P9-C1"]')
    small = write_study(tmp_path / "studies", text)
    (small / "paper-claims.toml").write_text(CATALOGUE)
    monkeypatch.setenv("AIRTCP_STUDIES", str(tmp_path / "studies"))
    monkeypatch.chdir(tmp_path)
    return small


def test_a_claim_without_a_run_says_so(small: Path) -> None:
    page = claims_page.page([definition.load(small)])
    assert "| it is faster | not run |" in page
    assert "no full run is on file" in page


def test_the_verdicts_of_all_studies_are_taken_from_their_runs(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["all", "--jobs", "1"], FakeSimulator()) == 0
    capsys.readouterr()
    assert main(["claims", "--take", "results"]) == 0
    page = capsys.readouterr().out
    assert re.search(r"\| P9-C1 \| .* \| it is faster \| holds \| goodput: .*shown", page)
    assert re.search(r"\| P9-C2 \| .* \| not judged \| prices are not simulated \|", page)
    assert "4 runs per variant" in page
    assert (small / "claims.csv").exists()
