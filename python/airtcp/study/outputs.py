"""The tables a study writes: `cells.csv`, `cells.parquet`, `claims.csv`."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from airtcp.study.cells import Cell
from airtcp.study.claims import Judgement
from airtcp.study.execute import write_atomically

CELL_COLUMNS = (
    "study",
    "experiment",
    "variant",
    "metric",
    "unit",
    "paper",
    "ours",
    "ci_low",
    "ci_high",
    "runs",
    "calibrated",
)
CLAIM_COLUMNS = ("study", "experiment", "claim", "judges", "text", "verdict", "evidence")


def exact(value: float) -> str:
    """A number as in the tables: nine significant digits, empty if there is none."""
    return "" if math.isnan(value) else f"{value:.9g}"


def cell_row(study: str, cell: Cell) -> dict[str, str]:
    """One row of `cells.csv`."""
    values = (
        study,
        cell.experiment,
        cell.text,
        cell.metric,
        cell.unit,
        cell.paper.value if cell.paper else "",
        exact(cell.ours.mean),
        exact(cell.ours.low),
        exact(cell.ours.high),
        str(cell.ours.runs),
        "true" if cell.calibrated else "false",
    )
    return dict(zip(CELL_COLUMNS, values, strict=True))


def cell_json(study: str, cell: Cell) -> dict[str, str | float | bool | None]:
    """One row of `cells.csv` with numbers as numbers, `None` where there is none."""
    row: dict[str, str | float | bool | None] = {**cell_row(study, cell)}
    for name in ("paper", "ours", "ci_low", "ci_high"):
        text = row[name]
        row[name] = float(text) if text else None
    row["runs"] = cell.ours.runs
    row["calibrated"] = bool(cell.calibrated)
    return row


def claim_row(study: str, judgement: Judgement) -> dict[str, str]:
    """One row of `claims.csv`."""
    claim = judgement.claim
    values = (
        study,
        judgement.experiment,
        claim.id,
        " ".join(claim.judges),
        claim.text,
        judgement.verdict.value,
        judgement.evidence,
    )
    return dict(zip(CLAIM_COLUMNS, values, strict=True))


def _csv(columns: Sequence[str], rows: Iterable[dict[str, str]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def write_tables(
    folder: Path, study: str, cells: Iterable[Cell], judgements: Iterable[Judgement]
) -> None:
    """Writes the three tables.

    Raises:
        OSError: A table cannot be written.
    """
    rows = [cell_row(study, cell) for cell in cells]
    write_atomically(folder / "cells.csv", _csv(CELL_COLUMNS, rows))
    claims = [claim_row(study, judgement) for judgement in judgements]
    write_atomically(folder / "claims.csv", _csv(CLAIM_COLUMNS, claims))
    frame = pd.DataFrame(rows, columns=list(CELL_COLUMNS))
    for column in ("paper", "ours", "ci_low", "ci_high"):
        frame[column] = pd.to_numeric(frame[column])
    frame["runs"] = frame["runs"].astype("int64")
    frame["calibrated"] = frame["calibrated"] == "true"
    parquet = io.BytesIO()
    frame.to_parquet(parquet, index=False)
    write_atomically(folder / "cells.parquet", parquet.getvalue())
