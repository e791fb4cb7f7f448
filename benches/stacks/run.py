"""How long an outage programs survive, with each mechanism of the gateway (docs/survival.md).

    sudo .venv/bin/python benches/stacks/run.py [--runs N] [--binary AIRTCP] [CASE …]

Prints a table in Markdown. Needs root, `make build`, nginx, HAProxy, Apache (apache2-bin) and curl,
and Go for quic-go. CASE is the name of a row; without one, all of them: a run of each takes about
ten minutes, in which the machine should have little else to do.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
MECHANISMS = ("none", "wake", "m-tcp-plus", "holdover")
SERVER, ROUTER, MOBILE = "10.7.0.2", "10.7.0.1", "100.64.0.2"
PORT = 8000
LINK = ("--rate", "10mbit", "--delay", "15ms", "--queue", "60kB", "--late", "10s")
SIZE = 12_000_000
"""Bytes of a download: ten seconds of the link, and more than all buffers hold."""
BEGIN = 3.0
"""Seconds of the download before the outage."""
PATIENCE = 60.0
"""Seconds after the outage that a connection has to go on."""
AT_ONCE = 12
"""Runs at the same time: they wait most of the time."""


@dataclass(frozen=True)
class Case:
    """A server that decides how long it waits.

    Attributes:
        about: What decides, for the table.
        outages: Lengths of the outages, seconds.
        serve: The program in the server's namespace, given a folder; it listens at `PORT`.
        size: What it sends, bytes.
        url: Whether curl fetches it; otherwise it sends to whoever connects.
        mechanisms: Those tried.
        sysctls: Parameters of the server's kernel.
        needs: A program that must be there.
    """

    about: str
    outages: tuple[int, ...]
    serve: Callable[[Path], list[str]]
    size: int = SIZE
    url: bool = True
    mechanisms: tuple[str, ...] = MECHANISMS
    sysctls: tuple[str, ...] = ()
    needs: str = ""


# --- servers ------------------------------------------------------------------------------------


def nginx(folder: Path) -> list[str]:
    """With its defaults: `send_timeout 60s`."""
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/log; user root;\n"
        "events {}\n"
        f"http {{ access_log off; server {{ listen {PORT}; root {folder}; }} }}\n"
    )
    return ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]


def apache(folder: Path) -> list[str]:
    """With its defaults: `Timeout 60`."""
    modules = "/usr/lib/apache2/modules"
    (folder / "httpd.conf").write_text(
        f"ServerRoot {folder}\nServerName server\nListen {PORT}\nPidFile {folder}/pid\n"
        f"ErrorLog {folder}/log\nDocumentRoot {folder}\n"
        f"LoadModule mpm_event_module {modules}/mod_mpm_event.so\n"
        f"LoadModule authz_core_module {modules}/mod_authz_core.so\n"
    )
    return ["apache2", "-D", "FOREGROUND", "-f", str(folder / "httpd.conf")]


def haproxy(folder: Path) -> list[str]:
    """With the time-outs of Debian's configuration, in front of nginx."""
    behind = " ".join(nginx(folder)).replace("nginx.conf", "behind.conf")
    config = (folder / "nginx.conf").read_text().replace(str(PORT), "127.0.0.1:8001")
    (folder / "behind.conf").write_text(config)
    (folder / "haproxy.cfg").write_text(
        "defaults\n  mode http\n  timeout connect 5s\n  timeout client 50s\n  timeout server 50s\n"
        f"frontend f\n  bind :{PORT}\n  default_backend b\nbackend b\n  server s 127.0.0.1:8001\n"
    )
    return ["sh", "-c", f"{behind} & exec haproxy -db -f {folder}/haproxy.cfg"]


def sends(*options: str) -> Callable[[Path], list[str]]:
    """This program as the server, with options of its socket."""
    return lambda _: [sys.executable, __file__, "--serve", *options]


def quic_go(folder: Path) -> list[str]:
    """Its idle time-out is 30 s."""
    return [str(folder.parent / "quic-go"), "serve", str(SIZE)]


