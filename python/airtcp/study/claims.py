"""The paper's claims as tests on the cells.

A claim holds if the numbers show it at the study's confidence, and is refuted otherwise. The
evidence gives the numbers, and says whether they show the opposite or nothing. The tests:

- `equal`: the variants have the same value in every run with the same seed.
- `close`: the interval of each further variant's gain over the first lies within ±tolerance.
- `decreasing`, `increasing`: each variant differs from the one before in that direction, by a
  one-sided t test paired by seed.
- `lowest`: the first variant is below each of the others, by the same test.
- `gain`: the second variant improves on the first (one-sided t test, paired by seed), and the
  interval of the gain overlaps about ± tolerance.
- `difference`: the interval of the second variant's mean minus the first's, paired by seed, lies
  within about ± tolerance.
- `within`: each variant's mean lies in [low, high].
- `paper`: each variant's mean differs from the paper's number by at most the fraction tolerance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from airtcp.study.cells import Results
from airtcp.study.definition import Claim, Experiment, Key, Study, key_text
from airtcp.study.stats import Estimate, Floats, estimate, gain, p_greater


@dataclass(frozen=True)
class Verdict:
    """One row of `claims.csv`.

    Attributes:
        evidence: The numbers and the test.
        brief: Just the numbers compared, in the order of the claim's variants.
    """

    experiment: str
    claim: Claim
    holds: bool
    evidence: str
    brief: str


def judge_all(study: Study, experiments: Iterable[Experiment], results: Results) -> list[Verdict]:
    """Tests every claim of the experiments."""
    return [
        judge(study, experiment, claim, results)
        for experiment in experiments
        for claim in experiment.claims
    ]


def judge(study: Study, experiment: Experiment, claim: Claim, results: Results) -> Verdict:
    """Tests one claim."""
    keys = [variant.key for variant in claim.variants]
    samples = [results.values[experiment.id, key, claim.metric] for key in keys]
    names = _short_names(keys)
    unit = study.metrics[claim.metric].unit
    known = [study.paper.get((experiment.id, key_text(key), claim.metric)) for key in keys]
    paper = [math.nan if number is None else float(number.value) for number in known]
    test = _Test(claim, names, samples, paper, unit, study.confidence)
    holds, evidence = test.run()
    return Verdict(experiment.id, claim, holds, f"{claim.metric}: {evidence}", test.brief())


def _short_names(keys: list[Key]) -> list[str]:
    """The variants' keys without the pairs that all of them share."""
    shared = set(keys[0]).intersection(*keys[1:])
    return [key_text(tuple(pair for pair in key if pair not in shared)) for key in keys]


def number(value: float) -> str:
    """A number as people read it: four significant digits."""
    return "–" if math.isnan(value) else f"{value:.4g}"


def _p(value: float) -> str:
    rounded = f"{value:.4f}"
    return "p < 0.0001" if rounded == "0.0000" else f"p = {rounded}"


def interval(value: Estimate, unit: str) -> str:
    """A mean with its interval."""
    if math.isnan(value.low):
        return f"{number(value.mean)} {unit}"
    return f"{number(value.mean)} {unit} [{number(value.low)}, {number(value.high)}]"


