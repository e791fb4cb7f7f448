"""`airtcp study list`: the studies and their experiments.

Reads no more of a study than it prints, and needs no module that a study's runs need: these take
seconds to load.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from airtcp.errors import OK, answer
from airtcp.study.document import StudyError
from airtcp.study.folders import find, names

EXIT_CODES = "Exit codes: 0 success; 1 failed or interrupted; 2 bad input"


@dataclass(frozen=True)
class Listed:
    """A study.

    Attributes:
        experiments: Their ids and titles.
    """

    name: str
    title: str
    experiments: tuple[tuple[str, str], ...]


def main(arguments: Sequence[str], _simulator: object = None) -> int:
    """Runs `airtcp study` with these arguments, of which the first is `list`."""
    parser = argparse.ArgumentParser(
        prog="airtcp study list",
        description="List the studies and their experiments.",
        epilog=EXIT_CODES,
    )
    add_options(parser)
    return answer("airtcp study", lambda: show(parser.parse_args(arguments[1:])))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def show(options: argparse.Namespace, _simulator: object = None) -> int:
    """Prints the studies; returns the exit code.

    Raises:
        StudyError: A study has no title, or an experiment no id or title, or no TOML.
    """
    studies = [read(find(name)) for name in names()]
    if options.json:
        for study in studies:
            ids = [id_ for id_, _ in study.experiments]
            print(json.dumps({"study": study.name, "title": study.title, "experiments": ids}))
        return OK
    for study in studies:
        print(f"{study.name}: {study.title}")
        for id_, title in study.experiments:
            print(f"  {id_:10} {title}")
    if not studies:
        print("no studies found; set AIRTCP_STUDIES to their folder", file=sys.stderr)
    return OK


def read(folder: Path) -> Listed:
    """Reads what is listed of the study in a folder.

    Raises:
        StudyError: As for `show`.
    """
    try:
        text = (folder / "study.toml").read_text(encoding="utf-8")
        root = tomllib.loads(text)
        listed = tuple((str(one["id"]), str(one["title"])) for one in root["experiment"])
        return Listed(str(root.get("name", folder.resolve().name)), str(root["title"]), listed)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        # The strict reader names every mistake with its line.
        from airtcp.study.definition import load  # noqa: PLC0415

        load(folder)
        raise StudyError(f"{folder / 'study.toml'}: {error}") from error
