"""The paper's claims as tests on the cells.

A claim *holds* if the numbers show it at the study's confidence, is *refuted* if they show the
opposite, and is *undecided* if they show neither; then the evidence says about how many runs would
decide it. The tests:

- `equal`: the variants have the same value in every run with the same seed; else refuted.
- `decreasing`, `increasing`: each variant differs from the one before in that direction, by a
  one-sided t test paired by seed; refuted by the same test of the opposite direction.
- `above`: the variants are pairs; the second of each is above the first, by the same tests.
- `fluctuates`: the variants are pairs; the second of each varies more over the seeds, by the same
  tests on the distances from the median (Brown and Forsythe 1974).
- `widening`: the variants are pairs; the second's lead over the first grows from pair to pair, by
  the same tests.
- `lowest`, `highest`: the first variant is below, or above, each of the others, by the same tests.

The others compare an interval with a range. Inside, the claim holds; outside, it is refuted:

- `close`: each further variant's gain over the first, with ±tolerance.
- `gain`: the second variant's gain over the first, with about ± tolerance, or with [low, high].
- `up-to`: the variants are pairs; the largest of the gains of the second over the first, with
  about ± tolerance.
- `difference`: the second variant's mean minus the first's, paired by seed, with about ± tolerance.
- `at-most`: the same difference, with everything up to the tolerance.
- `within`: each variant's mean, with [low, high].
- `paper`: each variant's mean, with the paper's number ± the fraction tolerance.

One test has no mean in it, for papers that show one run:

- `one-run`: the paper's gain, `about`, with the interval that has the gain of one run more. Inside,
  the claim holds, unless no gain at all is inside, too; outside, it is refuted.

Several cells. A claim about several holds if each of its parts is shown, each at the study's
confidence: if the claim is false, so is a part, and the test of that one has to err. It is refuted
if a part is contradicted, and the more parts, the more chances to err: so that part's p-value is
multiplied by their number (Bonferroni, the first step of Holm's correction). With a `share` it is
about so many of its cells, and both follow from the partial conjunction (`stats.enough`).

If every metric of each variant compared is the same in all runs, the simulation is deterministic:
then the numbers are compared as they are, without statistics.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from airtcp.stats import (
    MANY,
    Estimate,
    Floats,
    enough,
    estimate,
    gain,
    p_greater,
    p_one_run,
    prediction,
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
        shown: p-value of the claim; below 1 - confidence it holds.
        contradicted: p-value of its opposite; below 1 - confidence it is refuted.
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
    shown: float
    contradicted: float
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
    elif claim.test == "fluctuates":
        samples = [np.abs(sample - np.nanmedian(sample)) for sample in samples]
        names = [f"spread of {name}" for name in names]
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
    shown, contradicted = _together(claim, parts)
    verdict = verdict_of(shown, contradicted, study.confidence)
    limit = level(study.confidence)
    undecided = verdict is Verdict.UNDECIDED
    needed = _needed(_runs_needed(claim, parts, limit)) if undecided else ""
    calibrated = claim.test in ("within", "paper") and any(c in study.calibrated for c in cells)
    remarks = [asked] if asked else []
    if test.deterministic:
        computed = study.model is not None and all(map(study.model.computes, keys))
        equal = f"deterministic: {len(samples[0])} equal runs"
        remarks.append("computed" if computed else equal)
    if needed and any(part.contradicted < limit for part in parts):
        remarks.append(f"no contradiction after correction for {len(parts)} comparisons")
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
        shown=shown,
        contradicted=contradicted,
        calibrated=calibrated,
        needed=needed,
        runs=len(samples[0]),
    )


def level(confidence: float) -> float:
    """The p-value below which something is shown."""
    return round(1 - confidence, 9)


def verdict_of(shown: float, contradicted: float, confidence: float) -> Verdict:
    """The verdict that the p-values of a claim and of its opposite give."""
    limit = level(confidence)
    if contradicted < limit:
        return Verdict.REFUTED
    return Verdict.HOLDS if shown < limit else Verdict.UNDECIDED


def count(judgements: Sequence[Judgement]) -> dict[str, int]:
    """How many claims got each verdict; those judged on calibrated cells are counted apart."""
    counts = {
        str(verdict): sum(j.verdict == verdict and not j.calibrated for j in judgements)
        for verdict in Verdict
    }
    return counts | {"calibrated": sum(j.calibrated for j in judgements)}


def summary(judgements: Sequence[Judgement]) -> str:
    """The counts in words: `17 of 26 claims hold, 3 undecided, 6 refuted`; our own apart."""
    paper = [judgement for judgement in judgements if not judgement.claim.ours]
    own = [judgement for judgement in judgements if judgement.claim.ours]
    texts = [_score(paper, "")] if paper else []
    if own:
        texts.append(_score(own, "our own " if paper else ""))
    return "; ".join(texts)


def _score(judgements: Sequence[Judgement], whose: str) -> str:
    counts = count(judgements)
    words = [
        f"{counts['holds']} of {len(judgements)} {whose}claims hold",
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
        shown: p-value of what the claim says of it; 0 or 1 without statistics.
        contradicted: p-value of the opposite.
        runs: If neither is shown: how many runs would show one, given by how many comparisons the
            claim has; infinite if no number would, NaN if that is not known.
        against: Whether the means, if they stay what they are, contradict it.
    """

    text: str
    shown: float
    contradicted: float
    runs: Callable[[int], float] = lambda _: math.nan
    against: bool = False

    @classmethod
    def certain(cls, text: str, *, holds: bool) -> _Part:
        """A comparison without statistics."""
        return cls(text, float(not holds), float(holds))


