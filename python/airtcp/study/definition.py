"""What a study is: `study.toml` and the tables beside it, read and checked."""

from __future__ import annotations

import csv
import itertools
import math
import os
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airtcp.study.labels import Labels
from airtcp.study.measure import FIELD_SOURCES, REDUCERS, Gain, Measure, Metric
from airtcp.study.models import Model
from airtcp.study.table import Rows, StudyError, Table, nearest
from airtcp.study.testbed import Testbed, testbed_of

Key = tuple[tuple[str, str], ...]
"""A variant's `key=value` pairs, sorted by key."""


def key_text(key: Key) -> str:
    """The `variant` column of the outputs: `key=value;key=value`."""
    return ";".join(f"{name}={value}" for name, value in key)


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


@dataclass(frozen=True)
class Row:
    """A row of panels of a figure: one quantity.

    Attributes:
        series: What is drawn: series of `trace` (several), `timeline` and `curve` (one).
        metric: Metric of `bars` and `lines`; the name of a curve's points in `cells.csv`.
        label: Label of the y axis, without the unit.
        unit: Unit of the y axis.
        scale: Factor from SI to `unit`, for series.
        log: `lines` and `timeline`: whether the y axis is logarithmic.
    """

    series: tuple[str, ...]
    metric: str
    label: str
    unit: str
    scale: float
    log: bool


@dataclass(frozen=True)
class Figure:
    """A figure of an experiment.

    Attributes:
        id: File name, and what the paper calls it.
        kind: `curve`: a series against time, mean over the seeds; `bars`: a metric, one bar per
            variant; `lines`: metrics against one key of the variants; `trace`: every point of
            some series of one run; `timeline`: series of one run, the variants in one panel.
        variants: The variants drawn, in this order.
        rows: The quantities drawn; `lines` and `timeline` may have several.
        transform: `curve`: `value`, or `mean-rate`: value / time, for a count of bytes so far.
        x: `lines`: the key along the x axis.
        x_label: `lines`: label of the x axis.
        columns: `lines`: keys; the figure has a column of panels for each combination of values.
        log_x: `lines`: whether the x axis is logarithmic.
        best: `lines`: a key; of the variants that differ in it alone, the one with the highest mean
            is drawn. Empty: all are.
        window: `curve`, `trace` and `timeline`: start and end, in seconds.
        step: `curve`: distance between points in `cells.csv`, in seconds.
        shade: `curve`, `trace` and `timeline`: spans of time that are shaded (outages, say).
        note: A sentence below it; may be empty.
        at: `file:line` where it is written.
    """

    id: str
    kind: str
    title: str
    variants: tuple[Variant, ...]
    rows: tuple[Row, ...]
    transform: str
    x: str
    x_label: str
    columns: tuple[str, ...]
    log_x: bool
    best: str
    window: tuple[float, float]
    step: float
    shade: tuple[tuple[float, float], ...]
    note: str
    at: str

    @property
    def row(self) -> Row:
        """The only row of a figure that has one."""
        return self.rows[0]

    @property
    def series(self) -> set[str]:
        """All series it draws."""
        return {name for row in self.rows for name in row.series}


@dataclass(frozen=True)
class Claim:
    """A statement of the paper as a tested inequality.

    Attributes:
        text: The claim, in our words.
        quote: The paper's words.
        place: Where the paper says so.
        kind: The test; see `claims`.
        metric: What is compared.
        variants: The cells compared, in the order of the test.
        options: The test's numbers.
        judges: Ids of the claims in the study's catalogue that it judges.
        ours: Whether it is not the paper's but our own: a prediction, or a question of ours.
        at: `file:line` where it is written.
    """

    id: str
    text: str
    quote: str
    place: str
    kind: str
    metric: str
    variants: tuple[Variant, ...]
    options: Mapping[str, float]
    judges: tuple[str, ...]
    ours: bool
    at: str


