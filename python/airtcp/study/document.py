"""TOML files read strictly: what a key holds is declared by the type of a dataclass's field.

All that is wrong is collected, with the line of each mistake, so that one reading names all of it.
A mistake that only follows from another one is left out: a key that is missing because its name is
misspelt, say. One that may follow from another comes after it.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import re
import string
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TypeVar, get_type_hints

import pydantic
from pydantic_core import CoreSchema, ErrorDetails, core_schema
from typing_extensions import TypedDict

from airtcp import _native
from airtcp.errors import unreadable
from airtcp.words import nearest

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

_REQUIRED = object()

Place = tuple[str | int, ...]
"""Where something is in a document: keys of tables, and places in arrays."""


class StudyError(ValueError):
    """An invalid study, or an invalid request for one; the message says where and why."""


@dataclass
class Problems:
    """What is wrong with some files: the file, the line, and the problem in words.

    Attributes:
        found: The problems; true for those that others in the file may have caused.
    """

    found: dict[tuple[Path, int, str], bool] = field(default_factory=dict)

    def add(self, file: Path, line: int, problem: str, *, may_follow: bool = False) -> None:
        """Adds a problem, unless it is known."""
        self.found[file, line, problem] = may_follow

    def at(self, place: str, problem: str) -> None:
        """Adds a problem at `file:line`."""
        file, _, line = place.rpartition(":")
        self.add(Path(file), int(line), problem)

    def refuse(self) -> None:
        """Gives up if there are any.

        Raises:
            StudyError: All problems, a line each, in the order of the files and their lines; in
                each file those that others may have caused come last.
        """
        if self.found:
            files = list(dict.fromkeys(file for file, _, _ in self.found))
            found = sorted(self.found, key=lambda at: (files.index(at[0]), self.found[at], at[1]))
            raise StudyError("\n".join(f"{file}:{line}: {text}" for file, line, text in found))


@dataclass(frozen=True)
class Document:
    """A TOML file.

    Attributes:
        lines: The line of each key and array element.
        problems: Where mistakes are collected.
    """

    file: Path
    lines: Mapping[Place, int]
    problems: Problems

    @classmethod
    def read(cls, file: Path, problems: Problems) -> Table:
        """The root table of a file.

        Raises:
            StudyError: The file cannot be read, or is not TOML.
        """
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise StudyError(unreadable(file, error)) from error
        values, lines, errors = _native.read_toml(text)
        if errors:
            raise StudyError(
                "\n".join(f"{file}:{line}: not valid TOML: {text}" for line, text in errors)
            )
        return Table(cls(file, lines, problems), (), values)

    def line(self, path: Place) -> int:
        """The line of something, or of the table or array that holds it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def path_text(path: Place) -> str:
    """A path as messages show it: `experiment[0].id`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).lstrip(".")


class Table:
    """A TOML table that knows its place and which keys were asked for."""

    def __init__(self, document: Document, path: Place, values: dict[str, Any]) -> None:
        self._document = document
        self._path = path
        self._values = values
        self._asked: dict[str, None] = {}
        self._missing: list[str] = []

    @classmethod
    def empty(cls, of: Table, keys: Iterable[str]) -> Table:
        """A table in which nothing is missing or wrong, for parts of another that are skipped.

        Args:
            of: The other.
            keys: Its keys that count as asked for.
        """
        of._asked |= dict.fromkeys(keys)
        return cls(of._document, of._path, {})

    @property
    def problems(self) -> Problems:
        """Where mistakes are collected."""
        return self._document.problems

    @property
    def place(self) -> str:
        """`file:line` of the table."""
        return f"{self._document.file}:{self._document.line(self._path)}"

    def problem(self, key: str | Place, text: str, *, may_follow: bool = False) -> None:
        """Something is wrong with one of the table's keys, or, with no key, with the table."""
        path = (*self._path, *((key,) if isinstance(key, str) else key))
        named = path_text(path)
        self._document.problems.add(
            self._document.file,
            self._document.line(path),
            f"{named}: {text}" if named else text,
            may_follow=may_follow,
        )

    def missing(self, key: str) -> None:
        """A key must be there and is not; `finish` says so, unless it is only misspelt."""
        self._asked[key] = None
        self._missing.append(key)

    def read(self, kind: type[T], /, *, besides: Iterable[str] = (), **given: Any) -> T | None:  # noqa: ANN401
        """The table as an object of a dataclass; none if something is wrong with it.

        The key of a field is its name with hyphens.

        Args:
            kind: The dataclass.
            besides: Fields that this table may not set.
            given: Values of fields that are not read from the table; `None`: what they are made
                from is wrong, which has been said.
        """
        left_out = {*given, *besides}
        names = tuple(f.name for f in dataclasses.fields(kind) if f.name not in left_out)
        keys = {_key(name): name for name in names}
        self._asked |= dict.fromkeys(keys)
        values = {key: _tuples(self._values[key]) for key in keys if key in self._values}
        try:
            read = _adapter_of(kind, names).validate_python(values)
        except pydantic.ValidationError as error:
            for detail in error.errors(include_url=False):
                if detail["type"] == "missing":
                    self.missing(str(detail["loc"][0]))
                else:
                    self.problem(detail["loc"], _said(detail))
            return None
        if None in given.values():
            return None
        return kind(**{keys[key]: value for key, value in read.items()}, **given)

    def value(self, key: str, kind: Any, default: Any = _REQUIRED) -> Any:  # noqa: ANN401
        """One value of a type; none if something is wrong with it.

        Args:
            key: Its key.
            kind: The type, as for a field.
            default: What it is if the key is missing; without one it must be there.
        """
        self._asked[key] = None
        if key not in self._values:
            if default is not _REQUIRED:
                return default
            self.missing(key)
            return None
        try:
            return _adapter(kind).validate_python(_tuples(self._values[key]))
        except pydantic.ValidationError as error:
            for detail in error.errors(include_url=False):
                self.problem((key, *detail["loc"]), _said(detail))
            return None

    def peek(self, key: str) -> object:
        """What a key holds, as TOML has it; none if it is missing."""
        return self._values.get(key)

    def __contains__(self, key: str) -> bool:
        """Whether the table has a key."""
        return key in self._values

    def table(self, key: str) -> Table:
        """A table; empty if the key is missing, or holds something else."""
        self._asked[key] = None
        values = self._values.get(key, {})
        if not isinstance(values, dict):
            self.problem(key, f"expected a table, found {values!r}")
            values = {}
        return Table(self._document, (*self._path, key), values)

    def tables(self, key: str) -> list[Table]:
        """An array of tables; empty if the key is missing, or holds something else."""
        self._asked[key] = None
        values = self._values.get(key, [])
        if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
            self.problem(key, "expected an array of tables")
            return []
        path = (*self._path, key)
        return [Table(self._document, (*path, i), value) for i, value in enumerate(values)]

    def items(self) -> Iterator[tuple[str, Table]]:
        """The table's own tables, by name; each key counts as asked for."""
        for key in self._values:
            yield key, self.table(key)

    def raw(self) -> dict[str, Any]:
        """The values as TOML has them; every key counts as asked for."""
        self._asked |= dict.fromkeys(self._values)
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
        tables = []
        for values in (values for row in rows for values in row.combinations()):
            try:
                tables.append(Table(self._document, self._path, _filled(rest, values)))
            except (KeyError, ValueError) as error:
                self.problem(key, f"bad placeholder: {error}")
        return tables

    def finish(self) -> None:
        """Refuses keys that no one asked for, and says which are missing."""
        missing = list(self._missing)
        is_strange = False
        for key in self._values:
            if key not in self._asked:
                absent = [name for name in self._asked if name not in self._values]
                near = nearest(key, absent) or nearest(key, self._asked)
                self.problem(key, f"unknown key{near}")
                # What is misspelt is not also missing.
                missing = [name for name in missing if repr(name) not in near]
                is_strange |= not nearest(key, absent)
        for key in missing:
            self.problem(key, "is missing", may_follow=is_strange)


