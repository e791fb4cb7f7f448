"""The queue disciplines of a kernel beside the simulator's: the same downloads, as a table.

    queues.py cells [CELL ...]          their names (all without CELL)
    queues.py kernel RUNS [CELL ...]    in the virtual machine, as root
    queues.py table FILE                beside the simulator, in Markdown

scripts/compare-queues runs them. `kernel` prints one JSON object a line; FILE has these lines,
perhaps among others.

The path is sender - router - receiver. The router's link to the receiver has the rate and the
queue; what comes back from the receiver waits for a whole round trip. Everything is measured from
FROM to TO, so slow start is over:

- goodput, from what was acknowledged (kernel) or delivered (simulator);
- the queueing delay: the sender's smoothed RTT, taken every STEP, less the round trip without
  queue;
- drops and marks of the queue for each second.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import random
import select
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FROM, TO, STEP = 5.0, 25.0, 0.01
SEEDS = range(1, 21)
STAGGER_MS = 10
"""Flows start up to so much later: without it each of the simulator's runs would be the same."""

PACKET = 1500
ETHERNET = 14
"""The kernel counts this in each packet's size, the simulator does not."""
FRAME = PACKET + ETHERNET
SPARSE_WINDOW = 2896
"""Two segments: the sparse flow sends so much in each round trip."""


@dataclass(frozen=True)
class Bottleneck:
    """A bottleneck: its rate, the round trip without queues, and RED's settings for it."""

    mbit: int
    rtt_ms: int
    limit: int
    """Packets in a drop-tail queue: about the product of rate and round trip."""
    red: tuple[int, int, int]
    """Minimum and maximum threshold, packets, and the `burst` for which tc takes RED_WEIGHT_LOG."""

    @property
    def transmission_ms(self) -> float:
        """How long a full packet takes."""
        return PACKET * 8 / self.mbit / 1000


PATHS = {
    "20": Bottleneck(20, 50, 100, (25, 75, 140)),
    "100": Bottleneck(100, 20, 200, (50, 150, 200)),
}
RED_WEIGHT_LOG = 9
RED_PACKETS = 500
RED_MAX_P = 0.1
PIE_UPDATE_MS = 16
"""What a kernel of 250 Hz makes of PIE's 15 ms."""


@dataclass(frozen=True)
class Cell:
    """A queue discipline, the path under it, and the bulk flows."""

    kind: str
    path: Bottleneck
    flows: int
    ecn: bool = False
    sparse: bool = False
    """Beside them there is a flow that sends two segments a round trip."""

    @property
    def name(self) -> str:
        """Unique: codel-20-4-ecn."""
        words = [self.kind, str(self.path.mbit), str(self.flows)]
        return "-".join(words + ["ecn"] * self.ecn + ["sparse"] * self.sparse)

    def kernel(self) -> str:
        """The discipline as tc has it."""
        low, high, burst = self.path.red
        ecn = {True: "ecn", False: "" if self.kind == "red" else "noecn"}[self.ecn]
        codel = f"target 5ms interval 100ms {ecn}"
        thresholds = f"limit {RED_PACKETS * FRAME} min {low * FRAME} max {high * FRAME}"
        average = f"avpkt {FRAME} burst {burst} bandwidth {self.path.mbit}mbit"
        return {
            "pfifo": f"pfifo limit {self.path.limit}",
            "codel": f"codel limit 1000 {codel}",
            "fq_codel": f"fq_codel limit 10240 quantum {FRAME} {codel}",
            "pie": f"pie limit 1000 target 15ms tupdate 15ms {ecn}",
            "red": f"red {thresholds} {average} probability {RED_MAX_P} {ecn}",
        }[self.kind]

    def simulator(self) -> str:
        """The discipline as a scenario has it."""
        low, high, _ = self.path.red
        ecn = f"ecn = {str(self.ecn).lower()}"
        codel = f'target = "5 ms", interval = "100 ms", {ecn}'
        # Linux's RED marks above the maximum threshold, too, if it is not told otherwise.
        marks = ", hard-drop = false" if self.ecn else ""
        thresholds = f'min-threshold = "{low} packets", max-threshold = "{high} packets"'
        red = f"{thresholds}, max-p = {RED_MAX_P}, weight = {2.0**-RED_WEIGHT_LOG}, {ecn}{marks}"
        return {
            "pfifo": f'kind = "drop-tail", limit = "{self.path.limit} packets"',
            "codel": f'kind = "codel", limit = "1000 packets", {codel}',
            "fq_codel": f'kind = "fq-codel", quantum = "{PACKET} B", {codel}',
            "pie": f'kind = "pie", limit = "1000 packets", t-update = "{PIE_UPDATE_MS} ms", {ecn}',
            "red": f'kind = "red", limit = "{RED_PACKETS} packets", {red}',
        }[self.kind]


