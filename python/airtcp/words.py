"""Words of messages and figures."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)` for the known name closest to `name`, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


def counted(count: int, what: str) -> str:
    """`1 flow`, `2 flows`: how many there are of something whose plural ends in s."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def expect(fits: bool, argument: str, value: object, expected: str) -> None:
    """Checks an argument of a function.

    Raises:
        TypeError: It does not fit; the message says what was expected.
    """
    if not fits:
        raise TypeError(f"{argument} = {value!r}: expected {expected}")


def plain(text: str) -> str:
    """The text as it is: matplotlib takes `$` for formulas, and hides names that begin with `_`."""
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
