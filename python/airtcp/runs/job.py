"""One run, and the name under which its result is kept."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from airtcp.scenario import Files

if TYPE_CHECKING:
    from airtcp.runs.testbed import Testbed

FIRST_SEED = 1
"""Seeds are 1, 2, …, the same for every variant, so that variants are paired by seed."""


@dataclass(frozen=True)
class Job:
    """One run: everything its result depends on, except the simulator itself.

    Attributes:
        file: The scenario file, for error messages.
        text: Its contents.
        overrides: As `--set`: dotted key and value.
        seed: Seed of the run.
        series: Names of the series to record, sorted.
        testbed: What measures it instead of the simulator; then `text` is the case.
        files: Path and text of each file that the scenario names.
    """

    file: str
    text: str
    overrides: tuple[tuple[str, str], ...]
    seed: int
    series: tuple[str, ...]
    testbed: Testbed | None = None
    files: Files = ()

    @cached_property
    def _content(self) -> str:
        # The scenario's name defaults to the file's, so the file is part of the content.
        command = [] if self.testbed is None else [self.testbed.command]
        files = [self.files] if self.files else []
        return json.dumps(
            [self.file, self.text, self.overrides, self.seed, self.series, *files, *command]
        )

    def address(self, simulator: str) -> str:
        """Name of the result among the kept runs: a hash of the job and the simulator's build."""
        return hashlib.sha256(f"{simulator}\n{self._content}".encode()).hexdigest()[:32]

    def __str__(self) -> str:
        if self.testbed is not None:
            return f"{self.file}={self.text!r}, run {self.seed}"
        overrides = "".join(f" --set {key}={value}" for key, value in self.overrides)
        return f"{self.file}{overrides} --seed {self.seed}"
