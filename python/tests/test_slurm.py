"""Runs on a Slurm cluster of this machine alone, and what docs/sweeps.md prints about Slurm."""

from __future__ import annotations

import getpass
import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import kept, started
from tests.needs import need
from tests.test_cluster import LONG, SLOW, command, finish, until
from tests.test_sweep import LOSS, SCENARIO

ROOT = Path(__file__).parents[2]

CONFIG = """\
ClusterName=airtcp
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 RealMemory=16000
PartitionName=normal Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
"""Without munge and cgroups, so that it needs no root. It has as many processors as the example."""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def slurm(*arguments: str) -> str:
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=LONG, check=True)
    return done.stdout


def is_ready() -> bool:
    asked = ["sinfo", "--noheader", "--format=%T"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=LONG, check=False)
    return done.stdout.strip() == "idle"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    programs = ("slurmctld", "slurmd", "sbatch", "scancel", "sinfo")
    need(all(map(shutil.which, programs)), "Slurm (slurm-wlm)")
    need(importlib.util.find_spec("dask_jobqueue") is not None, "dask-jobqueue")
    folder = tmp_path_factory.mktemp("slurm")
    for name in ("state", "spool"):
        (folder / name).mkdir()
    configuration = CONFIG.format(
        folder=folder,
        host=socket.gethostname().split(".")[0],
        user=getpass.getuser(),
        controller=free_port(),
        daemon=free_port(),
    )
    file = folder / "slurm.conf"
    file.write_text(configuration)
    with pytest.MonkeyPatch.context() as patch, (folder / "log").open("wb") as log:
        patch.setenv("SLURM_CONF", str(file))
        patch.setenv(
            "PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        )
        daemons = [
            subprocess.Popen([name, "-D", "-f", file], stdout=log, stderr=log)
            for name in ("slurmctld", "slurmd")
        ]
        try:
            until(is_ready)
            yield
            slurm("scancel", "--user", getpass.getuser())
            until(is_ready)
        finally:
            for process in daemons:
                process.terminate()
            for process in daemons:
                process.wait(LONG)


@pytest.fixture
def here(cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("one.toml").write_text(SCENARIO)
    return tmp_path


def test_the_example_in_the_documentation_runs(here: Path) -> None:
    text = (ROOT / "docs" / "sweeps.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (example,) = (block for block in blocks if "SLURMCluster" in block)
    (here / "example.py").write_text(example)
    (here / "examples").symlink_to(ROOT / "examples")
    done = subprocess.run(
        [sys.executable, "example.py"],
        capture_output=True,
        text=True,
        timeout=3 * LONG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert (here / "results" / "packet-control" / "cells.csv").exists()


def test_jobs_of_slurm_give_the_bytes_of_a_local_run(here: Path) -> None:
    from dask_jobqueue.slurm import SLURMCluster  # noqa: PLC0415

    arguments = ["--axis", f"{LOSS}=0.01,0.02", "--runs", "4"]
    with SLURMCluster(cores=2, processes=1, memory="1 GB", queue="normal") as jobs:
        jobs.scale(jobs=2)
        there = finish(*arguments, "--dask", jobs.scheduler_address, "--out", "there.parquet")
    assert there.returncode == 0, there.stderr
    assert finish(*arguments, "--out", "here.parquet").returncode == 0
    assert kept("there.runs") == kept("here.runs")
    assert Path("there.parquet").read_bytes() == Path("here.parquet").read_bytes()


def test_a_job_cancelled_in_mid_run_loses_nothing(here: Path) -> None:
    from dask_jobqueue.slurm import SLURMCluster  # noqa: PLC0415

    arguments = [*SLOW, "--runs", "8", "--out", "a.parquet"]
    with SLURMCluster(cores=1, processes=1, memory="1 GB", queue="normal") as jobs:
        jobs.scale(jobs=1)
        with started(
            command(*arguments, "--dask", jobs.scheduler_address), stderr=subprocess.PIPE
        ) as process:
            until(lambda: len(kept("a.runs")) >= 2)
            (running,) = slurm("squeue", "--noheader", "--format=%i").split()
            slurm("scancel", running)
            until(lambda: running not in slurm("squeue", "--noheader", "--format=%i").split())
            before = len(kept("a.runs"))
            assert before < 8, "it was cancelled too late"
            time.sleep(1)
            jobs.scale(jobs=2)
            _, said = process.communicate(timeout=LONG)
    assert process.returncode == 0, said
    assert finish(*arguments[:-1], "b.parquet").returncode == 0
    assert kept("a.runs") == kept("b.runs")
