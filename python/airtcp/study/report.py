"""The report of a study: one HTML page with everything in it, which opens without a network."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from airtcp.runs.store import write_atomically
from airtcp.study.cells import Cell, Results, score
from airtcp.study.chart import Chart
from airtcp.study.claims import Judgement, Verdict, count, interval, runs_text, summary
from airtcp.study.definition import Experiment, PaperClaim, Study, Variant
from airtcp.study.interactive import ENVIRONMENT


def today() -> str:
    """The date in UTC, or that of `SOURCE_DATE_EPOCH` (reproducible-builds.org).

    Raises:
        ValueError: The variable is not a number of seconds since 1970.
    """
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given and not given.isdecimal():
        raise ValueError(f"SOURCE_DATE_EPOCH={given!r}: expected the seconds since 1970")
    return datetime.fromtimestamp(int(given or time.time()), UTC).date().isoformat()


@dataclass(frozen=True)
class Origin:
    """Where a report comes from.

    Attributes:
        build: Version and hash of the simulator.
        command: What makes it again.
        date: The day on which it was made.
    """

    build: str
    command: str
    date: str = field(default_factory=today)


@dataclass(frozen=True)
class _Section:
    """An experiment as the template shows it.

    Attributes:
        scenario: The text of the scenario file, which goes with the page wherever it is sent.
        file: The name under which the page saves it.
        data: The text as a link.
    """

    experiment: Experiment
    judgements: list[Judgement]
    charts: list[Chart]
    rows: list[tuple[Variant, list[Cell]]]
    counts: dict[str, int]
    scenario: str
    file: str
    data: str


def write_report(
    path: Path,
    study: Study,
    experiments: Sequence[Experiment],
    results: Results,
    judgements: Sequence[Judgement],
    charts: Sequence[Chart],
    origin: Origin,
) -> None:
    """Writes the page.

    Raises:
        OSError: The page cannot be written.
    """
    sections = [
        _section(study, experiment, results, judgements, charts) for experiment in experiments
    ]
    headline = next((chart for chart in charts if chart.id == study.headline), None)
    page = ENVIRONMENT.get_template("report.html.j2").render(
        study=study,
        sections=sections,
        headline=headline,
        summary=summary(judgements),
        counts=count(judgements),
        verdicts=[verdict.value for verdict in Verdict],
        score=score(results.cells),
        not_judged=_not_judged(study),
        runs=runs_text(results.sizes),
        origin=origin,
        interval=interval,
    )
    write_atomically(path, page.encode())


def _section(
    study: Study,
    experiment: Experiment,
    results: Results,
    judgements: Sequence[Judgement],
    charts: Sequence[Chart],
) -> _Section:
    own = [judgement for judgement in judgements if judgement.experiment == experiment.id]
    rows = [
        (
            variant,
            [results.cell(experiment.id, variant.key, metric) for metric in experiment.metrics],
        )
        for variant in experiment.variants
    ]
    scenario = study.scenarios[experiment.scenario]
    return _Section(
        experiment=experiment,
        judgements=own,
        charts=[chart for chart in charts if chart.experiment == experiment.id],
        rows=rows,
        counts=count(own),
        scenario=scenario,
        file=Path(experiment.scenario).name,
        data=f"data:text/plain;charset=utf-8,{quote(scenario)}",
    )


def _not_judged(study: Study) -> list[PaperClaim]:
    return [entry for entry in study.catalogue.values() if entry.not_judged]