CASES = {
    "nginx": Case("nginx, `send_timeout` 60 s", (50, 70), nginx, needs="nginx"),
    "apache": Case("Apache, `Timeout` 60 s", (50, 70), apache, needs="apache2"),
    "haproxy": Case("HAProxy, `timeout client` 50 s", (40, 60), haproxy, needs="haproxy"),
    "user-timeout": Case(
        "`TCP_USER_TIMEOUT` 20 s (gRPC)", (15, 60, 120), sends("user-timeout"), url=False
    ),
    "rto-max": Case(
        "`tcp_rto_max_ms` 1000", (10, 30), sends(), url=False, sysctls=("ipv4.tcp_rto_max_ms=1000",)
    ),
    "keep-alive": Case(
        "server's keep-alive 5 s, 5 s, 3 probes; idle", (10, 60), sends("idle"), size=2, url=False
    ),
    "closed": Case(
        "server wrote all and closed", (131, 231), sends("close"), size=4_300_000, url=False
    ),
    "quic-go": Case(
        "quic-go, idle time-out 30 s",
        (20, 27),
        quic_go,
        mechanisms=("none", "wake"),
        needs="go",
    ),
}


def serve(options: list[str]) -> None:
    """Sends to whoever connects, as the options say."""
    with socket.create_server(("0.0.0.0", PORT)) as listener:
        connection, _ = listener.accept()
    with contextlib.suppress(OSError), connection:
        if "user-timeout" in options:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 20_000)
        if "idle" in options:
            for option, value in (("KEEPIDLE", 5), ("KEEPINTVL", 5), ("KEEPCNT", 3)):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, f"TCP_{option}"), value)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            connection.sendall(b"1")
            # A byte from the client, after the outage, asks for the other.
            connection.recv(1)
            connection.sendall(b"2")
        elif "close" in options:
            connection.sendall(bytes(CASES["closed"].size))
        else:
            connection.sendall(bytes(SIZE))
        connection.shutdown(socket.SHUT_WR)
        if "close" not in options:
            connection.recv(1)


def receive(size: int) -> int:
    """Reads until it has so many bytes or the connection fails; prints when it had how many."""
    got = 0
    with contextlib.suppress(OSError), socket.create_connection((SERVER, PORT)) as connection:
        if size == CASES["keep-alive"].size:
            threading.Thread(target=ask, args=(connection,), daemon=True).start()
        while got < size and (more := len(connection.recv(1 << 16))):
            got += more
            print(got, flush=True)
    return 0 if got == size else 1


def ask(connection: socket.socket) -> None:
    """Asks for the second byte once the outage is over, of which standard input tells."""
    sys.stdin.readline()
    with contextlib.suppress(OSError):
        connection.sendall(b"?")


# --- testbed ------------------------------------------------------------------------------------

NUMBERS = itertools.count()