@dataclass(frozen=True)
class PaperClaim:
    """An entry of the catalogue `paper-claims.toml`: a statement of the paper that can be checked.

    Attributes:
        place: Where the paper says so.
        says: What it says, in our words.
        measure: What would have to be measured.
        contradicts: Ids of claims of the same paper that it contradicts.
        remark: Our remark, such as a contradiction with a table; may be empty.
        not_judged: Why the study does not judge it; empty if it does.
    """

    id: str
    place: str
    says: str
    measure: str
    contradicts: tuple[str, ...]
    remark: str
    not_judged: str


@dataclass(frozen=True)
class Experiment:
    """Runs of one scenario over a grid, and their metrics, figures and claims.

    Attributes:
        question: What it asks, in a sentence; may be empty.
        scenario: The scenario file.
        runs: The most seeds per variant.
        key: The part that all variants' keys share.
    """

    id: str
    title: str
    question: str
    description: str
    scenario: str
    runs: int
    key: Key
    variants: tuple[Variant, ...]
    metrics: tuple[str, ...]
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]

    def baseline(self, gain: Gain, variant: Variant) -> Key:
        """The variant that a variant's gain is relative to."""
        same = {key: value for key, value in variant.key if key in gain.same}
        return _sorted(dict(self.key) | same | dict(gain.baseline))


@dataclass(frozen=True)
class Known:
    """A number that others published for a cell.

    Attributes:
        source: Whose it is, as headings and legends call it.
    """

    source: str
    value: str
    unit: str
    quote: str
    place: str


@dataclass(frozen=True)
class Study:
    """A paper's experiments.

    Attributes:
        folder: Its folder.
        summary: A paragraph for the head of the report; may be empty.
        headline: The id of the figure that heads the report; empty: none does.
        labels: Words for variants.
        testbeds: What measures some variants instead of the simulator.
        model: What computes some variants instead of the simulator.
        series: The series that the runs of each scenario file and overrides record: those of all
            experiments, so that experiments share runs.
        paper: The paper's numbers by (experiment, variant, metric).
        references: Numbers of independent implementations and theories, likewise.
        calibrated: Why cells are no predictions, likewise.
        catalogue: The paper's claims, by id; empty if the study has no catalogue.
    """

    name: str
    folder: Path
    title: str
    paper_title: str
    summary: str
    headline: str
    labels: Labels
    testbeds: tuple[Testbed, ...]
    model: Model | None
    runs: int
    quick_runs: int
    quick_experiments: tuple[str, ...]
    confidence: float
    metrics: Mapping[str, Metric]
    experiments: tuple[Experiment, ...]
    scenarios: Mapping[str, str]
    series: Mapping[tuple[str, Key], tuple[str, ...]]
    paper: Mapping[tuple[str, str, str], Known]
    references: Mapping[tuple[str, str, str], tuple[Known, ...]]
    calibrated: Mapping[tuple[str, str, str], str]
    catalogue: Mapping[str, PaperClaim]

    def choose(self, ids: Iterable[str]) -> tuple[Experiment, ...]:
        """The experiments with these ids, in the study's order.

        Raises:
            StudyError: There is no such experiment; the message names the nearest.
        """
        known = [experiment.id for experiment in self.experiments]
        wanted = list(ids)
        for name in wanted:
            if name not in known:
                raise StudyError(
                    f"study {self.name} has no experiment {name!r}{nearest(name, known)}; "
                    f"it has {', '.join(known)}"
                )
        return tuple(experiment for experiment in self.experiments if experiment.id in wanted)


def folders() -> list[Path]:
    """Where to look for studies.

    `$AIRTCP_STUDIES` if set; else `studies/` in the working directory or above it; else beside
    the package or above it (a checkout).
    """
    if configured := os.environ.get("AIRTCP_STUDIES"):
        return [Path(configured)]
    here = Path.cwd()
    package = Path(__file__).resolve()
    candidates = [above / "studies" for above in [here, *here.parents, *package.parents]]
    found = [folder for folder in candidates if any(folder.glob("*/study.toml"))]
    return found[:1]


def names() -> list[str]:
    """Names of all studies found."""
    return sorted(
        {file.parent.name for folder in folders() for file in folder.glob("*/study.toml")}
    )


