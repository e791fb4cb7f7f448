"""Running jobs: in parallel, keeping what is finished, stopping cleanly."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Protocol

from airtcp import _native
from airtcp.congestion import CongestionControl
from airtcp.run import Run
from airtcp.runs.job import Job
from airtcp.scenario import Scenario, read


class Interrupted(Exception):  # noqa: N818 - not an error
    """Raised inside a simulation to end it because the study was interrupted."""


@cache
def native_build() -> str:
    """Version and hash of the compiled simulator."""
    digest = hashlib.sha256(Path(_native.__file__).read_bytes()).hexdigest()
    return f"{_native.__version__} {digest}"


class SimulatorLike(Protocol):
    """What runs jobs."""

    build: str

    def __call__(self, job: Job) -> Run:
        """Runs one job; called from several threads."""

    def check(self, job: Job) -> None:
        """Raises ValueError if the job's scenario or overrides are wrong."""

    def stop(self) -> None:
        """Ends the runs in progress."""


@dataclass
class Simulator:
    """The native simulator.

    Attributes:
        congestion: Congestion controls from outside, as of `Scenario.run`.
        build: Identifies its version: builds with different code have different values.
    """

    congestion: Mapping[str, Callable[[], CongestionControl]] | None = None
    build: str = field(default_factory=native_build)
    _stopping: threading.Event = field(default_factory=threading.Event)

    def __call__(self, job: Job) -> Run:
        """Runs one job."""
        if job.testbed is not None:
            self._check()
            return job.testbed.run(job.text)
        return _scenario(job).run(
            job.seed, job.series, between_slices=self._check, congestion=self.congestion
        )

    def check(self, job: Job) -> None:
        """Raises ValueError if the job cannot be run."""
        if job.testbed is not None:
            job.testbed.check()
        else:
            _scenario(job).check_controls(self.congestion)

    def stop(self) -> None:
        """Ends the runs in progress."""
        self._stopping.set()

    def _check(self) -> None:
        if self._stopping.is_set():
            raise Interrupted


def _scenario(job: Job) -> Scenario:
    return _read(job.file, job.text, job.overrides, job.files)


# Many jobs in a row differ in their seed only, and reading costs a third of what a short run does.
_read = lru_cache(maxsize=64)(read)


def check_folder(path: Path) -> None:
    """Finds out before long work whether a file can be put where it shall be.

    Raises:
        ValueError: There is no folder for it, or none that it may be written to, or a folder of
            its name.
    """
    if not path.parent.is_dir():
        raise ValueError(f"{path}: there is no folder {path.parent}")
    if path.is_dir():
        raise ValueError(f"{path}: there is a folder of this name (expected a file's)")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise ValueError(f"{path}: no permission to write to the folder {path.parent}")


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file that gets its final name only once it is complete.

    Raises:
        OSError: The file cannot be written; nothing is left behind.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            # Not every error names a file, and none the final one.
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


class CannotGoOnError(Exception):
    """Why no further run can be done; the message says what happened."""


class DamagedRunError(ValueError):
    """A kept run cannot be read; the message names the file."""


class Store:
    """Finished runs in a folder, one file each, named after what they result from.

    Attributes:
        folder: It.
        build: The simulator with which they are made.
    """

    def __init__(self, folder: Path, build: str) -> None:
        self.folder = folder
        self.build = build
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, job: Job) -> Path:
        """The file in which the job's result is kept, or will be."""
        return self.folder / f"{job.address(self.build)}.run"

    def has(self, job: Job) -> bool:
        """Whether the job's result is kept."""
        return self.path(job).exists()

    def put(self, job: Job, run: bytes) -> None:
        """Keeps a result (`Run.to_bytes`).

        Raises:
            CannotGoOnError: It cannot be written: the disk is full, say.
        """
        try:
            write_atomically(self.path(job), run)
        except OSError as error:
            raise CannotGoOnError(f"cannot write to {self.folder}: {error.strerror}") from error

    def get(self, job: Job) -> Run:
        """A kept result.

        Raises:
            OSError: It cannot be read.
            DamagedRunError: It is damaged.
        """
        path = self.path(job)
        try:
            return Run.from_bytes(path.read_bytes())
        except ValueError as error:
            raise DamagedRunError(f"{path}: {error}; delete it and run again") from error

    def drop_damaged(self, jobs: Iterable[Job]) -> list[tuple[Job, Path]]:
        """Deletes the damaged results of these jobs; says which."""
        damaged = []
        for job in jobs:
            try:
                self.get(job)
            except DamagedRunError:
                self.path(job).unlink()
                damaged.append((job, self.path(job)))
        return damaged


