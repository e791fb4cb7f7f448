"""Runs on a real cluster of several processes on this machine."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import airtcp
from airtcp import _native
from airtcp.runs.execute import native_build
from airtcp.runs.store import CannotGoOnError
from tests.fakes import kept, started
from tests.needs import need
from tests.test_sweep import LOSS, SCENARIO

PACKAGE = Path(airtcp.__file__).parent

LONG = 300
"""Seconds after which something hangs, even beside a load."""


class LocalCluster:
    """A scheduler and workers as processes, and commands that use them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "scheduler.json"
        self._processes: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start_scheduler()

    @property
    def address(self) -> str:
        return str(json.loads(self._file.read_text())["address"])

    def _start_scheduler(self) -> subprocess.Popen[bytes]:
        arguments = [
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--scheduler-file",
            str(self._file),
            "--no-dashboard",
        ]
        process = self._start("dask_scheduler", *arguments)
        until(lambda: self._file.exists() and self._file.read_text().endswith("}"))
        return process

    def restart_scheduler(self) -> None:
        """Kills the scheduler; another one starts, at another address."""
        self.scheduler.kill()
        self.scheduler.wait()
        self._file.unlink()
        self.scheduler = self._start_scheduler()

    def worker(self, package: Path = PACKAGE) -> subprocess.Popen[bytes]:
        """Starts a worker that has the package in this folder."""
        arguments = ["--nthreads", "1", "--no-nanny", "--no-dashboard"]
        environment = {"PYTHONPATH": str(package.parent)}
        return self._start("dask_worker", self.address, *arguments, **environment)

    def _start(self, module: str, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        log = (self._folder / f"{module}-{len(self._processes)}.log").open("wb")
        process = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{module}", *arguments],
            cwd=self._folder,
            env={**os.environ, **environment},
            stdout=log,
            stderr=log,
        )
        log.close()
        self._processes.append(process)
        return process

    def close(self) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()


def until(condition: object) -> None:
    """Waits until the condition holds."""
    assert callable(condition)
    deadline = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.02)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    need(importlib.util.find_spec("distributed") is not None, "distributed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.toml").write_text(SCENARIO)
    cluster = LocalCluster(tmp_path)
    with contextlib.closing(cluster):
        yield cluster


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "airtcp", "sweep", "one.toml", *arguments]


def finish(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=LONG, check=False
    )


# Half a second of work for a run.
SLOW = ("--set", "duration=1500 s")


def test_a_cluster_gives_the_bytes_of_a_local_run(cluster: LocalCluster) -> None:
    cluster.worker()
    cluster.worker()
    arguments = ["--axis", f"{LOSS}=0.01,0.02,0.05", "--runs", "4"]
    there = finish(*arguments, "--dask", cluster.address, "--out", "there.parquet")
    assert there.returncode == 0, there.stderr
    assert "12 of 12 runs" in there.stderr
    assert finish(*arguments, "--out", "here.parquet").returncode == 0
    assert kept("there.runs") == kept("here.runs")
    assert Path("there.parquet").read_bytes() == Path("here.parquet").read_bytes()


def test_the_function_takes_a_client(cluster: LocalCluster) -> None:
    from distributed import Client  # noqa: PLC0415

    cluster.worker()
    with Client(cluster.address, set_as_default=False) as client:
        there = airtcp.sweep("one.toml", {LOSS: [0.01, 0.02]}, 2, client=client)
    pd.testing.assert_frame_equal(there, airtcp.sweep("one.toml", {LOSS: [0.01, 0.02]}, 2))


def test_a_worker_killed_in_mid_run_loses_nothing(cluster: LocalCluster) -> None:
    doomed = cluster.worker()
    arguments = [*SLOW, "--runs", "8", "--out", "a.parquet"]
    with started(command(*arguments, "--dask", cluster.address), stderr=subprocess.PIPE) as process:
        until(lambda: len(kept("a.runs")) >= 2)
        cluster.worker()
        doomed.kill()
        _, said = process.communicate(timeout=LONG)
    assert process.returncode == 0, said
    assert finish(*arguments[:-1], "b.parquet").returncode == 0
    assert kept("a.runs") == kept("b.runs")


