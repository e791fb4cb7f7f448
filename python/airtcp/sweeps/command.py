"""`airtcp sweep`: a scenario over a grid of settings and seeds, into a file."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from airtcp.errors import BAD_INPUT, OK, answer, check_input
from airtcp.runs.command import ERRORS, Parser, Runner, add_options, positive
from airtcp.runs.execute import Simulator, SimulatorLike
from airtcp.runs.job import FIRST_SEED
from airtcp.runs.store import Store, check_folder
from airtcp.scenario import Scenario
from airtcp.sweeps.files import check_name, columns_of, write_rows
from airtcp.sweeps.sweep import ROWS, Axis, Sweep, replaces
from airtcp.words import counted

COMMAND = "airtcp sweep"

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def main(arguments: Sequence[str], simulator: SimulatorLike | None = None) -> int:
    """Runs `airtcp sweep` with these arguments; returns the exit code."""
    return answer(
        COMMAND, lambda: _sweep(_parser().parse_args(arguments), simulator or Simulator()), *ERRORS
    )


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=COMMAND,
        description="Run a scenario with every combination of some settings and seeds; write the "
        "metrics as a table, with a row per run and flow.",
        epilog="Exit codes: 0 all runs are done; 1 a run failed or was interrupted; 2 bad input",
    )
    parser.add_argument("scenario", type=Path, metavar="SCENARIO", help="scenario file")
    parser.add_argument(
        "--axis",
        type=lambda text: (False, axis(text)),
        action="append",
        default=[],
        metavar="KEY=A,B,…",
        help="a key of the scenario and its values; repeat it for a grid",
    )
    parser.add_argument(
        "--with",
        type=lambda text: (True, axis(text)),
        action="append",
        dest="axis",
        metavar="KEY=A,B,…",
        help="a key that changes together with that of the --axis before, and as many values",
    )
    parser.add_argument(
        "--set",
        type=_pair,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an override for all runs",
    )
    parser.add_argument(
        "--runs", type=positive, default=10, metavar="N", help="seeds per combination; default: 10"
    )
    parser.add_argument(
        "--seed", type=int, default=FIRST_SEED, metavar="N", help="the first seed; default: 1"
    )
    parser.add_argument(
        "--rows", choices=list(ROWS), default="flows", help="what a row is; default: flows"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="a name that ends in .csv or .parquet; default: results/SCENARIO-ID.csv, with an "
        "ID of its own for each sweep",
    )
    add_options(parser)
    return parser


def _sweep(options: argparse.Namespace, simulator: SimulatorLike) -> int:
    axes = _axes(options.axis)
    keys = [key for axis in axes for key in axis]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        print(f"{COMMAND}: --axis {twice} is there twice", file=sys.stderr)
        return BAD_INPUT
    _check_set(options.set, options.axis)
    grid = dict(map(_values, axes))
    check_input(options.scenario, "a scenario file")
    scenario = Scenario.load(options.scenario, set=dict(options.set))
    seeds = range(options.seed, options.seed + options.runs)
    wanted = Sweep(scenario, grid, seeds)
    wanted.check(simulator)
    stem = options.scenario.stem
    results = Path("results")
    out = options.out or results / f"{stem}-{wanted.digest(options.rows)}.csv"
    check_name(out)
    wanted.check_out(out)
    if options.out:
        # The folder of runs would be made together with its parents.
        check_folder(out)
    # Sweeps of one scenario share runs.
    runs = out.with_suffix(".runs") if options.out else results / f"{stem}.runs"
    try:
        store = Store(runs, simulator.build)
    except OSError as error:
        print(f"{COMMAND}: cannot write to {runs}: {error.strerror}", file=sys.stderr)
        return BAD_INPUT
    check_folder(out)

    runner = Runner(COMMAND, store, simulator, options.jobs, options.dask, options.quiet)
    rows = runner.run_and_read(
        [job for _, job in wanted.jobs()],
        lambda: wanted.rows(store, options.rows),
        wanted.check_rows(options.rows),
    )
    for key, values in (item for axis in axes for item in axis.items()):
        shown = typed(values)
        for row in rows:
            row[key] = shown[str(row[key])]
    write_rows(out, rows)
    print(f"{out}: {counted(len(rows), 'row')}, {counted(len(columns_of(rows)), 'column')}")
    return OK


_Keys = dict[str, list[str]]
"""The keys that change together, and the values of each."""

_Given = Sequence[tuple[bool, tuple[str, list[str]]]]
"""Of each `--axis` and `--with`: whether it is `--with`, its key and its values."""


def _check_set(overrides: Sequence[tuple[str, str]], given: _Given) -> None:
    """Refuses a `--set` that every run replaces.

    Raises:
        ValueError: The message has the two options.
    """
    for other, value in overrides:
        for together, (key, _) in given:
            if replaces(key, other):
                option = "--with" if together else "--axis"
                raise ValueError(f"--set {other}={value} has no effect: {option} {key} replaces it")


def _axes(given: _Given) -> list[_Keys]:
    """The axes of `--axis` and `--with`, in their order on the command line.

    Raises:
        ValueError: A `--with` does not go with the `--axis` before it.
    """
    axes: list[_Keys] = []
    for together, (key, texts) in given:
        if not together:
            axes.append({key: texts})
            continue
        if not axes:
            raise ValueError(f"--with {key}: there is no --axis before it")
        first, of_first = next(iter(axes[-1].items()))
        if len(texts) != len(of_first):
            raise ValueError(
                f"--with {key} has {counted(len(texts), 'value')}, --axis {first} before it "
                f"{len(of_first)}"
            )
        if key in axes[-1]:
            raise ValueError(f"--with {key}: it is in that axis already")
        axes[-1][key] = texts
    return axes


def _values(axis: _Keys) -> tuple[Axis, Sequence[object]]:
    """An axis of `Sweep`."""
    if len(axis) == 1:
        return next(iter(axis.items()))
    return tuple(axis), list(zip(*axis.values(), strict=True))


def typed(texts: Sequence[str]) -> dict[str, Any]:
    """The values of an axis as numbers or truth values, if all of them are."""
    if {*texts} <= {"true", "false"}:
        return {text: text == "true" for text in texts}
    if all(map(_INTEGER.fullmatch, texts)):
        return {text: int(text) for text in texts}
    if all(map(_NUMBER.fullmatch, texts)):
        return {text: float(text) for text in texts}
    return {text: text for text in texts}


def axis(text: str) -> tuple[str, list[str]]:
    """Reads `KEY=A,B,…`; a comma in quotes or brackets does not separate values."""
    key, values = _pair(text)
    parts = [part.strip() for part in _split(values, ",")]
    if not all(parts):
        raise argparse.ArgumentTypeError(f"{text!r}: a value of {key} is empty")
    return key, parts


def _pair(text: str) -> tuple[str, str]:
    key, *rest = _split(text, "=")
    value = "=".join(rest)
    if not rest or not key.strip():
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected KEY=VALUE, such as link.AP-phone.loss.p=0.01"
        )
    return key.strip(), value.strip()


def _split(text: str, separator: str) -> Iterator[str]:
    """Splits at the separators that are neither in quotes nor in brackets."""
    quote = ""
    depth = start = 0
    for place, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "[{":
            depth += 1
        elif character in "]}":
            depth -= 1
        elif character == separator and depth == 0:
            yield text[start:place]
            start = place + 1
    yield text[start:]