class Workers(Protocol):
    """Where jobs run."""

    def submit(self, job: Job) -> Future[None]:
        """Starts a job soon; the future is done once its result is kept."""

    def stop(self) -> None:
        """Ends the runs in progress."""


class Threads:
    """Threads of this process: the simulator releases the GIL."""

    def __init__(self, count: int, simulator: SimulatorLike, store: Store) -> None:
        self._pool = ThreadPoolExecutor(count)
        self._simulator = simulator
        self._store = store

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def submit(self, job: Job) -> Future[None]:
        """Starts a job as soon as a thread is free."""
        return self._pool.submit(self._run, job)

    def stop(self) -> None:
        """Ends the runs in progress."""
        self._simulator.stop()

    def _run(self, job: Job) -> None:
        self._store.put(job, self._simulator(job).to_bytes())


@dataclass
class Outcome:
    """The result of some batches of jobs.

    Attributes:
        stopped: Why not all jobs were run: Ctrl-C, or something that no run can do without.
    """

    kept: int = 0
    simulated: int = 0
    failed: list[tuple[Job, BaseException]] = field(default_factory=list)
    stopped: KeyboardInterrupt | CannotGoOnError | None = None

    @property
    def finished(self) -> int:
        """How many jobs need no further thought."""
        return self.kept + self.simulated + len(self.failed)


def execute(
    jobs: Sequence[Job],
    store: Store,
    workers: Workers,
    on_progress: Callable[[int], None],
    outcome: Outcome | None = None,
) -> Outcome:
    """Runs the jobs whose results are not kept yet, and keeps each result once finished.

    Args:
        jobs: The runs wanted.
        store: Where results are kept.
        workers: Where the jobs run, which keep their results in `store`.
        on_progress: Called with the number of jobs finished so far (kept ones included).
        outcome: That of the batches before this one, to which it is added.
    """
    missing = [job for job in jobs if not store.has(job)]
    outcome = outcome or Outcome()
    outcome.kept += len(jobs) - len(missing)
    pending: dict[Future[None], Job] = {}
    # Asking all futures again and again would cost more than short runs do.
    finished: SimpleQueue[Future[None]] = SimpleQueue()
    with _interrupts_put_off() as check:
        try:
            on_progress(outcome.finished)
            for job in missing:
                future = workers.submit(job)
                pending[future] = job
                future.add_done_callback(finished.put)
                check()
            while pending:
                _collect(_some(finished), pending, outcome)
                on_progress(outcome.finished)
                check()
                if outcome.stopped:
                    raise outcome.stopped
        except (KeyboardInterrupt, CannotGoOnError) as reason:
            outcome.stopped = reason
            workers.stop()
            for future in pending:
                future.cancel()
            running = [future for future in pending if not future.cancelled()]
            wait(running)
            _collect(running, pending, outcome)
    return outcome


@contextmanager
def _interrupts_put_off() -> Iterator[Callable[[], None]]:
    """Ctrl-C has its effect only where the function that this returns is called.

    Anywhere else an exception could leave a lock taken, for which other threads then wait forever.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    came: list[FrameType | None] = []

    def put_off(_signal: int, frame: FrameType | None) -> None:
        came.append(frame)

    def check() -> None:
        if came:
            signal.signal(signal.SIGINT, handler)
            handler(signal.SIGINT, came.pop())

    signal.signal(signal.SIGINT, put_off)
    try:
        yield check
    finally:
        if signal.getsignal(signal.SIGINT) is put_off:
            signal.signal(signal.SIGINT, handler)


def _some(finished: SimpleQueue[Future[None]]) -> list[Future[None]]:
    """What has finished; nothing after a while, so that the main thread sees Ctrl-C."""
    some = []
    try:
        some.append(finished.get(timeout=0.2))
        while True:
            some.append(finished.get_nowait())
    except Empty:
        return some


def _collect(done: Iterable[Future[None]], pending: dict[Future[None], Job], into: Outcome) -> None:
    for future in done:
        job = pending.pop(future)
        error = future.exception()
        if error is None:
            into.simulated += 1
        elif isinstance(error, CannotGoOnError):
            into.stopped = into.stopped or error
        elif not isinstance(error, Interrupted):
            into.failed.append((job, error))