def all_cells() -> list[Cell]:
    """The rows of the table."""
    kinds = ("pfifo", "codel", "fq_codel", "pie", "red")
    found = [
        Cell(kind, path, flows) for path in PATHS.values() for kind in kinds for flows in (1, 4)
    ]
    found += [Cell(kind, PATHS["20"], 4, ecn=True) for kind in kinds if kind != "pfifo"]
    found += [Cell("fq_codel", PATHS["20"], 4, sparse=True)]
    return found


def cells(names: list[str]) -> list[Cell]:
    """Those of these names; all without names."""
    known = {cell.name: cell for cell in all_cells()}
    for name in names:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {nearest[0]}?" if nearest else ""
            sys.exit(f"queues.py: {name} is not a cell (expected one of {', '.join(known)}{hint})")
    return [cell for name, cell in known.items() if not names or name in names]


@dataclass
class Found:
    """What one run did."""

    goodput: float
    """Of the bulk flows together, Mbit/s."""
    delay: float
    """Mean queueing delay of the bulk flows, ms."""
    drops: float
    """Each second."""
    marks: float
    sparse_delay: float | None
    """Mean queueing delay of the sparse flow, ms."""


# The kernel's side.

LATENESS = 50e-6
"""How late HTB's timer may be, s."""
SENDER, ROUTER, RECEIVER = "queues-s", "queues-r", "queues-d"
PORT, SPARSE_PORT = 5001, 5002


def shell(lines: str) -> None:
    """Runs commands, one a line."""
    for line in filter(None, map(str.strip, lines.splitlines())):
        subprocess.run(line.split(), check=True)


def build_path(cell: Cell) -> None:
    """Makes the three hosts, new for each run: the kernel remembers paths (tcp_metrics).

    HTB lets a packet go when its predecessor's time is over, so a packet waits as long as in the
    simulator, and is not in the queue while it is sent. What it may save up is LATENESS: a timer
    that is late costs no throughput, and two packets that follow each other do not pass at once.

    With gso_max_segs the sender's TCP makes no packets of several segments either, and holds none
    back for them (tcp_tso_should_defer).
    """
    # The rate is of IP packets.
    rate = round(cell.path.mbit * 1e6 * FRAME / PACKET)
    burst = round(rate / 8 * LATENESS)
    rates = f"rate {rate}bit ceil {rate}bit burst {burst} cburst {burst}"
    delay = f"ip netns exec {RECEIVER} tc qdisc add dev wire root netem"
    out = f"ip netns exec {ROUTER} tc"
    hosts = (SENDER, ROUTER, RECEIVER)
    for host in hosts:
        subprocess.run(["ip", "netns", "del", host], check=False, stderr=subprocess.DEVNULL)
    shell("\n".join(f"ip netns add {host}" for host in hosts))
    shell(f"""
        ip -n {SENDER} link add wire type veth peer name in netns {ROUTER}
        ip -n {RECEIVER} link add wire type veth peer name out netns {ROUTER}
    """)
    addresses = (
        (SENDER, "wire", "10.0.1.1"),
        (ROUTER, "in", "10.0.1.2"),
        (ROUTER, "out", "10.0.2.2"),
        (RECEIVER, "wire", "10.0.2.1"),
    )
    for host, device, address in addresses:
        shell(f"""
            ip netns exec {host} ethtool --offload {device} tso off gso off gro off
            ip -n {host} link set dev {device} gso_max_segs 1
            ip netns exec {host} sysctl -q -w net.ipv6.conf.{device}.disable_ipv6=1
            ip -n {host} address add {address}/24 dev {device}
            ip -n {host} link set dev {device} up
        """)
    for host in (SENDER, RECEIVER):
        shell(f"""
            ip netns exec {host} sysctl -q -w net.ipv4.tcp_ecn={int(cell.ecn)}
            ip netns exec {host} sysctl -q -w net.ipv4.tcp_congestion_control=cubic
        """)
    shell(f"""
        ip netns exec {ROUTER} sysctl -q -w net.ipv4.ip_forward=1
        ip -n {SENDER} route add default via 10.0.1.2
        ip -n {RECEIVER} route add default via 10.0.2.2
        {delay} delay {cell.path.rtt_ms}ms limit 100000
        {out} qdisc add dev out root handle 1: htb default 1
        {out} class add dev out parent 1: classid 1:1 htb {rates} quantum {FRAME}
        {out} qdisc add dev out parent 1:1 handle 10: {cell.kernel()}
    """)


