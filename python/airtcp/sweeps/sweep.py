"""`airtcp.sweep`: a grid of runs, and the table of their metrics."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airtcp._native import ScenarioError
from airtcp.congestion import CongestionControl
from airtcp.run import Run
from airtcp.runs.cluster import Cluster
from airtcp.runs.execute import Check, Simulator, SimulatorLike, Threads, Workers, execute
from airtcp.runs.job import FIRST_SEED, Job
from airtcp.runs.progress import progress as shown_progress
from airtcp.runs.store import CannotGoOnError, Store, check_folder
from airtcp.scenario import Scenario, Source, check_seeds, files_of, override_text
from airtcp.sweeps.files import Row, check_name, frame_of, write_rows
from airtcp.words import expect, nearest

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client

ROWS: Mapping[str, str] = {
    "flows": "flow",
    "quic": "flow",
    "links": "link",
    "stations": "station",
    "udp": "source",
    "transfers": "flow",
    "videos": "flow",
    "calls": "call",
    "middleboxes": "middlebox",
    "runs": "",
}
"""What a row can be, and the column that then has its name. A flow may be one by TCP or by QUIC."""

_PARTS: Mapping[str, Sequence[str]] = {"flows": ("flows", "quic")}
"""The parts of a run's metrics that have these rows, if it is not one of that name."""

Axis = str | tuple[str, ...]
"""A key of the scenario, such as `link.AP-phone.loss.p`, or keys that change together."""

Grid = (
    Mapping[str, Sequence[object]]
    | Mapping[tuple[str, ...], Sequence[object]]
    | Mapping[Axis, Sequence[object]]
)
"""The values of each axis; of keys that change together, a value for each of them at a time."""


def keys_of(axis: Axis) -> tuple[str, ...]:
    """The keys of an axis."""
    return (axis,) if isinstance(axis, str) else axis


def replaces(key: str, other: str) -> bool:
    """Whether a value of one key leaves none of another: it is the same, or part of it."""
    return f"{other}.".startswith(f"{key}.")


class NoRowsError(CannotGoOnError, ValueError):
    """A combination's runs do not have the rows of the table."""


@dataclass(frozen=True)
class Sweep:
    """What is run.

    Attributes:
        scenario: It, with the overrides that all runs share.
        grid: Every combination of these values is run, the last axis varying fastest.
        seeds: Each combination is run with each of these.
    """

    scenario: Scenario
    grid: Grid
    seeds: Sequence[int]

    def __post_init__(self) -> None:
        for axis, values in self.grid.items():
            named = isinstance(axis, str | tuple) and all(isinstance(k, str) for k in keys_of(axis))
            expect(named, "key of grid", axis, "a key of the scenario, or several in a tuple")
            name = " and ".join(keys_of(axis))
            if isinstance(values, str) or not isinstance(values, Sized) or not len(values):
                raise ValueError(f"the values of {name} must be a list with at least one value")
            if not isinstance(axis, str):
                _check_together(axis, values)
            if len({*map(override_text, values)}) < len(values):
                raise ValueError(f"a value of {name} is listed twice")
        keys = [key for axis in self.grid for key in keys_of(axis)]
        for key in keys:
            if keys.count(key) > 1:
                raise ValueError(f"{key} is in two axes")
            for other, value in self.scenario.source.overrides:
                if replaces(key, other):
                    raise ValueError(
                        f"{other} = {value} of the scenario has no effect: {key} is in the grid"
                    )
        check_seeds(self.seeds)
        if len(set(self.seeds)) < len(self.seeds) or not self.seeds:
            raise ValueError("there must be at least one seed, and none twice")

    def digest(self, rows: str) -> str:
        """A short name that no other sweep's table has.

        Args:
            rows: What a row of the table is.
        """
        grid = {
            ",".join(keys_of(axis)): [override_text(value) for value in values]
            for axis, values in self.grid.items()
        }
        files = sorted({file for _, source in self._sources for file in source.files})
        content = json.dumps(
            [self.scenario.source[:3], grid, list(self.seeds), rows, *([files] if files else [])]
        )
        return hashlib.sha256(content.encode()).hexdigest()[:8]

    def points(self) -> Iterator[dict[str, object]]:
        """The combinations."""
        for values in itertools.product(*self.grid.values()):
            point: dict[str, object] = {}
            for axis, value in zip(self.grid, values, strict=True):
                together = [value] if isinstance(axis, str) else _sequence(value)
                point |= zip(keys_of(axis), together, strict=True)
            yield point

    def jobs(self) -> list[tuple[dict[str, object], Job]]:
        """All runs, each with its combination."""
        return [
            (point, Job(*source[:3], seed, (), files=source.files))
            for point, source in self._sources
            for seed in self.seeds
        ]

    @cached_property
    def _sources(self) -> list[tuple[dict[str, object], Source]]:
        """Each combination, and the scenario that it makes."""
        name, text, shared, known = self.scenario.source
        sources = []
        for point in self.points():
            axes = tuple(_overrides(point))
            files = files_of(name, text, shared, known, axes)
            sources.append((point, Source(name, text, (*shared, *axes), files)))
        return sources

    def check(self, simulator: SimulatorLike) -> None:
        """Finds out what cannot be run before anything is.

        Raises:
            ValueError: A key or a value is wrong; the message says which, and what was expected.
        """
        for _, job in self.jobs()[:: len(self.seeds)]:
            simulator.check(job)

    def check_out(self, out: Path) -> None:
        """Finds out whether the table would take the place of a file that the scenarios read.

        Raises:
            ValueError: It would.
        """
        folder = Path(self.scenario.source.name).parent
        files = {name for _, source in self._sources for name, _ in source.files}
        read = {(folder / name).resolve() for name in files}
        if out.resolve() in read:
            raise ValueError(f"{out}: is read, too")

    def check_rows(self, rows: str) -> Check:
        """What finds out with the first result of each combination whether it has such rows.

        It raises NoRowsError: which rows runs have is known once there is one.
        """
        checked: set[tuple[tuple[str, str], ...]] = set()
        shared = len(self.scenario.source.overrides)

        def check(job: Job, result: bytes) -> None:
            if job.overrides not in checked:
                checked.add(job.overrides)
                metrics = Run.from_bytes(result).metrics
                if not any(_rows(metrics, rows)):
                    raise _no_rows(metrics, rows, job.overrides[shared:])

        return check

    def rows(self, store: Store, rows: str) -> list[Row]:
        """The metrics of the kept runs: the keys of the grid, `seed`, the row's name, metrics.

        Raises:
            NoRowsError: The runs of a combination have no such row.
            OSError: A kept run cannot be read.
            DamagedRunError: A kept run is damaged.
        """
        of_all: list[Row] = []
        jobs = iter(self.jobs())
        for point in self.points():
            same = [job for _, job in itertools.islice(jobs, len(self.seeds))]
            # A key of the scenario may be called as a metric is (`duration`).
            found = [
                {**point, "seed": job.seed, **row, **point}
                for job in same
                for row in _rows(store.get(job).metrics, rows)
            ]
            if not found:
                raise _no_rows(store.get(same[0]).metrics, rows, _overrides(point))
            of_all += found
        return of_all


