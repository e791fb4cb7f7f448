"""Reading the catalogue of the paper's claims, `paper-claims.toml`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from airtcp.study.definition.model import Claim, Experiment, PaperClaim
from airtcp.study.document import Document, Problems, Table
from airtcp.words import nearest

Catalogue = dict[str, tuple[PaperClaim, Table]]


def read_catalogue(file: Path, problems: Problems) -> Catalogue:
    """Reads the file, if there is one: a table for each claim, named by its id."""
    if not file.exists():
        return {}
    catalogue: Catalogue = {}
    names = []
    for name, table in Document.read(file, problems).items():
        entry = table.read(PaperClaim, id=name)
        table.finish()
        names.append(name)
        if entry is not None:
            catalogue[name] = entry, table
    for entry, table in catalogue.values():
        for other in entry.contradicts:
            if other not in names:
                table.problem("contradicts", f"no claim {other!r}{nearest(other, names)}")
    return catalogue


def check_catalogue(
    catalogue: Catalogue, experiments: Iterable[Experiment], problems: Problems
) -> None:
    """Checks that each claim of the catalogue is either judged or explained, and no other is."""
    judged: dict[str, Claim] = {}
    for claim in (claim for experiment in experiments for claim in experiment.claims):
        if catalogue and not claim.judges and not claim.ours:
            problems.at(
                claim.at,
                f"claim {claim.id}: judges: is missing; name the claims of paper-claims.toml that "
                "it judges, or say that it is ours",
            )
        if claim.ours and claim.judges:
            problems.at(claim.at, f"claim {claim.id}: ours: judges a claim of the paper")
        for name in claim.judges:
            if name not in catalogue:
                near = nearest(name, catalogue)
                text = f"judges: paper-claims.toml has no {name!r}{near}"
                problems.at(claim.at, f"claim {claim.id}: {text}")
            judged.setdefault(name, claim)
    for name, (entry, table) in catalogue.items():
        if name in judged and entry.not_judged:
            at = judged[name].at
            table.problem("not-judged", f"claim {judged[name].id} judges it ({at})")
        if name not in judged and not entry.not_judged:
            table.problem((), 'no claim of study.toml judges it; say why: not-judged = "…"')
