from __future__ import annotations

import re
from pathlib import Path

import pytest

from airtcp.study import claims_page, definition
from airtcp.study.claims import verdict_of
from airtcp.study.command import main
from airtcp.study.outputs import write_claims
from tests.fakes import CATALOGUE, STUDY, FakeSimulator, write_study

PAGES = Path(__file__).parents[2] / "docs" / "claims"


def studies() -> list[definition.Study]:
    return [definition.load(definition.find(name)) for name in definition.names()]


def test_the_committed_pages_are_current() -> None:
    pages = {path.name: path.read_text() for path in PAGES.iterdir()}
    assert pages == claims_page.pages(studies()), "airtcp study claims --out docs/claims"


def test_every_claim_of_every_catalogue_has_a_row_with_a_verdict() -> None:
    verdict = r"(holds|undecided|refuted|calibrated|not judged|not run)"
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
    assert "| [small](small.md) | 2 | 1 | 0 | 0 | 0 | 1 | 0 |" in pages["README.md"]
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
    assert "| [small](small.md) | 1 | 1 | 0 | 0 | 0 | 0 | 0 |" in pages["README.md"]


def filed(small: Path, tests: list[dict[str, str]]) -> str:
    """The page's row of P9-C1, on which these tests bear."""
    text = (small / "study.toml").read_text()
    _, mark, claim = text.partition("[[experiment.claim]]")
    claim = mark + claim.partition("[[experiment]]")[0]
    row = {"study": "small", "experiment": "E1", "judges": "P9-C1", "text": "", "evidence": ""}
    rows, claims = [], ""
    for place, test in enumerate(tests):
        reading = test.get("reading", "")
        name = f't{place}"\nreading = "{reading}' if reading else f"t{place}"
        claims += claim.replace('"faster"', f'"{name}"')
        defaults = {"claim": f"t{place}", "reading": "", "calibrated": "false", "runs": "4"}
        rows.append({**row, **defaults, **test})
        shown, contradicted = float(test["shown"]), float(test["contradicted"])
        rows[-1]["verdict"] = verdict_of(shown, contradicted, 0.95)
    (small / "study.toml").write_text(text.replace(claim, claims))
    write_claims(small / "claims.csv", rows)
    page = claims_page.pages([definition.load(small)])["small.md"]
    return next(line for line in page.splitlines() if line.startswith("| P9-C1 |"))


SHOWN = {"shown": "0.01", "contradicted": "0.99"}
OPEN = {"shown": "0.4", "contradicted": "0.6"}
SLIGHTLY = {"shown": "0.98", "contradicted": "0.02"}
CLEARLY = {"shown": "1", "contradicted": "0.0001"}


@pytest.mark.parametrize(
    ("tests", "verdict"),
    [
        ([SHOWN, SHOWN], "holds"),
        ([SHOWN, SLIGHTLY], "refuted"),
        ([SHOWN, SHOWN, SLIGHTLY], "undecided"),
        ([SHOWN, OPEN, CLEARLY], "refuted"),
        ([SHOWN, OPEN], "undecided"),
    ],
)
def test_a_claim_is_refuted_by_one_of_its_tests_corrected_for_their_number(
    small: Path, tests: list[dict[str, str]], verdict: str
) -> None:
    assert f"| it is faster | {verdict} | [{len(tests)} tests]" in filed(small, tests)


@pytest.mark.parametrize(
    ("readings", "verdict", "under"),
    [
        ({"a": [SHOWN], "b": [CLEARLY]}, "holds", "; under the reading a |"),
        ({"a": [SHOWN, CLEARLY], "b": [SHOWN]}, "holds", "; under the reading b |"),
        ({"a": [SHOWN, CLEARLY], "b": [CLEARLY, SHOWN]}, "refuted", "refuted 2 |"),
        ({"a": [SHOWN, OPEN], "b": [CLEARLY]}, "undecided", "not under each reading |"),
        ({"a": [SHOWN], "b": [SHOWN]}, "holds", "holds 2 |"),
        ({"a": [SHOWN], "b": [CLEARLY], "": [CLEARLY]}, "refuted", "refuted 2 |"),
    ],
)
def test_a_claim_holds_if_one_reading_holds_throughout(
    small: Path, readings: dict[str, list[dict[str, str]]], verdict: str, under: str
) -> None:
    tests = [{**test, "reading": name} for name, tests in readings.items() for test in tests]
    row = filed(small, tests)
    assert f"| it is faster | {verdict} | " in row
    assert row.endswith(under)


def test_calibrated_tests_count_only_if_there_are_no_others(small: Path) -> None:
    calibrated = {**CLEARLY, "calibrated": "true"}
    assert "| it is faster | holds | [2 tests](#tests): holds 1, calibrated 1 |" in filed(
        small, [SHOWN, calibrated]
    )


def test_a_claim_with_calibrated_tests_alone_is_counted_as_calibrated(small: Path) -> None:
    row = filed(small, [{**SHOWN, "calibrated": "true"}])
    assert "| it is faster | calibrated | " in row
    pages = claims_page.pages([definition.load(small)])
    assert "| [small](small.md) | 2 | 0 | 0 | 0 | 1 | 1 | 0 |" in pages["README.md"]


def test_a_run_of_some_experiments_leaves_the_verdicts_on_the_others(small: Path) -> None:
    filed(small, [SHOWN])
    text = (small / "study.toml").read_text()
    second = text.partition("[[experiment.claim]]")[2].partition("[[experiment]]")[0]
    claim = "[[experiment.claim]]" + second.replace('"t0"', '"later"').replace("goodput", "cwnd")
    (small / "study.toml").write_text(text + claim)
    rows = claims_page.committed(definition.load(small))
    results = small.parents[1] / "results" / "small"
    results.mkdir(parents=True)
    later = {**rows[0], "experiment": "E2", "claim": "later", "verdict": "refuted"}
    write_claims(results / "claims.csv", [later])
    study = definition.load(small)
    assert claims_page.take(study, results.parent)
    assert [row["claim"] for row in claims_page.committed(study)] == ["t0", "later"]


def test_verdicts_of_fewer_runs_are_not_taken(small: Path) -> None:
    filed(small, [{**SHOWN, "runs": "10"}])
    before = (small / "claims.csv").read_bytes()
    study = definition.load(small)
    results = small.parents[1] / "results" / "small"
    results.mkdir(parents=True)
    write_claims(results / "claims.csv", [{**claims_page.committed(study)[0], "runs": "2"}])
    with pytest.raises(ValueError, match=r"t0 has 2 runs per variant, and .* has 10"):
        claims_page.take(study, results.parent)
    assert (small / "claims.csv").read_bytes() == before
