"""Finished runs in a folder."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import threading
import time
import zlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from airtcp.run import Run, is_archive
from airtcp.runs.job import Job

BATCH = 1 << 20
"""Size of a batch before compression at which it is written, bytes."""

_OPEN = 16
"""How many batches are kept in memory at once while runs are read."""

_HEAD, _TAIL = b'{"run":"', b"}\n"
_ADDRESS = slice(len(_HEAD), len(_HEAD) + 32)
"""Where the address is in a line."""


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


class CannotGoOnError(Exception):
    """Why no further run can be done; the message says what happened."""


class DamagedRunError(ValueError):
    """A kept run cannot be read; the message names the file."""


class Store:
    """Finished runs in a folder, each under the address of its job.

    A run with series has a file of its own, an `.npz` archive. The metrics of runs without are
    lines of JSON in batches (`.jsonl.gz`), because a file for each would cost a third of what a
    short run does. Files are complete or not there, so that processes can share a folder.

    Used by one thread.

    Attributes:
        folder: It.
        build: The simulator with which the runs are made.

    Raises:
        OSError: The folder cannot be made, or a batch not be read.
    """

    def __init__(self, folder: Path, build: str) -> None:
        self.folder = folder
        self.build = build
        folder.mkdir(parents=True, exist_ok=True)
        self._prefix = hashlib.sha256(build.encode()).hexdigest()[:8]
        self._batch_of: dict[str, Path] = {}
        self._damaged: list[Path] = []
        self._waiting: dict[str, bytes] = {}
        self._size = 0
        self._since = 0.0
        self._lines = lru_cache(_OPEN)(self._read_batch)
        for batch in sorted(folder.glob(f"{self._prefix}-*.jsonl.gz")):
            try:
                lines = self._lines(batch)
            except DamagedRunError:
                continue
            self._batch_of.update(dict.fromkeys(lines, batch))

    def has(self, job: Job) -> bool:
        """Whether the job's result is kept."""
        address = job.address(self.build)
        if address in self._batch_of or address in self._waiting:
            return True
        return bool(job.series) and self._archive(address).exists()

    @property
    def waiting(self) -> int:
        """How many results are not written yet."""
        return len(self._waiting)

    def put(self, job: Job, run: bytes) -> None:
        """Keeps a result (`Run.to_bytes`), for certain once `flush` has returned.

        Raises:
            CannotGoOnError: It cannot be written: the disk is full, say.
        """
        address = job.address(self.build)
        if is_archive(run):
            self._write(self._archive(address), run)
            return
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting[address] = _line(address, run)
        self._size += len(run)

    def flush(self, after: float = 0.0) -> None:
        """Writes the results that wait.

        Args:
            after: Only if one has waited for so many seconds, or if they are a batch.

        Raises:
            CannotGoOnError: They cannot be written; they go on waiting.
        """
        waited = time.monotonic() - self._since
        if not self._waiting or (waited < after and self._size < BATCH):
            return
        name = hashlib.sha256("".join(self._waiting).encode()).hexdigest()[:16]
        batch = self.folder / f"{self._prefix}-{name}.jsonl.gz"
        self._write(batch, gzip.compress(b"".join(self._waiting.values()), 1, mtime=0))
        self._batch_of.update(dict.fromkeys(self._waiting, batch))
        self._waiting.clear()
        self._size = 0

    def get(self, job: Job) -> Run:
        """A kept result.

        Raises:
            OSError: It cannot be read, or is not there.
            DamagedRunError: It is damaged.
        """
        address = job.address(self.build)
        if address in self._waiting:
            return _run(self._waiting[address])
        if address in self._batch_of:
            return _run(self._lines(self._batch_of[address])[address])
        path = self._archive(address)
        try:
            return Run.from_bytes(path.read_bytes())
        except ValueError as error:
            raise _damaged(path, error) from error

    def drop_damaged(self, jobs: Iterable[Job]) -> list[Path]:
        """Deletes the damaged batches, and the damaged archives of these jobs; says which."""
        for job in jobs:
            if job.series and self.has(job):
                try:
                    self.get(job)
                except DamagedRunError:
                    self._damaged.append(self._archive(job.address(self.build)))
        dropped, self._damaged = sorted({*self._damaged}), []
        for path in dropped:
            path.unlink(missing_ok=True)
        return dropped

    def _archive(self, address: str) -> Path:
        return self.folder / f"{address}.npz"

    def _write(self, path: Path, data: bytes) -> None:
        try:
            write_atomically(path, data)
        except OSError as error:
            raise CannotGoOnError(f"cannot write to {self.folder}: {error.strerror}") from error

    def _read_batch(self, path: Path) -> dict[str, bytes]:
        """The lines of a batch by address."""
        try:
            lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
            whole = all(line.startswith(_HEAD) and line.endswith(_TAIL) for line in lines)
            # gzip takes an empty file for an empty text.
            if not lines or not whole:
                raise ValueError("no lines of runs")
        except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
            self._damaged.append(path)
            self._batch_of = {at: batch for at, batch in self._batch_of.items() if batch != path}
            raise _damaged(path, error) from error
        return {line[_ADDRESS].decode(): line for line in lines}


def _line(address: str, metrics: bytes) -> bytes:
    """The line of a run without series."""
    return b'%s%s","metrics":%s%s' % (_HEAD, address.encode(), metrics, _TAIL)


def _run(line: bytes) -> Run:
    return Run(json.loads(line)["metrics"])


def _damaged(path: Path, error: Exception) -> DamagedRunError:
    return DamagedRunError(f"{path}: {error}; delete it and run again")
