"""The packages that only some parts of airtcp need, as the extras of `pip install` name them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class MissingExtraError(ImportError):
    """A part of airtcp needs a package that is not installed; the message has the remedy."""


@contextmanager
def needed_by(what: str, extra: str) -> Iterator[None]:
    """Turns the absence of a package that is imported inside into a remedy.

    Args:
        what: What needs it, as the user knows it: `airtcp study`.
        extra: The extra that brings it along.

    Raises:
        MissingExtraError: A package is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if not error.name or error.name.partition(".")[0] == "airtcp":
            raise
        raise MissingExtraError(
            f"{what} needs the package {error.name}: pip install 'airtcp[{extra}]'",
            name=error.name,
        ) from error