def _sequence(value: object) -> Sequence[object]:
    return value if isinstance(value, tuple | list) else ()


def _check_together(keys: tuple[str, ...], values: Sequence[object]) -> None:
    """Refuses values of keys that change together if one is not a value for each of them."""
    for value in values:
        if len(_sequence(value)) != len(keys):
            raise ValueError(f"({', '.join(keys)}): {value!r} is not a value for each of these")


def _rows(metrics: Mapping[str, Any], rows: str) -> Iterator[dict[str, object]]:
    """The rows of this kind in the metrics of a run, each with its name."""
    for part in [metrics] if rows == "runs" else _parts(metrics, rows):
        named = {ROWS[rows]: part["name"]} if rows != "runs" else {}
        yield named | {k: v for k, v in part.items() if not isinstance(v, list) and k != "name"}


def _parts(metrics: Mapping[str, Any], rows: str) -> Iterator[Mapping[str, Any]]:
    return itertools.chain.from_iterable(metrics[part] for part in _PARTS.get(rows, (rows,)))


def _no_rows(
    metrics: Mapping[str, Any], rows: str, point: Iterable[tuple[str, str]]
) -> NoRowsError:
    others = [kind for kind in ROWS if kind == "runs" or any(_parts(metrics, kind))]
    keys = " and ".join(f"{key} = {value}" for key, value in point)
    return NoRowsError(
        f"rows = {rows!r}: a run{keys and f' with {keys}'} has none "
        f"(expected one of {', '.join(others)})"
    )


def _overrides(point: Mapping[str, object]) -> Iterable[tuple[str, str]]:
    return ((key, override_text(value)) for key, value in point.items())


