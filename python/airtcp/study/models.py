"""Analytic models whose numbers stand beside those of runs, and the `[model]` of a study."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import prod
from typing import Annotated

from airtcp.runs.testbed import Key
from airtcp.study.document import one_of

_SLOT_US = 20
"""A slot of 802.11b, µs."""

_WINDOWS = (32, 64, 128, 256, 512, 1024)
"""Sizes of 802.11b's contention window, as the attempts of a frame go on; then the last repeats."""


@cache
def backoff_counts(attempts: int) -> tuple[int, ...]:
    """In how many ways the back-offs of so many attempts sum to 0, 1, … slots.

    The exact convolution of uniform draws from 802.11b's contention windows: TCP-DCA §IV-A,
    eqs. 3 and 4. Divided by their sum, these are the probabilities.
    """
    counts = [1]
    for attempt in range(attempts):
        window = _WINDOWS[min(attempt, len(_WINDOWS) - 1)]
        padded = [*counts, *[0] * (window - 1)]
        total, summed = 0, []
        for place, count in enumerate(padded):
            total += count - (padded[place - window] if place >= window else 0)
            summed.append(total)
        counts = summed
    return tuple(counts)


def packet_success(n: int, attempts: int, exchange_us: int) -> Fraction:
    """f(n): the probability that the n-th packet of a burst gets through at one node.

    TCP-DCA §IV-A: in the worst case it must wait for the n - 1 packets before it, and is lost if
    its back-offs together are no longer than that.

    Args:
        n: Place of the packet in the burst, from 1.
        attempts: Attempts of a frame; the paper reckons with 8, ns-2 makes 7.
        exchange_us: Time that one packet takes, T_x, µs.
    """
    counts = backoff_counts(attempts)
    slots = (n - 1) * exchange_us // _SLOT_US
    return Fraction(sum(counts[slots + 1 :]), sum(counts))


def burst_success(
    w: int, hops: int, attempts: int, exchange_us: int, *, last: bool = True
) -> Fraction:
    """P(w, h): the probability that a burst of w packets gets through h hops (eqs. 5 and 6).

    Args:
        w: Packets in the burst.
        hops: Length of the chain; up to 3 no node disturbs another, and nothing is lost.
        attempts: As in `packet_success`.
        exchange_us: As in `packet_success`.
        last: Whether the product in eq. 5 runs to the last packet, w, as a burst of w packets
            needs and the paper's numbers ask for; else to w - 1, as printed.
    """
    factors = (packet_success(n, attempts, exchange_us) for n in range(1, w + last))
    return prod(factors, start=Fraction(1)) ** max(hops - 3, 0)


_PRODUCT = {"w": True, "w-1": False}
"""How far the product in eq. 5 runs, and whether that includes the last packet."""


def _burst(key: Mapping[str, str]) -> dict[str, float]:
    """The model of TCP-DCA §IV-A; what it computes depends on the keys of the variant.

    `backoff` (ms): the distribution of the sum of back-offs; `n`: f(n); `w`: P(w, `hops`), or of a
    single node without `hops`. Also `attempts`, `exchange` (ms) and `product` (`w` or `w-1`).
    """
    attempts = int(key["attempts"])
    if "backoff" in key:
        counts = backoff_counts(attempts)
        slot = round(float(key["backoff"]) * 1000 / _SLOT_US)
        count = counts[slot] if slot < len(counts) else 0
        return {"backoff_probability": float(Fraction(count, sum(counts)))}
    exchange_us = round(float(key["exchange"]) * 1000)
    if "n" in key:
        return {"packet_success": float(packet_success(int(key["n"]), attempts, exchange_us))}
    last = _PRODUCT[key["product"]]
    one_node = 4
    hops = int(key.get("hops", one_node))
    success = burst_success(int(key["w"]), hops, attempts, exchange_us, last=last)
    return {"burst_success": float(success)}


MODELS: Mapping[str, Callable[[Mapping[str, str]], dict[str, float]]] = {"dca-burst": _burst}
"""By name: from the key of a variant to its values by metric."""


@dataclass(frozen=True)
class Model:
    """What computes some variants of a study instead of the simulator.

    Attributes:
        key: Pairs that the variants have which it computes.
        function: Its name in `MODELS`.
    """

    key: Key
    function: Annotated[str, one_of(MODELS)]

    def computes(self, key: Key) -> bool:
        """Whether it computes the variant with this key."""
        return set(self.key) <= set(key)

    def values(self, key: Key) -> dict[str, float]:
        """The values of a variant, by metric.

        Raises:
            ValueError: A key that it needs is missing or wrong; the message names it.
        """
        try:
            return MODELS[self.function](dict(key))
        except KeyError as error:
            raise ValueError(f"model {self.function}: no key {error}") from error
