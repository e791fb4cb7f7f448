"""One sender of the kernel and one of the simulator over the same link, as a table in Markdown.

    sudo .venv/bin/python studies/live/beside.py [PATH …]

Needs root and `make build`. Each run takes ten seconds, and the machine should have nothing else to
do. PATH is a name from the table; without one, all of them: half an hour.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

LINK = 'rate = "20 Mbit/s"\ndelay = "20 ms"\nqueue = { limit = "100 kB" }\n'
"""What the paths have in common: the queue holds as much as the path."""
SECONDS = 10.0
KERNEL_SEEDS = range(1, 4)
SIMULATOR_SEEDS = range(1, 41)
SENDERS = ("reno", "cubic", "bbr")
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Case:
    """A path, and what is sent over it."""

    data: str = ""
    """What differs from the link to the receiver."""
    acks: str = ""
    """What differs from the link back."""
    flows: int = 1
    ecn: bool = False


CASES = {
    "queue": Case(),
    "loss 0.5 %": Case('loss = { kind = "bernoulli", p = 0.005 }'),
    "loss 3 %": Case('loss = { kind = "bernoulli", p = 0.03 }'),
    "reordering, 3 ms": Case('delay = { uniform = ["20 ms", "23 ms"], fifo = false }'),
    "ACK loss 20 %": Case(acks='loss = { kind = "bernoulli", p = 0.2 }'),
    "policer": Case('policer = { rate = "5 Mbit/s", burst = "50 kB" }'),
    "queue of 6 packets": Case('queue = { limit = "6 packets" }'),
    "CoDel that marks": Case(
        'queue = { kind = "codel", limit = "1000 packets", ecn = true }',
        ecn=True,
    ),
    "two flows": Case(flows=2),
}


@dataclass
class Flow:
    """What a sender did: goodput in Mbit/s, retransmissions, mean cwnd in kB, mean RTT in ms."""

    goodput: float
    retransmissions: float
    cwnd: float
    rtt: float


def mean(values: list[float]) -> float:
    """Their mean."""
    return sum(values) / len(values)


def kernel(case: Case, sender: str, seed: int) -> list[Flow]:
    """Downloads through `airtcp link` from this host."""
    found: list[Flow] = []

    def send(connection: socket.socket) -> None:
        def write() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection.sendall(bytes(1 << 16))

        threading.Thread(target=write, daemon=True).start()
        began, samples = time.monotonic(), []
        while time.monotonic() - began < SECONDS:
            samples.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256))
            time.sleep(0.01)
        # struct tcp_info: 8 bytes, then snd_mss, rtt, snd_cwnd and total_retrans among 24 words.
        words = [struct.unpack_from("<24I", sample, 8) for sample in samples]
        (acked,) = struct.unpack_from("<Q", samples[-1], 120)
        cwnd = mean([w[18] * w[2] / 1e3 for w in words])
        rtt = mean([w[15] / 1e3 for w in words])
        found.append(Flow(acked * 8 / SECONDS / 1e6, words[-1][23], cwnd, rtt))
        # The receiver ends, and with it the link.
        connection.shutdown(socket.SHUT_RDWR)

    def accept(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=send, args=(connection,)).start()

    subprocess.run(["ip", "tcp_metrics", "flush"], check=True)
    with (
        socket.create_server(("0.0.0.0", 0)) as listener,
        tempfile.NamedTemporaryFile("w", suffix=".toml") as link,
    ):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sender.encode())
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        link.write(f"{LINK}[down]\n{case.data}\n[up]\n{case.acks}\n")
        link.flush()
        command = [str(ROOT / "target/release/airtcp"), "link", "--config", link.name]
        command += ["--seed", str(seed), "--late", "10ms", "--", sys.executable, __file__]
        port = listener.getsockname()[1]
        command += ["--receive", str(port), str(case.flows), *["ecn"] * case.ecn]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return found


def receive(port: int, flows: int, *, ecn: bool) -> None:
    """Behind the link, in a network namespace of its own: takes what comes."""
    # 1: ask for ECN; this host accepts it, unless it has been told not to.
    Path("/proc/sys/net/ipv4/tcp_ecn").write_text("1" if ecn else "2")
    host = os.environ["AIRTCP_LINK_OUTSIDE"]
    connections = [socket.create_connection((host, port)) for _ in range(flows)]

    def read(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while connection.recv(1 << 18):
                pass

    readers = [threading.Thread(target=read, args=(one,)) for one in connections]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()


def simulated(case: Case, sender: str, seed: int) -> list[Flow]:
    """The same by the simulator."""
    import airtcp  # noqa: PLC0415
    import numpy as np  # noqa: PLC0415 - the receiver behind the link needs none of it

    text = f"""
        duration = "{SECONDS} s"
        node = [{{ name = "server" }}, {{ name = "client" }}]
        tcp = {{ congestion = "{sender}", ecn = "{"rfc3168" if case.ecn else "off"}" }}
        [[flow]]
        from = "server"
        to = "client"
        name = "flow"
        count = {case.flows}
        stagger = "40 ms" # as `receive` connects
        jitter = "10 ms"
        [[link]]
        between = ["server", "client"]
        {LINK}
        [link.forward]
        {case.data}
        [link.backward]
        {case.acks}
    """
    run = airtcp.Scenario.parse(text).run(seed, trace=("cwnd", "srtt", "seq_retransmitted"))
    found = []
    for name, flow in run.flows.iterrows():

        def average(series: str, name: object = name) -> float:
            trace = run.trace(series)
            trace = trace[trace["flow"] == name]
            ticks = np.arange(trace["time"].iloc[0], SECONDS, 0.01)
            at = np.searchsorted(trace["time"], ticks, side="right") - 1
            return float(trace["value"].to_numpy()[at].mean())

        again = int((run.trace("seq_retransmitted")["flow"] == name).sum())
        found.append(
            Flow(flow["goodput"] / 1e6, again, average("cwnd") / 1e3, average("srtt") * 1e3)
        )
    return found


def row(stack: str, flows: list[Flow]) -> str:
    """The means of some runs; of goodput the smallest and the largest, too."""
    goodputs = [flow.goodput for flow in flows]
    values = [
        mean([getattr(flow, key) for flow in flows]) for key in ("retransmissions", "cwnd", "rtt")
    ]
    shown = f"{mean(goodputs):.2f} [{min(goodputs):.2f}, {max(goodputs):.2f}]"
    return " | ".join([stack, shown, *(f"{value:.0f}" for value in values)])


def main() -> None:
    """Prints the table."""
    if sys.argv[1:2] == ["--receive"]:
        receive(int(sys.argv[2]), int(sys.argv[3]), ecn="ecn" in sys.argv)
        return
    for name in sys.argv[1:]:
        if name not in CASES:
            sys.exit(f"{name!r} is no path (expected some of {', '.join(map(repr, CASES))})")
    print("| path | sender | stack | goodput, Mbit/s | retransmissions | cwnd, kB | RTT, ms |")
    print("|---|---|---|---|---|---|---|")
    for name in sys.argv[1:] or CASES:
        case = CASES[name]
        for sender in SENDERS:
            measured = [flow for seed in KERNEL_SEEDS for flow in kernel(case, sender, seed)]
            print(f"| {name} | {sender} | {row('kernel', measured)} |", flush=True)
            flows = [flow for seed in SIMULATOR_SEEDS for flow in simulated(case, sender, seed)]
            print(f"| | | {row('simulator', flows)} |", flush=True)


if __name__ == "__main__":
    main()
