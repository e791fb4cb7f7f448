from __future__ import annotations

import re
from pathlib import Path

import pytest

from airtcp.study import claims_page, definition
from airtcp.study.command import main
from tests.fakes import CATALOGUE, STUDY, FakeSimulator, write_study

PAGES = Path(__file__).parents[2] / "docs" / "claims"


def studies() -> list[definition.Study]:
    return [definition.load(definition.find(name)) for name in definition.names()]


def test_the_committed_pages_are_current() -> None:
    pages = {path.name: path.read_text() for path in PAGES.iterdir()}
    assert pages == claims_page.pages(studies()), "airtcp study claims --out docs/claims"


def test_every_claim_of_every_catalogue_has_a_row_with_a_verdict() -> None:
    verdict = r"(holds|undecided|refuted|not judged|not run)"
    for study in studies():
        page = (PAGES / f"{study.name}.md").read_text()
        for entry in study.catalogue.values():
            row = re.search(rf"^\| {entry.id} \|.*\| {verdict} \|", page, re.MULTILINE)
            assert row, f"docs/claims/{study.name}.md has no {entry.id}"


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
    page = claims_page.pages([definition.load(small)])["small.md"]
    assert "| it is faster | not run |" in page
    assert "no full run is on file" in page


def run_all(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Runs the studies, and the pages that follow."""
    assert main(["all", "--jobs", "1"], FakeSimulator()) in {0, 4}
    assert main(["claims", "--take", "results", "--out", "pages"]) == 0
    capsys.readouterr()
    return {path.name: path.read_text() for path in Path("pages").iterdir()}


def test_the_verdicts_of_all_studies_are_taken_from_their_runs(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = run_all(capsys)
    assert pages.keys() == {"README.md", "small.md"}
    page = pages["small.md"]
    assert re.search(r"\| P9-C1 \| .* \| it is faster \| holds \| goodput: .*shown", page)
    assert re.search(r"\| P9-C2 \| .* \| not judged \| prices are not simulated \|", page)
    assert "4 runs per variant" in page
    assert "## Tests" not in page
    assert "| [small](small.md) | 2 | 1 | 0 | 0 | 1 | 0 |" in pages["README.md"]
    assert "Our claims" not in pages["README.md"]
    assert (small / "claims.csv").exists()


def test_a_claim_with_several_tests_counts_them_and_ours_stand_apart(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (small / "study.toml").read_text()
    _, mark, claim = text.partition("[[experiment.claim]]")
    claim = mark + claim.partition("[[experiment]]")[0]
    slower = claim.replace('"faster"', '"slower"').replace('"increasing"', '"decreasing"')
    own = claim.replace('"faster"', '"own"').replace('judges = ["P9-C1"]', "ours = true")
    (small / "study.toml").write_text(text.replace(claim, claim + slower + own))
    pages = run_all(capsys)
    claims, _, tests = pages["small.md"].partition("## Tests")
    row = r"\| P9-C1 \| .* \| refuted \| \[2 tests\]\(#tests\): holds 1, refuted 1 \|"
    assert re.search(row, claims)
    assert re.search(r"\| own \| .* \| holds \| goodput", claims.partition("## Our claims")[2])
    assert re.findall(r"^\| (\w+) \| P9-C1 \|", tests, re.MULTILINE) == ["faster", "slower"]
    assert "| [small](small.md) | 1 | 1 | 0 | 0 | 0 | 0 |" in pages["README.md"]
