"""Types of the keys of a study's files."""

from __future__ import annotations

import math
import re
from typing import Annotated

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BeforeValidator, WithJsonSchema

_DURATION = re.compile(r"(?P<number>[0-9.]+) (?P<unit>min|s|ms)")
_SECONDS = {"min": 60.0, "s": 1.0, "ms": 1e-3}

SPAN = 'two durations such as ["5 s", "11 s"]'


def seconds(value: object) -> float:
    """Reads a duration, such as `"5 s"`."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f'expected a duration such as "5 s", found {value!r}')
    return float(match["number"]) * _SECONDS[match["unit"]]


def span(value: object) -> tuple[float, float]:
    """Reads start and end, two durations."""
    if not isinstance(value, tuple) or len(value) != 2:  # noqa: PLR2004
        found = list(value) if isinstance(value, tuple) else value
        raise ValueError(f"expected start and end, {SPAN}, found {found!r}")
    start, end = map(seconds, value)
    if start >= end:
        raise ValueError("the start must be before the end")
    return start, end


def listed(value: object) -> object:
    """A text that stands for a list of one."""
    return (value,) if isinstance(value, str) else value


def only(value: object) -> object:
    """Reads the single element of a list."""
    if isinstance(value, str):
        return value
    if not isinstance(value, tuple) or len(value) != 1:
        found = list(value) if isinstance(value, tuple) else value
        raise ValueError(f"expected exactly one name, found {found!r}")
    return value[0]


def is_number(text: str) -> bool:
    """Whether a text is a finite number, also to readers of tables other than Python."""
    if "_" in text or not text.isascii():
        return False
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


Count = Annotated[int, Ge(1)]
Share = Annotated[float, Gt(0), Lt(1)]
Portion = Annotated[float, Gt(0), Le(1)]
"""A share that may be all."""

_WRITTEN = {"type": "string", "pattern": r"^[0-9.]+ (min|s|ms)$"}
_NAMES = {"type": "array", "items": {"type": "string"}}

Seconds = Annotated[float, BeforeValidator(seconds), WithJsonSchema(_WRITTEN)]
Period = Annotated[float, BeforeValidator(seconds), Gt(0), WithJsonSchema(_WRITTEN)]
"""A time that is not 0, s."""
Span = Annotated[
    tuple[float, float],
    BeforeValidator(span),
    WithJsonSchema({"type": "array", "items": _WRITTEN, "minItems": 2, "maxItems": 2}),
]
"""Start and end, s."""
Only = Annotated[
    str,
    BeforeValidator(only),
    WithJsonSchema({"anyOf": [{"type": "string"}, {**_NAMES, "minItems": 1, "maxItems": 1}]}),
]
"""The one name of a list."""
OneOrMore = Annotated[
    tuple[str, ...],
    BeforeValidator(listed),
    WithJsonSchema({"anyOf": [{"type": "string"}, _NAMES]}),
]
"""A name, or a list of names."""
