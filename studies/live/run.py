"""Outages in the simulator and on kernel TCP, side by side: `make study-live`.

The kernel's part is measured by the testbed of `crates/cli/tests/gateway`: real hosts in network
namespaces, `airtcp link`, `airtcp gateway`. The simulator's part is `outage.toml` beside this file,
with the same link, outage, signals and size of the download. Each case runs several times; in the
simulator the outage begins a little later each time, as it does on the kernel anyway.

Writes `cells.csv` in the form of all studies and prints the table of the README to standard output,
progress to standard error. Exit status: 0 measured, 1 something is missing or failed, 2 bad
arguments.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from airtcp.study.outputs import CELL_COLUMNS, exact
from airtcp.study.stats import Estimate, estimate

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
AIRTCP = ROOT / "target" / "release" / "airtcp"
MEASURED = ROOT / "target" / "tmp" / "gateway-outages.csv"
CONFIDENCE = 0.95
LENGTHS = (5, 10, 30)
BEGIN = 4.0
"""Seconds from the opening of the connection to the outage, as in the testbed."""
MSS = 1448
"""Bytes of user data in a segment with timestamps."""

METRICS = {
    "dead_time": "s",
    "download_time": "s",
    "timeouts": "1",
    "retransmissions": "segments",
    "cwnd_before": "segments",
    "cwnd_after": "segments",
}


class StudyError(Exception):
    """Why nothing can be measured."""


@dataclass(frozen=True, order=True)
class Case:
    """A download with one outage."""

    mechanism: str
    told: str
    """When the gateway hears of the outage: `timely`, `late`, or never (`nothing`)."""
    outage: int
    """Seconds."""


CASES = [
    Case(mechanism, told, outage)
    for mechanism, told in (
        ("none", "nothing"),
        ("m-tcp-plus", "timely"),
        ("m-tcp-plus", "late"),
        ("holdover", "timely"),
        ("holdover", "late"),
    )
    for outage in LENGTHS
]

KERNEL = ("reno", "cubic", "bbr")
SIMULATED = {
    # Like Linux's reno, which recovers with SACK.
    "reno": {},
    "newreno": {"tcp.recovery": "newreno"},
}

Row = dict[str, float]
Results = dict[tuple[str, str, Case], list[Row]]
"""By stack, sender and case: the values of each run, by metric."""


def run_kernel(runs: int) -> Results:
    """Measures all cases on kernel TCP."""
    cases = [
        f"{case.mechanism} {congestion} {case.outage} {case.told}"
        for case in CASES
        for congestion in KERNEL
        for _ in range(runs)
    ]
    command = ["cargo", "test", "--package", "airtcp-cli", "--test", "gateway", "--"]
    command += ["--exact", "outages::asked_for", "--nocapture"]
    environment = {**os.environ, "AIRTCP_OUTAGES": "\n".join(cases)}
    status = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=sys.stderr, check=False
    ).returncode
    if status != 0:
        raise StudyError(f"`{' '.join(command)}` ended with status {status}")
    results: Results = defaultdict(list)
    with MEASURED.open(newline="") as file:
        for row in csv.DictReader(file):
            case = Case(row["mechanism"], row["told"], int(row["outage"]))
            values = {metric: float(row[metric]) for metric in METRICS}
            results["kernel", row["congestion_control"], case].append(values)
    if sum(map(len, results.values())) != len(cases):
        raise StudyError("kernel TCP was not measured; see above (it needs root)")
    return results


def run_simulator(airtcp: Path, runs: int) -> Results:
    """Runs all cases in the simulator."""
    results: Results = defaultdict(list)
    for sender, settings in SIMULATED.items():
        for case in CASES:
            print(f"simulator: {sender}, {case}", file=sys.stderr)
            for number in range(runs):
                # Not a divisor of the round-trip time.
                begin = BEGIN + 0.037 * number
                results["simulator", sender, case].append(simulate(airtcp, settings, case, begin))
    return results


def simulate(airtcp: Path, settings: dict[str, str], case: Case, begin: float) -> Row:
    """One run in the simulator."""
    end = begin + case.outage
    listed = f'[["{begin:.3f} s", "{end:.3f} s"]]'
    settings = {**settings, "node.mobile.outage": f"{{ listed = {listed} }}"}
    if case.mechanism != "none":
        signal = {"timely": 'lead = "100 ms"', "late": 'late = "1 s"'}[case.told]
        settings["node.gateway.middlebox"] = (
            f'{{ mechanism = "{case.mechanism}", mobiles = ["mobile"], fifo = "4 MiB", '
            f"signal = {{ {signal} }} }}"
        )
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder) / "events.json"
        command = [str(airtcp), "run", str(HERE / "outage.toml"), "--json", "--events", str(events)]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if process.returncode != 0:
            raise StudyError(f"`{' '.join(command)}` ended with status {process.returncode}")
        flow: dict[str, Any] = json.loads(process.stdout)["flows"][0]
        first = begin + {"timely": -0.1, "late": 0.0, "nothing": 0.0}[case.told]
        around = around_outage(map(json.loads, events.read_text().splitlines()), first)
    return {
        "dead_time": flow["outage_dead_time"],
        "download_time": flow["download_time"],
        **around,
    }


def around_outage(events: Iterable[dict[str, Any]], first: float) -> Row:
    """What the sender did from the first signal until data flowed again."""
    cwnd, before = 0.0, 0.0
    timeouts = retransmissions = 0
    for event in sender_events(events):
        if event["event"] == "window":
            cwnd = event["cwnd"] / MSS
        elif event["event"] == "outage_over":
            break
        if event["t"] < first:
            before = cwnd
        elif event["event"] == "rto_expired":
            timeouts += 1
        elif event["event"] == "segment_sent" and event["retransmission"]:
            retransmissions += 1
    return {
        "timeouts": timeouts,
        "retransmissions": retransmissions,
        "cwnd_before": before,
        "cwnd_after": cwnd,
    }


def sender_events(events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The sender's events, and the receiver's end of the outage."""
    for event in events:
        if event["source"] == "flow download sender" or event["event"] == "outage_over":
            yield event