@dataclass(frozen=True)
class _Test:
    claim: Claim
    names: list[str]
    samples: list[Floats]
    paper: list[float]
    unit: str
    confidence: float

    def run(self) -> tuple[bool, str]:
        tests = {
            "equal": self._equal,
            "close": self._close,
            "increasing": lambda: self._ordered(1, self._neighbours()),
            "decreasing": lambda: self._ordered(-1, self._neighbours()),
            "lowest": lambda: self._ordered(1, [(0, i) for i in range(1, len(self.samples))]),
            "gain": self._gain,
            "difference": self._difference,
            "within": self._within,
            "paper": self._paper,
        }
        return tests[self.claim.kind]()

    def brief(self) -> str:
        if self.claim.kind == "gain":
            return _percent(gain(self.samples[1], self.samples[0], self.confidence))
        if self.claim.kind == "difference":
            return interval(self._second_less_first(), self.unit)
        means = (estimate(sample, self.confidence).mean for sample in self.samples)
        return f"{', '.join(map(number, means))} {self.unit}"

    def _mean(self, index: int) -> str:
        value = estimate(self.samples[index], self.confidence)
        return f"{self.names[index]} {interval(value, self.unit)}".strip()

    def _equal(self) -> tuple[bool, str]:
        first = self.samples[0]
        differing = max(
            int(np.sum(~np.isclose(first, other, rtol=0, atol=0, equal_nan=True)))
            for other in self.samples[1:]
        )
        means = ", ".join(self._mean(i) for i in range(len(self.samples)))
        if differing == 0:
            return True, f"identical in each of {len(first)} seeds; {means}"
        return False, f"differs in {differing} of {len(first)} seeds; {means}"

    def _close(self) -> tuple[bool, str]:
        tolerance = self.claim.options["tolerance"]
        holds, parts = True, [self._mean(0)]
        for index in range(1, len(self.samples)):
            ratio = gain(self.samples[index], self.samples[0], self.confidence)
            low, high = (ratio.low, ratio.high) if ratio.runs > 1 else (ratio.mean, ratio.mean)
            holds = holds and -tolerance <= low and high <= tolerance
            parts.append(f"{self._mean(index)}, difference {_percent(ratio)}")
        return holds, f"{', '.join(parts)}; asked: within ±{100 * tolerance:g} %"

    def _neighbours(self) -> list[tuple[int, int]]:
        return list(itertools.pairwise(range(len(self.samples))))

    def _ordered(self, sign: int, pairs: list[tuple[int, int]]) -> tuple[bool, str]:
        """Tests that the second of each pair is greater (sign 1) or less (-1) than the first."""
        limit = 1 - self.confidence
        holds, parts = True, []
        word, opposite = (">", "<") if sign > 0 else ("<", ">")
        for first, second in pairs:
            later, earlier = sign * self.samples[second], sign * self.samples[first]
            p = p_greater(later, earlier)
            shown = p < limit
            holds = holds and shown
            pair = f"{self.names[second]} {word} {self.names[first]}"
            if shown:
                parts.append(f"{pair} shown ({_p(p)})")
            elif p_greater(earlier, later) < limit:
                parts.append(f"{pair} contradicted ({opposite} at {self.confidence:.0%})")
            else:
                parts.append(f"{pair} not shown ({_p(p)})")
        means = ", ".join(self._mean(i) for i in range(len(self.samples)))
        return holds, f"{means}; {', '.join(parts)}; paired one-sided t, {self.confidence:.0%}"

    def _gain(self) -> tuple[bool, str]:
        about, tolerance = self.claim.options["about"], self.claim.options["tolerance"]
        ratio = gain(self.samples[1], self.samples[0], self.confidence)
        p = p_greater(self.samples[1], self.samples[0])
        better = p < 1 - self.confidence
        low, high = ratio.ends
        meets = low <= about + tolerance and high >= about - tolerance
        evidence = (
            f"{self._mean(0)}, {self._mean(1)}: gain {_percent(ratio)}; "
            f"improvement {'shown' if better else 'not shown'} ({_p(p)}); the interval "
            f"{'reaches' if meets else 'misses'} {100 * about:g} ± {100 * tolerance:g} %"
        )
        return better and meets, evidence

    def _second_less_first(self) -> Estimate:
        return estimate(self.samples[1] - self.samples[0], self.confidence)

    def _difference(self) -> tuple[bool, str]:
        about, tolerance = self.claim.options["about"], self.claim.options["tolerance"]
        ours = self._second_less_first()
        low, high = ours.ends
        asked = f"asked: {number(about)} ± {number(tolerance)} {self.unit}"
        evidence = f"{self._mean(0)}, {self._mean(1)}: difference {interval(ours, self.unit)}"
        holds = about - tolerance <= low and high <= about + tolerance
        return holds, f"{evidence}; {asked}"

    def _paper(self) -> tuple[bool, str]:
        tolerance = self.claim.options["tolerance"]
        holds, parts = True, []
        for index, paper in enumerate(self.paper):
            deviation = float(estimate(self.samples[index], self.confidence).mean) / paper - 1
            holds = holds and abs(deviation) <= tolerance
            parts.append(f"{self._mean(index)} ({100 * deviation:+.2g} % of {number(paper)})")
        return holds, f"{', '.join(parts)}; asked: within ±{100 * tolerance:g} % of the paper"

    def _within(self) -> tuple[bool, str]:
        low, high = self.claim.options["low"], self.claim.options["high"]
        means = [float(estimate(sample, self.confidence).mean) for sample in self.samples]
        parts = ", ".join(self._mean(i) for i in range(len(self.samples)))
        asked = f"asked: {number(low)} to {number(high)} {self.unit}"
        return all(low <= mean <= high for mean in means), f"{parts}; {asked}"


def _percent(ratio: Estimate) -> str:
    return interval(ratio.scaled(100), "%")
