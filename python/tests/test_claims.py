from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from airtcp.study import definition
from airtcp.study.cells import Results
from airtcp.study.claims import Verdict, judge
from tests.fakes import STUDY, write_study

EARLIER = [10.0, 11.0, 9.0, 10.5]
"""Values of size 1, one a seed."""


def verdict(
    folder: Path, test: str, later: list[float], earlier: list[float], study_text: str = STUDY
) -> Verdict:
    text = study_text.replace('test = "increasing"', test)
    study = definition.load(write_study(folder, text))
    experiment = study.experiments[0]
    results = Results(runs=len(later))
    for key, values in (("1", earlier), ("2", later)):
        results.values[experiment.id, (("size", key),), "goodput"] = np.array(values)
    return judge(study, experiment, experiment.claims[0], results)


GAIN = 'test = "gain"\nabout = 0.3\ntolerance = 0.1'
CLOSE = 'test = "close"\ntolerance = 0.02'
DIFFERENCE = 'test = "difference"\nabout = 2\ntolerance = 0.5'
PAPER = 'test = "paper"\ntolerance = 0.05'
WITHIN = 'test = "within"\nlow = 9\nhigh = 11'


@pytest.mark.parametrize(
    ("test", "later", "holds", "evidence"),
    [
        ('test = "equal"', EARLIER, True, "identical in each of 4 seeds"),
        ('test = "equal"', [10.0, 11.0, 9.0, 10.6], False, "differs in 1 of 4 seeds"),
        ('test = "increasing"', [12.0, 13.0, 10.5, 12.0], True, "size=2 > size=1 shown"),
        ('test = "increasing"', [10.1, 10.8, 9.2, 10.4], False, "not shown (p = 0."),
        ('test = "increasing"', [8.0, 9.0, 7.5, 8.0], False, "contradicted (< at 95%)"),
        ('test = "increasing"', EARLIER, False, "not shown (p = 1.0000)"),
        ('test = "decreasing"', [8.0, 9.0, 7.5, 8.0], True, "size=2 < size=1 shown"),
        ('test = "lowest"', [12.0, 13.0, 10.5, 12.0], True, "size=2 > size=1 shown"),
        ('test = "lowest"', [8.0, 9.0, 7.5, 8.0], False, "contradicted (< at 95%)"),
        (GAIN, [13.0, 14.4, 11.6, 13.7], True, "the interval reaches 30 ± 10 %"),
        (GAIN, [20.0, 22.1, 18.0, 21.0], False, "the interval misses 30 ± 10 %"),
        (GAIN, [10.1, 14.8, 9.2, 10.4], False, "improvement not shown"),
        (CLOSE, [10.01, 11.0, 9.01, 10.5], True, "asked: within ±2 %"),
        (CLOSE, [10.5, 11.5, 9.5, 11.0], False, "asked: within ±2 %"),
        (DIFFERENCE, [12.1, 12.9, 11.0, 12.5], True, "difference 2 kbit/s [1.87, 2.13]"),
        (DIFFERENCE, [11.0, 14.0, 10.0, 13.5], False, "asked: 2 ± 0.5 kbit/s"),
        (DIFFERENCE, EARLIER, False, "asked: 2 ± 0.5 kbit/s"),
        (WITHIN, EARLIER, True, "asked: 9 to 11 kbit/s"),
        (WITHIN, [12.0] * 4, False, "asked: 9 to 11 kbit/s"),
    ],
)
def test_verdict(tmp_path: Path, test: str, later: list[float], holds: bool, evidence: str) -> None:
    ours = verdict(tmp_path, test, later, EARLIER)
    assert (ours.holds, ours.experiment) == (holds, "E1")
    assert evidence in ours.evidence
    assert ours.evidence.startswith("goodput: ")


@pytest.mark.parametrize(
    ("ours", "holds", "evidence"),
    [
        ([208.0, 206.0, 209.0, 205.0], True, "(+3.5 % of 200)"),
        ([189.0, 189.5, 190.0, 187.5], False, "(-5.5 % of 200); asked: within ±5 % of the paper"),
    ],
)
def test_verdict_beside_the_papers_number(
    tmp_path: Path, ours: list[float], holds: bool, evidence: str
) -> None:
    only = "variants = [{ size = 2 }]"
    text = STUDY.replace("variants = [{ size = 1 }, { size = 2 }]", only)
    paper = verdict(tmp_path, PAPER, ours, EARLIER, text)
    assert paper.holds == holds
    assert evidence in paper.evidence


def test_with_one_run_nothing_is_shown(tmp_path: Path) -> None:
    assert not verdict(tmp_path, 'test = "increasing"', [2.0], [1.0]).holds
