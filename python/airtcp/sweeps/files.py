"""Tables of sweeps as files."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

import pandas as pd

from airtcp.extras import needed_by
from airtcp.runs.execute import write_atomically


def _csv(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False, lineterminator="\n").encode()


def _parquet(table: pd.DataFrame) -> bytes:
    parquet = io.BytesIO()
    table.to_parquet(parquet, index=False)
    return parquet.getvalue()


FORMATS: Mapping[str, Callable[[pd.DataFrame], bytes]] = {".csv": _csv, ".parquet": _parquet}
"""By the ending of the file's name."""


def check_name(path: Path) -> None:
    """Checks the ending of a file's name, which says what it will hold.

    Raises:
        ValueError: It is unknown; the message has those known.
        MissingExtraError: A package that the format needs is not installed.
    """
    if path.suffix not in FORMATS:
        known = " or ".join(FORMATS)
        raise ValueError(f"{str(path)!r}: expected a name that ends in {known}")
    if path.suffix == ".parquet":
        with needed_by("a Parquet file", "study"):
            # pandas loads it, and would not name the extra.
            import_module("pyarrow")


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Writes a table as the ending of the file's name says.

    Raises:
        ValueError: The ending is unknown.
        OSError: The file cannot be written; nothing is left behind.
        MissingExtraError: A package that the format needs is not installed.
    """
    check_name(path)
    write_atomically(path, FORMATS[path.suffix](table))
