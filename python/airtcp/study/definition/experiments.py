"""Reading `[[experiment]]`, with its figures and claims."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from airtcp.runs.testbed import Key
from airtcp.study.definition.figures import (
    KINDS,
    Bars,
    Figure,
    Lines,
    MetricRow,
    SeriesRow,
    Timeline,
)
from airtcp.study.definition.metrics import Metrics, check_metrics
from airtcp.study.definition.model import TESTS, Claim, Experiment, baseline
from airtcp.study.definition.variants import Grids, Variant, as_key, key_of, key_text, selected
from airtcp.study.document import Table, one_of
from airtcp.study.fields import Portion, is_number
from airtcp.study.measure import Gain
from airtcp.words import nearest

Variants = tuple[Variant, ...]


@dataclass(frozen=True)
class Reader:
    """Reads the experiments of a study.

    Attributes:
        grids: Its axes and grids.
        metrics: Its metrics.
        runs: Its seeds per variant; `None`: something is wrong with that.
        quick: What `--quick` overrides.
    """

    grids: Grids
    metrics: Metrics
    runs: int | None
    quick: Key

    def experiment(self, table: Table) -> Experiment | None:
        """Reads one experiment; none if something is wrong with it, which has been said."""
        overrides = dict(key_of(table.table("set"))) | dict(self.quick)
        fixed = Variant(key_of(table.table("key")), as_key(overrides))
        variants = self.grids.variants(table, fixed)
        if "grid" not in table:
            table.missing("grid")
        elif table.peek("grid") == []:
            table.problem("grid", "is empty")
        metrics: tuple[str, ...] | None = table.value("metrics", tuple[str, ...], ())
        check_metrics(table, metrics or (), self.metrics, variants)
        self._check_baselines(table, metrics or (), fixed.key, variants)
        part = _Part(self, fixed, variants, metrics)
        figures = [part.figure(figure) for figure in table.tables("figure")]
        claims = [
            part.claim(claim) for entry in table.tables("claim") for claim in entry.each("each")
        ]
        given: dict[str, Any] = {} if "runs" in table else {"runs": self.runs}
        experiment = table.read(
            Experiment,
            key=fixed.key,
            variants=variants,
            metrics=metrics,
            figures=None if None in figures else tuple(figures),
            claims=None if None in claims else tuple(claims),
            **given,
        )
        table.finish()
        return experiment

    def _check_baselines(
        self, table: Table, metrics: tuple[str, ...], fixed: Key, variants: Variants | None
    ) -> None:
        """Checks that the variants are there to which gains are relative."""
        known = {variant.key for variant in variants or ()}
        for name in metrics:
            gain = self.metrics.get(name)
            for variant in variants or () if isinstance(gain, Gain) else ():
                key = baseline(fixed, gain, variant)  # type: ignore[arg-type]
                if key not in known:
                    table.problem("metrics", f"{name!r}: no variant {key_text(key)}")


@dataclass(frozen=True)
class _Part:
    """Reads figures and claims of one experiment.

    Attributes:
        reader: What the study has.
        fixed: What all its variants share.
        variants: Its variants; `None`: something is wrong with them.
        metrics: Its metrics, likewise.
    """

    reader: Reader
    fixed: Variant
    variants: Variants | None
    metrics: tuple[str, ...] | None

    def figure(self, table: Table) -> Figure | None:
        kind = table.value("kind", Annotated[str, one_of(KINDS)])
        chosen = self._drawn(table)
        if kind is None:
            # What else is right depends on the kind.
            table.raw()
            table.finish()
            return None
        of_kind = KINDS[kind]
        made: dict[str, Any] = {"variants": chosen, "at": table.place}
        if of_kind is Lines:
            made["rows"] = self._rows(table, MetricRow)
            if "x-label" not in table:
                made["x_label"] = table.peek("x")
        elif of_kind is Timeline:
            made["rows"] = self._rows(table, SeriesRow)
        figure = table.read(of_kind, **made)
        table.finish()
        if isinstance(figure, Bars):
            self._check_metric(table, figure.metric)
        elif isinstance(figure, Lines):
            for row, at in zip(figure.rows, table.tables("row") or [table], strict=True):
                self._check_metric(at, row.metric)
            _check_keys(table, figure)
        return figure

    def _drawn(self, table: Table) -> Variants | None:
        """The variants that a figure draws: by default, all."""
        if "grid" in table and "variants" in table:
            table.problem("grid", "not together with variants")
        if "grid" not in table:
            chosen = selected(table, self.fixed.key, self.variants)
            return self.variants if chosen == () else chosen
        chosen = self.reader.grids.variants(table, self.fixed)
        for variant in chosen or () if self.variants is not None else ():
            if variant not in (self.variants or ()):
                table.problem("grid", f"not in the experiment's grid: {variant.text}")
        return chosen

    def _rows(
        self, table: Table, kind: type[MetricRow] | type[SeriesRow]
    ) -> tuple[MetricRow | SeriesRow, ...] | None:
        """The rows of panels; without `row`, the figure's own keys are the only one."""
        several = table.tables("row")
        rows = [row.read(kind) for row in several or [table]]
        for row in several:
            row.finish()
        sound = tuple(row for row in rows if row is not None)
        return sound if len(sound) == len(rows) else None

    def _check_metric(self, table: Table, name: str) -> None:
        known = self.reader.metrics
        if known and name not in known:
            table.problem("metric", f"no metric {name!r}{nearest(name, known)}")
        elif known and self.metrics is not None and name not in self.metrics:
            table.problem("metric", f"not a metric of this experiment: {name!r}")

    def claim(self, table: Table) -> Claim | None:
        """Reads one claim; none if something is wrong with it, which has been said."""
        metric = table.value("metric", str)
        of = self.reader.metrics.get(metric or "")
        if metric is not None and self.metrics is not None and metric not in self.metrics:
            near = nearest(metric, self.metrics)
            table.problem("metric", f"not a metric of this experiment: {metric!r}{near}")
        elif isinstance(of, Gain):
            table.problem("metric", f"a gain is tested on what it is of: {of.of!r}")
        test = table.value("test", Annotated[str, one_of(TESTS)])
        compared = selected(table, self.fixed.key, self.variants)
        if test is None:
            table.raw()
        elif compared is not None:
            _check_compared(table, test, compared)
        claim = table.read(
            Claim,
            test=test,
            metric=metric,
            variants=compared,
            options=None if test is None else _options(table, test),
            at=table.place,
        )
        table.finish()
        return claim


