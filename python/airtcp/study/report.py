"""The report of a study: one HTML page with everything in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
from markupsafe import Markup

from airtcp import __version__
from airtcp.study.cells import Cell, Results, score
from airtcp.study.claims import Judgement, interval, number, summary
from airtcp.study.definition import Experiment, Study
from airtcp.study.execute import write_atomically
from airtcp.study.figures import Drawing


@dataclass(frozen=True)
class _Section:
    """An experiment as the template shows it."""

    experiment: Experiment
    judgements: list[Judgement]
    drawings: list[Drawing]
    rows: list[tuple[str, list[Cell]]]


def _inline(drawing: Drawing) -> Markup:
    """An SVG to put into the page: without its XML prolog, its ids made unique."""
    svg = drawing.svg.decode()
    svg = svg[svg.index("<svg") :]
    prefix = re.sub(r"[^A-Za-z0-9]", "-", f"{drawing.experiment}-{drawing.id}")
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{prefix}-", svg)
    return Markup(svg)


def _rows(experiment: Experiment, results: Results) -> list[tuple[str, list[Cell]]]:
    return [
        (
            variant.text,
            [results.cell(experiment.id, variant.key, metric) for metric in experiment.metrics],
        )
        for variant in experiment.variants
    ]


def write_report(
    path: Path,
    study: Study,
    experiments: Sequence[Experiment],
    results: Results,
    judgements: Sequence[Judgement],
    drawings: Sequence[Drawing],
) -> None:
    """Writes the page.

    Raises:
        OSError: The page cannot be written.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("airtcp.study"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    sections = [
        _Section(
            experiment,
            [judgement for judgement in judgements if judgement.experiment == experiment.id],
            [drawing for drawing in drawings if drawing.experiment == experiment.id],
            _rows(experiment, results),
        )
        for experiment in experiments
    ]
    page = environment.get_template("report.html.j2").render(
        study=study,
        sections=sections,
        judgements=judgements,
        summary=summary(judgements),
        score=score(results.cells),
        runs=results.runs,
        version=__version__,
        inline=_inline,
        interval=interval,
        number=number,
    )
    write_atomically(path, page.encode())
