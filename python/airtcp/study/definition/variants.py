"""Variants: the points of an experiment's grid, and how `study.toml` writes and chooses them."""

from __future__ import annotations

import itertools
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airtcp.runs.testbed import Key
from airtcp.study.document import Table
from airtcp.words import nearest

Rows = tuple[tuple[str, ...], ...]


def key_text(key: Key) -> str:
    """The `variant` column of the outputs: `key=value;key=value`."""
    return ";".join(f"{name}={value}" for name, value in key)


def as_key(pairs: Mapping[str, str]) -> Key:
    """The pairs, sorted."""
    return tuple(sorted(pairs.items()))


@dataclass(frozen=True)
class Variant:
    """One point of an experiment's grid.

    Attributes:
        key: Its name.
        overrides: What it changes in the scenario file, as `--set` would.
    """

    key: Key
    overrides: Key

    @property
    def text(self) -> str:
        """The `variant` column."""
        return key_text(self.key)


def _value_text(value: Any) -> str:  # noqa: ANN401 - any TOML value
    return str(value).lower() if isinstance(value, bool) else str(value)


def key_of(table: Table) -> Key:
    """A table of keys and values, the values as texts."""
    return as_key({name: _value_text(value) for name, value in table.raw().items()})


def _combinations(table: Table) -> list[dict[str, str]]:
    """Keys whose values may be lists: one set of keys for each combination of the values."""
    return [
        {name: _value_text(value) for name, value in values.items()}
        for values in table.combinations()
    ]


def axis_points(table: Table) -> list[Variant] | None:
    """The points of one `[[axis.NAME]]`: one for each combination of the values its keys list."""
    keys = _combinations(table.table("key"))
    overrides = table.table("set")
    table.finish()
    points: list[Variant] | None = []
    for key in keys:
        changes = {}
        for path, value in overrides.raw().items():
            try:
                changes[path] = string.Template(_value_text(value)).substitute(key)
            except (KeyError, ValueError) as error:
                overrides.problem(path, f"bad placeholder: {error}")
                points = None
        if points is not None:
            points.append(Variant(as_key(key), as_key(changes)))
    return points


@dataclass
class Grids:
    """The axes and named grids of a study.

    Attributes:
        axes: The points of each axis; `None` for one with a mistake, which has been said.
        named: The rows of each named grid, likewise.
        missed: Axes that grids name and that are not there; each is a mistake once.
    """

    axes: Mapping[str, list[Variant] | None]
    named: Mapping[str, Rows | None]
    missed: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, root: Table) -> Grids:
        """Reads `[[axis.NAME]]` and `[grid]`."""
        axes: dict[str, list[Variant] | None] = {}
        table = root.table("axis")
        for name in table.raw():
            entries = [axis_points(entry) for entry in table.tables(name)]
            sound = [points for points in entries if points is not None]
            points = list(itertools.chain.from_iterable(sound))
            axes[name] = points if len(sound) == len(entries) else None
        grids = root.table("grid")
        return cls(axes, {name: grids.value(name, Rows) for name in grids.raw()})

    def variants(self, table: Table, fixed: Variant) -> tuple[Variant, ...] | None:
        """The variants of the table's `grid`: the union of products of axes, each variant once.

        Args:
            table: An experiment, or a figure of one.
            fixed: What all variants share.

        Returns:
            None without `grid`, or if something is wrong with it, which has been said.
        """
        rows = self._rows(table) if "grid" in table else None
        if rows is None or not self.axes:
            return None
        unknown = {name for row in rows for name in row if name not in self.axes}
        for name in sorted(unknown - self.missed):
            table.problem("grid", f"no axis {name!r}{nearest(name, self.axes)}")
        self.missed |= unknown
        variants: dict[Key, Variant] = {}
        for row in rows if not unknown else ():
            axes = [points for name in row if (points := self.axes[name]) is not None]
            if len(axes) < len(row) or not all(
                self._add(table, row, (fixed, *points), variants)
                for points in itertools.product(*axes)
            ):
                return None
        return tuple(variants.values()) if variants else None

    def _rows(self, table: Table) -> Rows | None:
        if not isinstance(table.peek("grid"), str):
            rows: Rows | None = table.value("grid", Rows)
            return rows
        name = table.value("grid", str)
        if name not in self.named:
            table.problem("grid", f"nothing is called {name!r}{nearest(name, self.named)}")
        return self.named.get(name)

    @staticmethod
    def _add(
        table: Table, row: Iterable[str], points: Iterable[Variant], into: dict[Key, Variant]
    ) -> bool:
        """Adds the variant that some points are together; whether there is one."""
        key: dict[str, str] = {}
        overrides: dict[str, str] = {}
        for point in points:
            for known, pairs in ((key, point.key), (overrides, point.overrides)):
                for name, value in pairs:
                    if known.setdefault(name, value) != value:
                        table.problem("grid", f"{' × '.join(row)}: {name!r} has two values")
                        return False
        variant = Variant(as_key(key), as_key(overrides))
        if into.setdefault(variant.key, variant) != variant:
            table.problem("grid", f"two variants are called {variant.text}")
            return False
        return True


def selected(
    table: Table, fixed: Key, variants: Iterable[Variant] | None
) -> tuple[Variant, ...] | None:
    """The variants that `variants` lists, by their keys without the experiment's; may be none.

    Args:
        table: What has the list: a figure, a claim.
        fixed: The experiment's key.
        variants: Those to choose from; `None`: something is wrong with them.

    Returns:
        None if something is wrong, which has been said.
    """
    selectors = [_combinations(selector) for selector in table.tables("variants")]
    if variants is None:
        return None
    by_key = {variant.key: variant for variant in variants}
    chosen = []
    wrong = False
    for place, keys in ((i, k) for i, selector in enumerate(selectors) for k in selector):
        key = as_key(dict(fixed) | keys)
        if key in by_key:
            chosen.append(by_key[key])
            continue
        wrong = True
        near = nearest(key_text(key), (variant.text for variant in by_key.values()))
        table.problem(("variants", place), f"the grid has no {key_text(key)}{near}")
    return None if wrong else tuple(chosen)
