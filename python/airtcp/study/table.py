"""Reading TOML tables strictly: a key that no one asks for is an error."""

from __future__ import annotations

import difflib
import itertools
import re
import string
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
Rows = list[tuple[str, ...]]

_HEADER = re.compile(r"\s*(?P<open>\[\[?)(?P<name>[^\[\]]+)\]")
_KEY = re.compile(r"""\s*(?P<key>(?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"))*)\s*=""")
_PART = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")
_DURATION = re.compile(r"(?P<number>[0-9.]+) (?P<unit>min|s|ms)")
_SECONDS = {"min": 60.0, "s": 1.0, "ms": 1e-3}


class StudyError(Exception):
    """An invalid study, or an invalid request for one; the message says where and why."""


def nearest(name: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)` for the known name closest to `name`, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _parts(dotted: str) -> list[str]:
    """The parts of a dotted key, without quotes."""
    return [part.strip("\"'") for part in _PART.findall(dotted)]


def _lines(text: str) -> dict[str, int]:
    """The line of each table and key of a TOML text, by its path such as `experiment[0].id`.

    `tomllib` tells no positions. Keys of inline tables are left out: their table has a line.
    """
    lines: dict[str, int] = {"": 1}
    counts: dict[str, int] = {}
    table = ""
    for line, content in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(content):
            table = ""
            *parents, last = _parts(header["name"])
            for part in parents:
                table = f"{table}.{part}".lstrip(".")
                if table in counts:
                    table += f"[{counts[table] - 1}]"
            table = f"{table}.{last}".lstrip(".")
            if header["open"] == "[[":
                lines.setdefault(table, line)
                counts[table] = counts.get(table, 0) + 1
                table += f"[{counts[table] - 1}]"
            lines[table] = line
        elif key := _KEY.match(content):
            path = ".".join(_parts(key["key"]))
            lines.setdefault(f"{table}.{path}".lstrip("."), line)
    return lines


class Table:
    """A TOML table that knows its place and which keys were asked for."""

    def __init__(
        self, file: Path, path: str, values: dict[str, Any], lines: dict[str, int]
    ) -> None:
        self._file = file
        self._path = path
        self._values = values
        self._lines = lines
        self._asked: list[str] = []

    @classmethod
    def read(cls, file: Path) -> Table:
        """The root table of a file.

        Raises:
            StudyError: The file cannot be read, or is not TOML.
        """
        try:
            text = file.read_text(encoding="utf-8")
            return cls(file, "", tomllib.loads(text), _lines(text))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise StudyError(f"{file}: {error}") from error

    def _path_of(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path and key else self._path or key

    def place(self, key: str = "") -> str:
        """`file:line` of the table or of one of its keys."""
        path = self._path_of(key)
        while path not in self._lines:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return f"{self._file}:{self._lines[path]}"

    def error(self, key: str, problem: str) -> StudyError:
        """An error about one of the table's keys."""
        path = self._path_of(key)
        return StudyError(f"{self.place(key)}: {f'{path}: ' if path else ''}{problem}")

    def _typed(self, key: str, kind: type[T] | tuple[type[T], ...], expected: str) -> T | None:
        self._asked.append(key)
        value = self._values.get(key)
        if value is not None and (
            not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)
        ):
            raise self.error(key, f"expected {expected}, found {value!r}")
        return value

    def _required(self, key: str, value: T | None, default: T | None) -> T:
        if value is not None:
            return value
        if default is not None:
            return default
        near = nearest(key, set(self._values) - set(self._asked))
        found = near.replace("did you mean", "found") if near else ""
        raise self.error(key, f"is missing{found}")

    def text(self, key: str, default: str | None = None) -> str:
        """A string."""
        return self._required(key, self._typed(key, str, "a string"), default)

    def choice(self, key: str, options: Iterable[str], default: str | None = None) -> str:
        """One of some strings."""
        value, options = self.text(key, default), list(options)
        if value not in options:
            known = ", ".join(options)
            raise self.error(
                key, f"expected one of {known}, found {value!r}{nearest(value, options)}"
            )
        return value

    def flag(self, key: str, default: bool) -> bool:
        """A boolean."""
        return self._required(key, self._typed(key, bool, "true or false"), default)

    def count(self, key: str, default: int | None = None) -> int:
        """A positive whole number."""
        value = self._required(key, self._typed(key, int, "a whole number"), default)
        if value < 1:
            raise self.error(key, f"expected at least 1, found {value}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A number."""
        return float(self._required(key, self._typed(key, (int, float), "a number"), default))

    def optional_number(self, key: str) -> float | None:
        """A number, if there is one."""
        value = self._typed(key, (int, float), "a number")
        return None if value is None else float(value)

    def _seconds(self, key: str, value: object) -> float:
        match = _DURATION.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise self.error(key, f'expected a duration such as "5 s", found {value!r}')
        return float(match["number"]) * _SECONDS[match["unit"]]

    def seconds(self, key: str, default: float | None = None) -> float:
        """A duration, in seconds."""
        value = self._typed(key, str, 'a duration such as "5 s"')
        seconds = None if value is None else self._seconds(key, value)
        return self._required(key, seconds, default)

    def window(self, key: str) -> tuple[float, float] | None:
        """Two durations, start and end, in seconds."""
        values = self._typed(key, list, 'two durations such as ["5 s", "11 s"]')
        return None if values is None else self._span(key, values)

    def windows(self, key: str) -> tuple[tuple[float, float], ...]:
        """Pairs of durations, start and end, in seconds; none if the key is missing."""
        values = self._typed(key, list, 'pairs of durations such as [["5 s", "11 s"]]') or []
        return tuple(self._span(key, value) for value in values)

    def _span(self, key: str, values: object) -> tuple[float, float]:
        if not isinstance(values, list) or len(values) != 2:  # noqa: PLR2004
            raise self.error(key, f"expected start and end, found {values!r}")
        start, end = (self._seconds(key, value) for value in values)
        if start >= end:
            raise self.error(key, "the start must be before the end")
        return start, end

    def texts(self, key: str, default: Iterable[str] = ()) -> tuple[str, ...]:
        """A list of strings."""
        values = self._typed(key, list, "a list of strings")
        if values is None:
            return tuple(default)
        if not all(isinstance(value, str) for value in values):
            raise self.error(key, f"expected a list of strings, found {values!r}")
        return tuple(values)

    def one_or_more(self, key: str) -> tuple[str, ...]:
        """A string or an array of strings; none if it is missing."""
        if isinstance(self._values.get(key), str):
            return (self.text(key),)
        return self.texts(key)

    def __contains__(self, key: str) -> bool:
        """Whether the table has a key."""
        return key in self._values

    def table(self, key: str) -> Table:
        """A table; empty if the key is missing."""
        values = self._typed(key, dict, "a table")
        return Table(self._file, f"{self._path}.{key}".lstrip("."), values or {}, self._lines)

    def tables(self, key: str) -> list[Table]:
        """An array of tables; empty if the key is missing."""
        values = self._typed(key, list, "an array of tables") or []
        if not all(isinstance(value, dict) for value in values):
            raise self.error(key, "expected an array of tables")
        path = f"{self._path}.{key}".lstrip(".")
        return [
            Table(self._file, f"{path}[{i}]", value, self._lines) for i, value in enumerate(values)
        ]

    def items(self) -> Iterator[tuple[str, Table]]:
        """The table's own tables, by name; each key counts as asked for."""
        for key in self._values:
            yield key, self.table(key)

    def raw(self) -> dict[str, Any]:
        """The values as TOML has them; every key counts as asked for."""
        self._asked.extend(self._values)
        return self._values

    def combinations(self) -> list[dict[str, Any]]:
        """The table once for each combination of the values that its keys list."""
        raw = self.raw()
        choices = [value if isinstance(value, list) else [value] for value in raw.values()]
        return [dict(zip(raw, values, strict=True)) for values in itertools.product(*choices)]

    def each(self, key: str) -> list[Table]:
        """The table once for each combination of values in an array of tables of its own.

        `$name` in its texts is replaced by the value; a text that is nothing else becomes the value
        itself. Without the array, the table as it is.
        """
        rows = self.tables(key)
        if not rows:
            return [self]
        rest = {name: value for name, value in self._values.items() if name != key}
        return [
            Table(self._file, self._path, self._filled(key, rest, values), self._lines)
            for row in rows
            for values in row.combinations()
        ]

    def _filled(self, key: str, value: Any, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any TOML value
        """A value with the placeholders in its texts replaced."""
        if isinstance(value, dict):
            return {name: self._filled(key, inner, values) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._filled(key, inner, values) for inner in value]
        if not isinstance(value, str):
            return value
        if value[:1] == "$" and value[1:] in values:
            return values[value[1:]]
        try:
            return string.Template(value).substitute(values)
        except (KeyError, ValueError) as error:
            raise self.error(key, f"bad placeholder: {error}") from error

    def rows(self, key: str, named: Mapping[str, Rows]) -> Rows:
        """A list of lists of strings, or the name of one."""
        expected = "a list of lists of strings, or a name"
        values = self._typed(key, (list, str), expected) or []
        if isinstance(values, str):
            if values not in named:
                raise self.error(key, f"nothing is called {values!r}{nearest(values, named)}")
            return named[values]
        rows = []
        for row in values:
            if not isinstance(row, list) or not all(isinstance(name, str) for name in row):
                raise self.error(key, f"expected a list of lists of strings, found {row!r}")
            rows.append(tuple(row))
        return rows

    def finish(self) -> None:
        """Refuses keys that no one asked for."""
        for key in self._values:
            if key not in self._asked:
                raise self.error(key, f"unknown key{nearest(key, self._asked)}")