def queue_statistics() -> dict[str, Any]:
    """What tc says of the discipline."""
    command = f"ip netns exec {ROUTER} tc -s -d -j qdisc show dev out".split()
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return next(queue for queue in found if queue["handle"] == "10:")


def check_settings(cell: Cell) -> None:
    """The kernel has what the simulator is told that it has."""
    options = queue_statistics().get("options", {})
    if cell.kind == "red" and options.get("ewma") != RED_WEIGHT_LOG:
        sys.exit(f"RED's weight is 2^-{options.get('ewma')}, not 2^-{RED_WEIGHT_LOG}")
    print(f"options: {cell.name}: {json.dumps(options)}", flush=True)


def receive() -> None:
    """The receiver: throws away what comes."""

    def accept(port: int, discard: Callable[[socket.socket], None]) -> None:
        listener = socket.create_server(("", port), backlog=64)
        print("listening", flush=True)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=discard, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, args=(SPARSE_PORT, discard_slowly), daemon=True).start()
    accept(PORT, discard)


def discard(connection: socket.socket) -> None:
    """Reads to the end; the kernel throws segments away as they come, without a call for each."""
    room = bytearray(1 << 18)
    while connection.recv_into(room, flags=socket.MSG_TRUNC | socket.MSG_WAITALL):
        pass


def discard_slowly(connection: socket.socket) -> None:
    """Reads to the end, with a small window. The kernel now and then sets a larger one."""
    while connection.recv(SPARSE_WINDOW):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, SPARSE_WINDOW)


def send_for_ever(connection: socket.socket) -> None:
    """A download without an end.

    ACKs wait while the kernel copies what one call hands over. In pieces they wait for 0.1 ms at
    most, where a megabyte takes as long as a queue should be.
    """
    data = bytes(1 << 14)
    with contextlib.suppress(OSError):
        while True:
            connection.sendall(data)


@dataclass
class TcpInfo:
    """What the kernel knows of a connection."""

    rtt: float
    """Smoothed, ms."""
    acked: int
    """Bytes."""
    min_rtt: float

    @staticmethod
    def of(connection: socket.socket) -> TcpInfo:
        """As it is now (struct tcp_info of include/uapi/linux/tcp.h)."""
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 152)
        rtt, acked, min_rtt = struct.unpack("=68x I 48x Q 20x I", info)
        return TcpInfo(rtt / 1000, acked, min_rtt / 1000)


def send(flows: int, sparse: bool) -> None:
    """The sender: says "mark" at FROM and TO, then prints goodput and RTTs."""
    ports = [PORT] * flows + [SPARSE_PORT] * sparse
    starts = sorted(random.uniform(0, STAGGER_MS / 1000) for _ in ports)
    begin = time.monotonic()
    connections = []
    for port, start in zip(random.sample(ports, len(ports)), starts, strict=True):
        time.sleep(max(0.0, begin + start - time.monotonic()))
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex(("10.0.2.1", port))
        connections.append((port, connection))
    for _, connection in connections:
        threading.Thread(target=wait_and_send, args=(connection,), daemon=True).start()

    bulk = [connection for port, connection in connections if port == PORT]
    rest = [connection for port, connection in connections if port == SPARSE_PORT]
    time.sleep(begin + FROM - time.monotonic())
    print("mark", flush=True)
    acked, since = sum(TcpInfo.of(one).acked for one in bulk), time.monotonic()
    rtts: list[float] = []
    sparse_rtts: list[float] = []
    while time.monotonic() < begin + TO:
        rtts += [TcpInfo.of(one).rtt for one in bulk]
        sparse_rtts += [TcpInfo.of(one).rtt for one in rest]
        time.sleep(STEP)
    acked, took = sum(TcpInfo.of(one).acked for one in bulk) - acked, time.monotonic() - since
    print("mark", flush=True)
    found = {
        "goodput": acked * 8 / took / 1e6,
        "rtt": statistics.fmean(rtts),
        "sparse_rtt": statistics.fmean(sparse_rtts) if sparse_rtts else None,
        "min_rtt": min(TcpInfo.of(one).min_rtt for one in bulk),
    }
    print(json.dumps(found), flush=True)