def _together(claim: Claim, parts: Sequence[_Part]) -> tuple[float, float]:
    """The p-values of a claim and of its opposite."""
    least = _least(claim, parts)
    shown = enough([part.shown for part in parts], least)
    return shown, enough([part.contradicted for part in parts], len(parts) - least + 1)


def _least(claim: Claim, parts: Sequence[_Part]) -> int:
    """How many of its parts have to hold for the claim to hold."""
    # 0.9 * 10 is 9, also in binary.
    return math.ceil(round(claim.options.get("share", 1.0) * len(parts), 9))


def _runs_needed(claim: Claim, parts: Sequence[_Part], limit: float) -> float:
    """About how many runs decide a claim, if means and spreads stay what they are."""
    least = _least(claim, parts)
    for against, wanted in ((False, least), (True, len(parts) - least + 1)):
        chances = len(parts) - wanted + 1
        runs = [
            0.0 if part.shown * chances < limit and not against else part.runs(chances)
            for part in parts
            if part.against is against
        ]
        if len(runs) >= wanted:
            return sorted(runs, key=lambda n: (math.isnan(n), n))[wanted - 1]
    return math.nan


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
            case (
                "increasing"
                | "decreasing"
                | "above"
                | "fluctuates"
                | "widening"
                | "lowest"
                | "highest"
            ):
                parts = itertools.starmap(self._ordered, self._pairs())
                asked = "" if self.deterministic else f"paired one-sided t, {self.confidence:.0%}"
                if "share" in options:
                    asked = "; ".join(filter(None, (f"asked: {options['share']:.0%}", asked)))
            case "close":
                parts, asked = self._close(tolerance), f"asked: within ±{percent}"
            case "gain" if "about" not in options:
                low, high = options.get("low", -math.inf), options.get("high", math.inf)
                parts = [self._gain_inside(0, 1, low, high)]
                asked = f"asked: {_range(100 * low, 100 * high)} %"
            case "gain":
                parts = [self._gain_inside(0, 1, about - tolerance, about + tolerance)]
                asked = f"asked: {100 * about:g} ± {percent}"
            case "up-to":
                parts = [self._up_to(about - tolerance, about + tolerance)]
                asked = f"asked of the largest: {100 * about:g} ± {percent}"
            case "one-run":
                parts = [self._one_run(about)]
                asked = f"asked: {100 * about:g} %, in one run"
            case "difference" | "at-most":
                low = -math.inf if self.claim.test == "at-most" else about - tolerance
                first, second = self.samples[:2]
                ours = self._second_less_first()
                text = f"difference {interval(ours, self.unit)}"
                parts = [
                    self._inside(ours, low, about + tolerance, text, lambda at: second - first - at)
                ]
                asked = f"asked: {number(about)} ± {number(tolerance)} {self.unit}".rstrip()
                if self.claim.test == "at-most":
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
        # The parts of these say them, or they are many.
        without = ("within", "paper", "up-to")
        means = [] if self.claim.test in without else map(self._mean, self._all())
        return [*means, *(part.text for part in parts)]

    def brief(self) -> str:
        """Just the numbers."""
        if self.claim.test in ("gain", "one-run"):
            return _percent(self._gain(0, 1))
        if self.claim.test == "up-to":
            gains = (self._gain(*pair).mean for pair in self._disjoint())
            return f"at most {number(100 * max(gains))} %"
        if self.claim.test in ("difference", "at-most"):
            return interval(self._second_less_first(), self.unit)
        means = (estimate(sample, self.confidence).mean for sample in self.samples)
        return f"{', '.join(map(number, means))} {self.unit}".rstrip()

    def _all(self) -> range:
        return range(len(self.samples))

    def _pairs(self) -> list[tuple[int, int]]:
        """The pairs of a claim on order: the second is to be above the first."""
        if self.claim.test in ("above", "fluctuates"):
            return self._disjoint()
        if self.claim.test in ("lowest", "highest"):
            pairs = [(0, other) for other in self._all()[1:]]
            return pairs if self.claim.test == "lowest" else [(b, a) for a, b in pairs]
        pairs = list(itertools.pairwise(self._all()))
        return [(b, a) for a, b in pairs] if self.claim.test == "decreasing" else pairs

    def _disjoint(self) -> list[tuple[int, int]]:
        """The pairs of a claim whose variants are pairs."""
        return [(first, first + 1) for first in self._all()[::2]]

    def _estimate(self, index: int) -> Estimate:
        return estimate(self.samples[index], self.confidence)

    def _mean(self, index: int) -> str:
        return f"{self.names[index]} {interval(self._estimate(index), self.unit)}".strip()

    def _gain(self, first: int, second: int) -> Estimate:
        return gain(self.samples[second], self.samples[first], self.confidence)

    def _second_less_first(self) -> Estimate:
        return estimate(self.samples[1] - self.samples[0], self.confidence)

    def _equal(self) -> _Part:
        first = self.samples[0]
        differing = max(
            int(np.sum(~np.isclose(first, other, rtol=0, atol=0, equal_nan=True)))
            for other in self.samples[1:]
        )
        if differing == 0:
            return _Part.certain(f"identical in each of {len(first)} seeds", holds=True)
        return _Part.certain(f"different in {differing} of {len(first)} seeds", holds=False)

    def _ordered(self, lower: int, upper: int) -> _Part:
        """Tests whether one sample is above another."""
        low, high = self.samples[lower], self.samples[upper]
        ours = estimate(high - low, self.confidence)
        names = self.names[lower], self.names[upper]
        if self.deterministic:
            word = "<" if ours.mean > 0 else ">" if ours.mean < 0 else "="
            return _Part.certain(f" {word} ".join(names), holds=ours.mean > 0)
        pair = " < ".join(names)
        p, contrary, limit = p_greater(high, low), p_greater(low, high), level(self.confidence)
        if p < limit:
            text = f"{pair} shown ({_p(p)})"
        elif contrary < limit:
            text = f"{pair} contradicted (>: {_p(contrary)})"
        else:
            text = f"{pair} not shown ({_p(p)})"
        return _Part(
            text,
            _or_one(p),
            _or_one(contrary),
            lambda chances: self._needed(ours, ours.mean, 1 - limit / chances),
            against=ours.mean < 0,
        )

    def _needed(self, ours: Estimate, margin: float, quantile: float) -> float:
        """About how many runs tell an estimate from a bound, `margin` from its mean."""
        if ours.runs < 2 or math.isnan(ours.low) or ours.half_width == 0:  # noqa: PLR2004
            return math.nan
        return runs_to_show(margin, ours.spread(self.confidence), quantile)

    def _inside(
        self,
        ours: Estimate,
        low: float,
        high: float,
        text: str,
        above: Callable[[float], Floats],
    ) -> _Part:
        """Tests whether an estimate is in a range.

        Its p-values are those of the two-sided interval: below 1 - confidence if that is inside, or
        outside.

        Args:
            ours: It.
            low: Lower end of the range.
            high: Upper end.
            text: What the part says.
            above: How far it is above a number, by run.
        """
        if ours.low == ours.high:
            return _Part.certain(text, holds=low <= ours.mean <= high)
        if math.isnan(ours.low):
            return _Part(text, 1.0, 1.0, against=not low <= ours.mean <= high)
        p_above_low = 0.0 if math.isinf(low) else _two_sided(above(low))
        p_below_high = 0.0 if math.isinf(high) else _two_sided(-above(high))
        p_below_low = 1.0 if math.isinf(low) else _two_sided(-above(low))
        p_above_high = 1.0 if math.isinf(high) else _two_sided(above(high))
        margin = min(abs(ours.mean - low), abs(ours.mean - high))
        return _Part(
            text,
            max(p_above_low, p_below_high),
            min(p_below_low, p_above_high),
            lambda chances: self._needed(ours, margin, 1 - (1 - self.confidence) / chances / 2),
            against=not low <= ours.mean <= high,
        )

    def _gain_inside(self, first: int, second: int, low: float, high: float) -> _Part:
        ours = self._gain(first, second)
        base, other = self.samples[first], self.samples[second]
        text = f"gain {_percent(ours)}"
        return self._inside(ours, low, high, text, lambda at: other - (1 + at) * base)

    def _up_to(self, low: float, high: float) -> _Part:
        """Tests whether the largest of some gains is in a range: none above it, and one in it."""
        pairs = self._disjoint()
        not_above = [self._gain_inside(*pair, -math.inf, high) for pair in pairs]
        not_below = [self._gain_inside(*pair, low, math.inf) for pair in pairs]
        gains = [self._gain(*pair) for pair in pairs]
        largest = max(range(len(pairs)), key=lambda index: gains[index].mean)
        return _Part(
            f"largest gain of {len(pairs)}: {self.names[pairs[largest][1]]} "
            f"{_percent(gains[largest])}",
            max(
                enough([part.shown for part in not_above], len(pairs)),
                enough([part.shown for part in not_below], 1),
            ),
            min(
                enough([part.contradicted for part in not_above], 1),
                enough([part.contradicted for part in not_below], len(pairs)),
            ),
        )

    def _one_run(self, about: float) -> _Part:
        """Tests whether a gain is one that a single run can have, and tells it from none."""
        gains = self.samples[1] / self.samples[0] - 1
        low, high = prediction(gains, self.confidence)
        within = f"95 of 100 runs {number(100 * low)} to {number(100 * high)} %"
        within = within.replace("95", f"{100 * self.confidence:g}")
        if math.isinf(low):
            within = "too few runs to say what one has"
        text = f"gain {_percent(self._gain(0, 1))}, {within}"
        p, p_none = p_one_run(gains, about), p_one_run(gains, 0.0)
        # What is asked may be what one run has, and none may not.
        shown = p_none if p >= level(self.confidence) else 1.0
        return _Part(text, shown, p, lambda _: math.inf if math.isfinite(low) else 40)

    def _close(self, tolerance: float) -> Iterator[_Part]:
        for index in self._all()[1:]:
            part = self._gain_inside(0, index, -tolerance, tolerance)
            text = f"{self.names[index]} differs by {_percent(self._gain(0, index))}"
            yield replace(part, text=text)

    def _mean_inside(self, index: int, low: float, high: float, text: str) -> _Part:
        ours, sample = self._estimate(index), self.samples[index]
        return self._inside(ours, low, high, text, lambda at: sample - at)

    def _within(self, low: float, high: float) -> Iterator[_Part]:
        for index in self._all():
            yield self._mean_inside(index, low, high, self._mean(index))

    def _paper(self, tolerance: float) -> Iterator[_Part]:
        for index, paper in enumerate(self.paper):
            deviation = 100 * (self._estimate(index).mean / paper - 1)
            text = f"{self._mean(index)} ({deviation:+.2g} % of {number(paper)})"
            low, high = sorted((paper * (1 - tolerance), paper * (1 + tolerance)))
            yield self._mean_inside(index, low, high, text)


def _or_one(p: float) -> float:
    """A p-value; of fewer than two runs, that of no evidence."""
    return 1.0 if math.isnan(p) else p


def _two_sided(values: Floats) -> float:
    """p-value of a mean above 0 in the two-sided test: twice that of the one-sided."""
    return min(1.0, 2 * _or_one(p_greater(values, np.zeros_like(values))))


def _range(low: float, high: float) -> str:
    if low == high:
        return number(low)
    if math.isinf(high):
        return f"at least {number(low)}"
    if math.isinf(low):
        return f"at most {number(high)}"
    return f"{number(low)} to {number(high)}"