class Testbed:
    """Server - wire - gateway - emulated link - mobile, each in a network namespace."""

    def __init__(self, folder: Path, mechanism: str, binary: str) -> None:
        self.folder, self.binary = folder, binary
        name = f"stacks-{os.getpid()}-{next(NUMBERS)}"
        self.server, self.gateway, self.mobile = (f"{name}-{role}" for role in "sgm")
        self.processes: list[subprocess.Popen[bytes]] = []
        self.mechanism = mechanism

    def open(self) -> None:
        """Makes the namespaces, and starts the link and the gateway."""
        for namespace in (self.server, self.gateway, self.mobile):
            ip("netns", "add", namespace)
            ip("-n", namespace, "link", "set", "lo", "up")
        wire = ("name", "wire", "netns")
        ip("link", "add", *wire, self.server, "type", "veth", "peer", *wire, self.gateway)
        for namespace, address in ((self.server, SERVER), (self.gateway, ROUTER)):
            ip("-n", namespace, "address", "add", f"{address}/24", "dev", "wire")
            ip("-n", namespace, "link", "set", "wire", "up")
        ip("-n", self.server, "route", "add", "default", "via", ROUTER)
        self.sysctl(self.gateway, "ipv4.ip_forward=1")
        options = ("--prefix", "100.64.0.0/30", "--control", self.socket("link"), *LINK)
        self.start("link", self.binary, "link", "--between", self.mobile, self.gateway, *options)
        self.wait_for("link", "airtcp0")
        ip("-n", self.mobile, "route", "replace", "default", "dev", "airtcp0")
        if self.mechanism != "none":
            config = self.folder / "gateway.toml"
            config.write_text(
                f'state = "{self.folder}/state"\ncontrol = "{self.socket("gateway")}"\n'
                f'[[mobile]]\nname = "m"\naddresses = ["{MOBILE}"]\n'
                f'mechanism = "{self.mechanism}"\n'
            )
            command = (self.binary, "gateway", "--config", str(config))
            self.start("gateway", *inside(self.gateway), *command)
            self.wait_for("gateway", "gateway active")

    def socket(self, name: str) -> str:
        """The control socket of the link or the gateway."""
        return str(self.folder / f"{name}.sock")

    def start(self, name: str, *command: str) -> None:
        """Starts a program that runs until the end."""
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self.processes.append(process)

    def wait_for(self, name: str, said: str) -> None:
        """Waits until the program that was started last has said this."""
        until = time.monotonic() + 30
        while said not in (log := (self.folder / f"{name}.log").read_text()):
            if time.monotonic() > until or self.processes[-1].poll() is not None:
                raise RuntimeError(f"{name}: {log}")
            time.sleep(0.05)

    def wait_for_server(self) -> None:
        """Waits until something listens at the server's port."""
        until = time.monotonic() + 30
        command = [*inside(self.server), "ss", "-Hlntu", f"sport = :{PORT}"]
        while not subprocess.run(command, capture_output=True, check=True).stdout:
            if time.monotonic() > until:
                raise RuntimeError((self.folder / "server.log").read_text())
            time.sleep(0.05)

    def sysctl(self, namespace: str, *settings: str) -> None:
        """Sets parameters of a namespace's kernel."""
        for setting in settings:
            run(*inside(namespace), "sysctl", "-qw", f"net.{setting}")

    def set_link(self, order: str) -> None:
        """Takes the link down or up, and tells the gateway at once."""
        run(self.binary, "link", "--at", self.socket("link"), order)
        if self.mechanism != "none":
            told = ("--control", self.socket("gateway"), MOBILE, order)
            # A gateway that is short of processor time may be started anew.
            until = time.monotonic() + 5
            while (
                subprocess.run([self.binary, "gateway", "signal", *told], check=False).returncode
                and time.monotonic() < until
            ):
                time.sleep(0.2)

    def close(self) -> None:
        """Ends all programs; the namespaces go with them."""
        for process in reversed(self.processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for namespace in (self.server, self.gateway, self.mobile):
            with contextlib.suppress(RuntimeError):
                ip("netns", "delete", namespace)


def inside(namespace: str) -> tuple[str, ...]:
    """Runs what follows in a namespace."""
    return ("ip", "netns", "exec", namespace)


def ip(*arguments: str) -> None:
    """Iproute2's `ip`."""
    run("ip", *arguments)


def run(*command: str) -> None:
    """Runs a program that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr or done.stdout}")


@contextlib.contextmanager
def testbed(mechanism: str, binary: str, shared: Path) -> Iterator[Testbed]:
    """One with a folder of its own."""
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        Path(folder).chmod(0o755)
        bed = Testbed(Path(folder), mechanism, binary)
        try:
            bed.open()
            yield bed
        finally:
            bed.close()


# --- measurement --------------------------------------------------------------------------------


def measure(name: str, mechanism: str, outage: int, binary: str, shared: Path) -> str:
    """How a download with an outage ended, for the table."""
    case = CASES[name]
    with testbed(mechanism, binary, shared) as bed:
        bed.sysctl(bed.server, *case.sysctls)
        (bed.folder / "file").write_bytes(bytes(case.size))
        bed.start("server", *inside(bed.server), *case.serve(bed.folder))
        bed.wait_for_server()
        if name == "quic-go":
            client = [str(shared / "quic-go"), "get", f"{SERVER}:{PORT}", str(case.size)]
        elif case.url:
            client = ["curl", "-sN", f"http://{SERVER}:{PORT}/file"]
        else:
            client = [sys.executable, __file__, "--receive", str(case.size)]
        process = subprocess.Popen(
            [*inside(bed.mobile), *client], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        arrivals: list[float] = []
        reader = threading.Thread(target=read, args=(process, arrivals), daemon=True)
        reader.start()
        # On a busy machine a client needs seconds to start.
        until = time.monotonic() + PATIENCE
        while not arrivals and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(BEGIN)
        bed.set_link("down")
        time.sleep(outage)
        up = time.monotonic()
        bed.set_link("up")
        if process.stdin:
            with contextlib.suppress(OSError):
                process.stdin.write(b"\n")
                process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
        code = process.poll()
        process.kill()
        reader.join()
        first = next((at - up for at in arrivals if at > up), None)
    if not arrivals or arrivals[0] > up:
        raise RuntimeError(f"{name}, {mechanism}, {outage} s: nothing came before the outage")
    after = "silent" if first is None else f"{first:.2f} s"
    if code is None:
        return f"unfinished ({after})"
    return after if code == 0 else f"**lost** ({after})"


def read(process: subprocess.Popen[bytes], arrivals: list[float]) -> None:
    """Notes when something came."""
    assert process.stdout is not None
    while os.read(process.stdout.fileno(), 1 << 16):
        arrivals.append(time.monotonic())


def build_quic_go(shared: Path) -> None:
    """Compiles the server and client that use quic-go."""
    source = shared / "quic-go-source"
    shutil.copytree(Path(__file__).parent / "quic-go", source)
    command = ["go", "build", "-o", str(shared / "quic-go"), "."]
    subprocess.run(command, cwd=source, check=True)


def main() -> int:
    """Runs the cases and prints the table."""
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2:])
        return 0
    if sys.argv[1:2] == ["--receive"]:
        return receive(int(sys.argv[2]))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--runs", type=int, default=1, help="runs of each cell")
    parser.add_argument("--binary", default=str(ROOT / "target/release/airtcp"))
    arguments = parser.parse_args()
    names = arguments.cases or list(CASES)
    for name in names:
        if name not in CASES:
            parser.error(f"{name}: expected one of {', '.join(CASES)}")
        if CASES[name].needs and shutil.which(CASES[name].needs) is None:
            parser.error(f"{name}: needs {CASES[name].needs}")
    if os.geteuid() != 0:
        parser.error("needs root: run it with sudo")
    rows = [(name, outage) for name in names for outage in CASES[name].outages]
    cells = [
        (name, mechanism, outage)
        for name, outage in rows
        for mechanism in CASES[name].mechanisms
        for _ in range(arguments.runs)
    ]
    # The longest first, so that none is left alone at the end.
    order = sorted(range(len(cells)), key=lambda i: -cells[i][2])
    with (
        tempfile.TemporaryDirectory(prefix="airtcp-stacks-") as folder,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        shared = Path(folder)
        shared.chmod(0o755)
        if "quic-go" in names:
            build_quic_go(shared)
        found = dict(
            zip(
                order,
                pool.map(lambda i: measure(*cells[i], arguments.binary, shared), order),
                strict=True,
            )
        )
    print(f"| what decides | outage | {' | '.join(MECHANISMS)} |")
    print(f"|---|---|{'---|' * len(MECHANISMS)}")
    for name, outage in rows:
        shown = [
            "; ".join(found[i] for i, cell in enumerate(cells) if cell == (name, mechanism, outage))
            for mechanism in MECHANISMS
        ]
        print(f"| {CASES[name].about} | {outage} s | {' | '.join(shown)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