def _check_keys(table: Table, figure: Lines) -> None:
    """Checks that the variants have the keys along which lines are drawn."""
    for key, names in (("x", (figure.x,)), ("columns", figure.columns), ("best", (figure.best,))):
        for variant in figure.variants:
            if missing := {*names} - {"", *dict(variant.key)}:
                near = nearest(min(missing), dict(variant.key))
                table.problem(key, f"{variant.text} has no key {min(missing)!r}{near}")
                break
    for variant in figure.variants:
        value = dict(variant.key).get(figure.x)
        if value is not None and not is_number(value):
            table.problem("x", f"not a number in {variant.text}")


def _check_compared(table: Table, test: str, compared: Variants) -> None:
    """Checks that a test has as many variants as it needs."""
    least = {"within": 1, "paper": 1, "widening": 4}.get(test, 2)
    if test in ("above", "fluctuates", "up-to", "widening") and (
        len(compared) < least or len(compared) % 2
    ):
        several = ", at least two of them" if test == "widening" else ""
        table.problem("variants", f"{test!r} compares pairs{several}")
    elif len(compared) < least:
        table.problem("variants", f"{test!r} compares at least {least}, found {len(compared)}")


def _options(table: Table, test: str) -> Mapping[str, float] | None:
    """The test's numbers; none if something is wrong with them."""
    names = TESTS[test]
    if test == "within" or (test == "gain" and ("low" in table or "high" in table)):
        names = tuple(name for name in ("low", "high") if name in table)
        if not names:
            table.problem("low", "is missing; a range has low, high or both")
            return None
    elif "share" in names:
        names = tuple(name for name in names if name in table)
    values = {name: table.value(name, Portion if name == "share" else float) for name in names}
    if None in values.values():
        return None
    if values.get("low", -math.inf) > values.get("high", math.inf):
        table.problem("low", "is above high")
        return None
    return values