def find(study: str) -> Path:
    """The folder of a study given by name or path.

    Raises:
        StudyError: There is none; the message names the nearest.
    """
    as_path = Path(study)
    if (as_path / "study.toml").is_file():
        return as_path
    for folder in folders():
        if study in names() and (folder / study / "study.toml").is_file():
            return folder / study
    known = names()
    hint = f"known: {', '.join(known)}" if known else "none found; set AIRTCP_STUDIES to the folder"
    raise StudyError(f"no study {study!r}{nearest(study, known)}; {hint}")


def load(folder: Path, *, quick: bool = False) -> Study:
    """Reads a study.

    Args:
        folder: Its folder.
        quick: Whether its experiments are to have what `[quick]` sets.

    Raises:
        StudyError: The study is malformed; the message says where.
    """
    return _Reader(folder, Table.read(folder / "study.toml"), quick).study()


class _Reader:
    """Reads one `study.toml`; keeps what its parts refer to."""

    def __init__(self, folder: Path, root: Table, quick: bool) -> None:
        self._folder = folder
        self._root = root
        self._set = _key(root.table("quick").table("set")) if quick else ()
        self._axes: dict[str, list[Variant]] = {}
        self._grids: dict[str, Rows] = {}
        self._metrics: dict[str, Metric] = {}

    def study(self) -> Study:
        root = self._root
        axes = root.table("axis")
        for name in axes.raw():
            self._axes[name] = [
                variant for entry in axes.tables(name) for variant in _axis_entry(entry)
            ]
        grids = root.table("grid")
        self._grids = {name: grids.rows(name, {}) for name in grids.raw()}
        for name, table in root.table("metric").items():
            self._metrics[name] = self._metric(name, table)
        experiments = tuple(self._experiment(table) for table in root.tables("experiment"))
        if not experiments:
            raise root.error("experiment", "is missing")
        ids = [experiment.id for experiment in experiments]
        if len(set(ids)) != len(ids):
            raise root.error("experiment", f"ids are not unique: {', '.join(ids)}")
        figures = [figure.id for experiment in experiments for figure in experiment.figures]
        if repeated := {name for name in figures if figures.count(name) > 1}:
            raise root.error("experiment", f"several figures are called {min(repeated)}")
        scenarios = {name: self._scenario(name) for name in {e.scenario for e in experiments}}
        testbeds = self._testbeds(experiments)
        model = self._model(experiments)
        quick = root.table("quick")
        quick.table("set")
        reference_title = root.text("reference", "reference")
        paper = {
            cell: number
            for cell, (number,) in _known(
                self._folder / "paper.csv", experiments, root.text("paper-label", "paper")
            ).items()
        }
        _check_claims(experiments, paper)
        catalogue = _catalogue(self._folder / "paper-claims.toml")
        _check_catalogue(catalogue, experiments)
        study = Study(
            name=root.text("name", self._folder.resolve().name),
            folder=self._folder,
            title=root.text("title"),
            paper_title=root.text("paper"),
            summary=root.text("summary", ""),
            headline=root.choice("headline", ("", *figures), ""),
            labels=Labels.read(
                root.table("label"), (v.key for e in experiments for v in e.variants)
            ),
            testbeds=testbeds,
            model=model,
            runs=root.count("runs"),
            quick_runs=quick.count("runs", 5),
            quick_experiments=quick.texts("experiments", ids),
            confidence=root.number("confidence", 0.95),
            metrics=self._metrics,
            experiments=experiments,
            scenarios=scenarios,
            series=self._series(experiments),
            paper=paper,
            references=_known(self._folder / "reference.csv", experiments, reference_title),
            calibrated=_calibrated(root.tables("calibrated"), experiments),
            catalogue={name: entry for name, (entry, _) in catalogue.items()},
        )
        quick.finish()
        root.finish()
        study.choose(study.quick_experiments)
        return study

    def _testbeds(self, experiments: Iterable[Experiment]) -> tuple[Testbed, ...]:
        project = str(self._folder.resolve().parents[1])
        tables = self._root.tables("testbed")
        testbeds = tuple(Testbed.read(table, _key(table.table("key")), project) for table in tables)
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
                    table = tables[testbeds.index(testbed)]
                    raise table.error("case", f"{variant.text}: no key {error}") from error
            for figure in experiment.figures:
                if figure.series and (drawn := measured.intersection(figure.variants)):
                    text = min(variant.text for variant in drawn)
                    raise StudyError(
                        f"{figure.at}: figure {figure.id}: the testbed records no series of {text}"
                    )
        return testbeds

    def _model(self, experiments: Iterable[Experiment]) -> Model | None:
        if "model" not in self._root:
            return None
        table = self._root.table("model")
        model = Model.read(table, _key(table.table("key")))
        for experiment in experiments:
            computed = [v for v in experiment.variants if model.computes(v.key)]
            for variant in computed:
                try:
                    model.values(variant.key)
                except ValueError as error:
                    raise table.error("function", f"{variant.text}: {error}") from error
            for figure in experiment.figures:
                if figure.series and (drawn := set(computed).intersection(figure.variants)):
                    text = min(variant.text for variant in drawn)
                    raise StudyError(
                        f"{figure.at}: figure {figure.id}: the model has no series of {text}"
                    )
        return model

    def _scenario(self, name: str) -> str:
        try:
            return (self._folder / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise StudyError(f"{self._folder / name}: {error}") from error

    def _series(self, experiments: Iterable[Experiment]) -> dict[tuple[str, Key], tuple[str, ...]]:
        names: dict[tuple[str, Key], set[str]] = {}
        for experiment in experiments:
            measured = {
                series
                for metric in (self._metrics[name] for name in experiment.metrics)
                if isinstance(metric, Measure) and metric.kind == "trace"
                for series in (metric.field, metric.since, metric.until)
                if series
            }
            for variant in experiment.variants:
                drawn = (f.series for f in experiment.figures if variant in f.variants)
                run = names.setdefault((experiment.scenario, variant.overrides), set())
                run.update(measured, *drawn)
        return {run: tuple(sorted(series)) for run, series in names.items()}

    def _metric(self, name: str, table: Table) -> Metric:
        unit, definition = table.text("unit"), table.text("definition")
        gain_of = table.text("gain-of", "")
        metric: Metric
        if gain_of:
            if not isinstance(self._metrics.get(gain_of), Measure):
                raise table.error("gain-of", f"no metric {gain_of!r} above this one")
            baseline = _key(table.table("baseline"))
            metric = Gain(name, unit, definition, gain_of, baseline, table.texts("same"))
            if unit != "%":
                raise table.error("unit", f'a gain is in "%", found {unit!r}')
        else:
            kind, _, rest = table.text("from").partition(".")
            if kind not in (*FIELD_SOURCES, "trace") or not rest:
                known = ", ".join(
                    [*(f"{source}.FIELD" for source in FIELD_SOURCES), "trace.SERIES"]
                )
                raise table.error("from", f"expected one of {known}")
            owner, _, field = rest.rpartition(".")
            since = table.text("since", "") if kind == "trace" else ""
            metric = Measure(
                name=name,
                unit=unit,
                definition=definition,
                kind=kind,
                owner=owner,
                field=field,
                scale=table.number("scale", 1.0),
                missing=table.optional_number("missing"),
                absent=table.text("absent", ""),
                reduce=table.choice("reduce", REDUCERS) if kind == "trace" else "",
                windows=_windows(table) if kind == "trace" else (),
                since=since,
                lasting=table.seconds("lasting") if since else 0.0,
                until=table.text("until", "") if kind == "trace" else "",
                over=table.choice("over", ("mean", "sum", "min", "max"), "mean"),
                equals=table.optional_number("equals"),
                minus=table.one_or_more("minus"),
                per=table.text("per", ""),
            )
        table.finish()
        return metric

    def _experiment(self, table: Table) -> Experiment:
        overrides = dict(_key(table.table("set"))) | dict(self._set)
        fixed = Variant(_key(table.table("key")), _sorted(overrides))
        variants = self._grid(table, fixed)
        if not variants:
            raise table.error("grid", "is missing or empty")
        metrics = table.texts("metrics")
        self._check_metrics(table, metrics, variants)
        claims = []
        for claim in (one for entry in table.tables("claim") for one in entry.each("each")):
            metric_name = claim.text("metric")
            if metric_name not in metrics:
                near = nearest(metric_name, metrics)
                raise claim.error(
                    "metric", f"not a metric of this experiment: {metric_name!r}{near}"
                )
            if isinstance(metric := self._metrics[metric_name], Gain):
                raise claim.error("metric", f"a gain is tested on what it is of: {metric.of!r}")
            claims.append(_claim(claim, metric_name, fixed.key, variants))
        experiment = Experiment(
            id=table.text("id"),
            title=table.text("title"),
            question=table.text("question", ""),
            description=table.text("description", ""),
            scenario=table.text("scenario"),
            runs=table.count("runs", self._root.count("runs")),
            key=fixed.key,
            variants=variants,
            metrics=metrics,
            figures=tuple(self._figure(f, fixed, variants) for f in table.tables("figure")),
            claims=tuple(claims),
        )
        for name in metrics:
            metric = self._metrics[name]
            if not isinstance(metric, Gain):
                continue
            known = {variant.key for variant in variants}
            for baseline in (experiment.baseline(metric, variant) for variant in variants):
                if baseline not in known:
                    raise table.error("metrics", f"{name!r}: no variant {key_text(baseline)}")
        table.finish()
        return experiment

    def _check_metrics(
        self, table: Table, metrics: tuple[str, ...], variants: Iterable[Variant]
    ) -> None:
        """Checks that an experiment has what its metrics need."""
        for name in metrics:
            self._check_metric(table, "metrics", name)
            metric = self._metrics[name]
            if isinstance(metric, Gain) and metric.of not in metrics:
                raise table.error("metrics", f"{name!r} needs {metric.of!r} beside it")
            if isinstance(metric, Measure) and metric.per not in ("", *metrics):
                near = nearest(metric.per, metrics)
                raise table.error("metrics", f"{name!r} needs {metric.per!r} beside it{near}")
            for minus in metric.minus if isinstance(metric, Measure) else ():
                if minus in self._metrics:
                    if minus not in metrics:
                        raise table.error("metrics", f"{name!r} needs {minus!r} beside it")
                    continue
                for variant in variants:
                    if not _is_number(dict(variant.key).get(minus, "")):
                        problem = f"{variant.text} has no number {minus!r}"
                        raise table.error("metrics", f"{name!r}: {problem}")

    def _check_metric(self, table: Table, key: str, name: str) -> None:
        if name not in self._metrics:
            raise table.error(key, f"no metric {name!r}{nearest(name, self._metrics)}")

    def _grid(self, table: Table, fixed: Variant) -> tuple[Variant, ...]:
        """The union of products of axes that `grid` lists, in order, each variant once."""
        variants: dict[Key, Variant] = {}
        for row in table.rows("grid", self._grids):
            for name in row:
                if name not in self._axes:
                    raise table.error("grid", f"no axis {name!r}{nearest(name, self._axes)}")
            for points in itertools.product(*(self._axes[name] for name in row)):
                key, overrides = dict(fixed.key), dict(fixed.overrides)
                for point in points:
                    for into, pairs in ((key, point.key), (overrides, point.overrides)):
                        for name, value in pairs:
                            if into.setdefault(name, value) != value:
                                raise table.error(
                                    "grid", f"{' × '.join(row)}: {name!r} has two values"
                                )
                variant = Variant(_sorted(key), _sorted(overrides))
                if variants.setdefault(variant.key, variant) != variant:
                    raise table.error("grid", f"two variants are called {variant.text}")
        return tuple(variants.values())

    def _figure(self, table: Table, fixed: Variant, variants: tuple[Variant, ...]) -> Figure:
        kind = table.choice("kind", ("curve", "bars", "lines", "trace", "timeline"))
        timed = kind in ("curve", "trace", "timeline")
        chosen = self._grid(table, fixed) or _selected(table, fixed.key, variants) or variants
        for variant in chosen:
            if variant not in variants:
                raise table.error("grid", f"not in the experiment's grid: {variant.text}")
        several = table.tables("row") if kind in ("lines", "timeline") else []
        rows = tuple(self._row(row, kind) for row in several) or (self._row(table, kind),)
        for row in several:
            row.finish()
        x = table.text("x") if kind == "lines" else ""
        columns = table.texts("columns") if kind == "lines" else ()
        best = table.text("best", "") if kind == "lines" else ""
        for variant in chosen if kind == "lines" else ():
            if missing := {x, *columns, best} - {"", *dict(variant.key)}:
                raise table.error("x", f"{variant.text} has no key {min(missing)!r}")
            if not _is_number(dict(variant.key)[x]):
                raise table.error("x", f"not a number in {variant.text}")
        window = table.window("window") if timed else (0.0, 0.0)
        if window is None:
            raise table.error("window", "is missing")
        figure = Figure(
            id=table.text("id"),
            kind=kind,
            title=table.text("title"),
            variants=chosen,
            rows=rows,
            transform=table.choice("transform", ("value", "mean-rate"), "value"),
            x=x,
            x_label=table.text("x-label", x) if kind == "lines" else "",
            columns=columns,
            log_x=table.flag("log-x", False) if kind == "lines" else False,
            best=best,
            window=window,
            step=table.seconds("step", 1.0) if kind == "curve" else 0.0,
            shade=table.windows("shade") if timed else (),
            note=table.text("note", ""),
            at=table.place(),
        )
        table.finish()
        return figure

    def _row(self, table: Table, kind: str) -> Row:
        timed = kind in ("curve", "trace", "timeline")
        metric = table.text("metric") if kind in ("curve", "bars", "lines") else ""
        if not timed:
            self._check_metric(table, "metric", metric)
        series = table.texts("series") if timed else ()
        if timed and (not series or (kind != "trace" and len(series) != 1)):
            raise table.error(
                "series", "a trace needs at least one series, other figures exactly one"
            )
        return Row(
            series=series,
            metric=metric,
            label=table.text("label"),
            unit=table.text("unit") if timed else self._metrics[metric].unit,
            scale=table.number("scale", 1.0) if timed else 1.0,
            log=table.flag("log", False) if kind in ("lines", "timeline") else False,
        )


def _sorted(pairs: Mapping[str, str]) -> Key:
    return tuple(sorted(pairs.items()))


def _value_text(value: Any) -> str:  # noqa: ANN401 - any TOML value
    return str(value).lower() if isinstance(value, bool) else str(value)


def _key(table: Table) -> Key:
    return _sorted({name: _value_text(value) for name, value in table.raw().items()})


def _windows(table: Table) -> tuple[tuple[float, float], ...]:
    one, several = table.window("window"), table.windows("windows")
    if one and several:
        raise table.error("windows", "not together with window")
    return (one,) if one else several


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _combinations(table: Table) -> list[dict[str, str]]:
    """Keys whose values may be lists: one set of keys for each combination of the values."""
    return [
        {name: _value_text(value) for name, value in values.items()}
        for values in table.combinations()
    ]


def _axis_entry(table: Table) -> list[Variant]:
    """The points of one axis entry: one for each combination of the values its keys list."""
    keys = _combinations(table.table("key"))
    overrides = table.table("set").raw()
    table.finish()
    points = []
    for key in keys:
        changes = {}
        for path, value in overrides.items():
            try:
                changes[path] = string.Template(_value_text(value)).substitute(key)
            except (KeyError, ValueError) as error:
                raise table.error(f"set.{path}", f"bad placeholder: {error}") from error
        points.append(Variant(_sorted(key), _sorted(changes)))
    return points


_CLAIM_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "equal": (),
    "close": ("tolerance",),
    "decreasing": (),
    "increasing": (),
    "lowest": (),
    "widening": (),
    "highest": (),
    "gain": ("about", "tolerance"),
    "difference": ("about", "tolerance"),
    "at-most": ("tolerance",),
    "within": ("low", "high"),
    "paper": ("tolerance",),
}
"""The kinds of tests, and the numbers each needs; `within` may have one of its two only."""