def _key(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _tuples(value: Any) -> Any:  # noqa: ANN401 - any TOML value
    """A value with tuples for lists, as dataclasses have them."""
    if isinstance(value, list):
        return tuple(map(_tuples, value))
    return value


def _filled(value: Any, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any TOML value
    """A value with the placeholders in its texts replaced."""
    if isinstance(value, dict):
        return {name: _filled(inner, values) for name, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, values) for inner in value]
    if not isinstance(value, str):
        return value
    if value[:1] == "$" and value[1:] in values:
        return values[value[1:]]
    return string.Template(value).substitute(values)


_STRICT = pydantic.ConfigDict(strict=True, allow_inf_nan=False)


@cache
def _adapter(kind: Any) -> pydantic.TypeAdapter[Any]:  # noqa: ANN401 - a type
    """What checks values of a type. Nothing is converted: `"4"` is no number."""
    return pydantic.TypeAdapter(kind, config=_STRICT)


@cache
def _adapter_of(kind: Any, names: tuple[str, ...]) -> pydantic.TypeAdapter[dict[str, Any]]:  # noqa: ANN401
    """What checks the keys of some fields of a dataclass; those with a default may be missing."""
    hints = get_type_hints(kind, include_extras=True)
    required = {
        f.name
        for f in dataclasses.fields(kind)
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    }
    keys = {_key(n): hints[n] if n in required else NotRequired[hints[n]] for n in names}
    typed_dict: Any = TypedDict
    typed = pydantic.with_config(_STRICT)(typed_dict(kind.__name__, keys))
    return pydantic.TypeAdapter(typed)


_EXPECTED: Mapping[str, str] = {
    "string_type": "a string",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "finite_number": "a finite number",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
    "too_short": "at least {min_length} of them",
}
"""What was expected, by the library's name of the mistake and what it tells of it."""


def _said(detail: ErrorDetails) -> str:
    """A mistake in our words."""
    kind, found, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    expected = _EXPECTED.get(kind, detail["msg"]).format(**context)
    shown = list(found) if isinstance(found, tuple) else found
    return f"expected {expected}, found {shown!r}"


@dataclass(frozen=True)
class OneOf:
    """The check, for the type of a field, that a text is one of some words."""

    words: tuple[str, ...]

    def __get_pydantic_core_schema__(
        self,
        source: Any,  # noqa: ANN401 - a type
        handler: pydantic.GetCoreSchemaHandler,
    ) -> CoreSchema:
        """The type that the check is for, with it."""
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, _schema: CoreSchema, _handler: pydantic.GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """What editors offer."""
        return {"enum": list(self.words)}

    def check(self, text: str) -> str:
        """The text.

        Raises:
            ValueError: It is none of the words; the message names the nearest.
        """
        if text not in self.words:
            listed = ", ".join(self.words)
            near = nearest(text, self.words)
            raise ValueError(f"expected one of {listed}, found {text!r}{near}")
        return text


def one_of(words: Iterable[str]) -> OneOf:
    """The check, for the type of a field, that a text is one of some words."""
    return OneOf(tuple(words))


def json_schema(kind: type[DataclassInstance], *, besides: Iterable[str] = ()) -> dict[str, Any]:
    """The JSON Schema of the tables that `Table.read` takes for objects of a dataclass.

    Args:
        kind: The dataclass; the section *Attributes* of its docstring describes its fields.
        besides: Fields that are not read from the table.
    """
    left_out = {*besides}
    names = tuple(f.name for f in dataclasses.fields(kind) if f.name not in left_out)
    schema = _adapter_of(kind, names).json_schema()
    described = {_key(name): text for name, text in _attributes(kind).items()}
    properties = {
        key: {"description": described[key]} | value if key in described else value
        for key, value in schema["properties"].items()
    }
    for value in properties.values():
        value.pop("title", None)
    return {
        "type": "object",
        "properties": properties,
        "required": schema.get("required", []),
        "additionalProperties": False,
    }


_ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n     +.*)*)", re.MULTILINE)


def _attributes(kind: type) -> dict[str, str]:
    """What the docstrings of a class and its bases say of their fields."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        _, _, section = (inspect.getdoc(base) or "").partition("Attributes:\n")
        found |= {name: " ".join(text.split()) for name, text in _ATTRIBUTE.findall(section)}
    return found