def sweep(
    scenario: Scenario | str | os.PathLike[str],
    grid: Grid,
    seeds: int | Sequence[int] = 10,
    *,
    rows: str = "flows",
    jobs: int | None = None,
    client: Client | None = None,
    keep: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    congestion: Mapping[str, Callable[[], CongestionControl]] | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """Runs a scenario with every combination of some settings and seeds, in parallel.

    The same arguments give the same table, wherever the runs are done.

    Args:
        scenario: A scenario, or its file.
        grid: For each key, as of `Scenario.load(set=…)`, its values. Keys in a tuple change
            together: their values are tuples, too.
        seeds: The seeds, or how many: 1, 2, …
        rows: What a row of the table is: one of the `flows` (by TCP and by QUIC, whose metrics
            differ in part), `quic` flows, `links`, `stations`, `udp` sources, `transfers`,
            `videos`, `calls` or `middleboxes` of a run, or the run itself (`runs`).
        jobs: How many run at once; default: one per core.
        client: A `distributed.Client`: its cluster's workers do the runs instead.
        keep: A folder in which finished runs are kept; what it has is not run again.
        out: A file into which the table is written, too: `.csv` or `.parquet`.
        congestion: Congestion controls of your own, as of `Scenario.run`. Not together with `keep`,
            because a kept run does not tell which code it was made with, nor with `client`.
        progress: Whether to show progress on standard error.

    Returns:
        A row per combination, seed and flow (link, …): a column per key of the grid, `seed`, the
        name in `flow` (`link`, …), and a column per metric (`docs/metrics.md`), in SI units.

    Raises:
        ValueError: Found before anything is run: a key or value is wrong, `rows` or the ending of
            `out` is unknown, its folder is missing, `out` is read by the scenario, an override of
            the scenario is replaced by `grid`, or arguments do not go together. Found with the
            first run of a combination, which ends the sweep: it has no such `rows`.
        TypeError: An argument is of another type.
        ScenarioError: The scenario is wrong, or names a control that `congestion` lacks.
        OSError: The scenario or a kept run cannot be read, or `keep` or `out` not written.
        CannotGoOnError: The cluster is lost, or one of its workers cannot be used.
        RuntimeError: A run failed.
    """
    if rows not in ROWS:
        near = nearest(str(rows), ROWS)
        raise ValueError(f"rows = {rows!r}: expected one of {', '.join(ROWS)}{near}")
    if jobs is not None and (not isinstance(jobs, int) or jobs < 1):
        raise ValueError(f"jobs = {jobs!r}: expected a number from 1")
    fits = isinstance(grid, Mapping)
    expect(fits, "grid", grid, 'the values of each key, such as {"tcp.recovery": ["sack", "rack"]}')
    if out is not None:
        check_name(Path(out))
        check_folder(Path(out))
    for name, given in (("keep", keep), ("client", client)):
        if congestion and given is not None:
            raise ValueError(f"congestion=… does not go together with {name}=…")
    fits = client is None or hasattr(client, "scheduler")
    expect(fits, "client", client, "a distributed.Client")
    loaded = scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
    wanted = Sweep(loaded, grid, _chosen(seeds))
    simulator = Simulator(congestion)
    try:
        wanted.check(simulator)
    except ScenarioError as error:
        _name_grid(error)
        raise
    if out is not None:
        wanted.check_out(Path(out))
    every = [job for _, job in wanted.jobs()]
    with _folder(keep) as folder:
        store = Store(folder, simulator.build)
        store.drop_damaged(every)
        workers: AbstractContextManager[Workers] = (
            nullcontext(Cluster(client, simulator.build))
            if client is not None
            else Threads(jobs or os.cpu_count() or 1, simulator)
        )
        with workers as entered, shown_progress(len(every), silent=not progress) as on_progress:
            check = wanted.check_rows(rows)
            outcome = execute(every, store, entered, on_progress, check_result=check)
        if outcome.stopped:
            raise outcome.stopped
        for failed, reason in outcome.failed:
            raise RuntimeError(f"{failed}: {reason!r}") from reason
        found = wanted.rows(store, rows)
    if out is not None:
        write_rows(Path(out), found)
    table = frame_of(found)
    table.attrs["axes"] = [list(keys_of(axis)) for axis in grid]
    return table


def _chosen(seeds: int | Sequence[int]) -> Sequence[int]:
    """The seeds of the argument, which may say how many."""
    if isinstance(seeds, int):
        return range(FIRST_SEED, FIRST_SEED + seeds)
    fits = isinstance(seeds, Iterable) and not isinstance(seeds, str)
    expect(fits, "seeds", seeds, "how many, or a list of them, such as [1, 2]")
    listed = list(seeds)
    check_seeds(listed)
    return list(map(index, listed))


def _name_grid(error: ScenarioError) -> None:
    """Lets a mistake in an axis name the argument, instead of the command's option."""
    error.args = (re.sub(r"^--axis:\d+:\d+: ", "grid: ", str(error), flags=re.MULTILINE),)
    if error.file == "--axis":
        error.file, error.line, error.column = "grid", None, None


@contextmanager
def _folder(keep: str | os.PathLike[str] | None) -> Iterator[Path]:
    if keep is not None:
        yield Path(keep)
        return
    with tempfile.TemporaryDirectory(prefix="airtcp-") as folder:
        yield Path(folder)
