from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from airtcp.study import definition
from airtcp.study.cells import Results
from airtcp.study.claims import Judgement, Verdict, count, judge, summary
from airtcp.study.document import StudyError
from tests.fakes import STUDY, write_study

EARLIER = [10.0, 11.0, 9.0, 10.5]
"""Values of size 1, one a seed."""


def judged(
    folder: Path,
    test: str,
    later: list[float],
    earlier: list[float],
    study_text: str = STUDY,
    change: Callable[[Results], None] = lambda _: None,
) -> Judgement:
    text = study_text.replace('test = "increasing"', test)
    study = definition.load(write_study(folder, text))
    experiment = study.experiments[0]
    results = Results(runs=len(later))
    for key, values in (("1", earlier), ("2", later)):
        results.values[experiment.id, (("size", key),), "goodput"] = np.array(values)
    change(results)
    return judge(study, experiment, experiment.claims[0], results)


GAIN = 'test = "gain"\nabout = 0.3\ntolerance = 0.1'
CLOSE = 'test = "close"\ntolerance = 0.02'
DIFFERENCE = 'test = "difference"\nabout = 2\ntolerance = 0.5'
AT_MOST = 'test = "at-most"\ntolerance = 0.5'
PAPER = 'test = "paper"\ntolerance = 0.05'
WITHIN = 'test = "within"\nlow = 9\nhigh = 11'


HOLDS, UNDECIDED, REFUTED = Verdict.HOLDS, Verdict.UNDECIDED, Verdict.REFUTED


