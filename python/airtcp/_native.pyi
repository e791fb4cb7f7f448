"""The compiled part of airtcp: scenarios and the simulator."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from airtcp.congestion import Hooks

__version__: str

SERIES: dict[str, str]
"""The time series that a run can record: by name, what the values are, with their unit."""

METRICS: dict[str, list[tuple[str, str]]]
"""The fields of a run's parts (`runs`, `flows`, …), with their meaning (docs/metrics.md)."""

UNITS: dict[str, tuple[str, float]]
"""The units of scenarios' values: what each measures, and its size in the base unit."""

class ScenarioError(ValueError):
    """A scenario that cannot be used: malformed, unknown or contradictory keys, impossible values.

    Its `str()` lists every problem found; the attributes describe the first.
    """

    file: str
    """File name, or the name given to `parse`; of overrides `--set`, of a sweep's axes `grid`."""
    line: int | None
    """1-based line, where there is one (an override has none)."""
    column: int | None
    """1-based column, where there is one."""
    key: str
    """Dotted path of the key, e.g. `link.BS-MH.rate`; empty for a syntax error."""

class Scenario:
    """A resolved scenario."""

    @staticmethod
    def parse(
        source_name: str,
        text: str,
        overrides: Sequence[tuple[str, str]],
        files: Mapping[str, str] | None = None,
        makers: Mapping[str, Callable[[], Hooks]] | None = None,
        axes: Sequence[tuple[str, str]] = (),
    ) -> Scenario:
        """Parses TOML text. Raises ScenarioError.

        `axes` are overrides, too, above the others; mistakes call them `--axis`.

        `files` are the texts of files that the scenario may name, by their paths as it writes
        them; others are read from disk, relative to the folder of `source_name`.

        `makers` make the congestion controls that the scenario names, which must be among them;
        without any, names are not checked, and a scenario that has some cannot run.
        """

    @property
    def files(self) -> dict[str, str]:
        """The texts of the files that it names, by their paths as it writes them."""

    @property
    def names_controls(self) -> bool:
        """Whether it names congestion controls from outside."""

    @property
    def name(self) -> str:
        """Short name of the scenario."""

    @property
    def flows(self) -> list[str]:
        """Names of its TCP flows."""
    @property
    def links(self) -> list[str]:
        """Names of its links, one for each direction, such as `AP>phone`."""
    def outages(
        self,
    ) -> tuple[dict[str, list[tuple[float, float]]], dict[str, list[tuple[float, float]]]]:
        """When nothing gets through on the paths of TCP flows, and on links: from and until, s."""

    @property
    def duration(self) -> float:
        """Simulated time of a run, seconds."""

    def run(
        self,
        seed: int,
        series: Sequence[str],
        between_slices: Callable[[], object] | None = None,
        pcap: tuple[str, Sequence[str], bool, str | None] | None = None,
    ) -> tuple[str, list[str], dict[str, tuple[bytearray, bytearray, bytearray]]]:
        """Simulates to the end: metrics as JSON, their warnings, and for each series its columns.

        The columns are time (`float64`, seconds), flow (`uint32`) and value (`float64`), as NumPy
        keeps them in memory.

        The GIL is released while simulating. `between_slices` is called every few dozen
        milliseconds of wall-clock time; an exception it raises ends the run. `pcap`: the folder
        for captures, the nodes at which (none: all), whether sniffers listen, and the snap length.
        """

class Window:
    """cwnd and ssthresh of a sender, in bytes; a new one may be made to try a control."""

    def __init__(
        self, smss: int, initial: int, ssthresh: int | None = None, limit: int | None = None
    ) -> None: ...

    cwnd: int
    """Congestion window; set to less than `smss`, it becomes that."""
    ssthresh: int
    """Slow-start threshold; 2^32 - 1 until something sets it."""

    @property
    def smss(self) -> int:
        """The largest segment."""

    @property
    def initial(self) -> int:
        """Initial window."""

    @property
    def in_slow_start(self) -> bool:
        """Whether cwnd is below ssthresh."""

    def grow(self, bytes: int) -> None:  # noqa: A002
        """Adds to cwnd, up to the scenario's `cwnd-limit`."""

class Ack:
    """An acknowledgement: times in seconds, volumes in bytes."""

    @property
    def now(self) -> float:
        """Simulated time."""

    @property
    def acked(self) -> int:
        """Acknowledged for the first time; 0 for a duplicate ACK."""

    @property
    def rtt(self) -> float | None:
        """RTT sample, if the ACK gives one."""

    @property
    def srtt(self) -> float | None:
        """Smoothed RTT (RFC 6298), this sample included."""

    @property
    def flight(self) -> int:
        """FlightSize before the ACK."""

    @property
    def duplicate_acks(self) -> int:
        """Duplicate ACKs so far."""

    @property
    def cwnd_limited(self) -> bool:
        """Whether cwnd, not the application or the peer's window, limits the sender."""

    @property
    def hops(self) -> int | None:
        """Hops that the ACK travelled, where known."""

    @property
    def delivered(self) -> int:
        """Acknowledged or SACKed since the connection began."""

    @property
    def lost(self) -> int:
        """Taken for lost since the connection began."""

    @property
    def inflight(self) -> int:
        """In the network after the ACK: sent, neither delivered nor lost."""

    @property
    def delivery_rate(self) -> float | None:
        """Delivery rate that the ACK shows, bit/s; `None` without `recovery = "rack"`."""

class Loss:
    """A loss or a mark: times in seconds, volumes in bytes."""

    @property
    def now(self) -> float:
        """Simulated time."""

    @property
    def flight(self) -> int:
        """FlightSize, or what `loss-window` puts in its place."""

    @property
    def duplicate_acks(self) -> int:
        """Duplicate ACKs so far."""

class Timeout:
    """An expiry of the retransmission timer: times in seconds, volumes in bytes."""

    @property
    def now(self) -> float:
        """Simulated time."""

    @property
    def flight(self) -> int:
        """FlightSize, or what `loss-window` puts in its place."""

    @property
    def first(self) -> bool:
        """The first expiry for this segment."""

    @property
    def duplicate_acks(self) -> int:
        """Duplicate ACKs before it."""

def read_toml(
    text: str,
) -> tuple[dict[str, Any], dict[tuple[str | int, ...], int], list[tuple[int, str]]]:
    """Reads TOML: the values, the lines of keys and array elements by path, and syntax errors.

    A date is its text. If there are errors, each with its line, the rest is empty.
    """

def link_log_name(link: str) -> str:
    """Name of the log of a link in the folder of `airtcp run --link-logs`."""

def cli_main(arguments: Sequence[str]) -> int:
    """Runs the command line; `arguments[0]` is the program's name. Returns the exit code."""
