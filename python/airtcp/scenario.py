"""Scenarios: what is simulated."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from operator import index
from pathlib import Path
from typing import NamedTuple, SupportsIndex

from airtcp import _native
from airtcp.congestion import CongestionControl, maker
from airtcp.run import Run, Series
from airtcp.words import expect, nearest


def override_text(value: object) -> str:
    """An override's value as the command line takes it (`--set key=value`)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def check_seeds(seeds: Iterable[object]) -> None:
    """Checks that runs can have these seeds.

    Raises:
        TypeError: One is not a whole number.
        ValueError: One is not from 0 to 2^64 - 1.
    """
    for seed in seeds:
        # NumPy's whole numbers are no `int`.
        if not isinstance(seed, SupportsIndex):
            raise TypeError(f"seed {seed!r}: expected a whole number")
        if not 0 <= index(seed) < 2**64:
            raise ValueError(f"seed {seed}: expected a number from 0 to 2^64 - 1")


def _names(argument: str, value: str | Iterable[str]) -> list[str]:
    """The names in an argument that is one of them, or several."""
    names = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    fits = all(isinstance(name, str) for name in names)
    expect(fits, argument, value, "a name, or several")
    return names


Files = tuple[tuple[str, str], ...]
"""Path and text of each file that a scenario names, as it writes the path."""


Spans = list[tuple[float, float]]
"""Spans of simulated time: from and until, s."""


