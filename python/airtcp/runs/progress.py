"""Progress on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

OnProgress = Callable[[int], None]
"""Hears how many jobs are finished."""

_WIDTH = 40
"""Of the bar, in characters."""


@contextmanager
def progress(total: int, silent: bool = False) -> Iterator[OnProgress]:
    """Shows progress on standard error: a bar on a terminal, else a line every tenth."""
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
                print(f"{finished} of {total} runs", file=sys.stderr, flush=True)

        yield line


def _bar(finished: int, total: int, seconds: float) -> str:
    full = _WIDTH * finished // total
    minutes, rest = divmod(int(seconds), 60)
    return f"runs {'━' * full}{'·' * (_WIDTH - full)} {finished}/{total} {minutes}:{rest:02}"


def _show(text: str) -> None:
    """Puts a text in place of the last one, in one line of a terminal."""
    print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
