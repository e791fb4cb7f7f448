"""What a study is, read and checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from airtcp.runs.testbed import Key, Testbed
from airtcp.study.definition.figures import Figure
from airtcp.study.definition.variants import Variant, as_key
from airtcp.study.document import StudyError, one_of
from airtcp.study.fields import Count
from airtcp.study.labels import Labels
from airtcp.study.measure import Gain, Metric
from airtcp.study.models import Model
from airtcp.words import nearest

TESTS: Mapping[str, tuple[str, ...]] = {
    "equal": (),
    "close": ("tolerance",),
    "decreasing": (),
    "increasing": (),
    "above": ("share",),
    "fluctuates": ("share",),
    "lowest": (),
    "widening": (),
    "highest": (),
    "gain": ("about", "tolerance"),
    "up-to": ("about", "tolerance"),
    "one-run": ("about",),
    "difference": ("about", "tolerance"),
    "at-most": ("tolerance",),
    "within": ("low", "high"),
    "paper": ("tolerance",),
}
"""The kinds of tests, and the numbers each needs.

`within` may have one of its two only, and `gain` these instead of its own; `share` may be missing.
"""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of the paper as a tested inequality.

    Attributes:
        id: Its name in the outputs.
        text: The claim, in our words.
        quote: The paper's words.
        place: Where the paper says so.
        test: The test; see `claims`.
        metric: What is compared.
        variants: The cells compared, in the order of the test.
        options: The test's numbers.
        judges: Ids of the claims in the study's catalogue that it judges.
        reading: The reading of the paper that it tests, if the paper can be read in several ways;
            empty: it tests what all of them share.
        ours: Whether it is not the paper's but our own: a prediction, or a question of ours.
        at: `file:line` where it is written.
    """

    id: str
    text: str
    quote: str = ""
    place: str = ""
    test: Annotated[str, one_of(TESTS)]
    metric: str
    variants: tuple[Variant, ...]
    options: Mapping[str, float]
    judges: tuple[str, ...] = ()
    reading: str = ""
    ours: bool = False
    at: str


@dataclass(frozen=True)
class PaperClaim:
    """An entry of the catalogue `paper-claims.toml`: a statement of the paper that can be checked.

    Attributes:
        id: Its name.
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
    measure: str = ""
    contradicts: tuple[str, ...] = ()
    remark: str = ""
    not_judged: str = ""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Runs of one scenario over a grid, and their metrics, figures and claims.

    Attributes:
        id: Its name.
        title: What it is, in a few words.
        question: What it asks, in a sentence; may be empty.
        description: More about it; may be empty.
        scenario: The scenario file.
        runs: The most seeds per variant.
        key: The part that all variants' keys share.
        variants: What is run.
        metrics: Names of the metrics measured.
        figures: What is drawn.
        claims: What is tested.
    """

    id: str
    title: str
    question: str = ""
    description: str = ""
    scenario: str
    runs: Count
    key: Key
    variants: tuple[Variant, ...]
    metrics: tuple[str, ...]
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]

    def baseline(self, gain: Gain, variant: Variant) -> Key:
        """The variant that a variant's gain is relative to."""
        return baseline(self.key, gain, variant)


def baseline(fixed: Key, gain: Gain, variant: Variant) -> Key:
    """The variant that a variant's gain is relative to; `fixed` is the experiment's key."""
    same = {key: value for key, value in variant.key if key in gain.same}
    return as_key(dict(fixed) | same | dict(gain.baseline))


@dataclass(frozen=True)
class Known:
    """A number that others published for a cell.

    Attributes:
        source: Whose it is, as headings and legends call it.
        value: The number, as written.
        unit: Its unit.
        quote: The words of the source.
        place: Where the source says so.
    """

    source: str
    value: str
    unit: str
    quote: str
    place: str


Cell = tuple[str, str, str]
"""A cell: experiment, variant, metric."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A paper's experiments.

    Attributes:
        name: Its name.
        folder: Its folder.
        title: What it is about.
        paper_title: Authors and title of the paper.
        summary: A paragraph for the head of the report; may be empty.
        headline: The id of the figure that heads the report; empty: none does.
        labels: Words for variants.
        testbeds: What measures some variants instead of the simulator.
        model: What computes some variants instead of the simulator.
        runs: Seeds per variant.
        quick_runs: Seeds per variant with `--quick`.
        quick_experiments: Ids of the experiments that `--quick` runs.
        confidence: Confidence level of intervals and tests, from 0 to 1.
        metrics: The metrics by name.
        experiments: The experiments, in the order of the file.
        scenarios: The text of each scenario file.
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
    paper: Mapping[Cell, Known]
    references: Mapping[Cell, tuple[Known, ...]]
    calibrated: Mapping[Cell, str]
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
