"""Tables of sweeps as files."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from airtcp.runs.store import write_atomically

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, object]
"""A row of a table: its cells by column. Rows may lack columns that others have."""


def columns_of(rows: Sequence[Row]) -> list[str]:
    """The columns of all rows, in the order in which they come first."""
    return list(dict.fromkeys(column for row in rows for column in row))


def frame_of(rows: Sequence[Row]) -> pd.DataFrame:
    """The rows as a frame."""
    import pandas as pd  # noqa: PLC0415 - slow to load, and a CSV file does without

    frame = pd.DataFrame(rows)
    # Of a metric that no run has, pandas cannot know that it is a number.
    empty = [name for name in frame if frame[name].isna().all()]
    return frame.astype(dict.fromkeys(empty, float))


def _csv(rows: Sequence[Row]) -> bytes:
    text = io.StringIO()
    table = csv.DictWriter(text, columns_of(rows), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue().encode()


def _parquet(rows: Sequence[Row]) -> bytes:
    parquet = io.BytesIO()
    frame_of(rows).to_parquet(parquet, index=False)
    return parquet.getvalue()


FORMATS: Mapping[str, Callable[[Sequence[Row]], bytes]] = {".csv": _csv, ".parquet": _parquet}
"""By the ending of the file's name."""


def check_name(path: Path) -> None:
    """Checks the ending of a file's name, which says what it will hold.

    Raises:
        ValueError: It is unknown; the message has those known.
    """
    if path.suffix not in FORMATS:
        known = " or ".join(FORMATS)
        raise ValueError(f"{str(path)!r}: expected a name that ends in {known}")


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Writes a table as the ending of the file's name says.

    Raises:
        ValueError: The ending is unknown.
        OSError: The file cannot be written; nothing is left behind.
    """
    check_name(path)
    write_atomically(path, FORMATS[path.suffix](rows))
