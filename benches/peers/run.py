"""Measures airtcp beside ns-2, ns-3 and htsim doing the same work: `make bench-peers`.

Every benchmark runs each simulator several times, interleaved, so that a change of the machine's
load affects all equally. Times are processor seconds (user and system; all of them are
single-threaded), and the median counts. A peer whose result differs from ours by more than the
benchmark's tolerance did other work, which is an error.

Results go to standard output, a line for each benchmark and peer (or JSON, one object a line),
progress to standard error. Exit status: 0 measured, 1 something is missing or failed, 2 bad
arguments.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
AIRTCP = ROOT / "target" / "dist" / "airtcp"
BUILD = ROOT / "target" / "peers"


class BenchError(Exception):
    """Why nothing can be measured."""


Line = tuple[str, dict[str, Any]]
"""A line for people, with its numbers."""


@dataclass(frozen=True)
class Sample:
    """One finished run of one simulator."""

    seconds: float
    """Processor time, user and system."""
    peak: int
    """Peak resident set, bytes."""
    result: dict[str, Any]
    """What the program printed."""


@dataclass(frozen=True)
class Benchmark:
    """The same work for all: `NAME.toml`, and where they take part `NAME.tcl` and `NAME.cc`."""

    name: str
    measure: str
    """What is compared besides time, by its name in the peers' results: bit/s."""
    of_ours: Callable[[dict[str, Any]], float]
    """The same from our results."""
    tolerance: float
    """The fraction of ours by which a peer's may differ."""
    digits: int
    """Decimals of the Mbit/s printed."""
    ns3_libraries: tuple[str, ...]
    """None at all: ns-3 takes no part."""
    more: Callable[[dict[str, Any], float], list[Line]] = lambda result, seconds: []
    """Further lines, from our result and our median time."""
    ns3_rules: tuple[str, ...] = ()
    """Overrides by which ours follows the rules of ns-3: ns-3's result is compared with that run's,
    the time with that of the run without."""
    ns3_tolerance: float | None = None
    """Instead of `tolerance`, for ns-3."""
    ns2: bool = True
    """ns-2 takes part."""
    htsim: bool = False
    """There is a `NAME.htsim.cc`, too, for those who name a checkout of htsim."""
    mobile: bool = False
    """The number of a run is its seed, and ns-2 moves the nodes as ours do in the run with that
    seed. What is compared are means over the runs."""


def run(command: list[str | Path]) -> Sample:
    """Runs a simulator that prints one JSON object on a line of its own."""
    arguments = [str(part) for part in command]
    process = subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout as pipe:
        output = pipe.read()
    # wait4, not wait: it gives the resource usage of this child alone.
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise BenchError(f"`{' '.join(arguments)}` ended with status {process.returncode}")
    # ns-2 prints lines of its own.
    objects = [line for line in output.splitlines() if line.startswith("{")]
    if len(objects) != 1:
        raise BenchError(f"`{' '.join(arguments)}` printed no JSON object:\n{output}")
    result: dict[str, Any] = json.loads(objects[0])
    return Sample(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, result)


def airtcp(scenario: Path, *overrides: str, seed: int = 1) -> list[str | Path]:
    """The command that runs a scenario of ours."""
    command: list[str | Path] = [AIRTCP, "run", scenario, "--json", "--seed", str(seed)]
    for override in overrides:
        command += ["--set", override]
    return command


def movement(scenario: Path, seed: int) -> Path:
    """How the nodes of a scenario of ours move in the run with this seed, as ns-2 reads it."""
    BUILD.mkdir(parents=True, exist_ok=True)
    file = BUILD / f"{scenario.stem}-{seed}.setdest"
    command: list[str | Path] = [AIRTCP, "mobility", "export", scenario]
    command += ["--format", "setdest", "--seed", str(seed)]
    exported = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if exported.returncode != 0:
        raise BenchError(f"cannot export the movement of {scenario.name}")
    file.write_bytes(exported.stdout)
    return file


def compile_by(command: list[str], what: str) -> None:
    """Runs a compiler or linker; `what` it makes is for the error message."""
    compiler = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if compiler.returncode != 0:
        raise BenchError(f"cannot compile {what}:\n{compiler.stderr}")


