"""What a gateway costs: TCP forwarded by the kernel alone and through the gateway, side by side.

run.py [--seconds S] [--rounds N] [--only WHAT] [--idle] [--ordered] [-- COMMAND …]

As root, with iproute2, ethtool and iperf3. A fixed host (10.99.1.2), a gateway and a mobile host
(10.99.2.2, behind the gateway's interface `mobile`) are network namespaces of this machine, joined
by veth pairs; all share its processors, so compare within one run only. COMMAND is run as the
gateway, in its namespace, until SIGTERM; by default the pass-through loop of crates/linux/examples.
Each round measures both, alternating which comes first. It prints medians with their 95 %
confidence interval (order statistics, any distribution; from six rounds on) and the range.

Other virtual machines on the same hardware take processor time at random moments: it takes tens of
rounds to tell a difference of a few per cent.

Over veth pairs a host's two processors can reorder packets, which mechanisms that filter duplicate
ACKs see differently from the kernel. With --ordered one processor handles all packets that come to
a host, as network cards do for a connection.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "target" / "dist" / "examples"
PASS_THROUGH = [str(EXAMPLES / "pass_through"), "10.99.2.0/24"]
LATENCY = str(EXAMPLES / "latency")
FIXED, MOBILE = "10.99.1.2", "10.99.2.2"
# Payload of a full segment with timestamps.
SEGMENT = 1448
# Rate of the small messages whose latency is measured, per second.
MESSAGES = 10_000
# Host, interface and mask of the processors that handle what comes in (receive packet steering).
STEERING = (("a", "gw", 1), ("g", "fixed", 1), ("g", "mobile", 1), ("b", "gw", 2))
# Confidence that the true median is in the printed interval.
CONFIDENCE = 0.95
# Longest wait for the gateway and iperf3's server to start.
PATIENCE = 20.0


class BenchError(Exception):
    """Something this needs is missing or failed."""


class Net:
    """Fixed host `a`, gateway `g`, mobile host `b`."""

    def __init__(self, ordered: bool) -> None:
        self.prefix = f"path-bench-{os.getpid()}"
        self.ordered = ordered

    def __enter__(self) -> Net:
        for host in "agb":
            run("ip", "netns", "add", self.name(host))
        for host, peer, number in (("a", "fixed", 1), ("b", "mobile", 2)):
            self.sh(host, f"ip link add gw type veth peer name {peer} netns {self.name('g')}")
            self.sh(host, f"ip link set gw up; ip address add 10.99.{number}.2/24 dev gw")
            self.sh("g", f"ip link set {peer} up; ip address add 10.99.{number}.1/24 dev {peer}")
            self.sh(host, f"ip route add default via 10.99.{number}.1")
            # With bbr, perhaps the machine's default, the bottleneck is a timer.
            self.sh(host, "echo reno > /proc/sys/net/ipv4/tcp_congestion_control")
        self.sh("g", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        if self.ordered:
            for host, name, mask in STEERING:
                self.sh(host, f"echo {mask} > /sys/class/net/{name}/queues/rx-0/rps_cpus")
        return self

    def __exit__(self, *_: object) -> None:
        for host in "agb":
            subprocess.run(["ip", "netns", "delete", self.name(host)], check=False)

    def name(self, host: str) -> str:
        """The host's namespace."""
        return f"{self.prefix}-{host}"

    def inside(self, host: str, *command: str) -> list[str]:
        """The command that runs `command` in a host."""
        return ["ip", "netns", "exec", self.name(host), *command]

    def sh(self, host: str, script: str) -> str:
        """Runs a script in a host and returns what it prints."""
        return run(*self.inside(host, "sh", "-ec", script))

    def queued(self) -> int:
        """Packets that have passed a queue so far."""
        lines = self.sh("g", "cat /proc/net/netfilter/nfnetlink_queue").splitlines()
        return sum(int(line.split()[7]) for line in lines)

    def has_rules(self) -> bool:
        """Whether a gateway's rules are in force."""
        rules = "iptables-save || true; nft list ruleset || true; ip route show table all"
        return "airtcp" in self.sh("g", rules).lower()