@pytest.mark.parametrize(
    ("test", "later", "expected", "evidence"),
    [
        ('test = "equal"', EARLIER, HOLDS, "identical in each of 4 seeds"),
        ('test = "equal"', [10.0, 11.0, 9.0, 10.6], REFUTED, "different in 1 of 4 seeds"),
        ('test = "increasing"', [12.0, 13.0, 10.5, 12.0], HOLDS, "size 1 < size 2 shown"),
        ('test = "increasing"', [10.1, 10.8, 9.2, 10.4], UNDECIDED, "not shown (p = 0."),
        ('test = "increasing"', [8.0, 9.0, 7.5, 8.0], REFUTED, "contradicted (>: p = 0.0"),
        ('test = "increasing"', EARLIER, UNDECIDED, "not shown (p = 1.0000)"),
        ('test = "decreasing"', [8.0, 9.0, 7.5, 8.0], HOLDS, "size 2 < size 1 shown"),
        ('test = "decreasing"', [12.0, 13.0, 10.5, 12.0], REFUTED, "size 2 < size 1 contradicted"),
        ('test = "lowest"', [12.0, 13.0, 10.5, 12.0], HOLDS, "size 1 < size 2 shown"),
        ('test = "lowest"', [8.0, 9.0, 7.5, 8.0], REFUTED, "size 1 < size 2 contradicted"),
        ('test = "highest"', [8.0, 9.0, 7.5, 8.0], HOLDS, "size 2 < size 1 shown"),
        ('test = "highest"', [12.0, 13.0, 10.5, 12.0], REFUTED, "size 2 < size 1 contradicted"),
        (GAIN, [13.0, 14.4, 11.6, 13.7], HOLDS, "asked: 30 ± 10 %"),
        (GAIN, [20.0, 22.1, 18.0, 21.0], REFUTED, "gain 100.2 % ["),
        (GAIN, [10.1, 14.8, 9.2, 10.4], UNDECIDED, "asked: 30 ± 10 %"),
        (CLOSE, [10.01, 11.0, 9.01, 10.5], HOLDS, "asked: within ±2 %"),
        (CLOSE, [10.5, 11.5, 9.5, 11.0], REFUTED, "size 2 differs by 4.938 % ["),
        (CLOSE, [10.1, 11.2, 9.0, 10.8], UNDECIDED, "asked: within ±2 %"),
        (DIFFERENCE, [12.1, 12.9, 11.0, 12.5], HOLDS, "difference 2 kbit/s [1.87, 2.13]"),
        (DIFFERENCE, [11.0, 14.0, 10.0, 13.5], UNDECIDED, "asked: 2 ± 0.5 kbit/s"),
        (DIFFERENCE, EARLIER, REFUTED, "difference 0 kbit/s; asked: 2 ± 0.5 kbit/s"),
        (AT_MOST, [10.1, 11.2, 9.1, 10.7], HOLDS, "asked: at most 0.5 kbit/s"),
        (AT_MOST, [5.0, 6.0, 8.0, 7.0], HOLDS, "difference -3.625 kbit/s ["),
        (AT_MOST, [10.0, 14.0, 8.0, 10.5], UNDECIDED, "asked: at most 0.5 kbit/s"),
        (AT_MOST, [12.1, 12.9, 11.0, 12.5], REFUTED, "difference 2 kbit/s [1.87, 2.13]"),
        (WITHIN, EARLIER, UNDECIDED, "asked: 9 to 11 kbit/s"),
        (WITHIN, [12.0, 12.1, 11.9, 12.0], REFUTED, "asked: 9 to 11 kbit/s"),
        ('test = "gain"\nlow = 0.2', [13.0, 14.4, 11.6, 13.7], HOLDS, "asked: at least 20 %"),
        ('test = "gain"\nhigh = 0.2', [13.0, 14.4, 11.6, 13.7], REFUTED, "asked: at most 20 %"),
        ('test = "above"', [12.0, 13.0, 10.5, 12.0], HOLDS, "size 1 < size 2 shown"),
        ('test = "within"\nlow = 8', EARLIER, HOLDS, "asked: at least 8 kbit/s"),
        ('test = "within"\nhigh = 8', EARLIER, REFUTED, "asked: at most 8 kbit/s"),
        ('test = "within"\nlow = 8\nhigh = 8', EARLIER, REFUTED, "asked: 8 kbit/s"),
    ],
)
def test_verdict(
    tmp_path: Path, test: str, later: list[float], expected: Verdict, evidence: str
) -> None:
    ours = judged(tmp_path, test, later, EARLIER)
    assert (ours.verdict, ours.experiment) == (expected, "E1")
    assert evidence in ours.evidence
    assert ours.evidence.startswith("goodput: ")
    assert (ours.needed != "") == (expected == UNDECIDED)
    assert (ours.shown < 0.05, ours.contradicted < 0.05) == (expected == HOLDS, expected == REFUTED)


ONLY_SECOND = STUDY.replace("variants = [{ size = 1 }, { size = 2 }]", "variants = [{ size = 2 }]")


@pytest.mark.parametrize(
    ("ours", "expected", "evidence"),
    [
        ([206.0, 206.2, 205.9, 205.9], HOLDS, "(+3 % of 200)"),
        ([188.0, 188.5, 187.0, 187.5], REFUTED, "(-6.1 % of 200); asked: within ±5 % of the paper"),
        ([208.0, 196.0, 212.0, 205.0], UNDECIDED, "asked: within ±5 % of the paper; undecided: "),
    ],
)
def test_verdict_beside_the_papers_number(
    tmp_path: Path, ours: list[float], expected: Verdict, evidence: str
) -> None:
    paper = judged(tmp_path, PAPER, ours, EARLIER, ONLY_SECOND)
    assert paper.verdict == expected
    assert evidence in paper.evidence


def test_with_one_run_nothing_is_shown(tmp_path: Path) -> None:
    ours = judged(tmp_path, 'test = "increasing"', [2.0], [1.0])
    assert ours.verdict == UNDECIDED
    assert "not shown (fewer than two runs)" in ours.evidence
    assert ours.needed == "how many runs would decide it is not known"


