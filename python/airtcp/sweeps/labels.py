"""Words for axes and legends: names of metrics and keys as people read them, with their units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from airtcp._native import METRICS, UNITS

_QUANTITY = re.compile(r"(?P<number>[+-]?[0-9.]+(?:e[+-]?[0-9]+)?)\s*(?P<unit>[^\s0-9]\S*)")
_UNIT = re.compile(r", (?P<unit>bit/s|bytes|s)(?![\w/])")
_ELEMENTS = ("link", "node", "flow", "udp", "call", "wlan", "group")
"""Tables of a scenario whose parts have names."""

_WORDS = {
    "ack": "ACK",
    "acks": "ACKs",
    "arp": "ARP",
    "ber": "BER",
    "cts": "CTS",
    "ecn": "ECN",
    "mac": "MAC",
    "mss": "MSS",
    "p": "probability",
    "p50": "median",
    "p95": "95th percentile",
    "p99": "99th percentile",
    "rto": "RTO",
    "rts": "RTS",
    "rtt": "RTT",
    "srtt": "smoothed RTT",
    "tcp": "TCP",
    "ttl": "TTL",
    "udp": "UDP",
    "wlan": "WLAN",
}
"""What parts of names stand for."""

_PREFIXES = {"bit/s": ("", "k", "M", "G"), "bytes": ("", "k", "M", "G"), "s": ("", "m", "µ")}
"""For each unit of the metrics its usual multiples: thousands up, of seconds down."""


def _words(name: str) -> str:
    parts = re.split(r"[-_.]", name)
    return " ".join(_WORDS.get(part, part) for part in parts if part)


@cache
def unit_of(metric: str) -> str:
    """The unit of a metric: `s`, `bit/s`, `bytes`; empty for counts, ratios and names."""
    for fields in METRICS.values():
        unit = ""
        for name, meaning in fields:
            own = _UNIT.search(meaning)
            # What is defined as the field above is has its unit.
            if own or "likewise" not in meaning:
                unit = own["unit"] if own else "bytes" if name.endswith("_bytes") else ""
            if name == metric:
                return unit
    return ""


class Scale(NamedTuple):
    """A multiple of a unit, in which numbers are neither long nor small.

    Attributes:
        factor: What a number in the unit is divided by.
        unit: The multiple's name.
    """

    factor: float
    unit: str


def scale_of(unit: str, largest: float) -> Scale:
    """The multiple of a metric's unit for numbers of which this is the largest."""
    if unit not in _PREFIXES or not 0 < largest < float("inf"):
        return Scale(1.0, unit)
    step = 1e-3 if unit == "s" else 1e3
    factor, prefix = 1.0, ""
    for following in _PREFIXES[unit][1:]:
        fits = largest >= factor if unit == "s" else largest < factor * step
        if fits:
            break
        factor, prefix = factor * step, following
    short = {"bytes": "B"}.get(unit, unit) if prefix else unit
    return Scale(factor, f"{prefix}{short}")


def metric_label(metric: str, unit: str) -> str:
    """A metric's name in words, with a unit."""
    words = _words(metric.removesuffix("_bytes") if unit.endswith(("B", "bytes")) else metric)
    return f"{words} ({unit})" if unit else words


def key_label(key: str, unit: str = "") -> str:
    """A scenario's key in words: `link.AP-phone.loss.p` is `loss probability, link AP-phone`."""
    table, *rest = key.split(".")
    if table in _ELEMENTS and len(rest) > 1:
        element, *rest = rest
        words = f"{_words('.'.join(rest))}, {_words(table)} {element}"
    else:
        words = _words(key)
    return f"{words} ({unit})" if unit else words


class Quantities(NamedTuple):
    """Values with units as numbers in one unit."""

    numbers: list[float]
    unit: str


def quantities(texts: Iterable[object]) -> Quantities | None:
    """Values such as `"10 ms"` as numbers in the unit of the first; none if they are others."""
    found: list[tuple[float, str]] = []
    for text in texts:
        match = _QUANTITY.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is None or match["unit"] not in UNITS:
            return None
        try:
            found.append((float(match["number"]), match["unit"]))
        except ValueError:
            return None
    if not found or len({UNITS[unit][0] for _, unit in found}) > 1:
        return None
    unit = found[0][1]
    one = UNITS[unit][1]
    return Quantities([number * (UNITS[own][1] / one) for number, own in found], unit)


def group_title(keys: Sequence[str]) -> str:
    """The title of a legend whose entries are values of these keys."""
    return "; ".join(map(key_label, keys))
