"""Logs of `airtcp link` and of Mahimahi's `mm-link`."""

from __future__ import annotations

from pathlib import Path

from airtcp.timeline.model import Contents, LinkTimeline, NotPlottableError, Points

HEAD = "# base timestamp:"
"""How such a log begins. `mm-link` writes comments above and below it."""


def read_mahimahi(path: Path, name: str | None = None) -> Contents:
    """The link of a log.

    Args:
        path: The log.
        name: Name of the link; default: the file's.

    Raises:
        NotPlottableError: A line is of another form.
    """
    kinds: dict[str, list[tuple[float, float]]] = {kind: [] for kind in "+-#d"}
    delays: list[tuple[float, float]] = []
    base = 0
    # The command line in its head may have any bytes.
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if line.startswith("#"):
                if line.startswith(HEAD):
                    base = _base(path, number, line)
                continue
            try:
                at, kind, *values = line.split()
                # Of drops the number of packets comes first.
                size = float(values[1 if kind == "d" else 0])
                time = (int(at) - base) / 1000
                kinds[kind].append((time, size))
                if kind == "-":
                    delays.append((time, float(values[1]) / 1000))
            except (ValueError, KeyError, IndexError) as error:
                raise NotPlottableError(
                    f"{path}: line {number}: {line.strip()[:60]!r} (expected `MS + BYTES`, "
                    "`MS - BYTES MS`, `MS # BYTES` or `MS d PACKETS BYTES`)"
                ) from error
    return Contents(
        link=LinkTimeline(
            path.stem if name is None else name,
            arrived=Points.of(kinds["+"]),
            departed=Points.of(kinds["-"]),
            capacity=Points.of(kinds["#"]),
            dropped=Points.of(kinds["d"]),
            delay=Points.of(delays),
        )
    )


def _base(path: Path, number: int, line: str) -> int:
    try:
        return int(line.removeprefix(HEAD))
    except ValueError:
        raise NotPlottableError(
            f"{path}: line {number}: {line.strip()[:60]!r} (expected `{HEAD} MS`)"
        ) from None
