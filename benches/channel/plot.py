"""Plots the cost of a frame against the number of stations, into `docs/img/channel-scale.png`.

Reads what `cargo bench -p airtcp-net --bench scale` (or `make bench`) left in `target/criterion`.
Usage: `.venv/bin/python benches/channel/plot.py`. Exit status: 0 plotted, 1 nothing measured yet.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parent.parent.parent
MEASURED = ROOT / "target" / "criterion" / "a frame at constant density"
PLOT = ROOT / "docs" / "img" / "channel-scale.png"


def microseconds_a_frame() -> list[tuple[int, float]]:
    """CPU time per frame for each number of stations, ascending."""
    costs = []
    for folder in MEASURED.glob("* stations/new"):
        estimates = json.loads((folder / "estimates.json").read_text())
        benchmark = json.loads((folder / "benchmark.json").read_text())
        frames = benchmark["throughput"]["Elements"]
        nanoseconds = estimates["mean"]["point_estimate"]
        costs.append((int(folder.parent.name.split()[0]), nanoseconds / frames / 1000))
    return sorted(costs)


def main() -> int:
    """Draws the plot and prints its numbers."""
    costs = microseconds_a_frame()
    if not costs:
        print(f"nothing in {MEASURED}: run `make bench` first", file=sys.stderr)
        return 1
    for stations, cost in costs:
        print(f"{stations} stations: {cost:.2f} us per frame, {cost / costs[0][1]:.2f} times")
    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    axes.plot(*zip(*costs, strict=True), marker="o", label="measured")
    limit = 1.5 * costs[0][1]
    axes.axhline(limit, color="0.6", linestyle="--", label=f"1.5 times {costs[0][0]} stations")
    axes.set(xscale="log", xlabel="stations", ylabel="CPU time of a frame, µs")
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right")
    PLOT.parent.mkdir(exist_ok=True)
    figure.savefig(PLOT, dpi=150)
    return 0


if __name__ == "__main__":
    sys.exit(main())
