"""Means, intervals and tests over seeds: two-sided Student's t intervals, one-sided t tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special  # loads in a third of the time of scipy.stats

Floats = npt.NDArray[np.float64]


class Estimate(NamedTuple):
    """A mean with its confidence interval; the ends are NaN with fewer than two values."""

    mean: float
    low: float
    high: float
    runs: int

    @property
    def half_width(self) -> float:
        """Half the length of the interval."""
        return (self.high - self.low) / 2

    def spread(self, confidence: float) -> float:
        """Standard deviation of one run, from the interval at this confidence."""
        return self.half_width * math.sqrt(self.runs) / _t(confidence, self.runs)

    def scaled(self, factor: float) -> Estimate:
        """In another unit."""
        return Estimate(self.mean * factor, self.low * factor, self.high * factor, self.runs)


def without_spread(values: Floats) -> bool:
    """Whether the values that are known are equal."""
    known = values[~np.isnan(values)]
    return len(known) > 0 and float(np.ptp(known)) == 0


def estimate(values: Floats, confidence: float) -> Estimate:
    """Mean and Student's t interval of independent values; NaN values are left out."""
    known = values[~np.isnan(values)]
    count = len(known)
    if count == 0:
        return Estimate(math.nan, math.nan, math.nan, 0)
    mean = float(np.mean(known))
    if count == 1:
        return Estimate(mean, math.nan, math.nan, 1)
    if without_spread(known):
        # Exactly: the mean of equal numbers may be rounded.
        return Estimate(float(known[0]), float(known[0]), float(known[0]), count)
    error = float(np.std(known, ddof=1)) / math.sqrt(count)
    half = _t(confidence, count) * error
    return Estimate(mean, mean - half, mean + half, count)


class Band(NamedTuple):
    """A mean and its interval at each of several points."""

    mean: Floats
    low: Floats
    high: Floats


def band(rows: Floats, confidence: float) -> Band:
    """`estimate` of each column of an array with one row per run and no NaN."""
    count = len(rows)
    mean = rows.mean(axis=0)
    if count == 1:
        unknown = np.full_like(mean, np.nan)
        return Band(mean, unknown, unknown)
    half = _t(confidence, count) * rows.std(axis=0, ddof=1) / math.sqrt(count)
    return Band(mean, mean - half, mean + half)


@cache
def _t(confidence: float, count: int) -> float:
    """Student's t for a two-sided interval of the mean of this many values."""
    return float(special.stdtrit(count - 1, (1 + confidence) / 2))


def p_greater(left: Floats, right: Floats) -> float:
    """p-value of `mean(left) > mean(right)`, paired by seed; a small one shows it.

    If the difference is equal in every pair, a t test has no spread to test against: then the
    p-value is that of the sign test.
    """
    difference = left - right
    difference = difference[~np.isnan(difference)]
    if len(difference) < 2:  # noqa: PLR2004
        return math.nan
    if without_spread(difference):
        return float(0.5 ** len(difference)) if difference[0] > 0 else 1.0
    error = float(np.std(difference, ddof=1)) / math.sqrt(len(difference))
    mean = float(np.mean(difference))
    return float(special.stdtr(len(difference) - 1, -mean / error))


def enough(p_values: Sequence[float], least: int) -> float:
    """p-value that at least `least` of several statements are true, each with its own p-value.

    If all have to be true, the largest of the p-values; if one suffices, the smallest times their
    number, as Bonferroni's correction and the first step of Holm's have it. In between the partial
    conjunction (Benjamini and Heller 2008, eq. 3). It holds however the statements depend on each
    other.
    """
    return min(1.0, (len(p_values) - least + 1) * sorted(p_values)[least - 1])


def p_one_run(values: Floats, number: float) -> float:
    """Two-sided p-value that a number is that of one run more, by its rank among these.

    Without an assumption on the distribution: a run more has each rank with the same probability.
    It is below 0.05 if the number is outside of the 95 % prediction interval, which is unbounded
    with fewer than 40 runs.
    """
    known = values[~np.isnan(values)]
    extreme = min(int(np.sum(known <= number)), int(np.sum(known >= number)))
    return min(1.0, 2 * (extreme + 1) / (len(known) + 1))


def prediction(values: Floats, confidence: float) -> tuple[float, float]:
    """The interval in which one run more is with this confidence: order statistics of these runs.

    Infinite if there are too few.
    """
    known = np.sort(values[~np.isnan(values)])
    # The value of this rank from either end is the last with a p-value of 1 - confidence or more.
    rank = math.ceil(round((1 - confidence) * (len(known) + 1) / 2, 9)) - 1
    return (-math.inf, math.inf) if rank < 1 else (float(known[rank - 1]), float(known[-rank]))


def gain(values: Floats, baseline: Floats, confidence: float) -> Estimate:
    """`mean(values) / mean(baseline) − 1`, paired by seed, with Fieller's interval.

    The interval contains every k for which a paired t test does not reject `mean(values) =
    (1 + k)·mean(baseline)`; its ends are NaN when it is not bounded.
    """
    known = ~(np.isnan(values) | np.isnan(baseline))
    values, baseline = values[known], baseline[known]
    count = len(values)
    if count == 0 or float(np.mean(baseline)) == 0:
        return Estimate(math.nan, math.nan, math.nan, count)
    a, b = float(np.mean(values)), float(np.mean(baseline))
    if count == 1:
        return Estimate(a / b - 1, math.nan, math.nan, count)
    if without_spread(values) and without_spread(baseline):
        # Exactly: Fieller's root may be rounded.
        ratio = float(values[0] / baseline[0]) - 1
        return Estimate(ratio, ratio, ratio, count)
    t2 = _t(confidence, count) ** 2 / count
    covariance = np.cov(values, baseline)
    # (a − k·b)² = t²·var(a − k·b)/n, a quadratic in k.
    quadratic = b * b - t2 * float(covariance[1, 1])
    linear = a * b - t2 * float(covariance[0, 1])
    constant = a * a - t2 * float(covariance[0, 0])
    if quadratic <= 0:
        return Estimate(a / b - 1, math.nan, math.nan, count)
    # k = a/b solves the inequality, so the root is real except for rounding.
    root = math.sqrt(max(linear * linear - quadratic * constant, 0.0))
    low, high = (linear - root) / quadratic, (linear + root) / quadratic
    return Estimate(a / b - 1, low - 1, high - 1, count)


MANY = 10_000
"""Runs beyond which their number is not worth estimating."""

_POWER = 0.8
"""The probability with which `runs_to_show` many runs show an effect."""


def runs_to_show(effect: float, spread: float, quantile: float) -> float:
    """About how many runs show an effect, if mean and spread stay what they are.

    So many that a t test finds it with probability 0.8: the usual power estimate.

    Args:
        effect: What is to be told from 0.
        spread: Standard deviation of one run.
        quantile: Of Student's t, as the test uses it: its confidence if it is one-sided, (1 +
            confidence) / 2 if an interval is to keep clear of a bound.

    Returns:
        At least 2; some number above `MANY` if it is more than that; infinite if the effect is 0.
    """
    if effect == 0:
        return math.inf
    scale = (spread / effect) ** 2
    power = float(special.ndtri(_POWER))
    runs = 2.0
    # Student's t falls with the number of runs: this approaches the solution from below.
    while runs <= MANY:
        needed = scale * (float(special.stdtrit(runs - 1, quantile)) + power) ** 2
        if needed <= runs:
            return runs
        runs += math.ceil(runs / 100)
    return runs
