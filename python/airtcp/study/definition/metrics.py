"""Reading `[metric.NAME]`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airtcp.study.definition.variants import Variant, key_of
from airtcp.study.document import Table
from airtcp.study.fields import Seconds, Span, is_number
from airtcp.study.measure import FIELD_SOURCES, Gain, Measure, Metric, Reduce
from airtcp.words import nearest

Metrics = Mapping[str, Metric | None]
"""The metrics by name, in the order of the file; `None` for one with a mistake."""

_OF_SERIES = ("reduce", "windows", "since", "lasting", "until")
"""What only the metrics of a time series have."""


def read_metrics(root: Table) -> Metrics:
    """Reads all metrics of a study."""
    metrics: dict[str, Metric | None] = {}
    for name, table in root.table("metric").items():
        metrics[name] = _gain(name, table, metrics) if "gain-of" in table else _measure(name, table)
        table.finish()
    return metrics


def _gain(name: str, table: Table, above: Metrics) -> Gain | None:
    of = table.value("gain-of", str)
    if of is not None and (of not in above or isinstance(above[of], Gain)):
        table.problem("gain-of", f"no metric {of!r} above this one{nearest(of, above)}")
    unit = table.value("unit", str)
    if unit not in ("%", None):
        table.problem("unit", f'a gain is in "%", found {unit!r}')
    return table.read(Gain, name=name, of=of, unit=unit, baseline=key_of(table.table("baseline")))


def _measure(name: str, table: Table) -> Measure | None:
    source = table.value("from", str)
    kind, _, rest = (source or "").partition(".")
    if source is not None and (kind not in (*FIELD_SOURCES, "trace") or not rest):
        known = ", ".join([*(f"{part}.FIELD" for part in FIELD_SOURCES), "trace.SERIES"])
        table.problem("from", f"expected one of {known}, found {source!r}")
        source = None
    owner, _, field = rest.rpartition(".")
    made: dict[str, object] = {
        "name": name,
        "kind": None if source is None else kind,
        "owner": owner,
        "field": field,
    }
    if kind in FIELD_SOURCES:
        return table.read(Measure, besides=_OF_SERIES, **made)
    # What there must be is only known if the source is.
    default = {"default": None} if source is None else {}
    reduce = table.value("reduce", Reduce, **default)
    made |= {"windows": _windows(table), "reduce": reduce}
    if "since" in table:
        made["lasting"] = table.value("lasting", Seconds)
    return table.read(Measure, besides=("lasting",), **made)


def _windows(table: Table) -> tuple[tuple[float, float], ...] | None:
    one = table.value("window", Span, None)
    several: tuple[tuple[float, float], ...] | None = table.value("windows", tuple[Span, ...], ())
    if "window" in table and "windows" in table:
        table.problem("windows", "not together with window")
        return None
    if "window" in table:
        return None if one is None else (one,)
    return several


def check_metrics(
    table: Table, names: Iterable[str], metrics: Metrics, variants: Iterable[Variant] | None
) -> None:
    """Checks that an experiment has what its metrics need.

    Args:
        table: The experiment.
        names: Its metrics.
        metrics: Those of the study.
        variants: Its variants; `None`: something is wrong with them.
    """
    listed = list(names) if metrics else []
    for name in listed:
        if name not in metrics:
            table.problem("metrics", f"no metric {name!r}{nearest(name, metrics)}")
            continue
        metric = metrics[name]
        if isinstance(metric, Gain) and metric.of not in listed:
            table.problem("metrics", f"{name!r} needs {metric.of!r} beside it")
        if not isinstance(metric, Measure):
            continue
        if metric.per not in ("", *listed):
            near = nearest(metric.per, listed)
            table.problem("metrics", f"{name!r} needs {metric.per!r} beside it{near}")
        for minus in metric.minus:
            if minus in metrics:
                if minus not in listed:
                    table.problem("metrics", f"{name!r} needs {minus!r} beside it")
                continue
            for variant in variants or ():
                if not is_number(dict(variant.key).get(minus, "")):
                    table.problem("metrics", f"{name!r}: {variant.text} has no number {minus!r}")