def _options(table: Table, kind: str) -> dict[str, float]:
    """The test's numbers."""
    if kind != "within":
        return {name: table.number(name) for name in _CLAIM_OPTIONS[kind]}
    ends = {name: table.optional_number(name) for name in _CLAIM_OPTIONS[kind]}
    options = {name: value for name, value in ends.items() if value is not None}
    if not options:
        raise table.error("low", "is missing; a range has low, high or both")
    if options.get("low", -math.inf) > options.get("high", math.inf):
        raise table.error("low", "is above high")
    return options


def _selected(table: Table, fixed: Key, variants: Iterable[Variant]) -> tuple[Variant, ...]:
    """The variants that `variants` lists, by their keys without the experiment's; may be none."""
    by_key = {variant.key: variant for variant in variants}
    chosen = []
    for selector in table.tables("variants"):
        for keys in _combinations(selector):
            key = _sorted(dict(fixed) | keys)
            if key not in by_key:
                text = key_text(key)
                near = nearest(text, (variant.text for variant in variants))
                raise table.error("variants", f"the grid has no {text}{near}")
            chosen.append(by_key[key])
    return tuple(chosen)


def _claim(table: Table, metric: str, fixed: Key, variants: tuple[Variant, ...]) -> Claim:
    kind = table.choice("test", _CLAIM_OPTIONS)
    compared = _selected(table, fixed, variants)
    least = 1 if kind in ("within", "paper") else 2
    if len(compared) < least:
        raise table.error("variants", f"{kind!r} compares at least {least}, found {len(compared)}")
    if kind == "widening" and (len(compared) < 4 or len(compared) % 2):  # noqa: PLR2004
        raise table.error("variants", f"{kind!r} compares pairs, at least two of them")
    claim = Claim(
        id=table.text("id"),
        text=table.text("text"),
        quote=table.text("quote", ""),
        place=table.text("place", ""),
        kind=kind,
        metric=metric,
        variants=compared,
        options=_options(table, kind),
        judges=table.texts("judges"),
        ours=table.flag("ours", False),
        at=table.place(),
    )
    table.finish()
    return claim