def compile_ns3(source: Path, names: tuple[str, ...]) -> Path:
    """Compiles a program against these libraries of ns-3, unless already done."""
    program = BUILD / f"{source.stem}-ns3"
    newest = max(file.stat().st_mtime for file in [source, *HERE.glob("*.h")])
    if program.exists() and program.stat().st_mtime > newest:
        return program
    BUILD.mkdir(parents=True, exist_ok=True)
    libraries = [f"-lns3-{name}" for name in names]
    command = ["g++", "-std=c++17", "-O3", "-DNDEBUG", str(source), "-o", str(program), *libraries]
    print(f"compiling {source.name} against ns-3", file=sys.stderr)
    compile_by(command, f"{source.name} against ns-3")
    return program


def compile_htsim(source: Path, checkout: Path) -> Path:
    """Compiles a program with the sources of a checkout of htsim, unless already done.

    Optimises as htsim's Makefile does, and writes nothing into the checkout.
    """
    library = checkout / "sim"
    listed = re.search(r"^OBJS\s*=(.*)$", (library / "Makefile").read_text(), re.MULTILINE)
    if listed is None:
        raise BenchError(f"{library / 'Makefile'} lists no OBJS")
    sources = [(library / name).with_suffix(".cpp") for name in listed[1].split()]
    folder = BUILD / "htsim"
    program = folder / source.stem
    newest = max(file.stat().st_mtime for file in [source, *sources])
    if program.exists() and program.stat().st_mtime > newest:
        return program
    folder.mkdir(parents=True, exist_ok=True)

    def compile_one(file: Path) -> Path:
        target = folder / f"{file.stem}.o"
        command = ["g++", "-std=c++17", "-O3", "-w", f"-I{library}", "-c", str(file)]
        compile_by([*command, "-o", str(target)], str(file))
        return target

    print(f"compiling {source.name} with {len(sources)} files of htsim", file=sys.stderr)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = [str(target) for target in pool.map(compile_one, [source, *sources])]
    compile_by(["g++", *objects, "-o", str(program)], f"{source.name} with htsim")
    return program


def check_prerequisites(htsim: Path | None) -> None:
    """Reports everything that is missing at once."""
    missing = []
    if htsim is not None and not (htsim / "sim" / "Makefile").exists():
        missing.append(f"{htsim} is no checkout of htsim: it has no sim/Makefile")
    if not AIRTCP.exists():
        missing.append(f"{AIRTCP.relative_to(ROOT)} is missing: `make bench-peers` builds it")
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


def compare(benchmark: Benchmark, runs: int, htsim: Path | None) -> list[Line]:
    """Runs a benchmark: one line for each peer, then the benchmark's own."""
    name, measure = benchmark.name, benchmark.measure
    scenario = HERE / f"{name}.toml"
    samples: dict[str, list[Sample]] = {}
    for number in range(1, runs + 1):
        seed = number if benchmark.mobile else 1
        commands: dict[str, list[str | Path]] = {"airtcp": airtcp(scenario, seed=seed)}
        if benchmark.ns2:
            commands["ns-2"] = ["ns", HERE / f"{name}.tcl"]
        if benchmark.mobile:
            commands["ns-2"] += [movement(scenario, seed), str(seed)]
        if benchmark.ns3_libraries:
            commands["ns-3"] = [compile_ns3(HERE / f"{name}.cc", benchmark.ns3_libraries)]
        if benchmark.htsim and htsim is not None:
            commands["htsim"] = [compile_htsim(HERE / f"{name}.htsim.cc", htsim)]
        for simulator, command in commands.items():
            print(f"{name}: run {number} of {runs}, {simulator}", file=sys.stderr)
            samples.setdefault(simulator, []).append(run(command))

    medians = {who: statistics.median(s.seconds for s in of) for who, of in samples.items()}
    seconds = medians["airtcp"]
    result = samples["airtcp"][0].result
    by_our_rules = statistics.mean(benchmark.of_ours(s.result) for s in samples["airtcp"])
    lines: list[Line] = []
    for peer in list(samples)[1:]:
        ours = by_our_rules
        if peer == "ns-3" and benchmark.ns3_rules:
            ours = benchmark.of_ours(run(airtcp(scenario, *benchmark.ns3_rules)).result)
        theirs = statistics.mean(float(s.result[measure]) for s in samples[peer])
        mbit = [f"{rate / 1e6:.{benchmark.digits}f}" for rate in (ours, theirs)]
        rates = f"{measure} {mbit[0]} against {mbit[1]} Mbit/s"
        tolerance = benchmark.tolerance
        if peer == "ns-3" and benchmark.ns3_tolerance is not None:
            tolerance = benchmark.ns3_tolerance
        if abs(theirs - ours) > tolerance * ours:
            raise BenchError(f"{name}: {peer} did other work: {rates}")
        factor = medians[peer] / seconds
        times = f"{seconds:.2f} s against {medians[peer]:.2f} s"
        numbers = {
            "benchmark": name,
            "peer": peer,
            "factor": factor,
            "seconds": seconds,
            "peer_seconds": medians[peer],
            measure: ours,
            f"peer_{measure}": theirs,
            "runs": runs,
        }
        lines.append((f"{name}: {factor:.1f}x {peer} ({times}; {rates})", numbers))
    return lines + benchmark.more(result, seconds)