def wait_and_send(connection: socket.socket) -> None:
    """Sends as soon as the connection is open."""
    select.select([], [connection], [])
    connection.setblocking(True)
    send_for_ever(connection)


def line_of(process: subprocess.Popen[str]) -> str:
    """The next line it prints."""
    assert process.stdout is not None
    return process.stdout.readline()


def measure_in_kernel(cell: Cell) -> Found:
    """One run of the kernel."""
    build_path(cell)
    check_settings(cell)

    def inside(host: str, *arguments: str) -> subprocess.Popen[str]:
        command = ["ip", "netns", "exec", host, sys.executable, __file__, *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    receiver = inside(RECEIVER, "receive")
    sender = None
    try:
        line_of(receiver), line_of(receiver)
        sender = inside(SENDER, "send", str(cell.flows), str(int(cell.sparse)))
        marks = []
        for _ in range(2):
            if line_of(sender) != "mark\n":
                sys.exit(f"{cell.name}: the sender has failed")
            before = time.monotonic()
            queue = queue_statistics()
            now = time.monotonic()
            marked = queue.get("ecn_mark", 0) + queue.get("marked", 0)
            marks.append(((now + before) / 2, queue["drops"], marked))
        said = json.loads(line_of(sender))
    finally:
        for process in filter(None, (sender, receiver)):
            process.kill()
            process.wait()
    print(f"round trip: {cell.name}: at least {said['min_rtt']} ms", flush=True)
    (since, drops, marked), (until, all_drops, all_marked) = marks
    base = cell.path.rtt_ms
    return Found(
        goodput=said["goodput"],
        delay=said["rtt"] - base,
        drops=(all_drops - drops) / (until - since),
        marks=(all_marked - marked) / (until - since),
        sparse_delay=said["sparse_rtt"] and said["sparse_rtt"] - base,
    )


def put_packets_first() -> None:
    """Gives the kernel's packet processing precedence over the programs.

    The machine is slow: under load, packets are processed by the thread ksoftirqd, which would wait
    for the programs' time slices, and packets would come in bunches of milliseconds.
    """
    for name in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(ProcessLookupError):
            if name.read_text().startswith("ksoftirqd/"):
                os.sched_setscheduler(int(name.parent.name), os.SCHED_FIFO, os.sched_param(1))


def kernel(runs: int, names: list[str]) -> None:
    """Prints the runs of these cells (all without names)."""
    put_packets_first()
    for _ in range(runs):
        for cell in cells(names):
            found = measure_in_kernel(cell)
            print(json.dumps({"cell": cell.name, **vars(found)}), flush=True)
    print("result: done", flush=True)


# The simulator's side.


def scenario(cell: Cell, seconds: float) -> str:
    """The same path."""
    ecn = 'tcp = { ecn = "rfc3168" }\n' if cell.ecn else ""
    flow = f'[[flow]]\nfrom = "S"\nto = "D"\njitter = "{STAGGER_MS} ms"\n'
    flows = f'{flow}name = "bulk"\ncount = {cell.flows}\n'
    if cell.sparse:
        receiver = f'{{ receive-buffer = "{SPARSE_WINDOW} B", autotuning = false }}'
        flows += f'{flow}name = "sparse"\nreceiver = {receiver}\n'
    # HTB sends a packet at once and then waits; a link takes its time first.
    back = cell.path.rtt_ms - cell.path.transmission_ms
    fast = 'rate = "10 Gbit/s", queue = { limit = "100000 packets" }'
    return f"""duration = "{seconds} s"
node = [{{ name = "S" }}, {{ name = "R" }}, {{ name = "D" }}]
{ecn}[[link]]
between = ["S", "R"]
delay = "0 s"
{fast.replace(", ", chr(10))}
[[link]]
between = ["R", "D"]
rate = "{cell.path.mbit} Mbit/s"
delay = "0 s"
queue = {{ {cell.simulator()} }}
backward = {{ delay = "{back} ms", {fast} }}
{flows}"""


def mean_delay(events: Path, flow: str, base: float) -> float:
    """The same of the flows whose names begin so, from the RTTs in a file of events."""
    latest: dict[str, float] = {}
    samples: list[float] = []
    at = FROM
    with events.open() as lines:
        for line in lines:
            if '"event":"rtt"' not in line or f'"flow {flow}' not in line:
                continue
            event = json.loads(line)
            while at < min(event["t"], TO):
                samples += latest.values()
                at += STEP
            latest[event["source"]] = event["srtt"] * 1000
    return statistics.fmean(samples) - base


def simulate(cell: Cell, seed: int) -> Found:
    """One run of the simulator: two, of which the first ends at FROM."""
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        file, events = Path(folder, "queues.toml"), Path(folder, "events.jsonl")
        for seconds in (FROM, TO):
            file.write_text(scenario(cell, seconds))
            program = ROOT / "target/release/airtcp"
            command = [str(program), "run", str(file), "--json", "--seed", str(seed)]
            command += ["--events", str(events)] if seconds == TO else []
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            runs.append(json.loads(done.stdout))
        delay = mean_delay(events, "bulk", cell.path.rtt_ms)
        sparse_delay = mean_delay(events, "sparse", cell.path.rtt_ms) if cell.sparse else None

    def bytes_delivered(run: dict[str, Any]) -> int:
        return sum(f["delivered_bytes"] for f in run["flows"] if f["name"].startswith("bulk"))

    queues = [next(link for link in run["links"] if link["name"] == "R>D") for run in runs]
    delivered = bytes_delivered(runs[1]) - bytes_delivered(runs[0])
    return Found(
        goodput=delivered * 8 / (TO - FROM) / 1e6,
        delay=delay,
        drops=(queues[1]["queue_drops"] - queues[0]["queue_drops"]) / (TO - FROM),
        marks=(queues[1]["ecn_marks"] - queues[0]["ecn_marks"]) / (TO - FROM),
        sparse_delay=sparse_delay,
    )


# The table.


HEADER = ["goodput, Mbit/s", "delay, ms", "drops/s", "marks/s"]


def spread(values: list[float]) -> str:
    """Mean and, if there are several, standard deviation."""
    mean = f"{statistics.fmean(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.2f}"


def row(name: str, pairs: Sequence[tuple[list[float], ...]]) -> None:
    """Prints the kernel's and the simulator's values of each quantity."""
    cells = [spread(side) if side else "" for pair in pairs for side in pair]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def values(runs: list[Found], field: str) -> list[float]:
    """Each run's."""
    return [getattr(run, field) for run in runs]


def table(file: Path) -> None:
    """Prints both sides, a row for each cell that the kernel has run."""
    ran: dict[str, list[Found]] = {}
    for line in file.read_text(errors="replace").splitlines():
        if line.startswith('{"cell"'):
            found = json.loads(line)
            ran.setdefault(found.pop("cell"), []).append(Found(**found))
    print("| cell | " + " | ".join(f"{word}: kernel | ours" for word in HEADER) + " |")
    print("|---" * (1 + 2 * len(HEADER)) + "|")
    for cell in filter(lambda cell: cell.name in ran, all_cells()):
        kernel, ours = ran[cell.name], [simulate(cell, seed) for seed in SEEDS]
        fields = ("goodput", "delay", "drops", "marks")
        pairs = [
            tuple([getattr(run, f) for run in side] for side in (kernel, ours)) for f in fields
        ]
        row(cell.name, pairs)
        if cell.sparse:
            delays = values(kernel, "sparse_delay"), values(ours, "sparse_delay")
            row("its sparse flow", [([], []), delays, ([], []), ([], [])])


def main() -> None:
    """See the top."""
    match sys.argv[1:]:
        case ["cells", *names]:
            print("\n".join(cell.name for cell in cells(names)))
        case ["kernel", runs, *names]:
            kernel(int(runs), names)
        case ["receive"]:
            receive()
        case ["send", flows, sparse]:
            send(int(flows), sparse == "1")
        case ["table", file]:
            table(Path(file))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
