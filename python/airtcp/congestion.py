"""Congestion controls in Python, for `airtcp.Scenario.run` (docs/strategies.md)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from airtcp._native import Ack, Loss, Timeout, Window

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Ack", "CongestionControl", "Loss", "Timeout", "Window"]


class CongestionControl(ABC):
    """How cwnd and ssthresh of one sender move.

    Subclass it, and move the window that each method is lent. In fast recovery cwnd belongs to the
    recovery, which leaves it at ssthresh.
    """

    def on_ack(self, window: Window, ack: Ack) -> None:  # noqa: B027 - optional
        """Any ACK, in every phase, before it takes effect: the place to measure."""

    @abstractmethod
    def on_growth(self, window: Window, ack: Ack) -> None:
        """New data was acknowledged, and cwnd may grow.

        Not called in fast recovery, and only while cwnd is what limits the sender.
        """

    @abstractmethod
    def on_fast_retransmit(self, window: Window, loss: Loss) -> None:
        """Duplicate ACKs or SACK report a loss.

        Set ssthresh, and cwnd to what it is to be when recovery ends.
        """

    @abstractmethod
    def on_timeout(self, window: Window, timeout: Timeout) -> None:
        """The retransmission timer expired: set ssthresh, and cwnd from which slow start begins."""

    def on_ecn(self, window: Window, loss: Loss) -> None:
        """The receiver reported a mark, for the first time in a round trip; otherwise as a loss."""
        self.on_fast_retransmit(window, loss)

    def pacing_rate(self, window: Window) -> float | None:
        """The rate at which data may leave now, bit/s of payload; `None`: as the windows allow."""
        del window
        return None


class Hooks(NamedTuple):
    """The methods of a control; `None` for those it leaves to the base class."""

    on_ack: Callable[[Window, Ack], None] | None
    on_growth: Callable[[Window, Ack], None]
    on_fast_retransmit: Callable[[Window, Loss], None]
    on_timeout: Callable[[Window, Timeout], None]
    on_ecn: Callable[[Window, Loss], None] | None
    pacing_rate: Callable[[Window], float | None] | None


def maker(name: str, make: Callable[[], CongestionControl]) -> Callable[[], Hooks]:
    """What the simulator calls for each endpoint that asks for the control `name`."""
    if not callable(make):
        message = f"congestion[{name!r}] is {make!r}, expected the class: each endpoint has its own"
        raise TypeError(message)

    def hooks() -> Hooks:
        control = make()
        if not isinstance(control, CongestionControl):
            message = f"congestion[{name!r}] made {control!r}, expected an airtcp.CongestionControl"
            raise TypeError(message)
        kind = type(control)
        return Hooks(
            control.on_ack if kind.on_ack is not CongestionControl.on_ack else None,
            control.on_growth,
            control.on_fast_retransmit,
            control.on_timeout,
            control.on_ecn if kind.on_ecn is not CongestionControl.on_ecn else None,
            control.pacing_rate if kind.pacing_rate is not CongestionControl.pacing_rate else None,
        )

    return hooks
