"""Reading a study's folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from airtcp.errors import unreadable
from airtcp.runs.testbed import Key, Testbed
from airtcp.study.definition.catalogue import check_catalogue, read_catalogue
from airtcp.study.definition.experiments import Reader
from airtcp.study.definition.metrics import read_metrics
from airtcp.study.definition.model import Cell, Claim, Experiment, Known, Study
from airtcp.study.definition.numbers import read_numbers
from airtcp.study.definition.others import read_calibrated, read_model, read_testbeds
from airtcp.study.definition.variants import Grids, key_of
from airtcp.study.document import Document, Problems, Table
from airtcp.study.fields import Count, Share, is_number
from airtcp.study.labels import Labels
from airtcp.study.measure import Measure, Metric
from airtcp.study.models import Model
from airtcp.words import nearest


@dataclass(frozen=True, kw_only=True)
class Head:
    """The plain keys of `study.toml`."""

    name: str = ""
    title: str
    paper: str
    paper_label: str = "paper"
    reference: str = "reference"
    summary: str = ""
    headline: str = ""
    confidence: Share = 0.95


@dataclass(frozen=True)
class Quick:
    """`[quick]`; no `experiments`: all."""

    runs: Count = 5
    experiments: tuple[str, ...] = ()


def load(folder: Path, *, quick: bool = False) -> Study:
    """Reads a study.

    Args:
        folder: Its folder.
        quick: Whether its experiments are to have what `[quick]` sets.

    Raises:
        StudyError: The study is malformed; the message has a line for each mistake, which says
            where it is and what was expected.
    """
    problems = Problems()
    root = Document.read(folder / "study.toml", problems)
    head = root.read(Head)
    # If something is wrong with a part that others need, a stand-in lets these be checked.
    runs: int = root.value("runs", Count) or 1
    of_quick = root.table("quick")
    overrides = key_of(of_quick.table("set"))
    fast = of_quick.read(Quick)
    of_quick.finish()
    metrics = read_metrics(root)
    reader = Reader(Grids.read(root), metrics, runs, overrides if quick else ())
    tables = root.tables("experiment")
    _check_parts(root, tables)
    read = [reader.experiment(table) for table in tables]
    _check_names(root, of_quick, tables)
    scenarios = _scenarios(folder, tables)

    sound = {name: metric for name, metric in metrics.items() if metric is not None}
    experiments = tuple(experiment for experiment in read if experiment is not None)
    complete = len(sound) == len(metrics) and len(experiments) == len(read) > 0
    computed = experiments if complete else None
    label, reference = (head.paper_label, head.reference) if head else ("paper", "reference")
    paper = read_numbers(folder / "paper.csv", computed, label, problems)
    references = read_numbers(folder / "reference.csv", computed, reference, problems)
    catalogue = read_catalogue(folder / "paper-claims.toml", problems)
    beside = _beside(root, experiments if complete else None, folder)
    root.finish()
    if not problems.found:
        _check_claims(experiments, paper, problems)
        check_catalogue(catalogue, experiments, problems)
    problems.refuse()
    assert head is not None
    assert fast is not None
    return Study(
        name=head.name or folder.resolve().name,
        folder=folder,
        title=head.title,
        paper_title=head.paper,
        summary=head.summary,
        headline=head.headline,
        labels=beside.labels,
        testbeds=beside.testbeds,
        model=beside.model,
        runs=runs,
        quick_runs=fast.runs,
        quick_experiments=fast.experiments or tuple(e.id for e in experiments),
        confidence=head.confidence,
        metrics=sound,
        experiments=experiments,
        scenarios=scenarios,
        series=_series(sound, experiments),
        paper={cell: numbers[0] for cell, numbers in paper.items()},
        references=references,
        calibrated=beside.calibrated,
        catalogue={name: entry for name, (entry, _) in catalogue.items()},
    )


@dataclass(frozen=True)
class _Beside:
    """What stands beside the experiments."""

    labels: Labels
    testbeds: tuple[Testbed, ...]
    model: Model | None
    calibrated: Mapping[Cell, str]


def _beside(root: Table, experiments: tuple[Experiment, ...] | None, folder: Path) -> _Beside:
    """Reads it; `None`: something is wrong with experiments, by which it is judged."""
    if experiments is None:
        root = Table.empty(root, ("label", "testbed", "model", "calibrated"))
    known = experiments or ()
    keys = (variant.key for experiment in known for variant in experiment.variants)
    return _Beside(
        Labels.read(root.table("label"), keys),
        read_testbeds(root.tables("testbed"), known, folder.resolve().parents[1]),
        read_model(root, known),
        read_calibrated(root.tables("calibrated"), known),
    )


def _check_parts(root: Table, experiments: list[Table]) -> None:
    """Checks that the parts are there which the study needs."""
    needed = {
        "experiment": True,
        "axis": bool(experiments),
        "metric": any(table.peek("metrics") for table in experiments),
    }
    for part, is_needed in needed.items():
        if is_needed and part not in root:
            root.missing(part)


def _check_names(root: Table, quick: Table, tables: Iterable[Table]) -> None:
    """Checks that experiments and figures have names of their own, and that others name them."""
    experiments: list[object] = []
    figures: list[object] = []
    for table in tables:
        if (id_ := table.peek("id")) in experiments:
            table.problem("id", f"several experiments are called {id_}")
        experiments.append(id_)
        for figure in table.tables("figure"):
            if (id_ := figure.peek("id")) in figures:
                figure.problem("id", f"several figures are called {id_}")
            figures.append(id_)
    if not experiments:
        return
    headline = root.peek("headline")
    known = [id_ for id_ in figures if isinstance(id_, str)]
    if isinstance(headline, str) and headline not in ("", *known):
        root.problem("headline", f"no figure {headline!r}{nearest(headline, known)}")
    known = [id_ for id_ in experiments if isinstance(id_, str)]
    listed = quick.peek("experiments")
    for name in listed if isinstance(listed, list) else ():
        if isinstance(name, str) and name not in known:
            has = f"{nearest(name, known)}; it has {', '.join(known)}"
            quick.problem("experiments", f"the study has no experiment {name!r}{has}")


def _scenarios(folder: Path, tables: Iterable[Table]) -> dict[str, str]:
    """The texts of the scenario files."""
    texts: dict[str, str] = {}
    for table in tables:
        name = table.peek("scenario")
        if not isinstance(name, str) or name in texts:
            continue
        try:
            texts[name] = (folder / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            table.problem("scenario", unreadable(folder / name, error))
    return texts


def _series(
    metrics: Mapping[str, Metric], experiments: Iterable[Experiment]
) -> dict[tuple[str, Key], tuple[str, ...]]:
    """What the runs of each scenario file and overrides record."""
    names: dict[tuple[str, Key], set[str]] = {}
    for experiment in experiments:
        measured = {
            series
            for metric in (metrics[name] for name in experiment.metrics)
            if isinstance(metric, Measure) and metric.kind == "trace"
            for series in (metric.field, metric.since, metric.until)
            if series
        }
        for variant in experiment.variants:
            drawn = (f.recorded for f in experiment.figures if variant in f.variants)
            run = names.setdefault((experiment.scenario, variant.overrides), set())
            run.update(measured, *drawn)
    return {run: tuple(sorted(series)) for run, series in names.items()}


def _check_claims(
    experiments: Iterable[Experiment],
    paper: Mapping[Cell, tuple[Known, ...]],
    problems: Problems,
) -> None:
    """Checks that claims have ids of their own, and that the paper's numbers they need exist."""
    first: dict[str, Claim] = {}
    for experiment in experiments:
        for claim in experiment.claims:
            if (other := first.setdefault(claim.id, claim)) is not claim:
                problems.at(claim.at, f"claim {claim.id!r} is also at {other.at}")
            for variant in claim.variants if claim.test == "paper" else ():
                numbers = paper.get((experiment.id, variant.text, claim.metric), ())
                if not any(is_number(n.value) and float(n.value) != 0 for n in numbers):
                    cell = f"{experiment.id},{variant.text},{claim.metric}"
                    text = f"claim {claim.id}: paper.csv has no number, or 0, for {cell}"
                    problems.at(claim.at, text)