def _check_claims(
    experiments: Iterable[Experiment], paper: Mapping[tuple[str, str, str], Known]
) -> None:
    """Checks that claims have ids of their own, and that the paper's numbers they need exist."""
    first: dict[str, Claim] = {}
    for experiment in experiments:
        for claim in experiment.claims:
            if (other := first.setdefault(claim.id, claim)) is not claim:
                raise StudyError(f"{claim.at}: claim {claim.id!r} is also at {other.at}")
            for variant in claim.variants if claim.kind == "paper" else ():
                number = paper.get((experiment.id, variant.text, claim.metric))
                if number is None or float(number.value) == 0:
                    cell = f"{experiment.id},{variant.text},{claim.metric}"
                    raise StudyError(
                        f"{claim.at}: claim {claim.id}: paper.csv has no number, or 0, for {cell}"
                    )


def _catalogue(file: Path) -> dict[str, tuple[PaperClaim, Table]]:
    """Reads `paper-claims.toml`, if there is one: a table for each claim, named by its id."""
    if not file.exists():
        return {}
    catalogue = {}
    for name, table in Table.read(file).items():
        entry = PaperClaim(
            id=name,
            place=table.text("place"),
            says=table.text("says"),
            measure=table.text("measure", ""),
            contradicts=table.texts("contradicts"),
            remark=table.text("remark", ""),
            not_judged=table.text("not-judged", ""),
        )
        table.finish()
        catalogue[name] = entry, table
    for entry, table in catalogue.values():
        for other in entry.contradicts:
            if other not in catalogue:
                raise table.error("contradicts", f"no claim {other!r}{nearest(other, catalogue)}")
    return catalogue


