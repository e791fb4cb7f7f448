"""The paper's claims as tests on the cells.

A claim *holds* if the numbers show it at the study's confidence, is *refuted* if they show the
opposite, and is *undecided* if they show neither; then the evidence says about how many runs would
decide it. A claim about several cells or pairs holds if each part does, and is refuted if any is.
The tests:

- `equal`: the variants have the same value in every run with the same seed; else refuted.
- `decreasing`, `increasing`: each variant differs from the one before in that direction, by a
  one-sided t test paired by seed; refuted by the same test of the opposite direction.
- `widening`: the variants are pairs; the second's lead over the first grows from pair to pair, by
  the same tests.
- `lowest`, `highest`: the first variant is below, or above, each of the others, by the same tests.

The others compare an interval with a range. Inside, the claim holds; outside, it is refuted:

- `close`: each further variant's gain over the first, with ±tolerance.
- `gain`: the second variant's gain over the first, with about ± tolerance.
- `difference`: the second variant's mean minus the first's, paired by seed, with about ± tolerance.
- `at-most`: the same difference, with everything up to the tolerance.
- `within`: each variant's mean, with [low, high].
- `paper`: each variant's mean, with the paper's number ± the fraction tolerance.

If every metric of each variant compared is the same in all runs, the simulation is deterministic:
then the numbers are compared as they are, without statistics.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from airtcp.stats import (
    MANY,
    Estimate,
    Floats,
    estimate,
    gain,
    p_greater,
    runs_to_show,
)
from airtcp.study.cells import Results
from airtcp.study.definition import Claim, Experiment, Key, Study, key_text
from airtcp.study.document import StudyError


class Verdict(StrEnum):
    """What the numbers say about a claim."""

    HOLDS = "holds"
    UNDECIDED = "undecided"
    REFUTED = "refuted"


@dataclass(frozen=True)
class Judgement:
    """One row of `claims.csv`.

    Attributes:
        evidence: The numbers, the test, and what qualifies the verdict.
        brief: Just the numbers compared, in the order of the claim's variants.
        calibrated: Whether the claim compares a calibrated cell with a number of the paper: then
            its verdict is no prediction.
        needed: If undecided: how many runs would decide it, in words; else empty.
        runs: Number of runs of each variant.
    """

    experiment: str
    claim: Claim
    verdict: Verdict
    evidence: str
    brief: str
    calibrated: bool
    needed: str
    runs: int


def judge_all(study: Study, experiments: Iterable[Experiment], results: Results) -> list[Judgement]:
    """Tests every claim of the experiments.

    Raises:
        StudyError: A claim compares a cell that has no value in any run.
    """
    return [
        judge(study, experiment, claim, results)
        for experiment in experiments
        for claim in experiment.claims
    ]


def judge(study: Study, experiment: Experiment, claim: Claim, results: Results) -> Judgement:
    """Tests one claim.

    Raises:
        StudyError: It compares a cell that has no value in any run.
    """
    keys = [variant.key for variant in claim.variants]
    samples = [results.values[experiment.id, key, claim.metric] for key in keys]
    for key, sample in zip(keys, samples, strict=True):
        if np.all(np.isnan(sample)):
            raise StudyError(
                f"{claim.at}: claim {claim.id} has no evidence: no run of {key_text(key)} has a "
                f"value of {claim.metric}"
            )
    cells = [(experiment.id, key_text(key), claim.metric) for key in keys]
    known = [study.paper.get(cell) for cell in cells]
    names = _names(study, keys)
    if claim.test == "widening":
        samples = [b - a for a, b in zip(samples[::2], samples[1::2], strict=True)]
        names = [f"{b} less {a}" for a, b in zip(names[::2], names[1::2], strict=True)]
    test = _Test(
        claim=claim,
        names=names,
        samples=samples,
        paper=[math.nan if number is None else float(number.value) for number in known],
        unit=study.metrics[claim.metric].unit,
        confidence=study.confidence,
        deterministic=all(results.deterministic(experiment.id, key) for key in keys),
    )
    parts, asked = test.run()
    verdict, needed = _together(parts)
    calibrated = claim.test in ("within", "paper") and any(c in study.calibrated for c in cells)
    remarks = [asked] if asked else []
    if test.deterministic:
        computed = study.model is not None and all(map(study.model.computes, keys))
        equal = f"deterministic: {len(samples[0])} equal runs"
        remarks.append("computed" if computed else equal)
    if needed:
        remarks.append(f"undecided: {needed}")
    if calibrated:
        remarks.append("calibrated: no prediction")
    evidence = "; ".join([", ".join(test.texts(parts)), *remarks])
    return Judgement(
        experiment=experiment.id,
        claim=claim,
        verdict=verdict,
        evidence=f"{claim.metric}: {evidence}",
        brief=test.brief(),
        calibrated=calibrated,
        needed=needed,
        runs=len(samples[0]),
    )


def count(judgements: Sequence[Judgement]) -> dict[str, int]:
    """How many claims got each verdict; those judged on calibrated cells are counted apart."""
    counts = {
        str(verdict): sum(j.verdict == verdict and not j.calibrated for j in judgements)
        for verdict in Verdict
    }
    return counts | {"calibrated": sum(j.calibrated for j in judgements)}


def summary(judgements: Sequence[Judgement]) -> str:
    """The counts in words: `17 claims hold, 3 undecided, 6 refuted`."""
    counts = count(judgements)
    words = [
        f"{counts['holds']} of {len(judgements)} claims hold",
        *(f"{counts[name]} {name}" for name in ("undecided", "refuted")),
    ]
    if counts["calibrated"]:
        words.append(f"{counts['calibrated']} calibrated, which are no predictions")
    return ", ".join(words)


def runs_text(runs: Iterable[int]) -> str:
    """How many runs variants have, in words: `100 runs`, or `20 to 100 runs`."""
    numbers = sorted(runs)
    words = " to ".join(map(str, dict.fromkeys((numbers[0], numbers[-1]))))
    return f"{words} {'run' if numbers[-1] == 1 else 'runs'}"


def _names(study: Study, keys: list[Key]) -> list[str]:
    """What distinguishes the variants, in words; nothing if there is only one."""
    return [study.labels.distinct(key, keys) if len(keys) > 1 else "" for key in keys]


def number(value: float) -> str:
    """A number as people read it: four significant digits."""
    return "–" if math.isnan(value) else f"{value:.4g}"


def _p(value: float) -> str:
    if math.isnan(value):
        return "fewer than two runs"
    rounded = f"{value:.4f}"
    return "p < 0.0001" if rounded == "0.0000" else f"p = {rounded}"


def interval(value: Estimate, unit: str) -> str:
    """A mean with its interval, unless that is a point."""
    if math.isnan(value.low) or value.low == value.high:
        return f"{number(value.mean)} {unit}".rstrip()
    return f"{f'{number(value.mean)} {unit}'.rstrip()} [{number(value.low)}, {number(value.high)}]"


def _percent(ratio: Estimate) -> str:
    return interval(ratio.scaled(100), "%")


@dataclass(frozen=True)
class _Part:
    """One comparison of a claim.

    Attributes:
        text: The numbers, and what they show.
        needed: If undecided: about how many runs would decide it; infinite if no number would, NaN
            if that is not known.
        against: Whether the means, if they stay what they are, refute the claim.
    """

    verdict: Verdict
    text: str
    needed: float = math.nan
    against: bool = False


def _together(parts: Sequence[_Part]) -> tuple[Verdict, str]:
    """The verdict on all parts, and how many runs would decide it if none is given."""
    verdicts = {part.verdict for part in parts}
    if Verdict.REFUTED in verdicts:
        return Verdict.REFUTED, ""
    if verdicts == {Verdict.HOLDS}:
        return Verdict.HOLDS, ""
    # One refuted part decides the claim; else all have to hold.
    open_parts = [part for part in parts if part.verdict == Verdict.UNDECIDED]
    against = [part.needed for part in open_parts if part.against]
    needed = min(against) if against else max(part.needed for part in open_parts)
    return Verdict.UNDECIDED, _needed(needed)


def _needed(runs: float) -> str:
    if math.isnan(runs):
        return "how many runs would decide it is not known"
    if math.isinf(runs):
        return "no number of runs would decide it"
    if runs > MANY:
        return f"more than {MANY:,} runs would be needed to decide it"
    return f"about {float(f'{runs:.2g}'):g} runs would decide it"


@dataclass(frozen=True)
class _Test:
    claim: Claim
    names: list[str]
    samples: list[Floats]
    paper: list[float]
    unit: str
    confidence: float
    deterministic: bool

    def run(self) -> tuple[list[_Part], str]:
        """The parts, and what was asked of them."""
        options = self.claim.options
        tolerance, about = options.get("tolerance", 0.0), options.get("about", 0.0)
        percent = f"{100 * tolerance:g} %"
        parts: Iterable[_Part]
        match self.claim.test:
            case "equal":
                parts, asked = [self._equal()], ""
            case "increasing" | "decreasing" | "widening" | "lowest" | "highest":
                parts = itertools.starmap(self._ordered, self._pairs())
                asked = "" if self.deterministic else f"paired one-sided t, {self.confidence:.0%}"
            case "close":
                parts, asked = self._close(tolerance), f"asked: within ±{percent}"
            case "gain":
                ours = self._gain(1)
                text = f"gain {_percent(ours)}"
                parts = [self._inside(ours, about - tolerance, about + tolerance, text)]
                asked = f"asked: {100 * about:g} ± {percent}"
            case "difference":
                ours = self._second_less_first()
                text = f"difference {interval(ours, self.unit)}"
                parts = [self._inside(ours, about - tolerance, about + tolerance, text)]
                asked = f"asked: {number(about)} ± {number(tolerance)} {self.unit}".rstrip()
            case "at-most":
                ours = self._second_less_first()
                text = f"difference {interval(ours, self.unit)}"
                parts = [self._inside(ours, -math.inf, tolerance, text)]
                asked = f"asked: at most {number(tolerance)} {self.unit}".rstrip()
            case "within":
                low, high = options.get("low", -math.inf), options.get("high", math.inf)
                parts = self._within(low, high)
                asked = f"asked: {_range(low, high)} {self.unit}".rstrip()
            case _:
                parts, asked = self._paper(tolerance), f"asked: within ±{percent} of the paper"
        return list(parts), asked

    def texts(self, parts: Iterable[_Part]) -> list[str]:
        """The means, and what the parts say of them."""
        means = [] if self.claim.test in ("within", "paper") else map(self._mean, self._all())
        return [*means, *(part.text for part in parts)]

    def brief(self) -> str:
        """Just the numbers."""
        if self.claim.test == "gain":
            return _percent(self._gain(1))
        if self.claim.test in ("difference", "at-most"):
            return interval(self._second_less_first(), self.unit)
        means = (estimate(sample, self.confidence).mean for sample in self.samples)
        return f"{', '.join(map(number, means))} {self.unit}".rstrip()

    def _all(self) -> range:
        return range(len(self.samples))

    def _pairs(self) -> list[tuple[int, int]]:
        """The pairs of a claim on order: the second is to be above the first."""
        if self.claim.test in ("lowest", "highest"):
            pairs = [(0, other) for other in self._all()[1:]]
            return pairs if self.claim.test == "lowest" else [(b, a) for a, b in pairs]
        pairs = list(itertools.pairwise(self._all()))
        return [(b, a) for a, b in pairs] if self.claim.test == "decreasing" else pairs

    def _estimate(self, index: int) -> Estimate:
        return estimate(self.samples[index], self.confidence)

    def _mean(self, index: int) -> str:
        return f"{self.names[index]} {interval(self._estimate(index), self.unit)}".strip()

    def _gain(self, index: int) -> Estimate:
        return gain(self.samples[index], self.samples[0], self.confidence)

    def _second_less_first(self) -> Estimate:
        return estimate(self.samples[1] - self.samples[0], self.confidence)

    def _equal(self) -> _Part:
        first = self.samples[0]
        differing = max(
            int(np.sum(~np.isclose(first, other, rtol=0, atol=0, equal_nan=True)))
            for other in self.samples[1:]
        )
        if differing == 0:
            return _Part(Verdict.HOLDS, f"identical in each of {len(first)} seeds")
        return _Part(Verdict.REFUTED, f"different in {differing} of {len(first)} seeds")

    def _ordered(self, lower: int, upper: int) -> _Part:
        """Tests whether one sample is above another."""
        low, high = self.samples[lower], self.samples[upper]
        ours = estimate(high - low, self.confidence)
        names = self.names[lower], self.names[upper]
        if self.deterministic:
            word = "<" if ours.mean > 0 else ">" if ours.mean < 0 else "="
            verdict = Verdict.HOLDS if ours.mean > 0 else Verdict.REFUTED
            return _Part(verdict, f" {word} ".join(names))
        pair = " < ".join(names)
        p, limit = p_greater(high, low), 1 - self.confidence
        if p < limit:
            return _Part(Verdict.HOLDS, f"{pair} shown ({_p(p)})")
        if (contrary := p_greater(low, high)) < limit:
            return _Part(Verdict.REFUTED, f"{pair} contradicted (>: {_p(contrary)})")
        needed = self._needed(ours, ours.mean, self.confidence)
        return _Part(
            Verdict.UNDECIDED, f"{pair} not shown ({_p(p)})", needed, against=ours.mean < 0
        )

    def _needed(self, ours: Estimate, margin: float, quantile: float) -> float:
        """About how many runs tell an estimate from a bound, `margin` from its mean."""
        if ours.runs < 2 or math.isnan(ours.low) or ours.half_width == 0:  # noqa: PLR2004
            return math.nan
        return runs_to_show(margin, ours.spread(self.confidence), quantile)

    def _inside(self, ours: Estimate, low: float, high: float, text: str) -> _Part:
        """Tests whether a mean is in a range."""
        if low <= ours.low and ours.high <= high:
            return _Part(Verdict.HOLDS, text)
        if ours.high < low or ours.low > high:
            return _Part(Verdict.REFUTED, text)
        margin = min(abs(ours.mean - low), abs(ours.mean - high))
        needed = self._needed(ours, margin, (1 + self.confidence) / 2)
        return _Part(Verdict.UNDECIDED, text, needed, against=not low <= ours.mean <= high)

    def _close(self, tolerance: float) -> Iterator[_Part]:
        for index in self._all()[1:]:
            ours = self._gain(index)
            text = f"{self.names[index]} differs by {_percent(ours)}"
            yield self._inside(ours, -tolerance, tolerance, text)

    def _within(self, low: float, high: float) -> Iterator[_Part]:
        for index in self._all():
            yield self._inside(self._estimate(index), low, high, self._mean(index))

    def _paper(self, tolerance: float) -> Iterator[_Part]:
        for index, paper in enumerate(self.paper):
            ours = self._estimate(index)
            deviation = 100 * (ours.mean / paper - 1)
            text = f"{self._mean(index)} ({deviation:+.2g} % of {number(paper)})"
            low, high = sorted((paper * (1 - tolerance), paper * (1 + tolerance)))
            yield self._inside(ours, low, high, text)


def _range(low: float, high: float) -> str:
    if low == high:
        return number(low)
    if math.isinf(high):
        return f"at least {number(low)}"
    if math.isinf(low):
        return f"at most {number(high)}"
    return f"{number(low)} to {number(high)}"
