"""`docs/claims/`: every claim of every study, its verdict and its reason.

`README.md` counts the verdicts; each study has a page of its own. The verdicts come from
`claims.csv` in a study's folder, which is that of its last full run (`make study-all`).
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from airtcp.runs.store import write_atomically
from airtcp.stats import enough
from airtcp.study.claims import Verdict, runs_text, verdict_of
from airtcp.study.definition import PaperClaim, Study
from airtcp.study.outputs import write_claims

FILE = "claims.csv"
INDEX = "README.md"

_GENERATED = "<!-- Generated: airtcp study claims --out docs/claims -->"
_INTRODUCTION = f"""# Claims and verdicts

{_GENERATED}

Each study tests claims. One page a study lists them all, with the numbers behind each verdict.

| verdict | meaning |
|---|---|
| holds | the runs show the claim |
| refuted | the runs show the opposite |
| undecided | the runs show neither |
| calibrated | no prediction: parameters were chosen with the paper's number in sight |
| not judged | the study does not test the claim; its page says why |
| not run | no full run is on file |

[Studies](../studies.md#verdicts) explains the tests. `make study-all` runs every study and writes
these pages anew.
"""

_OURS = "Predictions of ours, and comparisons with kernels, theory and other simulators."
_TESTS = """\
Tests of the claims that have several. A claim holds if all of its tests do, and is refuted if one
is, corrected for their number. Where the paper can be read in several ways, it holds if one reading
holds throughout, and is refuted if all are. To find a claim's tests, search this page for its
id."""

_NOT_RUN = "not run"
_NOT_JUDGED = "not judged"
_CALIBRATED = "calibrated"
_VERDICTS = (*(verdict.value for verdict in Verdict), _CALIBRATED, _NOT_JUDGED, _NOT_RUN)


@dataclass(frozen=True)
class _Row:
    """A claim and what became of it.

    Attributes:
        tests: The verdicts of its tests, rows of `claims.csv`, if there are several.
        reading: The reading of the paper under which the claim holds, if it does only under one.
    """

    id: str
    place: str
    says: str
    verdict: str
    reason: str
    tests: tuple[dict[str, str], ...] = ()
    reading: str = ""


@dataclass(frozen=True)
class _Group:
    """The claims of a study with one origin: its paper, or ourselves."""

    title: str
    rows: tuple[_Row, ...]

    def counts(self) -> list[str]:
        verdicts = [row.verdict for row in self.rows]
        return [str(len(verdicts)), *(str(verdicts.count(kind)) for kind in _VERDICTS)]


def committed(study: Study) -> list[dict[str, str]]:
    """The verdicts of the study's last full run: rows of `claims.csv`; none if there is no file.

    Raises:
        OSError: The file cannot be read.
    """
    file = study.folder / FILE
    return _read(file) if file.exists() else []


def _read(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def pages(studies: Iterable[Study]) -> dict[str, str]:
    """The pages, by file name."""
    files: dict[str, str] = {}
    papers: list[list[str]] = []
    ours: list[list[str]] = []
    for study in studies:
        verdicts = committed(study)
        paper = _Group("The paper's claims", tuple(_paper_rows(study, verdicts)))
        own = _Group("Our claims", tuple(_own_rows(study, verdicts)))
        files[f"{study.name}.md"] = _page(study, verdicts, [g for g in (paper, own) if g.rows])
        for group, lines in ((paper, papers), (own, ours)):
            if group.rows:
                lines.append([f"[{study.name}]({study.name}.md)", *group.counts()])
    heads = ["study", "claims", *_VERDICTS]
    parts = [_INTRODUCTION]
    if papers:
        parts += ["## Claims of papers", "", _table(heads, papers), ""]
    if ours:
        parts += ["## Our claims", "", _OURS, "", _table(heads, ours), ""]
    return {INDEX: "\n".join(parts), **files}


def write(studies: Iterable[Study], folder: Path) -> None:
    """Writes the pages into a folder.

    Raises:
        OSError: A file cannot be read or written.
    """
    files = pages(studies)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_atomically(folder / name, text.encode())


def _page(study: Study, verdicts: list[dict[str, str]], groups: list[_Group]) -> str:
    runs = {int(verdict["runs"]) for verdict in verdicts}
    of = f"{runs_text(runs)} per variant" if runs else "no full run is on file"
    home = f"../../studies/{study.name}"
    parts = [
        f"# Claims: {study.name}",
        "",
        _GENERATED,
        "",
        study.paper_title,
        "",
        f"`airtcp study run {study.name}`: {of}. [What the study found]({home}/README.md); "
        f"[its definition]({home}/study.toml); [all studies]({INDEX}).",
        "",
        _table(["", "claims", *_VERDICTS], [[group.title, *group.counts()] for group in groups]),
        "",
    ]
    for group in groups:
        parts += [f"## {group.title}", "", _claims(group), ""]
    tests = {test["claim"]: test for group in groups for row in group.rows for test in row.tests}
    if tests:
        parts += [
            "## Tests",
            "",
            _TESTS,
            "",
            _tests(v for v in verdicts if v["claim"] in tests),
            "",
        ]
    return "\n".join(parts)


def _claims(group: _Group) -> str:
    """The table of a group's claims; without the column of places if no claim has one."""
    placed = any(row.place for row in group.rows)
    heads = ["claim", *(["place"] if placed else []), "what it says", "verdict", "reason"]
    rows = [
        [row.id, *([row.place] if placed else []), row.says, row.verdict, _reason(row)]
        for row in group.rows
    ]
    return _table(heads, rows)


def _reason(row: _Row) -> str:
    if not row.tests:
        return row.reason
    words = [_word(test) for test in row.tests]
    counts = [f"{verdict} {words.count(verdict)}" for verdict in _VERDICTS if verdict in words]
    reason = f"[{len(words)} tests](#tests): {', '.join(counts)}"
    if Verdict.REFUTED in words and row.verdict == Verdict.UNDECIDED and not row.reading:
        reason += "; not refuted after correction for their number, or not under each reading"
    return f"{reason}; under the reading {row.reading}" if row.reading else reason


def _tests(verdicts: Iterable[dict[str, str]]) -> str:
    heads = ["test", "judges", "reading", "what it asks", "verdict", "reason"]
    columns = ("claim", "judges", "reading", "text", "verdict", "evidence")
    rows = ({**test, "verdict": _word(test)} for test in verdicts)
    return _table(heads, ([row[column] for column in columns] for row in rows))


def _table(heads: list[str], rows: Iterable[list[str]]) -> str:
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    lines += [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())


def _paper_rows(study: Study, verdicts: list[dict[str, str]]) -> Iterator[_Row]:
    """A row for each claim of the catalogue."""
    by_claim = {verdict["claim"]: verdict for verdict in verdicts}
    claims = [claim for experiment in study.experiments for claim in experiment.claims]
    for entry in study.catalogue.values():
        if entry.not_judged:
            yield _Row(entry.id, entry.place, _says(entry), _NOT_JUDGED, entry.not_judged)
            continue
        own = [claim.id for claim in claims if entry.id in claim.judges]
        tests = [by_claim.get(name) for name in own]
        yield _judged(study, entry.id, entry.place, _says(entry), tests)


def _own_rows(study: Study, verdicts: list[dict[str, str]]) -> Iterator[_Row]:
    """A row for each claim that judges none of the catalogue."""
    by_claim = {verdict["claim"]: verdict for verdict in verdicts}
    for experiment in study.experiments:
        for claim in experiment.claims:
            if not claim.judges:
                tests = [by_claim.get(claim.id)]
                yield _judged(study, claim.id, claim.place, claim.text, tests)


def _says(entry: PaperClaim) -> str:
    contradicts = f" (contradicts {', '.join(entry.contradicts)})" if entry.contradicts else ""
    return f"{entry.says}{contradicts}"


def _judged(
    study: Study, name: str, place: str, says: str, tests: list[dict[str, str] | None]
) -> _Row:
    """The row of a claim on which these tests bear."""
    known = [test for test in tests if test is not None]
    if len(known) < len(tests) or not known:
        return _Row(name, place, says, _NOT_RUN, "")
    if len(known) == 1:
        return _Row(name, place, says, _word(known[0]), known[0]["evidence"])
    verdict, reading = _together(study, known)
    return _Row(name, place, says, verdict, "", tuple(known), reading)


def _word(test: dict[str, str]) -> str:
    """The verdict of one test, as the pages count it."""
    return _CALIBRATED if test["calibrated"] == "true" else test["verdict"]


def _together(study: Study, tests: list[dict[str, str]]) -> tuple[str, str]:
    """The verdict of several tests, and the reading under which alone the claim holds.

    Calibrated tests count only if there are no others. A reading has its own tests, and those that
    belong to all.
    """
    predictions = [test for test in tests if test["calibrated"] == "false"]
    if not predictions:
        return _CALIBRATED, ""
    readings = list(dict.fromkeys(test["reading"] for test in predictions if test["reading"]))
    verdicts = {
        reading: _all(study, [t for t in predictions if t["reading"] in ("", reading)])
        for reading in readings or [""]
    }
    held = [reading for reading, verdict in verdicts.items() if verdict == Verdict.HOLDS]
    if held:
        return Verdict.HOLDS, ", ".join(held) if len(held) < len(verdicts) else ""
    refuted = all(verdict == Verdict.REFUTED for verdict in verdicts.values())
    return (Verdict.REFUTED if refuted else Verdict.UNDECIDED), ""


def _all(study: Study, tests: list[dict[str, str]]) -> Verdict:
    """The verdict on a claim that holds if all of these tests do."""
    shown = enough([float(test["shown"]) for test in tests], len(tests))
    contradicted = enough([float(test["contradicted"]) for test in tests], 1)
    return verdict_of(shown, contradicted, study.confidence)


def take(study: Study, results: Path) -> bool:
    """Takes the verdicts of a run into the study's folder; whether there were any.

    Those of experiments that the run left out stay.

    Raises:
        ValueError: The verdicts on file are of more runs.
        OSError: A file cannot be read or written.
    """
    source = results / study.name / FILE
    if not source.exists():
        return False
    rows = _read(source)
    taken = {row["experiment"] for row in rows}
    on_file = {row["claim"]: int(row["runs"]) for row in committed(study)}
    for row in rows:
        if int(row["runs"]) < on_file.get(row["claim"], 0):
            raise ValueError(
                f"{source}: {row['claim']} has {row['runs']} runs per variant, and "
                f"{study.folder / FILE} has {on_file[row['claim']]} (run the study in full)"
            )
    rows += [row for row in committed(study) if row["experiment"] not in taken]
    order = [claim.id for experiment in study.experiments for claim in experiment.claims]
    places = {name: place for place, name in enumerate(order)}
    kept = sorted((r for r in rows if r["claim"] in places), key=lambda r: places[r["claim"]])
    write_claims(study.folder / FILE, kept)
    return True
