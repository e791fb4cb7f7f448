"""Where studies are."""

from __future__ import annotations

import os
from pathlib import Path

from airtcp.study.document import StudyError
from airtcp.words import nearest


def folders() -> list[Path]:
    """Where to look for studies.

    `$AIRTCP_STUDIES` if set; else `studies/` in the working directory or above it; else in the
    package (a wheel) or above it (a checkout).
    """
    if configured := os.environ.get("AIRTCP_STUDIES"):
        return [Path(configured)]
    here = Path.cwd()
    package = Path(__file__).resolve()
    candidates = [above / "studies" for above in [here, *here.parents, *package.parents]]
    found = [folder for folder in candidates if any(folder.glob("*/study.toml"))]
    return found[:1]


def names() -> list[str]:
    """Names of all studies found."""
    return sorted(
        {file.parent.name for folder in folders() for file in folder.glob("*/study.toml")}
    )


def find(study: str) -> Path:
    """The folder of a study given by name or path.

    Raises:
        StudyError: There is none; the message names the nearest.
    """
    as_path = Path(study)
    if (as_path / "study.toml").is_file():
        return as_path
    for folder in folders():
        if study in names() and (folder / study / "study.toml").is_file():
            return folder / study
    known = names()
    hint = f"known: {', '.join(known)}" if known else "none found; set AIRTCP_STUDIES to the folder"
    raise StudyError(f"no study {study!r}{nearest(study, known)}; {hint}")
