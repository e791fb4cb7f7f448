"""Jobs that a program measures on real hosts instead of the simulator."""

from __future__ import annotations

import json
import os
import shlex
import string
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from airtcp.run import Run

Key = tuple[tuple[str, str], ...]
"""A variant's `key=value` pairs, sorted by key."""


class NotHereError(ValueError):
    """What a study needs is missing here; the message says what."""


@dataclass(frozen=True)
class Testbed:
    """The program, and what it measures.

    Attributes:
        key: Pairs that the variants have which it measures.
        command: The program with its arguments, run in the folder of the project.
        variable: The environment variable that tells it the case.
        case: The case, with `$name` for the value of that key of the variant.
        parallel: How many of it run at once.
        folder: Where it runs.
        needs_root: Whether only root can run it.
    """

    key: Key
    command: tuple[str, ...]
    variable: str
    case: str
    parallel: int
    folder: str
    needs_root: bool = False

    def measures(self, key: Key) -> bool:
        """Whether it measures the variant with this key."""
        return set(self.key) <= set(key)

    def case_of(self, key: Key) -> str:
        """The case of a variant.

        Raises:
            KeyError: The variant lacks a key that the case names.
        """
        return string.Template(self.case).substitute(dict(key))

    def check(self) -> None:
        """Checks that it can run here.

        Raises:
            NotHereError: It cannot; the message says why.
        """
        if self.command[0] == "cargo" and not (Path(self.folder) / "Cargo.toml").is_file():
            raise NotHereError(
                "this study compiles and measures parts of airtcp, which an installed package does "
                "not have: run it in a checkout of the source"
            )
        if self.needs_root and os.geteuid() != 0:
            raise NotHereError(
                "this study measures on real network interfaces and needs root: "
                "run the same command with sudo"
            )

    def run(self, case: str) -> Run:
        """Measures one case.

        The program has a session of its own: Ctrl-C lets it finish and tidy up.

        Raises:
            RuntimeError: It failed; the message has its last words.
        """
        # The last words of a program in Rust would be a trace of calls, not what went wrong.
        environment = {**os.environ, "RUST_BACKTRACE": "0", self.variable: case}
        process = subprocess.run(
            self.command,
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        )
        measured = next(
            (line for line in process.stdout.splitlines() if line.startswith("{")), None
        )
        if process.returncode != 0 or measured is None:
            said = "\n".join((process.stdout + process.stderr).splitlines()[-10:])
            raise RuntimeError(
                f"`{self.variable}='{case}' {shlex.join(self.command)}` measured nothing and "
                f"ended with status {process.returncode}: {said}"
            )
        values: Mapping[str, float] = json.loads(measured)
        return Run({"measured": values})


def testbed_of(testbeds: Iterable[Testbed], key: Key) -> Testbed | None:
    """The first that measures the variant with this key; `None`: the simulator does."""
    return next((testbed for testbed in testbeds if testbed.measures(key)), None)
