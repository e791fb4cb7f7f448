"""Words for variants in figures and reports: `Packet Control, R = 9` for `filter=…;r=9`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from airtcp.study.document import Table
from airtcp.words import nearest

Key = tuple[tuple[str, str], ...]
"""A variant's `key=value` pairs."""

_VALUE = "$value"


@dataclass(frozen=True)
class Labels:
    """Words for the pairs of variants' keys.

    Attributes:
        words: By key, in the order in which labels name them: words for some values; for `$value`,
            those for any other value, in which `$value` stands for it. An empty word hides a pair.
    """

    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def read(cls, table: Table, keys: Iterable[Key]) -> Labels:
        """Reads `[label]`.

        Args:
            table: By key, `"a text with $value"` or a table from values to words.
            keys: Those of all variants; a label that belongs to none of them is a mistake.
        """
        known: dict[str, set[str]] = {}
        for key in keys:
            for name, value in key:
                known.setdefault(name, set()).add(value)
        words: dict[str, Mapping[str, str]] = {}
        for name, entry in table.raw().items():
            if name not in known:
                table.problem(name, f"no variant has this key{nearest(name, known)}")
            elif isinstance(entry, dict):
                words[name] = _words(table.table(name), name, known[name])
            elif isinstance(text := table.value(name, str), str):
                words[name] = {_VALUE: text}
        return cls(words)

    def text(self, key: Key) -> str:
        """The words for a key."""
        order = {name: place for place, name in enumerate(self.words)}
        pairs = sorted(key, key=lambda pair: order.get(pair[0], len(order)))
        return ", ".join(filter(None, (self._word(*pair) for pair in pairs)))

    def distinct(self, key: Key, among: Sequence[Key]) -> str:
        """The words for the pairs that distinguish a key from others, of which it is one."""
        shared = set(among[0]).intersection(*among[1:]) if len(set(among)) > 1 else set()
        own = tuple(pair for pair in key if pair not in shared)
        return self.text(own) or self.text(key) or ", ".join(f"{n} {v}" for n, v in own)

    def _word(self, name: str, value: str) -> str:
        words = self.words.get(name, {})
        if value in words:
            return words[value]
        return words.get(_VALUE, f"{name} {_VALUE}").replace(_VALUE, value)


def _words(table: Table, name: str, known: set[str]) -> Mapping[str, str]:
    """The words for the values of a key."""
    for value in table.raw():
        if value not in {*known, _VALUE}:
            table.problem(value, f"no variant has {name}={value}{nearest(value, known)}")
    return {value: table.value(value, str) for value in table.raw()}