class Source(NamedTuple):
    """What a scenario was read from.

    Attributes:
        name: The file's name.
        text: Its contents, TOML.
        overrides: Dotted keys and values, as `--set`.
        files: Path and text of each file that the scenario names (movement, link traces).
    """

    name: str
    text: str
    overrides: tuple[tuple[str, str], ...]
    files: Files = ()


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
        text = Path(path).read_text(encoding="utf-8")
        try:
            return cls.parse(text, set=set, name=os.fspath(path))
        except _native.ScenarioError as error:
            if _is_other_than_a_scenario(text, str(error)):
                hint = "it has no key of a scenario (`airtcp check` tells what it is)"
                error.args = (f"{error}\n{os.fspath(path)}: {hint}",)
            raise

    @classmethod
    def parse(
        cls,
        text: str,
        set: Mapping[str, object] | None = None,  # noqa: A002
        name: str = "<text>",
    ) -> Scenario:
        """Reads a scenario from TOML text; `name` stands for the file in error messages.

        Files that the scenario names are relative to the folder in `name`.

        Raises:
            ScenarioError: The text or an override is wrong; the message says where, and what was
                expected.
        """
        overrides = [(key, override_text(value)) for key, value in (set or {}).items()]
        native = _native.Scenario.parse(name, text, overrides)
        return cls(native, Source(name, text, tuple(overrides), tuple(native.files.items())))

    @property
    def name(self) -> str:
        """Short name of the scenario."""
        return self._native.name

    @property
    def duration(self) -> float:
        """Simulated time of a run, seconds."""
        return self._native.duration

    @property
    def flows(self) -> list[str]:
        """Names of its TCP flows."""
        return self._native.flows

    @property
    def links(self) -> list[str]:
        """Names of its links, one for each direction, such as `AP>phone`."""
        return self._native.links

    def outages(self) -> tuple[dict[str, Spans], dict[str, Spans]]:
        """When nothing gets through on the path of each TCP flow, and on each link.

        A path is that of static routes; an outage ends with the run at the latest.

        Returns:
            By the names of flows, and of links: from and until, s.
        """
        of_flows, of_links = self._native.outages()
        return of_flows, of_links

    def run(
        self,
        seed: int = 1,
        trace: str | Iterable[str] = (),
        between_slices: Callable[[], object] | None = None,
        congestion: Mapping[str, Callable[[], CongestionControl]] | None = None,
        *,
        pcap: str | os.PathLike[str] | None = None,
        pcap_nodes: str | Iterable[str] = (),
        pcap_monitor: bool = False,
        snaplen: int | None = None,
    ) -> Run:
        """Simulates once. The same scenario and seed give the same result on any machine.

        Releases the GIL, so that threads simulate in parallel; Ctrl-C ends a run in the main
        thread.

        Args:
            seed: Seed of all random streams of the run, from 0 to 2^64 - 1.
            trace: Name of a time series to record, or several (`airtcp.SERIES`).
            between_slices: Called every few dozen milliseconds of wall-clock time; an exception
                it raises ends the run and is passed on.
            congestion: Congestion controls of your own by name, for the flows with
                `congestion = "custom"` and `control = NAME`: a subclass of
                `airtcp.CongestionControl`, or what makes one for each endpoint. An exception they
                raise ends the run and is passed on.
            pcap: A folder for captures: a pcapng file for each network interface, as tcpdump there
                would have written it (`docs/captures.md`).
            pcap_nodes: Name of the only node to capture at, or several; default: all.
            pcap_monitor: Whether to capture the frames of each wlan, too, as a sniffer in monitor
                mode does: 802.11 with Radiotap headers.
            snaplen: How many bytes of each packet are captured; default: all.

        Returns:
            Metrics in SI units, and the series asked for.

        Warns:
            UserWarning: Something makes the numbers doubtful; the message says what to change.

        Raises:
            ScenarioError: The scenario names a control that is not there.
            ValueError: An unknown series or node, an impossible seed, no flow uses a control of its
                own, no wlan to monitor, or the folder has captures that these would not replace.
            OSError: A capture cannot be written.
            TypeError: What `congestion` has makes no control, or an argument is of another type.
        """
        nodes = _names("pcap_nodes", pcap_nodes)
        expect(isinstance(pcap_monitor, bool), "pcap_monitor", pcap_monitor, "True or False")
        fits = between_slices is None or callable(between_slices)
        expect(fits, "between_slices", between_slices, "a function")
        if pcap is None and (nodes or pcap_monitor or snaplen is not None):
            raise ValueError("pcap_nodes, pcap_monitor and snaplen have no effect without pcap")
        length = None if snaplen is None else str(snaplen)
        captures = None if pcap is None else (os.fspath(pcap), nodes, pcap_monitor, length)
        metrics, series, doubts = self._run(
            seed, _names("trace", trace), between_slices, congestion, captures
        )
        for doubt in doubts:
            warnings.warn(doubt, stacklevel=2)
        return Run(json.loads(metrics), series)

    def run_to_bytes(
        self,
        seed: int,
        trace: Iterable[str],
        between_slices: Callable[[], object] | None,
        congestion: Mapping[str, Callable[[], CongestionControl]] | None,
        on_doubt: Callable[[str], object],
    ) -> bytes:
        """What `Run.from_bytes` reads as the result of `run`; `on_doubt` is told each warning.

        Short runs take longer as Python's objects than in the simulator; so this makes none.
        """
        metrics, series, doubts = self._run(seed, list(trace), between_slices, congestion)
        for doubt in doubts:
            on_doubt(doubt)
        return Run(json.loads(metrics), series).to_bytes() if series else metrics.encode()

    def _run(
        self,
        seed: int,
        trace: list[str],
        between_slices: Callable[[], object] | None,
        congestion: Mapping[str, Callable[[], CongestionControl]] | None,
        captures: tuple[str, list[str], bool, str | None] | None = None,
    ) -> tuple[str, dict[str, Series], list[str]]:
        """Simulates once: the metrics in JSON, the series by name, and the warnings."""
        check_seeds([seed])
        for name in trace:
            if name not in _native.SERIES:
                known = f"expected one of {', '.join(_native.SERIES)}"
                near = nearest(name, _native.SERIES)
                raise ValueError(f"unknown series {name!r}: {known}{near}")
        native = self._with_controls(congestion)
        metrics, doubts, columns = native.run(seed, trace, between_slices, captures)
        series = {name: Series.from_buffers(*of_it) for name, of_it in columns.items()}
        return metrics, series, doubts

    def check_controls(
        self, congestion: Mapping[str, Callable[[], CongestionControl]] | None = None
    ) -> None:
        """Checks that these are the congestion controls of its own that `run` needs.

        Raises:
            ScenarioError: The scenario names a control that is not there.
            ValueError: No flow uses a control of its own.
            TypeError: What `congestion` has cannot be called.
        """
        self._with_controls(congestion)

    def _with_controls(
        self, congestion: Mapping[str, Callable[[], CongestionControl]] | None
    ) -> _native.Scenario:
        fits = congestion is None or isinstance(congestion, Mapping)
        expect(fits, "congestion", congestion, 'controls by name, such as {"mine": MyControl}')
        if congestion and not self._native.names_controls:
            names = ", ".join(map(repr, congestion))
            message = f"no flow has congestion = 'custom': nothing uses {names}"
            raise ValueError(message)
        if not self._native.names_controls:
            return self._native
        makers = {name: maker(name, make) for name, make in (congestion or {}).items()}
        name, text, overrides, files = self.source
        return _native.Scenario.parse(name, text, overrides, dict(files), makers)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles and copies as what it was read from."""
        return read, tuple(self.source)

    def __repr__(self) -> str:
        return f"Scenario({self.name!r}, duration={self.duration} s)"


def _is_other_than_a_scenario(text: str, mistakes: str) -> bool:
    """Whether a file has keys, and these mistakes say of each that it is none of a scenario."""
    values, _, _ = _native.read_toml(text)
    return bool(values) and all(f": {key}: unknown key" in mistakes for key in values)


def files_of(
    name: str,
    text: str,
    overrides: tuple[tuple[str, str], ...],
    files: Files = (),
    axes: tuple[tuple[str, str], ...] = (),
) -> Files:
    """The files that a scenario names; those that `files` lacks are read from disk.

    `axes` are further overrides, which mistakes name as those of a sweep.

    Raises:
        ScenarioError: The scenario is wrong, or a file cannot be read.
    """
    native = _native.Scenario.parse(name, text, overrides, dict(files), axes=axes)
    return tuple(native.files.items())


def read(
    name: str, text: str, overrides: tuple[tuple[str, str], ...], files: Files = ()
) -> Scenario:
    """The scenario that was read from a source, whatever is on disk now."""
    native = _native.Scenario.parse(name, text, overrides, dict(files))
    return Scenario(native, Source(name, text, overrides, files))
