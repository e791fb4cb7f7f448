"""What a command written in Python says in a line, instead of a traceback, and how it ends.

Loads nothing of the package that takes time: `airtcp study list` needs it.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from airtcp.words import nearest

OK, FAILED, BAD_INPUT = range(3)
"""Exit codes."""


def answer(command: str, action: Callable[[], int], *more: type[Exception]) -> int:
    """The exit code of an action that prints, also if it fails, or if nobody reads to the end.

    Args:
        command: Its name, for messages.
        action: What it does, reading its arguments included: `--help` prints, too.
        more: What is said in a line, besides `ValueError` and `OSError`.
    """
    told: tuple[type[Exception], ...] = (ValueError, OSError, *more)
    try:
        try:
            code = action()
        except SystemExit as left:
            _flush()
            raise left
        _flush()
    except BrokenPipeError:
        # The reader has gone, and needs no more.
        _discard_output()
        return OK
    except told as error:
        try:
            sys.stdout.flush()
        except OSError:
            _discard_output()
        return complain(command, error)
    return code


def complain(command: str, error: BaseException) -> int:
    """Says what went wrong, if anybody reads it; returns the exit code."""
    with suppress(OSError):
        print(f"{command}: {visible(in_words(error))}", file=sys.stderr)
    return BAD_INPUT if isinstance(error, ValueError) else FAILED


_SYMBOLS = {number: 0x2400 + number for number in range(32) if chr(number) not in "\n\t"}
_SYMBOLS |= {0x7F: 0x2421, **dict.fromkeys(range(0x80, 0xA0), 0xFFFD)}


def visible(text: str) -> str:
    """The text with symbols in place of control characters: a file must not steer the terminal."""
    return text.translate(_SYMBOLS)


def in_words(error: BaseException) -> str:
    """The error without a number; first the file."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return _reason(error)


def unreadable(path: Path, error: OSError | ValueError) -> str:
    """Why a file cannot be read, or is no text; first the file."""
    return f"{path}: {_reason(error)}"


def _reason(error: BaseException) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def check_input(path: Path, expected: str) -> None:
    """Finds out whether there is something to read.

    Args:
        path: Its name, as it was given.
        expected: What a command reads, for the message.

    Raises:
        ValueError: No file of this name can be read; the message has the nearest name.
    """
    if path.is_dir():
        raise ValueError(f"{path}: this is a folder (expected {expected})")
    if path.exists():
        if not os.access(path, os.R_OK):
            raise ValueError(f"{path}: no permission to read it (expected {expected})")
        return
    beside: list[str] = []
    with suppress(OSError):
        beside = [str(path.with_name(one.name)) for one in path.parent.iterdir()]
    raise ValueError(
        f"{path}: there is no such file (expected {expected}){nearest(str(path), beside)}"
    )


def name_output() -> None:
    """Lets an error of standard output say where it was, as errors of files do."""
    old = sys.stdout
    if not isinstance(old, io.TextIOWrapper):
        return
    old.flush()
    output = _Output(old.fileno(), "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        # `python -u` has no buffer.
        output if isinstance(old.buffer, io.RawIOBase) else io.BufferedWriter(output),
        encoding=old.encoding,
        errors=old.errors,
        line_buffering=old.line_buffering,
        write_through=old.write_through,
    )


def _flush() -> None:
    sys.stdout.flush()
    # argparse says nothing of a `--help` that cannot be written.
    if _Output.failure is not None:
        raise _Output.failure


class _Output(io.FileIO):
    failure: ClassVar[OSError | None] = None

    def write(self, data: object, /) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError as error:
            _Output.failure = OSError(error.errno, error.strerror, "standard output")
            raise _Output.failure from error


def _discard_output() -> None:
    """Nothing more may be written, not even what waits at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
