"""Progress on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from airtcp.runs.store import CannotGoOnError

OnProgress = Callable[[int], None]
"""Hears how many jobs are finished."""

_WIDTH = 40
"""Of the bar, in characters."""


@contextmanager
def progress(total: int, silent: bool = False) -> Iterator[OnProgress]:
    """Shows progress on standard error: a bar on a terminal, else a line every tenth.

    What it yields raises `CannotGoOnError` if nobody reads it any more.
    """
    if silent:
        yield lambda finished: None
    elif sys.stderr.isatty():
        started = time.monotonic()
        try:
            yield lambda finished: _show(_bar(finished, total, time.monotonic() - started))
        finally:
            _show("")
    else:
        shown = -1

        def line(finished: int) -> None:
            nonlocal shown
            tenth = 10 * finished // total
            if tenth != shown:
                shown = tenth
                _print(f"{finished} of {total} runs\n")

        yield line


def _bar(finished: int, total: int, seconds: float) -> str:
    full = _WIDTH * finished // total
    minutes, rest = divmod(int(seconds), 60)
    return f"runs {'━' * full}{'·' * (_WIDTH - full)} {finished}/{total} {minutes}:{rest:02}"


def _show(text: str) -> None:
    """Puts a text in place of the last one, in one line of a terminal."""
    _print(f"\r\033[K{text}")


def _print(text: str) -> None:
    try:
        print(text, end="", file=sys.stderr, flush=True)
    except BrokenPipeError:
        raise CannotGoOnError("nobody reads the progress any more") from None
