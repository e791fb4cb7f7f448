"""What a file says about a flow or a link over time, whatever the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class NotPlottableError(ValueError):
    """A file that cannot be drawn; the message names it and says what was expected."""


@dataclass(frozen=True)
class Points:
    """Values at instants, ordered by time.

    Attributes:
        time: s.
        value: In the unit that the field says.
    """

    time: Floats
    value: Floats

    @classmethod
    def of(cls, pairs: Sequence[tuple[float, float]]) -> Points:
        """The points `(time, value)`."""
        columns = np.array(pairs, np.float64).reshape(-1, 2)
        return cls(columns[:, 0], columns[:, 1])

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class Ranges:
    """Ranges of the stream at instants: a segment's data, a SACK block.

    Attributes:
        time: s.
        first: The first byte's position in the stream.
        end: The position after the last byte.
    """

    time: Floats
    first: Floats
    end: Floats

    @classmethod
    def of(cls, rows: Sequence[tuple[float, float, float]]) -> Ranges:
        """The ranges `(time, first, end)`."""
        columns = np.array(rows, np.float64).reshape(-1, 3)
        return cls(columns[:, 0], columns[:, 1], columns[:, 2])

    def __len__(self) -> int:
        return len(self.time)


class Stream:
    """Turns sequence numbers, which wrap, into positions in the stream."""

    def __init__(self, base: int) -> None:
        """`base`: the sequence number of position 0."""
        self._number, self._position = base, 0

    def position(self, number: int) -> int:
        """The position nearest to that of the number before."""
        self._position += signed(number - self._number)
        self._number = number
        return self._position


def signed(difference: int) -> int:
    """The distance between two sequence numbers, from -2^31 up to 2^31 - 1."""
    return (difference + 2**31) % 2**32 - 2**31


NO_POINTS = Points.of([])
NO_RANGES = Ranges.of([])


@dataclass(frozen=True)
class FlowTimeline:
    """A TCP connection, seen in the direction of most of its data. Positions are in bytes.

    Attributes:
        name: What the file calls it.
        sent: Data sent for the first time.
        retransmitted: Data sent again.
        acked: Cumulative acknowledgements, as they arrived.
        window: The end of the offered window.
        sacked: SACK blocks.
        delivered: Bytes delivered to the receiving application.
        cwnd: Congestion window, bytes.
        ssthresh: Slow-start threshold, bytes.
        flight: Bytes sent and not acknowledged.
        rtt: Round-trip times measured, s.
        rto: The retransmission time-out, s.
        completed: The time that each transfer took, s, at its end.
        timeouts: When the retransmission timer expired, s.
        up: When an outage of the path ended, s.
        outages: When nothing gets through on the path, from and until, s; none where the file does
            not tell.
    """

    name: str
    sent: Ranges = NO_RANGES
    retransmitted: Ranges = NO_RANGES
    acked: Points = NO_POINTS
    window: Points = NO_POINTS
    sacked: Ranges = NO_RANGES
    delivered: Points = NO_POINTS
    cwnd: Points = NO_POINTS
    ssthresh: Points = NO_POINTS
    flight: Points = NO_POINTS
    rtt: Points = NO_POINTS
    rto: Points = NO_POINTS
    completed: Points = NO_POINTS
    timeouts: tuple[float, ...] = ()
    up: tuple[float, ...] = ()
    outages: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class LinkTimeline:
    """One direction of an emulated link, from its log.

    Attributes:
        name: What the file calls it.
        arrived: Sizes of packets that arrived, bytes.
        departed: Sizes of packets that departed, bytes.
        capacity: What the link could have sent, bytes.
        dropped: Sizes of packets that were dropped, bytes.
        delay: Queueing and serialisation of each packet, s, at its departure.
        outages: As of a flow.
    """

    name: str
    arrived: Points = NO_POINTS
    departed: Points = NO_POINTS
    capacity: Points = NO_POINTS
    dropped: Points = NO_POINTS
    delay: Points = NO_POINTS
    outages: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Contents:
    """What a file has.

    Attributes:
        flows: By name, in the order of the file.
        link: The link, if the file is the log of one.
    """

    flows: dict[str, FlowTimeline] = field(default_factory=dict)
    link: LinkTimeline | None = None
