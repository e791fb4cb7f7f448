"""The `airtcp` command.

`study`, `sweep` and `plot` are written in Python, the compiled module has the simulator's commands,
and the native binary runs the live ones.
"""

from __future__ import annotations

import codecs
import io
import os
import signal
import sys
import warnings
from importlib import import_module
from pathlib import Path

from airtcp.errors import name_output

IN_PYTHON = {
    "study": "airtcp.study.command",
    "sweep": "airtcp.sweeps.command",
    "plot": "airtcp.timeline.command",
}
"""The commands that are written in Python, and the module of each."""

LIGHT = {("study", "list"): "airtcp.study.listing"}
"""Commands within these that do without most of their modules, which take seconds to load."""

SIMULATED = ("run", "replay", "mobility", "packetdrill", "schema")
"""The commands that this process does as well as the native binary, which has the others, and knows
what was meant by one that nobody has."""


def main() -> int:
    """Runs the command line on `sys.argv`; returns the exit code."""
    arguments = sys.argv[1:]
    command = arguments[0] if arguments else ""
    complete_streams()
    spell_out()
    if command in IN_PYTHON:
        # An exception in the middle of an import can be lost in it.
        early: list[int] = []
        signal.signal(signal.SIGINT, lambda number, _frame: early.append(number))
        light = LIGHT.get((command, " ".join(arguments[1:2])))
        module = import_module(light or IN_PYTHON[command])
        name_output()
        warnings.formatwarning = lambda message, *_: f"airtcp: {message}\n"
        try:
            signal.signal(signal.SIGINT, _interrupt)
            if early:
                signal.raise_signal(signal.SIGINT)
            code: int = module.main(arguments[1:])
        except KeyboardInterrupt:
            kept = "" if command == "plot" else "; finished runs are kept"
            print(f"airtcp {command}: interrupted{kept}", file=sys.stderr)
            return 1
        return code

    if command == "check" and sys.executable:
        # Studies are checked in Python: by this one, and not by the first of the path.
        os.environ["AIRTCP_PYTHON"] = os.environ.get("AIRTCP_PYTHON") or sys.executable
    if is_for_native(arguments) and (binary := native_binary()) is not None:
        # In place of this process, so that signals reach it as if it had been called directly.
        try:
            os.execv(binary, ["airtcp", *arguments])
        except OSError as error:
            print(f"airtcp: cannot run {binary}: {error.strerror}", file=sys.stderr)
            return 1

    from airtcp._native import cli_main  # noqa: PLC0415

    # Python's handler would only set a flag that native code never checks.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return cli_main(["airtcp", *arguments])


_IN_ASCII = {
    "…": "...",
    "–": "-",
    "—": "-",
    "−": "-",
    "±": "+/-",
    "×": "x",
    "µ": "u",
    "μ": "u",
    "§": "section ",
    "≤": "<=",
    "≥": ">=",
    "·": "*",
    "²": "^2",
    "“": '"',
    "”": '"',
    "‘": "'",
    "’": "'",
    "\u00a0": " ",
}
"""What stands for a character where the terminal has only ASCII."""


def complete_streams() -> None:
    """Lets standard streams go nowhere that whoever started this has closed (`>&-`)."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # It gets the lowest number that is free.
            os.open(os.devnull, os.O_RDWR)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def spell_out() -> None:
    """Lets standard output and error take every character, whatever encoding they have."""

    def replacement(error: UnicodeError) -> tuple[str, int]:
        assert isinstance(error, UnicodeEncodeError)
        lacking = error.object[error.start : error.end]
        return "".join(_IN_ASCII.get(letter, "?") for letter in lacking), error.end

    codecs.register_error("airtcp", replacement)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="airtcp")


def _interrupt(_signal: int, _frame: object) -> None:
    """Stops the command; then it only tidies up, which another Ctrl-C must not cut short."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def is_for_native(arguments: list[str]) -> bool:
    """Whether the native binary does this, or knows what was meant."""
    command = arguments[0] if arguments else ""
    if command == "schema":
        return not {"--gateway", "--link"}.isdisjoint(arguments)
    return command not in SIMULATED


def native_binary() -> Path | None:
    """`$AIRTCP_NATIVE`; else a wheel's own binary; else the one built last in the source tree."""
    if named := os.environ.get("AIRTCP_NATIVE"):
        return Path(named)
    package = Path(__file__).parent
    if (packaged := package / "bin" / "airtcp").is_file():
        return packaged
    target = package.parents[1] / "target"
    built = [target / profile / "airtcp" for profile in ("release", "dist")]
    return max(filter(Path.is_file, built), key=lambda path: path.stat().st_mtime, default=None)


if __name__ == "__main__":
    sys.exit(main())