@pytest.mark.parametrize(
    ("later", "expected", "evidence"),
    [
        ([3.0] * 3, HOLDS, "size 1 < size 2; "),
        ([1.0] * 3, REFUTED, "size 1 > size 2; "),
        ([2.0] * 3, REFUTED, "size 1 = size 2; "),
    ],
)
def test_equal_runs_are_compared_as_they_are(
    tmp_path: Path, later: list[float], expected: Verdict, evidence: str
) -> None:
    ours = judged(tmp_path, 'test = "increasing"', later, [2.0] * 3)
    assert ours.verdict == expected
    assert evidence in ours.evidence
    assert ours.evidence.endswith("; deterministic: 3 equal runs")
    assert "p " not in ours.evidence
    assert "paired" not in ours.evidence


def test_an_equal_metric_of_unequal_runs_is_not_deterministic(tmp_path: Path) -> None:
    def other_metric(results: Results) -> None:
        for size in ("1", "2"):
            results.values["E1", (("size", size),), "other"] = np.array([1.0, 2.0, 3.0])

    ours = judged(tmp_path, 'test = "increasing"', [3.0] * 3, [2.0] * 3, change=other_metric)
    assert ours.verdict == UNDECIDED
    assert "not shown (p = 0.1250)" in ours.evidence  # the sign test's 1/2³


@pytest.mark.parametrize(
    ("later", "needed"),
    [
        ([12.0, 12.5, 8.0, 11.0], "about 21 runs would decide it"),
        ([10.2, 10.9, 9.1, 10.31], "more than 10,000 runs would be needed to decide it"),
        ([11.0, 10.0, 10.0, 9.5], "no number of runs would decide it"),
    ],
)
def test_undecided_says_how_many_runs_would_decide(
    tmp_path: Path, later: list[float], needed: str
) -> None:
    ours = judged(tmp_path, 'test = "increasing"', later, EARLIER)
    assert ours.needed == needed
    assert ours.evidence.endswith(f"; undecided: {needed}")


THREE = STUDY.replace("size = [1, 2]", "size = [1, 2, 3]").replace(
    "variants = [{ size = 1 }, { size = 2 }]", "variants = [{ size = [1, 2, 3] }]"
)


@pytest.mark.parametrize(
    ("third", "expected"),
    [
        ([14.0, 15.5, 12.5, 14.0], HOLDS),
        ([11.9, 13.2, 10.3, 12.3], UNDECIDED),
        ([9.0, 10.5, 7.5, 9.0], REFUTED),
    ],
)
def test_one_pair_refutes_and_all_pairs_show(
    tmp_path: Path, third: list[float], expected: Verdict
) -> None:
    def add(results: Results) -> None:
        results.values["E1", (("size", "3"),), "goodput"] = np.array(third)

    second = [12.0, 13.0, 10.5, 12.0]
    assert judged(tmp_path, 'test = "increasing"', second, EARLIER, THREE, add).verdict == expected


FOUR = STUDY.replace("size = [1, 2]", "size = [1, 2, 3, 4]").replace(
    "variants = [{ size = 1 }, { size = 2 }]", "variants = [{ size = [1, 2, 3, 4] }]"
)


@pytest.mark.parametrize(
    ("lead", "expected"),
    [
        ([2.0, 2.1, 1.9, 2.0], HOLDS),
        ([1.0, 1.3, 0.7, 1.1], UNDECIDED),
        ([0.1, 0.0, 0.2, 0.1], REFUTED),
    ],
)
def test_a_lead_widens_if_it_grows_from_pair_to_pair(
    tmp_path: Path, lead: list[float], expected: Verdict
) -> None:
    third = [20.0, 18.0, 25.0, 22.0]

    def add(results: Results) -> None:
        results.values["E1", (("size", "3"),), "goodput"] = np.array(third)
        results.values["E1", (("size", "4"),), "goodput"] = np.array(third) + np.array(lead)

    second = [value + 1 for value in EARLIER]
    ours = judged(tmp_path, 'test = "widening"', second, EARLIER, FOUR, add)
    assert ours.verdict == expected
    assert "size 2 less size 1 1 kbit/s" in ours.evidence


