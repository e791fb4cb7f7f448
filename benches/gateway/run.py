"""What a gateway costs: TCP forwarded by the kernel alone and through the gateway, side by side.

run.py [--seconds S] [--rounds N] [--idle] [-- COMMAND …]

As root, with iproute2 and iperf3. A fixed host (10.99.1.2), a gateway and a mobile host (10.99.2.2,
behind the gateway's interface `mobile`) are network namespaces of this machine, joined by veth
pairs; all share its processors, so compare within one run only. COMMAND is run as the gateway, in
its namespace, until SIGTERM; by default the pass-through loop of crates/live/examples. The rounds
alternate; medians are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PASS_THROUGH = [str(ROOT / "target/release/examples/pass_through"), "10.99.2.0/24"]
FIXED, MOBILE = "10.99.1.2", "10.99.2.2"
# Payload of a full segment with timestamps.
SEGMENT = 1448
# Longest wait for the gateway and for iperf3's server to begin.
PATIENCE = 20.0


class BenchError(Exception):
    """Something this needs is not there or did not work."""


class Net:
    """Fixed host `a`, gateway `g`, mobile host `b`."""

    def __init__(self) -> None:
        self.prefix = f"path-bench-{os.getpid()}"

    def __enter__(self) -> Net:
        for host in "agb":
            run("ip", "netns", "add", self.name(host))
        for host, peer, number in (("a", "fixed", 1), ("b", "mobile", 2)):
            self.sh(host, f"ip link add gw type veth peer name {peer} netns {self.name('g')}")
            self.sh(host, f"ip link set gw up; ip address add 10.99.{number}.2/24 dev gw")
            self.sh("g", f"ip link set {peer} up; ip address add 10.99.{number}.1/24 dev {peer}")
            self.sh(host, f"ip route add default via 10.99.{number}.1")
        self.sh("g", "echo 1 > /proc/sys/net/ipv4/ip_forward")
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
        """Packets that went through a queue so far."""
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
    """A process that is ended by SIGTERM."""
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
    """The gateway, from when its rules are there; unless it is idle, packets must come to it."""
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
    report = json.loads(run(*net.inside("a", *client)))
    return float(report["end"]["sum_received"]["bits_per_second"])


def measure(net: Net, arguments: argparse.Namespace) -> tuple[float, float]:
    """Medians of the kernel's throughput and of that through the gateway, in bit/s."""
    kernel, through = [], []
    for number in range(arguments.rounds):
        kernel.append(rate(net, arguments.seconds))
        with gateway(net, arguments.command, arguments.idle):
            through.append(rate(net, arguments.seconds))
        progress = f"round {number + 1}: {kernel[-1] / 1e9:.2f} and {through[-1] / 1e9:.2f} Gbit/s"
        print(progress, file=sys.stderr)
    return statistics.median(kernel), statistics.median(through)


def main() -> int:
    """Measures and prints one line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=4, help="length of a run (default 4)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each kind (default 3)")
    idle = "packets need not come to a queue (copy = when-fading, TUN)"
    parser.add_argument("--idle", action="store_true", help=idle)
    parser.add_argument("command", nargs="*", default=PASS_THROUGH, help="what runs the gateway")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        raise BenchError("needs root, to make network namespaces")
    with ExitStack() as stack:
        net = stack.enter_context(Net())
        server = net.inside("b", "iperf3", "--server")
        # It complains about SIGTERM.
        stack.enter_context(running(server, subprocess.DEVNULL))
        end = time.monotonic() + PATIENCE
        while not net.sh("b", "ss --no-header --listening --tcp"):
            if time.monotonic() > end:
                raise BenchError("iperf3's server does not listen")
            time.sleep(0.1)
        kernel, through = measure(net, arguments)
        # One segment a packet.
        net.sh("a", "ip link set gw gso_max_segs 1")
        kernel_single, through_single = measure(net, arguments)
    rates = [bits / 8 / SEGMENT / 1e3 for bits in (through_single, kernel_single)]
    print(
        f"gateway: {100 * through / kernel:.0f} % of kernel forwarding with GSO "
        f"({through / 1e9:.1f} of {kernel / 1e9:.1f} Gbit/s), "
        f"{100 * through_single / kernel_single:.0f} % of its packet rate without "
        f"({rates[0]:.0f} of {rates[1]:.0f} kpps)"
    )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as failure:
        print(f"bench-gateway: {failure}", file=sys.stderr)
        sys.exit(1)
