"""What figures show, before anything draws it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airtcp.run import Run
from airtcp.runs.store import Store
from airtcp.study import definition, plan
from airtcp.study.cells import Results, measure_all
from airtcp.study.chart import Chart
from airtcp.study.document import StudyError
from airtcp.study.figures import chart_all
from airtcp.study.interactive import chart_json
from airtcp.study.picture import draw
from tests.fakes import PAPER, STUDY, fake_run, write_study

BARS = """
[[experiment.figure]]
id = "E2-goodput"
kind = "bars"
title = "goodput"
metric = "goodput"
label = "goodput"
"""


@dataclass(frozen=True)
class Drawn:
    """The charts of a study, and its results."""

    results: Results
    charts: dict[str, Chart]


def drawn(
    folder: Path,
    study: str,
    goodput: dict[int, list[float | None]] | None = None,
    paper: str = PAPER,
) -> Drawn:
    """Measures and draws; `goodput`, in kbit/s, replaces that of the runs, by size and seed."""
    loaded = definition.load(write_study(folder, study, paper))
    store = Store(folder / "runs", "1")
    for job in plan.jobs(loaded, loaded.experiments, 4):
        run = fake_run(job)
        if goodput is not None:
            size = 2 if ("link.A-B.rate", "2 Mbit/s") in job.overrides else 1
            value = goodput[size][job.seed - 1]
            flow: dict[str, Any] = dict(run.metrics["flows"][0])
            flow["goodput"] = None if value is None else 1e3 * value
            run = Run({**run.metrics, "flows": [flow]}, run.series)
        store.put(job, run.to_bytes())
    results = measure_all(loaded, loaded.experiments, store, 4)
    return Drawn(results, {c.id: c for c in chart_all(loaded, loaded.experiments, results)})


ABSENT = STUDY.replace(
    'from = "flow.goodput"\n', 'from = "flow.goodput"\nmissing = 0\nabsent = "aborted"\n'
).replace('metrics = ["cwnd"]', 'metrics = ["cwnd", "goodput"]')


def test_error_bars_are_the_tables_intervals_also_where_these_are_lopsided(tmp_path: Path) -> None:
    got = drawn(tmp_path, STUDY, {1: [100, 40, 160, 90], 2: [300, 290, 310, 305]})
    gains = got.charts["E1-lines"].panels[1].series[0]
    assert gains.low is not None
    assert gains.high is not None
    key = (("size", "2"),)
    ours = got.results.cell("E1", key, "goodput_gain").ours
    assert (gains.low[1], gains.y[1], gains.high[1]) == (ours.low, ours.mean, ours.high)
    # Fieller's interval is longer upwards.
    assert ours.high - ours.mean > 1.2 * (ours.mean - ours.low)
    page = json.loads(chart_json(got.charts["E1-lines"]))
    bar = page[1]["data"][0]["error_y"]
    assert bar["array"][1] > 1.2 * bar["arrayminus"][1]


def test_of_variants_that_differ_in_one_key_the_best_can_be_drawn(tmp_path: Path) -> None:
    text = (
        STUDY.replace("size = [1, 2] }", "size = [1, 2], n = 5 }")
        .replace("baseline = { size = 1 }", "baseline = { size = 1, n = 5 }")
        .replace("{ size = 1 }, {", "{ size = 1, n = 5 }, {")
        .replace(", { size = 2 }]", ", { size = 2, n = 5 }]")
        .replace('x = "size"\nlog-x = true', 'x = "n"\nbest = "size"')
    )
    paper = PAPER.replace("size=2", "n=5;size=2")
    goodput: dict[int, list[float | None]] = {1: [100, 110, 90, 105], 2: [200, 210, 190, 205]}
    panel = drawn(tmp_path, text, goodput, paper).charts["E1-lines"].panels[0]
    ours, _ = panel.series
    assert (list(ours.x), list(ours.y)) == ([5], [201.25])
    assert ours.texts == ("ours, n 5, size 2: 201.2 kbit/s [187.7, 214.8]",)


def test_aborted_runs_are_marked_and_not_drawn_as_zero(tmp_path: Path) -> None:
    got = drawn(tmp_path, ABSENT + BARS, {1: [None] * 4, 2: [200, 210, None, 205]})
    panel = got.charts["E2-goodput"].panels[0]
    assert list(panel.series[0].y) == [1]
    assert [(mark.place, mark.text) for mark in panel.marks] == [
        (0, "aborted"),
        (1, "aborted: 1 of 4"),
    ]


def test_a_zero_of_the_paper_for_an_aborted_run_is_marked_too(tmp_path: Path) -> None:
    paper = PAPER + "E2,size=1,goodput,kbit/s,0.0,,§3\nE2,size=2,goodput,kbit/s,0.0,,§3\n"
    small = write_study(tmp_path, ABSENT + BARS, paper)
    study = definition.load(small)
    assert study.paper["E2", "size=1", "goodput"].value == "0.0"
    store = Store(tmp_path / "runs", "1")
    for job in plan.jobs(study, study.experiments, 2):
        store.put(job, fake_run(job).to_bytes())
    results = measure_all(study, study.experiments, store, 2)
    charts = {c.id: c for c in chart_all(study, study.experiments, results)}
    panel = charts["E2-goodput"].panels[0]
    assert [mark.text for mark in panel.marks] == ["paper: aborted", "paper: aborted"]
    assert [series.name for series in panel.series] == ["ours"]


def test_bars_too_short_to_be_read_become_dots_on_a_logarithmic_axis(tmp_path: Path) -> None:
    goodput: dict[int, list[float | None]] = {1: [1, 1.1, 0.9, 1], 2: [200, 210, 190, 205]}
    short = drawn(tmp_path / "a", ABSENT + BARS, goodput).charts["E2-goodput"].panels[0]
    assert short.x.log
    assert not short.series[0].bars
    goodput[1] = [50, 51, 52, 53]
    long = drawn(tmp_path / "b", ABSENT + BARS, goodput).charts["E2-goodput"].panels[0]
    assert not long.x.log
    assert long.series[0].bars


def test_a_figure_for_which_no_run_has_data_is_an_error_with_its_line(tmp_path: Path) -> None:
    study = drop_claims(ABSENT.replace('missing = 0\nabsent = "aborted"\n', "") + BARS)
    line = study[: study.index(BARS)].count("\n") + 2
    with pytest.raises(StudyError, match=rf"study\.toml:{line}: figure E2-goodput"):
        drawn(tmp_path, study, {1: [None] * 4, 2: [None] * 4})


def drop_claims(study: str) -> str:
    """The study without the figures and claims that need the goodput of E1."""
    start, end = study.index('[[experiment.figure]]\nid = "E1-lines"'), study.index('id = "E2"')
    return study[:start] + study[study.rindex("[[experiment]]", 0, end) :]


def test_a_page_and_a_picture_show_the_same_numbers(tmp_path: Path) -> None:
    chart = drawn(tmp_path, STUDY).charts["E1"]
    page = json.loads(chart_json(chart))
    own = chart.panels[0].series[0]
    line = page[0]["data"][1]
    assert np.allclose(line["y"], own.y, rtol=1e-5)
    drawing = draw(chart, ".svg", ".png", ".pdf")
    assert drawing[".svg"].startswith(b"<?xml")
    assert drawing[".png"][1:4] == b"PNG"
    assert drawing[".pdf"].startswith(b"%PDF")
    assert b"/Type3" not in drawing[".pdf"]
    assert b"/FontFile2" in drawing[".pdf"]
    other = replace(own, y=own.y + 100)
    panel = replace(chart.panels[0], series=(other,))
    assert draw(replace(chart, panels=(panel,)), ".svg")[".svg"] != drawing[".svg"]


LABELS = """
[label]
size = { 1 = "small", "$value" = "size $value" }
"""


def labelled(folder: Path, labels: str) -> definition.Study:
    text = STUDY.replace("[[axis.size]]", f"{labels}\n[[axis.size]]", 1)
    return definition.load(write_study(folder, text))


def test_labels_name_variants(tmp_path: Path) -> None:
    labels = labelled(tmp_path, LABELS).labels
    one, two = (("size", "1"),), (("size", "2"),)
    assert [labels.distinct(key, [one, two]) for key in (one, two)] == ["small", "size 2"]


def test_labels_are_in_the_order_of_their_declaration_and_may_hide_pairs(tmp_path: Path) -> None:
    study = labelled(tmp_path, LABELS)
    words = {"tcp": {"reno": "Reno"}, "filter": {"none": "", "pc": "PC"}}
    labels = replace(study.labels, words=words)
    plain = (("filter", "none"), ("tcp", "reno"))
    filtered = (("filter", "pc"), ("r", "9"), ("tcp", "reno"))
    assert labels.text(filtered) == "Reno, PC, r 9"
    # What only hides is shown rather than nothing.
    assert labels.distinct(plain, [plain, filtered]) == "Reno"


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ('[label]\nsise = "x"', r"label\.sise: no variant has this key \(did you mean 'size'\?\)"),
        ('[label]\nsize = { 3 = "x" }', r"label\.size\.3: no variant has size=3"),
    ],
)
def test_a_label_of_nothing_is_refused_with_its_line(
    tmp_path: Path, labels: str, said: str
) -> None:
    with pytest.raises(StudyError, match=rf"study\.toml:\d+: {said}"):
        labelled(tmp_path, labels)
