"""Reading the numbers of others, `paper.csv` and `reference.csv`."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from airtcp.study.definition.model import Cell, Experiment, Known
from airtcp.study.document import Problems
from airtcp.study.fields import is_number
from airtcp.words import nearest

_COLUMNS = ("experiment", "variant", "metric", "unit", "value", "quote", "place")


def read_numbers(
    file: Path, experiments: Iterable[Experiment] | None, source: str, problems: Problems
) -> dict[Cell, tuple[Known, ...]]:
    """Reads a table, if it is there; the study must compute the number of every row.

    Args:
        file: The table; a column `source` names each number's source, if there are several.
        experiments: What the study computes; `None`: that is not known.
        source: The source of all numbers if the table has no such column.
        problems: Where mistakes are collected.
    """
    if not file.exists():
        return {}
    cells = None if experiments is None else _cells(experiments)
    known: dict[Cell, tuple[Known, ...]] = {}
    with file.open(encoding="utf-8", newline="") as stream:
        rows = csv.DictReader(stream)
        columns = tuple(rows.fieldnames or ())
        if columns not in (_COLUMNS, (*_COLUMNS, "source")):
            expected = f"expected the columns {','.join(_COLUMNS)}"
            problems.add(file, 1, f"{expected}, optionally followed by source")
            return {}
        for row in rows:
            cell = (row["experiment"], row["variant"], row["metric"])
            text = " ".join(cell)
            whose = row.get("source") or source
            if cells is not None and cell not in cells:
                near = nearest(text, map(" ".join, cells))
                problems.add(file, rows.line_num, f"the study computes no {text}{near}")
            elif not is_number(row["value"]):
                found = f"expected a number, found {row['value']!r}"
                problems.add(file, rows.line_num, f"value: {found}")
            elif whose in (other.source for other in known.get(cell, ())):
                problems.add(file, rows.line_num, f"{text} occurs twice")
            else:
                number = Known(whose, row["value"], row["unit"], row["quote"], row["place"])
                known[cell] = (*known.get(cell, ()), number)
    return known


def _cells(experiments: Iterable[Experiment]) -> set[Cell]:
    return {
        (experiment.id, variant.text, metric)
        for experiment in experiments
        for variant in experiment.variants
        for metric in experiment.metrics
    }
