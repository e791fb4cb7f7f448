"""`docs/claims.md`: every claim of every paper, its verdict and its reason.

The verdicts come from `claims.csv` in a study's folder, which is that of its last full run
(`make study-all`).
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from airtcp.study.claims import Verdict, runs_text
from airtcp.study.definition import PaperClaim, Study

FILE = "claims.csv"

_INTRODUCTION = """# The papers' claims

<!-- Generated: airtcp study claims > docs/claims.md -->

Each claim of each paper that a study reproduces, what our runs say about it, and why. *Holds*:
the runs show it. *Refuted*: they show the opposite. *Undecided*: they show neither. How a claim is
tested: [studies](studies.md#verdicts). `make study-all` runs everything and writes this page anew.
"""

_NOT_RUN = "not run"
_NOT_JUDGED = "not judged"
_ORDER = (Verdict.REFUTED, Verdict.UNDECIDED, Verdict.HOLDS)
"""A claim of a paper on which several tests bear has the first of their verdicts."""


@dataclass(frozen=True)
class _Row:
    """A row of the page."""

    id: str
    place: str
    says: str
    verdict: str
    reason: str

    def __str__(self) -> str:
        cells = (self.id, self.place, self.says, self.verdict, self.reason)
        return f"| {' | '.join(' '.join(cell.replace('|', '/').split()) for cell in cells)} |"


def committed(study: Study) -> list[dict[str, str]]:
    """The verdicts of the study's last full run: rows of `claims.csv`; none if there is no file.

    Raises:
        OSError: The file cannot be read.
    """
    file = study.folder / FILE
    if not file.exists():
        return []
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def page(studies: Iterable[Study]) -> str:
    """The page."""
    parts, counts = [], []
    for study in studies:
        verdicts = committed(study)
        rows = list(_rows(study, verdicts))
        counts.append(_counts(study, rows))
        parts.append(_section(study, verdicts, rows))
    heads = ["study", "claims", *(v.value for v in Verdict), _NOT_JUDGED, _NOT_RUN]
    table = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *counts]
    return "\n".join([_INTRODUCTION, *table, "", "\n".join(parts)])


def _counts(study: Study, rows: list[_Row]) -> str:
    verdicts = [row.verdict for row in rows]
    kinds = [*(verdict.value for verdict in Verdict), _NOT_JUDGED, _NOT_RUN]
    numbers = [str(verdicts.count(kind)) for kind in kinds]
    return f"| [{study.name}](#{study.name}) | {len(rows)} | {' | '.join(numbers)} |"


def _section(study: Study, verdicts: list[dict[str, str]], rows: list[_Row]) -> str:
    runs = {int(verdict["runs"]) for verdict in verdicts}
    of = f"{runs_text(runs)} per variant" if runs else "no full run is on file"
    lines = [
        f"## {study.name}",
        "",
        f"{study.paper_title}. `airtcp study run {study.name}`: {of}; "
        f"[study.toml](../studies/{study.name}/study.toml).",
        "",
        "| claim | place | what the paper says | verdict | reason |",
        "|---|---|---|---|---|",
        *map(str, rows),
        "",
    ]
    return "\n".join(lines)


def _rows(study: Study, verdicts: list[dict[str, str]]) -> Iterator[_Row]:
    """A row for each claim of the catalogue, then for each claim that judges none of these."""
    by_claim = {verdict["claim"]: verdict for verdict in verdicts}
    claims = [claim for experiment in study.experiments for claim in experiment.claims]
    for entry in study.catalogue.values():
        if entry.not_judged:
            yield _Row(entry.id, entry.place, _says(entry), _NOT_JUDGED, entry.not_judged)
            continue
        own = [claim.id for claim in claims if entry.id in claim.judges]
        yield _Row(
            entry.id, entry.place, _says(entry), *_judged([by_claim.get(name) for name in own])
        )
    for claim in claims:
        if not claim.judges:
            place = "ours" if claim.ours else claim.place
            yield _Row(claim.id, place, claim.text, *_judged([by_claim.get(claim.id)]))


def _says(entry: PaperClaim) -> str:
    contradicts = f" (contradicts {', '.join(entry.contradicts)})" if entry.contradicts else ""
    return f"{entry.says}{contradicts}"


def _judged(verdicts: list[dict[str, str] | None]) -> tuple[str, str]:
    """Verdict and reason of the tests that bear on one claim."""
    known = [verdict for verdict in verdicts if verdict is not None]
    if len(known) < len(verdicts) or not known:
        return _NOT_RUN, ""
    words = [verdict["verdict"] for verdict in known]
    if len(known) == 1:
        return words[0], known[0]["evidence"]
    together = next(verdict.value for verdict in _ORDER if verdict in words)
    reasons = (f"{v['text']}: *{v['verdict']}*; {v['evidence']}" for v in known)
    return together, "<br>".join(reasons)


def take(study: Study, results: Path) -> bool:
    """Copies the verdicts of a run into the study's folder; whether there were any.

    Raises:
        OSError: A file cannot be read or written.
    """
    source = results / study.name / FILE
    if source.exists():
        (study.folder / FILE).write_bytes(source.read_bytes())
    return source.exists()
