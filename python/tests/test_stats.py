from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from airtcp.stats import MANY, band, estimate, gain, p_greater, runs_to_show

Floats = npt.NDArray[np.float64]
SAMPLES = st.lists(st.floats(1, 1e3), min_size=3, max_size=30)


@given(SAMPLES)
def test_interval_is_student_t(values: list[float]) -> None:
    ours = estimate(np.array(values), 0.95)
    error = float(reference.sem(values))
    if error < 1e-9:
        return
    low, high = reference.t.interval(0.95, len(values) - 1, np.mean(values), error)
    assert ours == pytest.approx((np.mean(values), low, high, len(values)))


def test_unknown_values_are_left_out() -> None:
    assert estimate(np.array([1.0, math.nan, 3.0]), 0.95)[::3] == (2.0, 2)


def test_one_value_has_no_interval_and_none_no_mean() -> None:
    one, none = estimate(np.array([5.0]), 0.95), estimate(np.array([]), 0.95)
    assert (one.mean, one.runs, none.runs) == (5.0, 1, 0)
    assert all(math.isnan(end) for end in (one.low, one.high, none.mean))


@given(st.lists(st.tuples(st.floats(1, 9), st.floats(1, 9)), min_size=2, max_size=9))
def test_band_is_the_estimate_of_each_column(rows: list[tuple[float, float]]) -> None:
    array = np.array(rows)
    columns = zip(*band(array, 0.9), strict=True)
    for column, values in zip(columns, array.T, strict=True):
        assert column == pytest.approx(estimate(values, 0.9)[:3])


@given(SAMPLES, st.integers(0, 2**32))
def test_p_greater_is_the_paired_one_sided_t_test(values: list[float], seed: int) -> None:
    left = np.array(values)
    right = left + np.random.default_rng(seed).normal(0, 5, len(left))
    expected = reference.ttest_rel(left, right, alternative="greater").pvalue
    assert p_greater(left, right) == pytest.approx(float(expected))


def test_the_same_difference_in_every_pair_is_tested_by_signs() -> None:
    left, right = np.array([3.0, 5.0]), np.array([1.0, 3.0])
    assert (p_greater(left, right), p_greater(right, left)) == (0.25, 1.0)
    assert p_greater(left, left) == 1.0


@pytest.mark.parametrize("effect", [0.5, 1.0, 2.0])
def test_the_runs_to_show_an_effect_show_it_four_times_in_five(effect: float) -> None:
    runs = int(runs_to_show(effect, spread=2.0, quantile=0.95))
    samples = np.random.default_rng(1).normal(effect, 2.0, (4000, runs))
    shown = reference.ttest_1samp(samples, 0, axis=1, alternative="greater").pvalue < 0.05
    assert np.mean(shown) == pytest.approx(0.8, abs=0.04)


def test_no_number_of_runs_shows_what_is_not_there() -> None:
    assert math.isinf(runs_to_show(0.0, 1.0, 0.95))
    assert MANY < runs_to_show(1e-4, 1.0, 0.95) < math.inf


def test_the_estimate_of_equal_values_is_exact() -> None:
    assert estimate(np.full(20, 0.1), 0.95) == (0.1, 0.1, 0.1, 20)


def test_the_spread_of_an_estimate_is_the_samples() -> None:
    values = np.array([1.0, 2.0, 4.0])
    assert estimate(values, 0.9).spread(0.9) == pytest.approx(np.std(values, ddof=1))


@given(st.integers(0, 2**32), st.integers(3, 25), st.floats(0.2, 3))
def test_gain_interval_inverts_the_paired_t_test(seed: int, count: int, ratio: float) -> None:
    rng = np.random.default_rng(seed)
    baseline = rng.normal(100, 10, count)
    values = ratio * baseline + rng.normal(0, 10, count)
    ours = gain(values, baseline, 0.95)
    assert ours.mean == pytest.approx(values.mean() / baseline.mean() - 1)
    for end in (ours.low, ours.high):
        difference = values - (1 + end) * baseline
        assert reference.ttest_1samp(difference, 0).pvalue == pytest.approx(0.05, abs=1e-6)


def test_gain_over_a_baseline_near_zero_has_no_interval() -> None:
    baseline = np.array([-1.0, 1.1, -0.9, 1.0])
    ours = gain(np.array([1.0, 2.0, 3.0, 4.0]), baseline, 0.95)
    assert math.isnan(ours.low)
    assert math.isnan(ours.high)


def test_equal_constant_samples_gain_nothing() -> None:
    values = np.full(5, 1.1)
    assert gain(values, values, 0.95) == pytest.approx((0, 0, 0, 5), abs=1e-12)