def pairs(folder: Path, test: str, differences: list[list[float]]) -> Judgement:
    """The verdict on a claim about pairs, the second less the first of each by run."""
    count = len(differences)
    sizes = ", ".join(str(size) for size in range(1, 2 * count + 1))
    text = STUDY.replace("size = [1, 2]", f"size = [{sizes}]").replace(
        "variants = [{ size = 1 }, { size = 2 }]", f"variants = [{{ size = [{sizes}] }}]"
    )
    base = np.array([100.0, 101.0, 99.0, 100.5, 98.5, 102.0, 100.2, 99.4])

    def fill(results: Results) -> None:
        for place, difference in enumerate(differences):
            first, second = (("size", str(2 * place + 1)),), (("size", str(2 * place + 2)),)
            results.values["E1", first, "goodput"] = base
            results.values["E1", second, "goodput"] = base + np.array(difference)

    return judged(folder, test, [0.0] * 8, [0.0] * 8, text, fill)


UP = [1.0, 1.2, 0.8, 1.1, 0.9, 1.0, 1.3, 0.7]
DOWN = [-value for value in UP]
SLIGHTLY_DOWN = [-1.05, 0.25, -0.95, -0.15, -0.75, 0.15, -0.55, -0.45]
"""p = 0.019 of being below 0."""
NEITHER = [1.0, -1.0, 0.5, -0.5, 0.2, -0.2, 0.1, -0.1]


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ([SLIGHTLY_DOWN], REFUTED),
        ([SLIGHTLY_DOWN, NEITHER], REFUTED),
        ([SLIGHTLY_DOWN, NEITHER, NEITHER], UNDECIDED),
        ([DOWN, NEITHER, NEITHER], REFUTED),
        ([UP, UP, UP], HOLDS),
    ],
)
def test_a_contradiction_has_to_outweigh_the_number_of_comparisons(
    tmp_path: Path, differences: list[list[float]], expected: Verdict
) -> None:
    ours = pairs(tmp_path, 'test = "above"', differences)
    assert ours.verdict == expected
    remark = "no contradiction after correction for 3 comparisons"
    assert (remark in ours.evidence) == (expected == UNDECIDED)


