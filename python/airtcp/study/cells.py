"""The numbers of a study: every metric of every variant over the seeds, and points of curves."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from airtcp.run import Run
from airtcp.runs.job import FIRST_SEED
from airtcp.runs.store import Store
from airtcp.stats import Band, Estimate, band, estimate, gain
from airtcp.study import plan
from airtcp.study.definition import (
    Curve,
    Experiment,
    Key,
    Known,
    Study,
    Timeline,
    Trace,
    Variant,
    key_text,
)
from airtcp.study.measure import Gain, Measure, measure, sample

Floats = npt.NDArray[np.float64]

CURVE_POINTS = 200
"""Number of points with which a curve is drawn."""


@dataclass(frozen=True)
class Cell:
    """One row of `cells.csv`.

    Attributes:
        instant: Whether it is a time on the run's clock.
        calibrated: Why it is no prediction: parameters were chosen with the paper's number in
            sight; empty: it is one.
    """

    experiment: str
    key: Key
    metric: str
    unit: str
    ours: Estimate
    paper: Known | None
    references: tuple[Known, ...]
    instant: bool = False
    calibrated: str = ""

    @property
    def text(self) -> str:
        """The `variant` column."""
        return key_text(self.key)

    @property
    def known(self) -> tuple[Known, ...]:
        """The numbers of others, the paper's first."""
        return (*((self.paper,) if self.paper else ()), *self.references)


@dataclass
class Points:
    """A curve over the seeds: the times, and one row of values per seed."""

    times: Floats
    values: Floats

    def band(self, confidence: float) -> Band:
        """Mean and interval at each time."""
        return band(self.values, confidence)


@dataclass
class Results:
    """Everything measured.

    Attributes:
        runs: The most seeds of a variant; an experiment may have fewer.
        values: By experiment, variant and metric: one value per seed, in the order of seeds.
        curves: By experiment, figure and variant.
        traces: By experiment, figure and variant: the run with the first seed.
        cells: The rows of `cells.csv`, in the study's order.
    """

    runs: int
    values: dict[tuple[str, Key, str], Floats] = field(default_factory=dict)
    curves: dict[tuple[str, str, Key], Points] = field(default_factory=dict)
    traces: dict[tuple[str, str, Key], Run] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    _index: dict[tuple[str, Key, str], Cell] = field(default_factory=dict)

    def cell(self, experiment: str, key: Key, metric: str) -> Cell:
        """The cell of a metric of a variant."""
        return self._index[experiment, key, metric]

    @property
    def sizes(self) -> set[int]:
        """The numbers of runs that variants have."""
        return {len(sample) for sample in self.values.values()}

    def deterministic(self, experiment: str, key: Key) -> bool:
        """Whether several runs of a variant have the same value of every metric."""
        samples = [v for (e, k, _), v in self.values.items() if (e, k) == (experiment, key)]
        equal = (np.array_equal(v, np.full_like(v, v[0]), equal_nan=True) for v in samples)
        return all(len(sample) > 1 for sample in samples) and all(equal)

    def add(self, cell: Cell) -> None:
        """Appends a cell."""
        self.cells.append(cell)
        self._index[cell.experiment, cell.key, cell.metric] = cell


NEAR = 0.1
"""A cell is near the paper's number if it differs by at most this fraction of it."""


@dataclass(frozen=True)
class Score:
    """How many of the paper's numbers a study meets.

    Attributes:
        predicted: Cells with a number of the paper and without calibration.
        near: Those of them that are near it (`NEAR`).
        calibrated: Cells left out, because parameters were chosen with their numbers in sight.
    """

    predicted: int
    near: int
    calibrated: int

    def __str__(self) -> str:
        """In words, for a reader of the results."""
        if not self.predicted:
            return "All numbers of the paper are calibrated, and not compared"
        met = f"{self.near} of {self.predicted} numbers of the paper are met"
        left_out = f" ({self.calibrated} calibrated, left out)" if self.calibrated else ""
        return f"{met} within {100 * NEAR:g} %{left_out}"


def score(cells: Iterable[Cell]) -> Score:
    """Compares the cells with the paper's numbers; an undefined cell is not near.

    Instants are left out: any two late in a run are within a tenth of each other.
    """
    known = [cell for cell in cells if cell.paper and not cell.instant]
    predicted = [cell for cell in known if not cell.calibrated]
    return Score(len(predicted), sum(map(_is_near, predicted)), len(known) - len(predicted))


