"""What a sweep of short runs costs, beside the same runs by the native command.

    make bench-sweeps

2,000 runs of two simulated seconds of examples/quickstart.toml in one thread: `airtcp sweep` into a
CSV file, and `airtcp run --runs`, five times in turn. Prints the processor time of each, user and
system, and the ratio of the medians. Exit status: 0 it is at most 1.5, 1 it is more.
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
    swept, run = [], []
    for _ in range(5):
        # A sweep does not repeat what the one before has kept.
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "airtcp", "sweep", *RUNS, "--out", "x.csv"]
            swept.append(processor_time(command, folder))
            run.append(processor_time([native, "run", *RUNS], folder))
    ratio = median(swept) / median(run)
    for name, times in (("airtcp sweep", swept), ("airtcp run --runs", run)):
        print(f"{name}: {' '.join(f'{time:.2f}' for time in times)} s")
    print(f"ratio of the medians: {ratio:.2f}, at most {MOST}")
    return int(ratio > MOST)


if __name__ == "__main__":
    sys.exit(main())