def test_a_true_claim_on_ten_cells_is_refuted_in_at_most_5_percent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulated at the worst case: no difference anywhere."""
    # How many runs would decide it takes long to say, and is not asked here.
    monkeypatch.setattr("airtcp.study.claims.runs_to_show", lambda *_: 2.0)
    rng = np.random.default_rng(7)
    sizes = list(range(1, 21))
    text = STUDY.replace("size = [1, 2]", f"size = {sizes}").replace(
        "variants = [{ size = 1 }, { size = 2 }]", f"variants = [{{ size = {sizes} }}]"
    )
    study = definition.load(write_study(tmp_path, text.replace('"increasing"', '"above"')))
    verdicts = []
    for _ in range(400):
        results = Results(runs=8)
        for size in sizes:
            results.values["E1", (("size", str(size)),), "goodput"] = rng.normal(100, 1, 8)
        verdicts.append(judge(study, study.experiments[0], study.experiments[0].claims[0], results))
    refuted = np.mean([ours.verdict == REFUTED for ours in verdicts])
    assert refuted < 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5
    assert any("no contradiction after correction" in ours.evidence for ours in verdicts)


@pytest.mark.parametrize(
    ("share", "differences", "expected"),
    [
        (0.5, [UP, UP, NEITHER, DOWN], HOLDS),
        (0.75, [UP, UP, NEITHER, DOWN], UNDECIDED),
        (0.75, [UP, UP, DOWN, DOWN], REFUTED),
        (1.0, [UP, UP, UP, DOWN], REFUTED),
        (0.75, [UP, UP, UP, DOWN], HOLDS),
    ],
)
def test_most_is_a_share_of_the_pairs(
    tmp_path: Path, share: float, differences: list[list[float]], expected: Verdict
) -> None:
    ours = pairs(tmp_path, f'test = "above"\nshare = {share}', differences)
    assert ours.verdict == expected
    assert f"asked: {share:.0%}" in ours.evidence


THIRTY = [30 * value for value in UP]


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ([UP, THIRTY, NEITHER], HOLDS),
        ([UP, NEITHER], REFUTED),
        ([[2 * value for value in THIRTY], THIRTY], REFUTED),
    ],
)
def test_up_to_asks_the_largest_gain(
    tmp_path: Path, differences: list[list[float]], expected: Verdict
) -> None:
    ours = pairs(tmp_path, 'test = "up-to"\nabout = 0.3\ntolerance = 0.07', differences)
    assert ours.verdict == expected
    assert "asked of the largest: 30 ± 7 %" in ours.evidence


@pytest.mark.parametrize(
    ("about", "spread", "expected"),
    [(0.5, 10, HOLDS), (0.35, 10, HOLDS), (1.1, 10, REFUTED), (0.5, 60, UNDECIDED)],
)
def test_a_number_of_one_run_is_compared_with_what_one_run_has(
    tmp_path: Path, about: float, spread: float, expected: Verdict
) -> None:
    """A gain of 50 % on average. With a wide spread one run has it, but as well no gain at all."""
    rng = np.random.default_rng(3)
    later = list(150 + rng.normal(0, spread, 200))
    ours = judged(tmp_path, f'test = "one-run"\nabout = {about}', later, [100.0] * 200)
    assert ours.verdict == expected
    assert "95 of 100 runs" in ours.evidence
    # The interval of the mean would have refuted the second.
    assert abs(np.mean(later) - 150) < 10


def test_few_runs_do_not_say_what_one_run_has(tmp_path: Path) -> None:
    later = [150.0 + value for value in range(20)]
    ours = judged(tmp_path, 'test = "one-run"\nabout = 5', later, [100.0] * 20)
    assert (ours.verdict, ours.needed) == (UNDECIDED, "about 40 runs would decide it")


def test_our_own_claims_have_a_score_of_their_own(tmp_path: Path) -> None:
    paper = judged(tmp_path / "a", 'test = "increasing"', [8.0, 9.0, 7.5, 8.0], EARLIER)
    text = STUDY.replace('id = "faster"', 'id = "faster"\nours = true')
    own = judged(tmp_path / "b", 'test = "increasing"', [12.0, 13.0, 10.5, 12.0], EARLIER, text)
    assert summary([paper, own]) == (
        "0 of 1 claims hold, 0 undecided, 1 refuted; "
        "1 of 1 our own claims hold, 0 undecided, 0 refuted"
    )


def test_a_claim_on_a_calibrated_cell_is_no_prediction(tmp_path: Path) -> None:
    text = (
        ONLY_SECOND
        + """
[[calibrated]]
experiment = "E1"
metric = "goodput"
variants = [{ size = 2 }]
reason = "the rate was chosen to meet it"
"""
    )
    ours = judged(tmp_path, PAPER, [206.0, 206.2, 205.9, 205.9], EARLIER, text)
    assert (ours.verdict, ours.calibrated) == (HOLDS, True)
    assert ours.evidence.endswith("; calibrated: no prediction")
    assert count([ours]) == {"holds": 0, "undecided": 0, "refuted": 0, "calibrated": 1}
    assert summary([ours]) == (
        "0 of 1 claims hold, 0 undecided, 0 refuted, 1 calibrated, which are no predictions"
    )


def test_a_verdict_without_evidence_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StudyError) as error:
        judged(tmp_path, 'test = "increasing"', [np.nan] * 2, [1.0, 2.0])
    line = STUDY[: STUDY.index("[[experiment.claim]]")].count("\n") + 1
    assert f"study.toml:{line}: claim faster has no evidence: no run of size=2 has a value" in str(
        error.value
    )