def _check_catalogue(
    catalogue: Mapping[str, tuple[PaperClaim, Table]], experiments: Iterable[Experiment]
) -> None:
    """Checks that each claim of the catalogue is either judged or explained, and no other is."""
    judged: dict[str, Claim] = {}
    for claim in (claim for experiment in experiments for claim in experiment.claims):
        if catalogue and not claim.judges and not claim.ours:
            raise StudyError(
                f"{claim.at}: claim {claim.id}: judges: is missing; name the claims of "
                "paper-claims.toml that it judges, or say that it is ours"
            )
        if claim.ours and claim.judges:
            raise StudyError(f"{claim.at}: claim {claim.id}: ours: judges a claim of the paper")
        for name in claim.judges:
            if name not in catalogue:
                raise StudyError(
                    f"{claim.at}: claim {claim.id}: judges: paper-claims.toml has no {name!r}"
                    f"{nearest(name, catalogue)}"
                )
            judged.setdefault(name, claim)
    for name, (entry, table) in catalogue.items():
        if name in judged and entry.not_judged:
            at = judged[name].at
            raise table.error("not-judged", f"claim {judged[name].id} judges it ({at})")
        if name not in judged and not entry.not_judged:
            raise table.error("", 'no claim of study.toml judges it; say why: not-judged = "…"')


