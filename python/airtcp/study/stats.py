"""Means, intervals and tests over seeds: two-sided Student's t intervals, one-sided t tests."""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

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

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends of the interval; the mean twice where there is none."""
        return (self.mean, self.mean) if math.isnan(self.low) else (self.low, self.high)

    def scaled(self, factor: float) -> Estimate:
        """In another unit."""
        return Estimate(self.mean * factor, self.low * factor, self.high * factor, self.runs)


def estimate(values: Floats, confidence: float) -> Estimate:
    """Mean and Student's t interval of independent values; NaN values are left out."""
    known = values[~np.isnan(values)]
    count = len(known)
    if count == 0:
        return Estimate(math.nan, math.nan, math.nan, 0)
    mean = float(np.mean(known))
    if count == 1:
        return Estimate(mean, math.nan, math.nan, 1)
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
    return float(stats.t.ppf((1 + confidence) / 2, count - 1))


def p_greater(left: Floats, right: Floats) -> float:
    """p-value of `mean(left) > mean(right)`, paired by seed; a small one shows it.

    If the difference is equal in every pair, there is no spread to test against: 0 if it is
    positive, else 1.
    """
    difference = left - right
    difference = difference[~np.isnan(difference)]
    if len(difference) < 2:  # noqa: PLR2004
        return math.nan
    error = float(np.std(difference, ddof=1)) / math.sqrt(len(difference))
    mean = float(np.mean(difference))
    if error == 0:
        return 0.0 if mean > 0 else 1.0
    return float(stats.t.sf(mean / error, len(difference) - 1))


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
