"""Words of messages and figures."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)` for the known name closest to `name`, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


def plain(text: str) -> str:
    """The text as it is: matplotlib takes `$` for formulas, and hides names that begin with `_`."""
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
