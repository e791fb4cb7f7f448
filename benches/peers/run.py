"""Measures airtcp beside ns-2 and ns-3 doing the same work: `make bench-peers`.

Every benchmark runs each simulator several times, interleaved, so that a change of the machine's
load hits all alike. Times are processor seconds (user and system; all three are single-threaded),
of which the median counts. Peers whose goodput differs from ours by more than 1 % did other work:
that is an error.

Results go to standard output, a line for each benchmark and peer (or JSON, one object a line),
progress to standard error. Exit status: 0 measured, 1 something is missing or failed, 2 bad
arguments.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
AIRTCP = ROOT / "target" / "release" / "airtcp"
BUILD = ROOT / "target" / "peers"
NS3_LIBRARIES = ["applications", "point-to-point", "internet", "network", "core"]
GOODPUT_TOLERANCE = 0.01


class BenchError(Exception):
    """Why nothing can be measured."""


@dataclass(frozen=True)
class Sample:
    """One finished run of one simulator."""

    seconds: float
    """Processor time, user and system."""
    peak: int
    """Peak resident set, bytes."""
    result: dict[str, Any]
    """What the program printed."""


def run(command: list[str | Path]) -> Sample:
    """Runs a simulator that prints one JSON object."""
    arguments = [str(part) for part in command]
    process = subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout as pipe:
        output = pipe.read()
    # wait4, not wait: the usage of this child alone.
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise BenchError(f"`{' '.join(arguments)}` ended with status {process.returncode}")
    return Sample(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, json.loads(output))


def airtcp(scenario: Path, *overrides: str) -> list[str | Path]:
    """The command that runs a scenario of ours."""
    command: list[str | Path] = [AIRTCP, "run", scenario, "--json"]
    for override in overrides:
        command += ["--set", override]
    return command


def compile_ns3(source: Path) -> Path:
    """Compiles a program against ns-3, unless that is done."""
    program = BUILD / f"{source.stem}-ns3"
    if program.exists() and program.stat().st_mtime > source.stat().st_mtime:
        return program
    BUILD.mkdir(parents=True, exist_ok=True)
    libraries = [f"-lns3-{name}" for name in NS3_LIBRARIES]
    command = ["g++", "-std=c++17", "-O3", "-DNDEBUG", str(source), "-o", str(program), *libraries]
    print(f"compiling {source.name} against ns-3", file=sys.stderr)
    compiler = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if compiler.returncode != 0:
        raise BenchError(f"cannot compile {source.name} against ns-3:\n{compiler.stderr}")
    return program


def check_prerequisites() -> None:
    """Names everything that is missing, at once."""
    missing = []
    if not AIRTCP.exists():
        missing.append(f"{AIRTCP.relative_to(ROOT)} is missing: run `make build`")
    packages = []
    if shutil.which("ns") is None:
        packages.append("ns2")
    if not Path("/usr/include/ns3").exists():
        packages.append("libns3-dev")
    if shutil.which("g++") is None:
        packages.append("g++")
    if packages:
        command = f"apt-get install {' '.join(packages)}"
        missing.append(f"{' and '.join(packages)} not installed: as root, `{command}`")
    if missing:
        raise BenchError("\n".join(missing))


def goodput_of_ours(result: dict[str, Any]) -> float:
    """Bit/s delivered in order over the whole run, by all flows together."""
    delivered: int = sum(flow["delivered_bytes"] for flow in result["flows"])
    return 8 * delivered / float(result["duration"])


def mbit(rate: float) -> float:
    """Mbit/s, as printed."""
    return round(rate / 1e6, 1)


def dumbbell(runs: int) -> list[tuple[str, dict[str, Any]]]:
    """The wired dumbbell: lines for people, each with its numbers."""
    scenario = HERE / "dumbbell.toml"
    commands: dict[str, list[str | Path]] = {
        "airtcp": airtcp(scenario),
        "ns-2": ["ns", HERE / "dumbbell.tcl"],
        "ns-3": [compile_ns3(HERE / "dumbbell.cc")],
    }
    samples: dict[str, list[Sample]] = {name: [] for name in commands}
    for number in range(1, runs + 1):
        for name, command in commands.items():
            print(f"dumbbell: run {number} of {runs}, {name}", file=sys.stderr)
            samples[name].append(run(command))

    seconds = {name: statistics.median(s.seconds for s in of) for name, of in samples.items()}
    ours = samples["airtcp"][0].result
    goodput = goodput_of_ours(ours)
    lines: list[tuple[str, dict[str, Any]]] = []
    for peer in ("ns-2", "ns-3"):
        theirs = float(samples[peer][0].result["goodput"])
        goodputs = f"goodput {mbit(goodput)} against {mbit(theirs)} Mbit/s"
        if abs(theirs - goodput) > GOODPUT_TOLERANCE * goodput:
            raise BenchError(f"dumbbell: {peer} did other work: {goodputs}")
        factor = seconds[peer] / seconds["airtcp"]
        times = f"{seconds['airtcp']:.2f} s against {seconds[peer]:.2f} s"
        numbers = {
            "benchmark": "dumbbell",
            "peer": peer,
            "factor": factor,
            "seconds": seconds["airtcp"],
            "peer_seconds": seconds[peer],
            "goodput": goodput,
            "peer_goodput": theirs,
            "runs": runs,
        }
        lines.append((f"dumbbell: {factor:.1f}x {peer} ({times}; {goodputs})", numbers))

    events = ours["events"]
    rate = events / seconds["airtcp"]
    numbers = {"benchmark": "dumbbell", "events_per_second": rate, "events": events}
    lines.append((f"dumbbell: {rate / 1e6:.1f} million events a second ({events} events)", numbers))
    memory = bytes_per_flow(scenario)
    numbers = {"benchmark": "dumbbell", "bytes_per_flow": memory}
    lines.append((f"dumbbell: {memory:.0f} bytes of memory a flow", numbers))
    return lines


def bytes_per_flow(scenario: Path) -> float:
    """How much the peak resident set grows per flow, from 10,000 to 20,000 concurrent flows.

    Not from fewer: a child's peak begins with that of the Python process it was forked from.
    """
    peaks = []
    for per_pair in (1000, 2000):
        print(f"memory: {10 * per_pair} flows", file=sys.stderr)
        short = ("duration=5 s", "flow.0.stagger=100 us", f"flow.0.count={per_pair}")
        peaks.append(run(airtcp(scenario, *short)).peak)
    return (peaks[1] - peaks[0]) / 10_000


BENCHMARKS = {"dumbbell": dumbbell}


def positive(text: str) -> int:
    """A number of runs."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def main() -> int:
    """Runs the benchmarks asked for."""
    parser = argparse.ArgumentParser(description="airtcp beside ns-2 and ns-3 doing the same work")
    parser.add_argument(
        "benchmarks",
        nargs="*",
        metavar="BENCHMARK",
        help=f"which: {', '.join(BENCHMARKS)} (default: all)",
    )
    parser.add_argument(
        "--runs", type=positive, default=3, help="runs of each simulator (default: 3)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    arguments = parser.parse_args()
    for name in arguments.benchmarks:
        if name not in BENCHMARKS:
            parser.error(f"unknown benchmark {name!r} (known: {', '.join(BENCHMARKS)})")
    try:
        check_prerequisites()
        for name in arguments.benchmarks or BENCHMARKS:
            for line, numbers in BENCHMARKS[name](arguments.runs):
                print(json.dumps(numbers) if arguments.json else line, flush=True)
    except BenchError as error:
        print(f"bench-peers: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