def test_a_killed_scheduler_is_named_and_the_same_command_does_the_rest(
    cluster: LocalCluster,
) -> None:
    cluster.worker()
    arguments = [*SLOW, "--runs", "8", "--out", "a.parquet", "--dask"]
    with started(command(*arguments, cluster.address), stderr=subprocess.PIPE) as process:
        until(lambda: len(kept("a.runs")) >= 2)
        address = cluster.address
        cluster.restart_scheduler()
        _, said = process.communicate(timeout=LONG)
    assert process.returncode == 1
    assert "Traceback" not in said
    assert f"the dask scheduler at {address} is lost; " in said
    before = {file: file.stat().st_mtime_ns for file in Path("a.runs").iterdir()}
    done = len(kept("a.runs"))
    assert f"{done} of 8 runs are kept in a.runs" in said

    cluster.worker()
    again = finish(*arguments, cluster.address)
    assert again.returncode == 0, again.stderr
    # The worker may not have come yet, and then that is said first.
    counts = [line for line in again.stderr.splitlines() if line.endswith(" runs")]
    assert counts[0] == f"{done} of 8 runs"
    assert all(file.stat().st_mtime_ns == time for file, time in before.items())
    assert len(kept("a.runs")) == 8


def test_ctrl_c_leaves_the_cluster_free(cluster: LocalCluster) -> None:
    from distributed import Client  # noqa: PLC0415

    cluster.worker()
    arguments = [*SLOW, "--runs", "100", "--out", "a.parquet", "--dask", cluster.address]
    with started(command(*arguments), stderr=subprocess.PIPE) as process:
        until(lambda: len(kept("a.runs")) >= 2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=LONG)
    assert process.returncode == 1
    assert "Traceback" not in said
    assert "interrupted" in said
    with Client(cluster.address, set_as_default=False) as client:
        assert client.submit(int, "7").result(timeout=LONG) == 7


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """The package with another build of the simulator: the same, and one byte more."""
    package = tmp_path / "other" / "airtcp"
    shutil.copytree(PACKAGE, package)
    module = package / Path(_native.__file__).name
    module.write_bytes(module.read_bytes() + b"\0")
    return package


def test_a_worker_with_another_build_is_refused(cluster: LocalCluster, other: Path) -> None:
    from distributed import Client  # noqa: PLC0415

    cluster.worker()
    cluster.worker(other)
    with Client(cluster.address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=LONG)
        builds = client.run(native_build)
        with pytest.raises(CannotGoOnError) as refused:
            airtcp.sweep("one.toml", {}, 2, client=client)
    for build in builds.values():
        version, digest = build.split()
        assert f"airtcp {version} (build {digest[:12]})" in str(refused.value)


def test_a_worker_with_another_build_that_joins_later_is_refused(
    cluster: LocalCluster, other: Path
) -> None:
    arguments = ["--runs", "2", "--out", "a.parquet", "--dask", cluster.address]
    with started(command(*arguments), stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        waiting = f"the dask scheduler at {cluster.address} has no workers yet\n"
        assert process.stderr.readline() == waiting
        cluster.worker(other)
        _, said = process.communicate(timeout=LONG)
    assert process.returncode == 1
    assert native_build().split()[1][:12] in said
    assert "Traceback" not in said
    assert kept("a.runs") == {}


def test_an_address_without_scheduler_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(importlib.util.find_spec("distributed") is not None, "distributed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "1s")
    Path("one.toml").write_text(SCENARIO)
    done = finish("--runs", "1", "--dask", "tcp://127.0.0.1:9")
    assert done.returncode == 1
    assert "no dask scheduler at tcp://127.0.0.1:9" in done.stderr
    assert "Traceback" not in done.stderr