def goodput_of_flows(result: dict[str, Any]) -> float:
    """Bit/s delivered in order over the whole run, by all flows together."""
    delivered: int = sum(flow["delivered_bytes"] for flow in result["flows"])
    return 8 * delivered / float(result["duration"])


def more_of_dumbbell(result: dict[str, Any], seconds: float) -> list[Line]:
    """The wired dumbbell's own lines."""
    events = result["events"]
    rate = events / seconds
    speed = {"benchmark": "dumbbell", "events_per_second": rate, "events": events}
    memory = bytes_per_flow(HERE / "dumbbell.toml")
    numbers = {"benchmark": "dumbbell", "bytes_per_flow": memory}
    return [
        (f"dumbbell: {rate / 1e6:.1f} million events a second ({events} events)", speed),
        (f"dumbbell: {memory:.0f} bytes of memory a flow", numbers),
    ]


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


def throughput_of_cell(result: dict[str, Any]) -> float:
    """Bit/s of MSDUs (IP packets of 1500 bytes) received over the whole run, by all stations."""
    received: int = sum(source["packets_received"] for source in result["udp"])
    return 8 * 1500 * received / float(result["duration"])


BENCHMARKS = {
    benchmark.name: benchmark
    for benchmark in (
        Benchmark(
            name="dumbbell",
            measure="goodput",
            of_ours=goodput_of_flows,
            tolerance=0.01,
            digits=1,
            ns3_libraries=("applications", "point-to-point", "internet", "network", "core"),
            more=more_of_dumbbell,
            htsim=True,
        ),
        Benchmark(
            name="saturation",
            measure="throughput",
            of_ours=throughput_of_cell,
            tolerance=0.03,
            digits=2,
            ns3_libraries=("wifi", "propagation", "mobility", "network", "core"),
        ),
        Benchmark(
            name="ax",
            measure="throughput",
            of_ours=throughput_of_cell,
            tolerance=0.04,
            digits=1,
            ns3_libraries=("wifi", "propagation", "mobility", "network", "core"),
            ns2=False,
        ),
        Benchmark(
            name="chain7",
            measure="goodput",
            of_ours=goodput_of_flows,
            tolerance=0.02,
            digits=3,
            ns3_libraries=(
                "wifi",
                "propagation",
                "mobility",
                "applications",
                "internet",
                "network",
                "core",
            ),
            ns3_rules=(
                "wlan.0.preset=ieee",
                "wlan.0.data-rate=2 Mbit/s",
                "wlan.0.control-rate=1 Mbit/s",
                "wlan.0.rts-threshold=0 B",
                "wlan.0.frame-errors=dsss",
                "wlan.0.noise=-93.6 dBm",
                "wlan.0.min-sinr=2.51",
            ),
            ns3_tolerance=0.07,
        ),
        Benchmark(
            name="manet",
            measure="goodput",
            of_ours=goodput_of_flows,
            tolerance=0.15,
            digits=3,
            ns3_libraries=(),
            mobile=True,
        ),
    )
}


def positive(text: str) -> int:
    """A number of runs."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def main() -> int:
    """Runs the benchmarks asked for."""
    parser = argparse.ArgumentParser(description="airtcp beside its peers doing the same work")
    parser.add_argument(
        "benchmarks",
        nargs="*",
        metavar="BENCHMARK",
        help=f"which: {', '.join(BENCHMARKS)} (default: all)",
    )
    parser.add_argument(
        "--runs", type=positive, default=3, help="runs of each simulator (default: 3)"
    )
    parser.add_argument(
        "--htsim", type=Path, metavar="DIR", help="a checkout of htsim, to be measured, too"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    arguments = parser.parse_args()
    for name in arguments.benchmarks:
        if name not in BENCHMARKS:
            parser.error(f"unknown benchmark {name!r} (known: {', '.join(BENCHMARKS)})")
    try:
        check_prerequisites(arguments.htsim)
        for name in arguments.benchmarks or BENCHMARKS:
            for line, numbers in compare(BENCHMARKS[name], arguments.runs, arguments.htsim):
                print(json.dumps(numbers) if arguments.json else line, flush=True)
    except BenchError as error:
        print(f"bench-peers: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
