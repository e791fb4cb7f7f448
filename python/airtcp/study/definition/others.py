"""Reading what stands beside the experiments: testbeds, models, calibrated cells."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from airtcp.runs.testbed import Testbed, testbed_of
from airtcp.study.definition.model import Cell, Experiment
from airtcp.study.definition.variants import Variant, key_of, selected
from airtcp.study.document import Table, one_of
from airtcp.study.fields import Count
from airtcp.study.models import Model


def read_testbeds(
    tables: Iterable[Table], experiments: Iterable[Experiment], folder: Path
) -> tuple[Testbed, ...]:
    """Reads each `[[testbed]]`, and checks it against what it is to measure.

    Args:
        tables: They.
        experiments: Those of the study.
        folder: Where the programs run.
    """
    read = [(table, _testbed(table, folder)) for table in tables]
    testbeds = {testbed: table for table, testbed in read if testbed is not None}
    for experiment in experiments:
        measured = set()
        for variant in experiment.variants:
            testbed = testbed_of(testbeds, variant.key)
            if testbed is None:
                continue
            measured.add(variant)
            try:
                testbed.case_of(variant.key)
            except (KeyError, ValueError) as error:
                testbeds[testbed].problem("case", f"{variant.text}: no key {error}")
        for testbed, table in testbeds.items():
            own = {variant for variant in measured if testbed.measures(variant.key)}
            _check_figures(table, experiment, own, "the testbed records no series")
    return tuple(testbeds)


def _testbed(table: Table, folder: Path) -> Testbed | None:
    command = table.value("command", str)
    if command == "":
        table.problem("command", "is empty")
    testbed = table.read(
        Testbed,
        key=key_of(table.table("key")),
        command=None if command is None else tuple(shlex.split(command)),
        parallel=table.value("parallel", Count, 1),
        folder=str(folder),
    )
    table.finish()
    return testbed


def read_model(root: Table, experiments: Iterable[Experiment]) -> Model | None:
    """Reads `[model]`, and checks it against what it is to compute."""
    if "model" not in root:
        return None
    table = root.table("model")
    model = table.read(Model, key=key_of(table.table("key")))
    table.finish()
    if model is None:
        return None
    for experiment in experiments:
        computed = {variant for variant in experiment.variants if model.computes(variant.key)}
        for variant in sorted(computed, key=lambda variant: variant.text):
            try:
                model.values(variant.key)
            except ValueError as error:
                table.problem("function", f"{variant.text}: {error}")
        _check_figures(table, experiment, computed, "the model has no series")
    return model


def _check_figures(table: Table, experiment: Experiment, without: set[Variant], why: str) -> None:
    """Checks that figures of series draw no variant that has none."""
    for figure in experiment.figures:
        if figure.recorded and (drawn := without.intersection(figure.variants)):
            text = min(variant.text for variant in drawn)
            table.problems.at(figure.at, f"figure {figure.id}: {why} of {text}")


def read_calibrated(tables: Iterable[Table], experiments: Iterable[Experiment]) -> dict[Cell, str]:
    """The cells that each `[[calibrated]]` lists, with the reasons."""
    by_id = {experiment.id: experiment for experiment in experiments}
    cells: dict[Cell, str] = {}
    for table in tables:
        name = table.value("experiment", Annotated[str, one_of(by_id)])
        reason = table.value("reason", str)
        experiment = by_id.get(name)
        if experiment is None:
            table.raw()
        else:
            metric = table.value("metric", Annotated[str, one_of(experiment.metrics)], "")
            chosen = selected(table, experiment.key, experiment.variants)
            cells |= {
                (experiment.id, variant.text, of): reason
                for variant in chosen or experiment.variants
                for of in ([metric] if metric else experiment.metrics)
            }
        table.finish()
    return cells