def _calibrated(
    tables: Iterable[Table], experiments: Iterable[Experiment]
) -> dict[tuple[str, str, str], str]:
    """The cells that `[[calibrated]]` lists, with the reasons."""
    by_id = {experiment.id: experiment for experiment in experiments}
    cells: dict[tuple[str, str, str], str] = {}
    for table in tables:
        experiment = by_id[table.choice("experiment", by_id)]
        metric = table.choice("metric", experiment.metrics) if "metric" in table else ""
        chosen = _selected(table, experiment.key, experiment.variants) or experiment.variants
        reason = table.text("reason")
        table.finish()
        cells |= {
            (experiment.id, variant.text, name): reason
            for variant in chosen
            for name in ([metric] if metric else experiment.metrics)
        }
    return cells


_KNOWN_COLUMNS = ("experiment", "variant", "metric", "unit", "value", "quote", "place")


def _known(
    file: Path, experiments: Iterable[Experiment], source: str
) -> dict[tuple[str, str, str], tuple[Known, ...]]:
    """Reads `paper.csv` or `reference.csv`; the study must compute the number of every row.

    Args:
        file: The table; a column `source` names each number's source, if there are several.
        experiments: What the study computes.
        source: The source of all numbers if the table has no such column.
    """
    if not file.exists():
        return {}
    cells = {
        (experiment.id, variant.text, metric)
        for experiment in experiments
        for variant in experiment.variants
        for metric in experiment.metrics
    }
    known: dict[tuple[str, str, str], tuple[Known, ...]] = {}
    with file.open(encoding="utf-8", newline="") as stream:
        rows = csv.DictReader(stream)
        columns = tuple(rows.fieldnames or ())
        if columns not in (_KNOWN_COLUMNS, (*_KNOWN_COLUMNS, "source")):
            expected = f"expected the columns {','.join(_KNOWN_COLUMNS)}"
            raise StudyError(f"{file}:1: {expected}, optionally followed by source")
        for row in rows:
            cell = (row["experiment"], row["variant"], row["metric"])
            if cell not in cells:
                text = " ".join(cell)
                near = nearest(text, (" ".join(other) for other in cells))
                raise StudyError(f"{file}:{rows.line_num}: the study computes no {text}{near}")
            if not _is_number(row["value"]):
                raise StudyError(
                    f"{file}:{rows.line_num}: value: expected a number, found {row['value']!r}"
                )
            whose = row.get("source", source)
            if whose in (other.source for other in known.get(cell, ())):
                raise StudyError(f"{file}:{rows.line_num}: {' '.join(cell)} occurs twice")
            number = Known(whose, row["value"], row["unit"], row["quote"], row["place"])
            known[cell] = (*known.get(cell, ()), number)
    return known
