"""Running jobs: in parallel, keeping what is finished, stopping cleanly."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from airtcp import _native
from airtcp.run import Run
from airtcp.scenario import Scenario
from airtcp.study.plan import Job

Simulate = Callable[[Job], Run]
"""Runs one job; may be called from several threads at once."""


class Interrupted(Exception):  # noqa: N818 - not an error
    """Raised inside a simulation to end it because the study was interrupted."""


@cache
def native_build() -> str:
    """Version and hash of the compiled simulator."""
    digest = hashlib.sha256(Path(_native.__file__).read_bytes()).hexdigest()
    return f"{_native.__version__} {digest}"


@dataclass
class Simulator:
    """The native simulator.

    Attributes:
        build: Identifies its version: builds with different code have different values.
    """

    build: str = field(default_factory=native_build)
    _stopping: threading.Event = field(default_factory=threading.Event)

    def __call__(self, job: Job) -> Run:
        """Runs one job."""
        if job.testbed is not None:
            self._check()
            return job.testbed.run(job.text)
        return _scenario(job).run(job.seed, job.series, between_slices=self._check)

    def check(self, job: Job) -> None:
        """Raises ValueError or StudyError if the job cannot be run."""
        if job.testbed is not None:
            job.testbed.check()
        else:
            _scenario(job)

    def stop(self) -> None:
        """Ends the runs in progress."""
        self._stopping.set()

    def _check(self) -> None:
        if self._stopping.is_set():
            raise Interrupted


def _scenario(job: Job) -> Scenario:
    return Scenario.parse(job.text, dict(job.overrides), name=job.file)


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file that gets its final name only once it is complete.

    Raises:
        OSError: The file cannot be written; nothing is left behind.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


class Store:
    """Finished runs in a folder, one file each, named after what they result from."""

    def __init__(self, folder: Path, build: str) -> None:
        self._folder = folder
        self._build = build
        folder.mkdir(parents=True, exist_ok=True)

    def _path(self, job: Job) -> Path:
        return self._folder / f"{job.address(self._build)}.npz"

    def has(self, job: Job) -> bool:
        """Whether the job's result is kept."""
        return self._path(job).exists()

    def put(self, job: Job, run: Run) -> None:
        """Keeps a result."""
        write_atomically(self._path(job), run.to_bytes())

    def get(self, job: Job) -> Run:
        """A kept result.

        Raises:
            OSError: It cannot be read.
            ValueError: It is damaged; the message names the file.
        """
        path = self._path(job)
        try:
            return Run.from_bytes(path.read_bytes())
        except ValueError as error:
            raise ValueError(f"{path}: {error}; delete it and run again") from error


@dataclass
class Outcome:
    """The result of some batches of jobs."""

    kept: int = 0
    simulated: int = 0
    failed: list[tuple[Job, BaseException]] = field(default_factory=list)
    interrupted: bool = False

    @property
    def finished(self) -> int:
        """How many jobs need no further thought."""
        return self.kept + self.simulated + len(self.failed)


def execute(
    jobs: Sequence[Job],
    store: Store,
    simulate: Simulate,
    executor: Executor,
    stop: Callable[[], None],
    on_progress: Callable[[int], None],
    outcome: Outcome | None = None,
) -> Outcome:
    """Runs the jobs whose results are not kept yet, and keeps each result once finished.

    Args:
        jobs: The runs wanted.
        store: Where results are kept.
        simulate: Runs one job.
        executor: Where the jobs run; any `concurrent.futures.Executor`.
        stop: Called on Ctrl-C, to end the runs in progress.
        on_progress: Called with the number of jobs finished so far (kept ones included).
        outcome: That of the batches before this one, to which it is added.
    """

    def task(job: Job) -> None:
        store.put(job, simulate(job))

    missing = [job for job in jobs if not store.has(job)]
    outcome = outcome or Outcome()
    outcome.kept += len(jobs) - len(missing)
    pending: dict[Future[None], Job] = {}
    try:
        on_progress(outcome.finished)
        for job in missing:
            pending[executor.submit(task, job)] = job
        while pending:
            # A time-out lets the main thread see Ctrl-C.
            done, _ = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
            _collect(done, pending, outcome)
            on_progress(outcome.finished)
    except KeyboardInterrupt:
        outcome.interrupted = True
        stop()
        for future in pending:
            future.cancel()
        running = [future for future in pending if not future.cancelled()]
        wait(running)
        _collect(running, pending, outcome)
    return outcome


def _collect(done: Iterable[Future[None]], pending: dict[Future[None], Job], into: Outcome) -> None:
    for future in done:
        job = pending.pop(future)
        error = future.exception()
        if error is None:
            into.simulated += 1
        elif not isinstance(error, Interrupted):
            into.failed.append((job, error))
