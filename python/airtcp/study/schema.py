"""The JSON Schema of `study.toml`, by which editors complete keys and mark mistakes.

Made from the types by which the reader checks. What depends on other parts of the study, such as
the names of metrics, only `airtcp study check` can tell.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airtcp.runs.testbed import Testbed
from airtcp.study.definition.figures import KINDS, Figure, Lines, MetricRow, SeriesRow, Timeline
from airtcp.study.definition.model import TESTS, Claim, Experiment
from airtcp.study.definition.reader import Head, Quick
from airtcp.study.document import json_schema
from airtcp.study.measure import REDUCERS, Gain, Measure
from airtcp.study.models import Model

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "number"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_COUNT: Schema = {"type": "integer", "minimum": 1}
_SCALAR: Schema = {"type": ["string", "number", "boolean"]}
_SCALARS: Schema = {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR}]}
_GRID: Schema = {"type": "array", "items": _TEXTS}


def study_schema() -> Schema:
    """The schema."""
    root = json_schema(Head)
    root["properties"] |= {
        "runs": _described(_COUNT, "Seeds per variant."),
        "quick": _described(
            _with(json_schema(Quick), {"set": _table(_SCALAR)}), "What --quick does."
        ),
        "axis": _described(_table(_array(_AXIS)), "Points along which variants differ, by axis."),
        "grid": _described(
            _table(_GRID), "Named grids: products of axes, of which a grid has all."
        ),
        "metric": _described(_table({"anyOf": [_measure(), _gain()]}), "What is measured."),
        "label": _described(
            _table({"anyOf": [_TEXT, _table(_TEXT)]}),
            "Words for variants, by key: a text with $value, or a table from values to words.",
        ),
        "testbed": _array(_testbed()),
        "model": _with(json_schema(Model, besides=("key",)), {"key": _table(_SCALAR)}),
        "calibrated": _array(_CALIBRATED),
        "experiment": _array(_experiment()),
    }
    root["required"] += ["runs", "axis", "experiment"]
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "airtcp: a study",
    } | root


def _described(schema: Schema, text: str) -> Schema:
    return {"description": text} | schema


def _array(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _table(of: Schema) -> Schema:
    """A table with any keys."""
    return {"type": "object", "additionalProperties": of}


def _object(properties: Schema, required: Iterable[str] = ()) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _with(schema: Schema, properties: Schema, required: Iterable[str] = ()) -> Schema:
    """An object with more keys."""
    return _object(schema["properties"] | properties, [*schema["required"], *required])


_VARIANTS: Schema = {
    "description": "Keys of variants and their values; of a list, each.",
    **_array(_table(_SCALARS)),
}
_AXIS: Schema = _object(
    {
        "key": _described(_table(_SCALARS), "Keys and values; of lists, each combination."),
        "set": _described(_table(_SCALAR), "Keys of the scenario; $key is that key's value."),
    }
)
_CALIBRATED: Schema = _object(
    {"experiment": _TEXT, "reason": _TEXT, "metric": _TEXT, "variants": _VARIANTS},
    ("experiment", "reason"),
)


def _measure() -> Schema:
    fields = json_schema(Measure, besides=("name", "kind", "owner", "field"))
    source = _described(_TEXT, "A field of the metrics, such as flow.goodput, or trace.SERIES.")
    window = fields["properties"]["windows"]["items"]
    reduce = {"enum": list(REDUCERS)}
    return _with(fields, {"from": source, "window": window, "reduce": reduce}, ("from",))


def _gain() -> Schema:
    fields = json_schema(Gain, besides=("name", "of", "baseline", "unit"))
    of = _described(_TEXT, "The metric of which it is the gain.")
    more = {"gain-of": of, "unit": {"const": "%"}, "baseline": _table(_SCALAR)}
    return _with(fields, more, ("gain-of", "unit"))


def _testbed() -> Schema:
    fields = json_schema(Testbed, besides=("key", "command", "parallel", "folder"))
    more = {"key": _table(_SCALAR), "command": _TEXT, "parallel": _COUNT}
    return _with(fields, more, ("command",))


def _experiment() -> Schema:
    made = ("key", "variants", "metrics", "figures", "claims", "runs")
    more = {
        "runs": _COUNT,
        "key": _table(_SCALAR),
        "set": _table(_SCALAR),
        "grid": _described({"anyOf": [_TEXT, _GRID]}, "Products of axes, or the name of a grid."),
        "metrics": _TEXTS,
        "figure": _array({"anyOf": [_figure(word, kind) for word, kind in KINDS.items()]}),
        "claim": _array({"anyOf": [_claim(), _claims()]}),
    }
    return _with(json_schema(Experiment, besides=made), more, ("grid",))


def _figure(word: str, kind: type[Figure]) -> Schema:
    more = {"kind": {"const": word}, "grid": {"anyOf": [_TEXT, _GRID]}, "variants": _VARIANTS}
    fields = _with(json_schema(kind, besides=("variants", "at", "rows")), more, ("kind",))
    if kind is Lines:
        fields["required"].remove("x-label")
    of_row = {Lines: MetricRow, Timeline: SeriesRow}.get(kind)
    if of_row is None:
        return fields
    row = json_schema(of_row)
    # The keys of an only row may be the figure's own.
    only = _with(fields, row["properties"], row["required"])
    return {"anyOf": [_with(fields, {"row": _array(row)}, ("row",)), only]}


def _claim() -> Schema:
    numbers = {name: _NUMBER for names in TESTS.values() for name in names}
    fields = json_schema(Claim, besides=("variants", "options", "at"))
    return _with(fields, {"variants": _VARIANTS} | numbers)


def _claims() -> Schema:
    """A claim for each combination of some values, for which placeholders stand."""
    one = _claim()
    placeholder = {"type": "string", "pattern": r"\$"}
    filled = {key: {"anyOf": [schema, placeholder]} for key, schema in one["properties"].items()}
    return _with(one, filled | {"each": _array(_table(_SCALARS))}, ("each",))
