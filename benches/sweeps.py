"""What sweeps and studies of short runs cost, beside the same runs by the native command.

    make bench-sweeps

2,000 runs of two simulated seconds of examples/quickstart.toml in one thread: `airtcp sweep` into a
CSV file, `airtcp study run` without its start (which a study of two runs has, too), and `airtcp run
--runs`, five times in turn. Prints the processor time of each, user and system, and the ratios of
the medians. Exit status: 0 both are at most 1.5, 1 one is more.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

SCENARIO = Path(__file__).parents[1] / "examples" / "quickstart.toml"
RUNS = [str(SCENARIO), "--set", "duration=2 s", "--runs", "2000", "--jobs", "1", "--quiet"]
MOST = 1.5
STUDY = """
title = "Short runs"
paper = "none"
reference = "none"
runs = 1000

[[axis.rate]]
key = { rate = [4, 5] }
set = { "link.AP-phone.rate" = "$rate Mbit/s" }

[metric.goodput]
unit = "kbit/s"
from = "flow.goodput"
scale = 1e-3
definition = "goodput"

[[experiment]]
id = "E1"
title = "Short runs"
scenario = "short.toml"
grid = [["rate"]]
metrics = ["goodput"]
"""


def study(folder: str, runs: int) -> float:
    """Processor time of a study of so many runs, s."""
    small = Path(folder) / f"small-{runs}"
    small.mkdir()
    (small / "study.toml").write_text(STUDY)
    text = SCENARIO.read_text()
    (small / "short.toml").write_text(text.replace('duration = "60 s"', 'duration = "2 s"'))
    command = [sys.executable, "-m", "airtcp", "study", "run", str(small), "--jobs", "1", "--quiet"]
    return processor_time([*command, "--runs", str(runs // 2)], folder)


def processor_time(command: list[str], folder: str) -> float:
    """Of a command and what it starts, s."""
    before = os.times()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])


def main() -> int:
    """Runs the command line; returns the exit code."""
    if len(sys.argv) != 2:  # noqa: PLR2004
        print("usage: sweeps.py BINARY", file=sys.stderr)
        return 2
    native = str(Path(sys.argv[1]).resolve())
    swept, studied, run = [], [], []
    for _ in range(5):
        # A sweep does not repeat what the one before has kept.
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "airtcp", "sweep", *RUNS, "--out", "x.csv"]
            swept.append(processor_time(command, folder))
            studied.append(study(folder, 2000) - study(folder, 2))
            run.append(processor_time([native, "run", *RUNS], folder))
    worst = 0.0
    for name, times in (
        ("sweep", swept),
        ("study run, without its start", studied),
        ("run --runs", run),
    ):
        ratio = median(times) / median(run)
        worst = max(worst, ratio)
        print(f"airtcp {name}: {' '.join(f'{time:.2f}' for time in times)} s, ratio {ratio:.2f}")
    print(f"at most {MOST}")
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())
