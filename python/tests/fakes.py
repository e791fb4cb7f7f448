"""A small study, and a simulator that makes its numbers up."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from airtcp.run import Run, Series
from airtcp.runs.job import Job

STUDY = """
title = "A small study"
paper = "Nobody: Nothing"
reference = "elsewhere"
runs = 4

[quick]
runs = 2
experiments = ["E1"]

[[axis.size]]
key = { size = [1, 2] }
set = { "link.A-B.rate" = "$size Mbit/s" }

[metric.goodput]
unit = "kbit/s"
from = "flow.goodput"
scale = 1e-3
definition = "bytes delivered over time"

[metric.goodput_gain]
unit = "%"
gain-of = "goodput"
baseline = { size = 1 }
definition = "over size 1"

[metric.cwnd]
unit = "segments"
from = "trace.cwnd"
reduce = "mean"
definition = "mean window"

[[experiment]]
id = "E1"
title = "First"
scenario = "scenarios/one.toml"
grid = [["size"]]
metrics = ["goodput", "goodput_gain"]

[[experiment.figure]]
id = "E1"
kind = "curve"
title = "goodput"
series = ["delivered"]
transform = "mean-rate"
metric = "goodput"
label = "goodput"
unit = "kbit/s"
scale = 1e-3
window = ["0 s", "10 s"]
step = "5 s"

[[experiment.figure]]
id = "E1-lines"
kind = "lines"
title = "goodput"
x = "size"
log-x = true
[[experiment.figure.row]]
metric = "goodput"
label = "goodput"
log = true
[[experiment.figure.row]]
metric = "goodput_gain"
label = "gain"

[[experiment.claim]]
id = "faster"
text = "Size 2 is faster"
quote = "It is faster."
place = "§1"
test = "increasing"
metric = "goodput"
variants = [{ size = 1 }, { size = 2 }]

[[experiment]]
id = "E2"
title = "Second"
scenario = "scenarios/one.toml"
grid = [["size"]]
metrics = ["cwnd"]

[[experiment.figure]]
id = "E2"
kind = "trace"
title = "window"
series = ["cwnd"]
label = "window"
unit = "segments"
window = ["0 s", "10 s"]

[[experiment.figure]]
id = "E2-timeline"
kind = "timeline"
title = "window and bytes"
window = ["0 s", "10 s"]
shade = [["4 s", "6 s"]]
[[experiment.figure.row]]
series = ["cwnd"]
label = "window"
unit = "segments"
[[experiment.figure.row]]
series = ["delivered"]
label = "delivered"
unit = "kB"
scale = 1e-3

[[experiment.figure]]
id = "E2-bars"
kind = "bars"
title = "window"
metric = "cwnd"
label = "window"
"""

PAPER = """experiment,variant,metric,unit,value,quote,place
E1,size=2,goodput,kbit/s,200,It is 200.,§2
"""


CATALOGUE = """
[P9-C1]
place = "§1"
says = "it is faster"
measure = "goodput: 1 < 2"

[P9-C2]
place = "§2"
says = "it is cheap"
contradicts = ["P9-C1"]
not-judged = "prices are not simulated"
"""


@contextmanager
def started(
    command: Sequence[str],
    stdout: int | None = None,
    stderr: int | None = None,
    env: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[str]]:
    """A process that does not survive a test that fails."""
    with subprocess.Popen(command, text=True, stdout=stdout, stderr=stderr, env=env) as process:
        try:
            yield process
        finally:
            process.kill()


def write_study(folder: Path, study: str = STUDY, paper: str = PAPER) -> Path:
    """Writes the study into `folder/small`."""
    small = folder / "small"
    (small / "scenarios").mkdir(parents=True)
    (small / "study.toml").write_text(study, encoding="utf-8")
    (small / "paper.csv").write_text(paper, encoding="utf-8")
    (small / "scenarios" / "one.toml").write_text("made up", encoding="utf-8")
    return small


def fake_run(job: Job) -> Run:
    """A run that depends on the job only."""
    size = 2 if ("link.A-B.rate", "2 Mbit/s") in job.overrides else 1
    rng = random.Random(f"{job.seed}/{size}")
    time = np.sort([rng.uniform(0, 10) for _ in range(50)])
    flow = np.zeros(50, np.uint32)
    values = np.cumsum([rng.uniform(0, 1000) for _ in range(50)])
    metrics = {
        "duration": 10.0,
        "flows": [{"name": "ftp", "goodput": 1e5 * size + rng.uniform(0, 1e4)}],
        "links": [],
        "middleboxes": [],
    }
    return Run(metrics, {name: Series(time, flow, values) for name in job.series})


def kept(folder: str | Path) -> dict[str, bytes]:
    """The runs that a store keeps in this folder, if it is there, by their addresses."""
    runs: dict[str, bytes] = {}
    for file in Path(folder).glob("*.*"):
        if file.suffix == ".npz":
            runs[file.stem] = file.read_bytes()
        elif file.suffix == ".gz":
            for line in gzip.decompress(file.read_bytes()).splitlines():
                runs[json.loads(line)["run"]] = line
    return runs


@dataclass
class FakeSimulator:
    """Counts what it is asked for.

    Attributes:
        fail: Seeds whose runs fail.
        interrupt_after: Raises KeyboardInterrupt after this many runs, as Ctrl-C would.
    """

    build: str = "fake 1"
    fail: frozenset[int] = frozenset()
    jobs: list[Job] = field(default_factory=list)
    stopped: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, job: Job) -> bytes:
        with self._lock:
            self.jobs.append(job)
        if job.seed in self.fail:
            raise RuntimeError(f"seed {job.seed} is cursed")
        return fake_run(job).to_bytes()

    def check(self, job: Job) -> None:
        if any(value.startswith("-") for _, value in job.overrides):
            raise ValueError(f"{job.file}: negative rate")

    def stop(self) -> None:
        self.stopped = True
