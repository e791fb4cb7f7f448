"""Running jobs: in parallel, keeping what is finished, stopping cleanly."""

from __future__ import annotations

import hashlib
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Protocol

from airtcp import _native
from airtcp.congestion import CongestionControl
from airtcp.runs.job import Job
from airtcp.runs.store import CannotGoOnError, Store
from airtcp.scenario import Scenario, read

_UNWRITTEN = 0.5
"""For how long finished runs may wait to be written together, s."""


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

    def __call__(self, job: Job) -> bytes:
        """Runs one job and returns what `Run.from_bytes` reads; called from several threads."""

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
    _doubts: dict[str, Job] = field(default_factory=dict)

    def __call__(self, job: Job) -> bytes:
        """Runs one job."""
        if job.testbed is not None:
            self._check()
            return job.testbed.run(job.text).to_bytes()
        on_doubt = partial(self._warn, job)
        scenario = _scenario(job)
        return scenario.run_to_bytes(job.seed, job.series, self._check, self.congestion, on_doubt)

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

    def _warn(self, job: Job, doubt: str) -> None:
        """Warns once of what makes numbers doubtful, and names a run that it is true of."""
        if self._doubts.setdefault(doubt, job) is job:
            warnings.warn(f"{job}: {doubt}", stacklevel=2)


def _scenario(job: Job) -> Scenario:
    return _read(job.file, job.text, job.overrides, job.files)


# Many jobs in a row differ in their seed only, and reading costs a third of what a short run does.
_read = lru_cache(maxsize=64)(read)


class Workers(Protocol):
    """Where jobs run."""

    def submit(self, job: Job) -> Future[bytes]:
        """Starts a job soon; the future has its result, as `Run.to_bytes` makes it."""

    def stop(self) -> None:
        """Ends the runs in progress."""


class Threads:
    """Threads of this process: the simulator releases the GIL."""

    def __init__(self, count: int, simulator: SimulatorLike) -> None:
        self._pool = ThreadPoolExecutor(count)
        self._simulator = simulator

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def submit(self, job: Job) -> Future[bytes]:
        """Starts a job as soon as a thread is free."""
        return self._pool.submit(self._simulator, job)

    def stop(self) -> None:
        """Ends the runs in progress."""
        self._simulator.stop()


Check = Callable[[Job, bytes], None]
"""What is asked of each new result. It raises CannotGoOnError if no other run is worth doing."""


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
    check_result: Check | None = None,
) -> Outcome:
    """Runs the jobs whose results are not kept yet, and keeps each result once finished.

    Args:
        jobs: The runs wanted.
        store: Where results are kept.
        workers: Where the jobs run.
        on_progress: Called with the number of jobs finished so far (kept ones included).
        outcome: That of the batches before this one, to which it is added.
        check_result: Called with each new result, once it is kept.
    """
    missing = [job for job in jobs if not store.has(job)]
    outcome = outcome or Outcome()
    outcome.kept += len(jobs) - len(missing)
    pending: dict[Future[bytes], Job] = {}
    # Asking all futures again and again would cost more than short runs do.
    finished: SimpleQueue[Future[bytes]] = SimpleQueue()
    with _interrupts_put_off() as check:
        try:
            on_progress(outcome.finished)
            for job in missing:
                future = workers.submit(job)
                pending[future] = job
                future.add_done_callback(finished.put)
                check()
            while pending:
                _collect(_some(finished), pending, store, outcome, check_result)
                store.flush(after=_UNWRITTEN)
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
            _collect(running, pending, store, outcome, check_result)
        try:
            store.flush()
        except CannotGoOnError as reason:
            outcome.stopped = outcome.stopped or reason
            outcome.simulated -= store.waiting
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


def _some(finished: SimpleQueue[Future[bytes]]) -> list[Future[bytes]]:
    """What has finished; nothing after a while, so that the main thread sees Ctrl-C."""
    some = []
    try:
        some.append(finished.get(timeout=0.2))
        # To look for each short run would take the GIL from the threads that simulate.
        time.sleep(0.01)
        while True:
            some.append(finished.get_nowait())
    except Empty:
        return some


def _collect(
    done: Iterable[Future[bytes]],
    pending: dict[Future[bytes], Job],
    store: Store,
    into: Outcome,
    check: Check | None,
) -> None:
    for future in done:
        job = pending.pop(future)
        try:
            result = future.result()
            store.put(job, result)
            into.simulated += 1
            if check:
                check(job, result)
        except CannotGoOnError as error:
            into.stopped = into.stopped or error
        except Interrupted:
            pass
        except Exception as error:  # whatever the run raised
            into.failed.append((job, error))