def cells(results: Results) -> Iterator[dict[str, str]]:
    """The rows of `cells.csv`."""
    for (stack, sender, case), rows in sorted(results.items()):
        variant = {
            "mechanism": case.mechanism,
            "outage": case.outage,
            "sender": sender,
            "stack": stack,
            "told": case.told,
        }
        for metric, unit in METRICS.items():
            mean, low, high, runs = of_runs(rows, metric)
            values = (
                "live",
                "outage",
                ";".join(f"{key}={value}" for key, value in variant.items()),
                metric,
                unit,
                "",
                exact(mean),
                exact(low),
                exact(high),
                str(runs),
            )
            yield dict(zip(CELL_COLUMNS, values, strict=True))


def of_runs(rows: list[Row], metric: str) -> Estimate:
    """A metric's mean over the runs."""
    return estimate(np.array([row[metric] for row in rows]), CONFIDENCE)


def table(results: Results) -> Iterator[str]:
    """The README's table: the simulator's reno beside the kernel's senders."""
    columns = [("simulator", "reno"), *(("kernel", congestion) for congestion in KERNEL)]
    heads = [f"{stack}: {sender}" for stack, sender in columns]
    for metric, unit in METRICS.items():
        yield f"**{metric}**, {unit}"
        yield ""
        yield f"| mechanism, told | outage | {' | '.join(heads)} | gap, reno |"
        yield "|---" * (len(columns) + 3) + "|"
        for case in CASES:
            means = [of_runs(results[*column, case], metric).mean for column in columns]
            texts = [f"{mean:.2f}" if unit == "s" else f"{mean:.0f}" for mean in means]
            gap = means[0] - means[1]
            gap_text = f"{gap:+.2f}" if unit == "s" else f"{gap:+.0f}"
            name = f"{case.mechanism}, {case.told}"
            yield f"| {name} | {case.outage} s | {' | '.join(texts)} | {gap_text} |"
        yield ""


def positive(text: str) -> int:
    """A number of runs."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def main() -> int:
    """Measures both sides."""
    parser = argparse.ArgumentParser(description="outages in the simulator and on kernel TCP")
    parser.add_argument("--runs", type=positive, default=3, help="runs of a case (default: 3)")
    parser.add_argument("--airtcp", type=Path, default=AIRTCP, help="the simulator")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of cells.csv")
    arguments = parser.parse_args()
    try:
        if not arguments.airtcp.exists():
            raise StudyError(f"{arguments.airtcp} is missing: run `make build`")
        results = run_simulator(arguments.airtcp, arguments.runs) | run_kernel(arguments.runs)
    except StudyError as error:
        print(f"study-live: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 1
    with (arguments.out / "cells.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, CELL_COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(cells(results))
    print("\n".join(table(results)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
