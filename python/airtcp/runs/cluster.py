"""Jobs on the workers of a `dask.distributed` cluster.

A worker simulates and returns the result; this process, the client, keeps it. So workers need the
package, but no folder in common with the client. What a result depends on is in its address, the
simulator's build included: a worker with another build is refused.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from airtcp.extras import needed_by
from airtcp.runs.execute import Interrupted, Simulator, native_build
from airtcp.runs.job import Job
from airtcp.runs.store import CannotGoOnError

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as Remote


class OtherBuildError(Exception):
    """A worker has another simulator than the client."""


@contextmanager
def connected(address: str, build: str) -> Iterator[Cluster]:
    """The workers of the scheduler at this address.

    Raises:
        CannotGoOnError: There is no scheduler, or one of its workers cannot be used.
        MissingExtraError: `distributed` is not installed.
    """
    with needed_by("dask", "dask"):
        from distributed import Client  # noqa: PLC0415 - optional, and slow to load
    # The command says itself what matters; dask logs the same with tracebacks, even at exit.
    logging.disable(logging.CRITICAL)
    try:
        client = Client(address, set_as_default=False)
    except (OSError, ValueError) as error:
        raise CannotGoOnError(f"no dask scheduler at {address}: {error}") from error
    with client:
        if not client.nthreads():
            print(f"the dask scheduler at {address} has no workers yet", file=sys.stderr)
        yield Cluster(client, build)


class Cluster:
    """The workers of a client's cluster, those included that join it later.

    Raises:
        CannotGoOnError: A worker cannot be used.
    """

    def __init__(self, client: Client, build: str) -> None:
        self._client = client
        self._build = build
        self._remote: dict[Future[bytes], Remote[bytes]] = {}
        self._stopping = False
        self._address = client.scheduler.address if client.scheduler else "?"
        builds = client.run(native_build, on_error="return")
        for address, there in builds.items():
            if isinstance(there, BaseException):
                raise CannotGoOnError(f"the worker {address} cannot run airtcp: {there}")
            if there != build:
                raise CannotGoOnError(_refusal(address, there, build))

    def submit(self, job: Job) -> Future[bytes]:
        """Starts a job as soon as a worker is free. If that worker is lost, another repeats it."""
        key = f"airtcp-{job.address(self._build)}"
        try:
            remote = self._client.submit(simulate, job, self._build, key=key)
        except Exception as error:
            # Of which kind depends on the state of the connection.
            raise CannotGoOnError(f"{self._lost()}: {error}") from error
        result: Future[bytes] = Future()
        self._remote[result] = remote
        remote.add_done_callback(partial(self._finish, result))
        return result

    def stop(self) -> None:
        """Takes back what has not been started; what workers are doing is of no consequence."""
        self._stopping = True
        if self._client.status == "running":
            self._client.cancel(list(self._remote.values()), force=True)

    def _finish(self, result: Future[bytes], remote: Remote[bytes]) -> None:
        """Passes on what a worker returned; called in a thread of the client."""
        if not result.set_running_or_notify_cancel():
            return
        try:
            result.set_result(remote.result())
        except BaseException as error:
            result.set_exception(self._reason(remote, error))
        del self._remote[result]

    def _reason(self, remote: Remote[bytes], error: BaseException) -> BaseException:
        if self._stopping:
            return Interrupted()
        if isinstance(error, OtherBuildError):
            return CannotGoOnError(str(error))
        if isinstance(error, ImportError):
            return CannotGoOnError(f"a worker cannot run airtcp: {error}")
        if remote.status == "cancelled" or self._client.status != "running":
            return CannotGoOnError(self._lost())
        return error

    def _lost(self) -> str:
        return f"the dask scheduler at {self._address} is lost"


def simulate(job: Job, build: str) -> bytes:
    """Runs one job on a worker.

    Raises:
        OtherBuildError: The worker has another build of the simulator.
    """
    from distributed import get_worker  # noqa: PLC0415

    here = native_build()
    if here != build:
        raise OtherBuildError(_refusal(get_worker().address, here, build))
    return Simulator()(job)


def _refusal(worker: str, there: str, here: str) -> str:
    return f"the worker {worker} has airtcp {_short(there)}, this is airtcp {_short(here)}"


def _short(build: str) -> str:
    version, _, digest = build.partition(" ")
    return f"{version} (build {digest[:12]})"
