"""What commands that run jobs have in common: options, workers, what can go wrong."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeVar

from airtcp.extras import MissingExtraError
from airtcp.runs import cluster
from airtcp.runs.execute import Check, Outcome, SimulatorLike, Threads, Workers, execute
from airtcp.runs.job import Job
from airtcp.runs.progress import progress
from airtcp.runs.store import CannotGoOnError, DamagedRunError, Store
from airtcp.words import nearest

T = TypeVar("T")


class IncompleteError(Exception):
    """Not all runs could be done; the message says why, and how many are kept.

    Attributes:
        interrupted: The reason is Ctrl-C.
    """

    def __init__(self, message: str, interrupted: bool = False) -> None:
        super().__init__(message)
        self.interrupted = interrupted


ERRORS = (ValueError, IncompleteError, CannotGoOnError, OSError, MissingExtraError)
"""What a command says in a line instead of a traceback."""


class Parser(argparse.ArgumentParser):
    """Names the nearest of the known words, which argparse does from Python 3.14 on."""

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            known = f"expected one of {', '.join(action.choices)}"
            message = f"{value!r}: {known}{nearest(str(value), action.choices)}"
            raise argparse.ArgumentError(action, message)


def positive(text: str) -> int:
    """A number of runs or jobs on the command line."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say where runs are done, and what is shown meanwhile."""
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--jobs", type=positive, metavar="N", help="parallel runs; default: one per core"
    )
    where.add_argument(
        "--dask", metavar="ADDRESS", help="run on the workers of this dask.distributed scheduler"
    )


@dataclass
class Runner:
    """Runs jobs for a command, with progress on standard error.

    Attributes:
        command: Its name, for messages.
        jobs: How many run at once here; `None`: one per core.
        dask: Address of a scheduler on whose workers they run instead.
        quiet: Shows no progress.
    """

    command: str
    store: Store
    simulator: SimulatorLike
    jobs: int | None = None
    dask: str | None = None
    quiet: bool = False

    def run(self, jobs: Sequence[Job], check: Check | None = None) -> None:
        """Runs the jobs whose results are not kept yet.

        Args:
            jobs: The runs wanted.
            check: As of `execute`.

        Raises:
            IncompleteError: Some failed, or not all were run.
            ValueError: `check` raised it.
        """
        outcome = Outcome()
        with progress(len(jobs), silent=self.quiet) as on_progress:
            for batch, workers in self._batches(jobs):
                with workers as entered:
                    execute(batch, self.store, entered, on_progress, outcome, check)
                if outcome.stopped:
                    break
        kept = (
            f"{outcome.kept + outcome.simulated} of {len(jobs)} runs are kept in "
            f"{self.store.folder}, the same command runs the rest"
        )
        if isinstance(outcome.stopped, KeyboardInterrupt):
            raise IncompleteError(f"interrupted; {kept}", interrupted=True)
        if isinstance(outcome.stopped, ValueError):
            # The same command would not run the rest.
            raise outcome.stopped
        if outcome.stopped:
            raise IncompleteError(f"{outcome.stopped}; {kept}")
        if outcome.failed:
            for failed, reason in outcome.failed:
                print(f"{self.command}: {failed}: {reason!r}", file=sys.stderr)
            raise IncompleteError(f"{len(outcome.failed)} of {len(jobs)} runs failed")

    def run_and_read(
        self, jobs: Sequence[Job], read: Callable[[], T], check: Check | None = None
    ) -> T:
        """Runs the jobs, then returns what `read` makes of the kept runs.

        Damaged files of them are named, and what they held is run again.

        Raises:
            IncompleteError: Some failed, or not all were run.
            ValueError: `check` raised it.
        """
        self._drop_damaged([])
        self.run(jobs, check)
        try:
            return read()
        except DamagedRunError:
            self._drop_damaged(jobs)
        self.run(jobs, check)
        return read()

    def _drop_damaged(self, jobs: Sequence[Job]) -> None:
        for path in self.store.drop_damaged(jobs):
            print(f"{self.command}: {path} is damaged: run again", file=sys.stderr)

    def _batches(
        self, jobs: Sequence[Job]
    ) -> Iterator[tuple[list[Job], AbstractContextManager[Workers]]]:
        """The simulated jobs, then those of the testbed, each with what runs them."""
        simulated = [job for job in jobs if job.testbed is None]
        if self.dask is not None:
            yield simulated, cluster.connected(self.dask, self.simulator.build)
        else:
            yield simulated, self._threads(self.jobs or os.cpu_count() or 1)
        for testbed in dict.fromkeys(job.testbed for job in jobs if job.testbed is not None):
            of_it = [job for job in jobs if job.testbed == testbed]
            yield of_it, self._threads(testbed.parallel)

    def _threads(self, count: int) -> Threads:
        return Threads(count, self.simulator)
