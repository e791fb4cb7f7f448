"""Scenarios: what is simulated."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from airtcp import _native
from airtcp.congestion import CongestionControl, maker
from airtcp.run import Run, Series


def override_text(value: object) -> str:
    """An override's value as the command line takes it (`--set key=value`)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class Source(NamedTuple):
    """What a scenario was read from: the file's name, its text, and the overrides."""

    name: str
    text: str
    overrides: tuple[tuple[str, str], ...]


class Scenario:
    """A scenario, checked and ready to run; see `docs/scenario.md` for the file format.

    Attributes:
        source: What it was read from.
    """

    def __init__(self, native: _native.Scenario, source: Source) -> None:
        self._native = native
        self.source = source

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        set: Mapping[str, object] | None = None,  # noqa: A002 - the command line's name for it
    ) -> Scenario:
        """Reads a scenario file.

        Args:
            path: The TOML file.
            set: Overrides, as `--set` on the command line: dotted key to value, such as
                `{"link.BS-MH.rate": "384 kbit/s"}`.

        Raises:
            OSError: The file cannot be read.
            ScenarioError: The file or an override is wrong; the message says where, and what was
                expected.
        """
        return cls.parse(Path(path).read_text(encoding="utf-8"), set=set, name=os.fspath(path))

    @classmethod
    def parse(
        cls,
        text: str,
        set: Mapping[str, object] | None = None,  # noqa: A002
        name: str = "<text>",
    ) -> Scenario:
        """Reads a scenario from TOML text; `name` stands for the file in error messages.

        Raises:
            ScenarioError: The text or an override is wrong; the message says where, and what was
                expected.
        """
        overrides = [(key, override_text(value)) for key, value in (set or {}).items()]
        native = _native.Scenario.parse(name, text, overrides)
        return cls(native, Source(name, text, tuple(overrides)))

    @property
    def name(self) -> str:
        """Short name of the scenario."""
        return self._native.name

    @property
    def duration(self) -> float:
        """Simulated time of a run, seconds."""
        return self._native.duration

    def run(
        self,
        seed: int = 1,
        trace: Iterable[str] = (),
        between_slices: Callable[[], object] | None = None,
        congestion: Mapping[str, Callable[[], CongestionControl]] | None = None,
    ) -> Run:
        """Simulates once. The same scenario and seed give the same result on any machine.

        Releases the GIL, so that threads simulate in parallel; Ctrl-C ends a run in the main
        thread.

        Args:
            seed: Seed of all random streams of the run.
            trace: Names of time series to record (`airtcp.SERIES`).
            between_slices: Called every few dozen milliseconds of wall-clock time; an exception
                it raises ends the run and is passed on.
            congestion: Congestion controls of your own by name, for the flows with
                `congestion = "custom"` and `control = NAME`: a subclass of
                `airtcp.CongestionControl`, or what makes one for each endpoint. An exception they
                raise ends the run and is passed on.

        Raises:
            ScenarioError: The scenario names a control that is not there.
            ValueError: An unknown series, or no flow uses a control of its own.
        """
        native = self._native
        if congestion and not native.names_controls:
            names = ", ".join(map(repr, congestion))
            message = f"no flow has congestion = 'custom': nothing uses {names}"
            raise ValueError(message)
        if native.names_controls:
            makers = {name: maker(name, make) for name, make in (congestion or {}).items()}
            native = _native.Scenario.parse(*self.source, makers)
        metrics, columns = native.run(seed, list(trace), between_slices)
        decoded: dict[str, Any] = json.loads(metrics)
        series = {name: Series.from_buffers(*buffers) for name, buffers in columns.items()}
        return Run(decoded, series)

    def __repr__(self) -> str:
        return f"Scenario({self.name!r}, duration={self.duration} s)"