def _is_near(cell: Cell) -> bool:
    paper = float(cell.paper.value) if cell.paper else math.nan
    return abs(cell.ours.mean - paper) <= NEAR * abs(paper)


def measure_all(
    study: Study, experiments: Iterable[Experiment], store: Store, runs: int
) -> Results:
    """Measures the kept runs of the experiments.

    Raises:
        LookupError: A metric needs something that the runs do not have.
        ValueError: A kept run is damaged.
    """
    results = Results(runs)
    for experiment in experiments:
        measures = [
            metric
            for metric in (study.metrics[name] for name in experiment.metrics)
            if isinstance(metric, Measure)
        ]
        for variant in experiment.variants:
            _measure_variant(study, experiment, variant, measures, store, results)
        for variant in experiment.variants:
            _cells_of(study, experiment, variant, results)
        for figure in experiment.figures:
            if isinstance(figure, Curve):
                _cells_of_curve(study, experiment, figure, results)
    return results


def _grid(figure: Curve) -> Floats:
    """The times at which a curve is sampled: those of its cells, and those for drawing."""
    start, end = figure.window
    points = np.round(np.arange(start, end + figure.step / 2, figure.step), 9)
    return np.union1d(points, np.linspace(start, end, CURVE_POINTS + 1).round(9))


def _measure_variant(
    study: Study,
    experiment: Experiment,
    variant: Variant,
    measures: Iterable[Measure],
    store: Store,
    results: Results,
) -> None:
    figures = [figure for figure in experiment.figures if variant in figure.variants]
    values: dict[str, list[float]] = {metric.name: [] for metric in measures}
    curves: dict[str, list[Floats]] = {}
    for seed in plan.seeds(experiment, results.runs):
        if study.model is not None and study.model.computes(variant.key):
            run = Run({"measured": study.model.values(variant.key)})
        else:
            run = store.get(plan.job(study, experiment, variant, seed))
        measured = {metric.name: measure(run, metric) for metric in measures}
        for metric in measures:
            less = sum(
                measured[name] if name in measured else float(dict(variant.key)[name])
                for name in metric.minus
            )
            divisor = measured[metric.per] if metric.per else 1.0
            value = measured[metric.name] - less
            values[metric.name].append(value / divisor if divisor else math.nan)
        for figure in figures:
            if isinstance(figure, Curve):
                series = run.array(figure.series)
                curves.setdefault(figure.id, []).append(
                    sample(series, _grid(figure), figure.transform, figure.scale)
                )
            elif isinstance(figure, Trace | Timeline) and seed == FIRST_SEED:
                results.traces[experiment.id, figure.id, variant.key] = run
    for name, numbers in values.items():
        results.values[experiment.id, variant.key, name] = np.array(numbers)
    for figure in figures:
        if isinstance(figure, Curve):
            results.curves[experiment.id, figure.id, variant.key] = Points(
                _grid(figure), np.array(curves[figure.id])
            )


def _cells_of(study: Study, experiment: Experiment, variant: Variant, results: Results) -> None:
    for name in experiment.metrics:
        metric = study.metrics[name]
        if isinstance(metric, Gain):
            values = results.values[experiment.id, variant.key, metric.of]
            baseline = results.values[
                experiment.id, experiment.baseline(metric, variant), metric.of
            ]
            ours = gain(values, baseline, study.confidence).scaled(100)
        else:
            ours = estimate(results.values[experiment.id, variant.key, name], study.confidence)
        at = (experiment.id, variant.text, name)
        results.add(
            Cell(
                experiment=experiment.id,
                key=variant.key,
                metric=name,
                unit=metric.unit,
                ours=ours,
                paper=study.paper.get(at),
                references=study.references.get(at, ()),
                instant=isinstance(metric, Measure) and metric.is_instant,
                calibrated=study.calibrated.get(at, ""),
            )
        )


def _cells_of_curve(study: Study, experiment: Experiment, figure: Curve, results: Results) -> None:
    for variant in figure.variants:
        curve = results.curves[experiment.id, figure.id, variant.key]
        points = zip(curve.times, *curve.band(study.confidence), strict=True)
        for time, mean, low, high in points:
            if not _is_step(time - figure.window[0], figure.step):
                continue
            key = tuple(sorted((*variant.key, ("t", f"{time:g}"))))
            ours = Estimate(float(mean), float(low), float(high), len(curve.values))
            cell = Cell(experiment.id, key, figure.metric, figure.unit, ours, None, ())
            results.add(cell)


def _is_step(offset: float, step: float) -> bool:
    return math.isclose(offset / step, round(offset / step), abs_tol=1e-9)
