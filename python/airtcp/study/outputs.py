"""The tables a study writes: `cells.csv`, `cells.parquet`, `claims.csv`."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from airtcp.runs.store import write_atomically
from airtcp.study.cells import Cell, Results
from airtcp.study.claims import Judgement

CELL_COLUMNS: Mapping[str, str] = {
    "study": "name of the study",
    "experiment": "id of the experiment",
    "variant": "`key=value;key=value`; a point of a curve has the key `t`, in seconds",
    "metric": "name of the metric, defined in `study.toml`",
    "unit": "its unit, also that of the numbers in this row",
    "paper": "the paper's number; empty where it prints none",
    "ours": "mean over the runs; of a gain, the ratio of the means; empty if no run has a value",
    "ci_low": "lower end of the confidence interval; empty if there is none, as with one run",
    "ci_high": "upper end, likewise",
    "runs": "number of runs that have a value",
    "calibrated": "`true` if parameters were chosen with the paper's number in sight, else `false`",
}
"""The columns of `cells.csv`, and what they hold."""

CLAIM_COLUMNS: Mapping[str, str] = {
    "study": "name of the study",
    "experiment": "id of the experiment",
    "claim": "id of the claim in `study.toml`",
    "judges": "ids of the paper's claims that it judges, separated by spaces; may be empty",
    "reading": "the reading of the paper that it tests; empty if it tests what all share",
    "text": "the claim as a sentence",
    "verdict": "`holds`, `undecided` or `refuted`",
    "shown": "p-value of the claim",
    "contradicted": "p-value of its opposite",
    "calibrated": "`true` if the verdict is no prediction, else `false`",
    "evidence": "the metric, the numbers compared, and the test",
    "runs": "number of runs of each variant",
}
"""The columns of `claims.csv`, and what they hold."""


def columns_markdown() -> str:
    """The tables of columns in `docs/studies.md`."""
    tables = {"cells.csv": CELL_COLUMNS, "claims.csv": CLAIM_COLUMNS}
    return "\n".join(
        f"| column of `{file}` | meaning |\n|---|---|\n"
        + "".join(f"| `{name}` | {meaning} |\n" for name, meaning in columns.items())
        for file, columns in tables.items()
    )


def exact(value: float) -> str:
    """A number as in the tables: nine significant digits, empty if there is none."""
    return "" if math.isnan(value) else f"{value:.9g}"


def _truth(value: bool) -> str:
    return "true" if value else "false"


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
        _truth(bool(cell.calibrated)),
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
        claim.reading,
        claim.text,
        judgement.verdict.value,
        f"{judgement.shown:.3g}",
        f"{judgement.contradicted:.3g}",
        _truth(judgement.calibrated),
        judgement.evidence,
        str(judgement.runs),
    )
    return dict(zip(CLAIM_COLUMNS, values, strict=True))


def _csv(columns: Mapping[str, str], rows: Iterable[dict[str, str]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def write_claims(file: Path, rows: Iterable[dict[str, str]]) -> None:
    """Writes `claims.csv`.

    Raises:
        OSError: It cannot be written.
    """
    write_atomically(file, _csv(CLAIM_COLUMNS, rows))


def write_tables(
    folder: Path, study: str, results: Results, judgements: Iterable[Judgement]
) -> None:
    """Writes the three tables.

    Raises:
        OSError: A table cannot be written.
    """
    rows = [cell_row(study, cell) for cell in results.cells]
    cells = _csv(CELL_COLUMNS, rows)
    write_atomically(folder / "cells.csv", cells)
    write_claims(folder / "claims.csv", (claim_row(study, j) for j in judgements))
    write_atomically(folder / "cells.parquet", _parquet(cells))


def _parquet(cells: bytes) -> bytes:
    """`cells.csv` with numbers as numbers, and null where there is none."""
    # Arrow's own reader: to make a table of Python's values, Arrow loads pandas, for half a second.
    types = dict.fromkeys(CELL_COLUMNS, pa.string())
    types |= dict.fromkeys(("paper", "ours", "ci_low", "ci_high"), pa.float64())
    types |= {"runs": pa.int64(), "calibrated": pa.bool_()}
    table = arrow_csv.read_csv(
        io.BytesIO(cells),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(column_types=types, null_values=[""]),
    )
    file = io.BytesIO()
    parquet.write_table(table, file)
    return file.getvalue()