def run(*command: str) -> str:
    """Runs a command and returns what it prints."""
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise BenchError(f"{command[0]} not found") from error
    except subprocess.CalledProcessError as error:
        raise BenchError(
            f"{' '.join(command)}: {(error.stderr or error.stdout).strip()}"
        ) from error
    return done.stdout


@contextmanager
def running(command: list[str], stderr: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A process that SIGTERM ends."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def gateway(net: Net, command: list[str], idle: bool) -> Iterator[None]:
    """The gateway, once its rules are in force; unless `idle`, packets must reach it."""
    with running(net.inside("g", *command)) as process:
        end = time.monotonic() + PATIENCE
        while not net.has_rules():
            if process.poll() is not None:
                raise BenchError(f"{command[0]} ended with status {process.returncode}")
            if time.monotonic() > end:
                raise BenchError(f"{command[0]}: no rules came")
            time.sleep(0.1)
        before = net.queued()
        yield
        if not idle and net.queued() <= before:
            raise BenchError(f"{command[0]}: the packets did not come to its queue (--idle?)")


def rate(net: Net, seconds: float) -> float:
    """Throughput from the fixed host to the mobile, in bit/s."""
    client = ["iperf3", "--client", MOBILE, "--time", str(seconds), "--omit", "1", "--json"]
    if net.ordered:
        client += ["--affinity", "0,1"]
    report = json.loads(run(*net.inside("a", *client)))
    return float(report["end"]["sum_received"]["bits_per_second"])


def latency(net: Net, seconds: float) -> float:
    """99th percentile of the latency of small messages from the fixed host to the mobile, in s."""
    where = f"{MOBILE}:5202"
    with subprocess.Popen(
        net.inside("b", LATENCY, "receive", where), stdout=subprocess.PIPE
    ) as receiver:
        listening(net, 5202)
        run(*net.inside("a", LATENCY, "send", where, str(MESSAGES), str(int(seconds))))
        assert receiver.stdout is not None
        report = json.load(receiver.stdout)
    return float(report["p99_ns"]) / 1e9


def listening(net: Net, port: int) -> None:
    """Waits until the mobile host listens."""
    end = time.monotonic() + PATIENCE
    while not net.sh("b", f"ss --no-header --listening --tcp sport = :{port}"):
        if time.monotonic() > end:
            raise BenchError(f"nobody listens on port {port} of the mobile host")
        time.sleep(0.1)


@dataclass
class Results:
    """The results of the rounds over one path."""

    large: list[float] = field(default_factory=list)
    """bit/s with segmentation offload"""
    single: list[float] = field(default_factory=list)
    """bit/s, segmented by the fixed host"""
    latency: list[float] = field(default_factory=list)
    """seconds, 99th percentile"""

    def measure(self, net: Net, seconds: float, what: set[str]) -> None:
        """Measures once."""
        shown = []
        if "large" in what:
            self.large.append(rate(net, seconds))
            shown.append(f"{self.large[-1] / 1e9:.2f} Gbit/s")
        if "single" in what:
            net.sh("a", "ethtool -K gw tso off gso off")
            self.single.append(rate(net, seconds))
            net.sh("a", "ethtool -K gw tso on gso on")
            shown.append(f"{kpps([self.single[-1]]):.0f} kpps")
        if "latency" in what:
            self.latency.append(latency(net, seconds))
            shown.append(f"{self.latency[-1] * 1e6:.0f} us")
        print(f"  {', '.join(shown)}", file=sys.stderr)


WHAT = [each.name for each in fields(Results)]


def kpps(rates: list[float]) -> float:
    """Median of rates in bit/s, as thousands of full segments per second."""
    return statistics.median(rates) / 8e3 / SEGMENT


def confidence(values: list[float]) -> tuple[float, float] | None:
    """The two values between which the true median lies, with at least CONFIDENCE."""
    ordered, n = sorted(values), len(values)
    # Probability that at most `skipped` values are below the median, or above it.
    outside = 0.0
    for skipped in range(n // 2):
        outside += 2 * math.comb(n, skipped) / 2**n
        if outside > 1 - CONFIDENCE:
            return (ordered[skipped - 1], ordered[-skipped]) if skipped else None
    return None


def spread(values: list[float]) -> str:
    """Median, its confidence interval, and range."""
    shown = f"{statistics.median(values):.0f}"
    if (interval := confidence(values)) is not None:
        shown += f" ({100 * CONFIDENCE:.0f} %: {interval[0]:.0f} to {interval[1]:.0f})"
    return f"{shown} [{min(values):.0f}, {max(values):.0f}]"


def shares(through: list[float], alone: list[float]) -> str:
    """Rates through the gateway, in per cent of the kernel's in the same round."""
    return spread([100 * a / b for a, b in zip(through, alone, strict=True)])


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=4, help="length of a run (default 4)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each kind (default 3)")
    only = "one kind instead of all"
    parser.add_argument("--only", choices=WHAT, action="append", help=only)
    idle = "packets need not reach a queue (copies, copy = when-fading)"
    parser.add_argument("--idle", action="store_true", help=idle)
    ordered = "one processor per host, so that no packet overtakes another"
    parser.add_argument("--ordered", action="store_true", help=ordered)
    parser.add_argument("command", nargs="*", default=PASS_THROUGH, help="runs the gateway")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        raise BenchError("needs root, to make network namespaces")
    packages = {"ip": "iproute2", "ethtool": "ethtool", "iperf3": "iperf3"}
    if missing := [packages[tool] for tool in packages if shutil.which(tool) is None]:
        raise BenchError(f"needs {', '.join(missing)}: apt-get install {' '.join(missing)}")
    kernel, through, what = Results(), Results(), set(arguments.only or WHAT)
    with ExitStack() as stack:
        net = stack.enter_context(Net(arguments.ordered))
        server = net.inside("b", "iperf3", "--server")
        # It complains about SIGTERM.
        stack.enter_context(running(server, subprocess.DEVNULL))
        listening(net, 5201)
        for number in range(arguments.rounds):
            is_first = number % 2 == 1
            order = "gateway, kernel" if is_first else "kernel, gateway"
            print(f"round {number + 1}: {order}", file=sys.stderr)
            for is_gateway in (is_first, not is_first):
                if is_gateway:
                    with gateway(net, arguments.command, arguments.idle):
                        through.measure(net, arguments.seconds, what)
                else:
                    kernel.measure(net, arguments.seconds, what)
    report(through, kernel)
    return 0


def report(through: Results, kernel: Results) -> None:
    """Prints the results side by side."""
    if kernel.large:
        print(
            f"with GSO: {shares(through.large, kernel.large)} % of kernel forwarding "
            f"({statistics.median(through.large) / 1e9:.1f} of "
            f"{statistics.median(kernel.large) / 1e9:.1f} Gbit/s)"
        )
    if kernel.single:
        print(
            f"without: {shares(through.single, kernel.single)} % of its packet rate "
            f"({kpps(through.single):.0f} of {kpps(kernel.single):.0f} kpps)"
        )
    if kernel.latency:
        added = [1e6 * (a - b) for a, b in zip(through.latency, kernel.latency, strict=True)]
        print(
            f"one-way latency at {MESSAGES // 1000} kpps, p99: {spread(added)} us more than the "
            f"kernel's {1e6 * statistics.median(kernel.latency):.0f} us"
        )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as failure:
        print(f"bench-gateway: {failure}", file=sys.stderr)
        sys.exit(1)
