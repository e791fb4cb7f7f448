from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from airtcp.stats import (
    MANY,
    band,
    enough,
    estimate,
    gain,
    p_greater,
    p_one_run,
    prediction,
    runs_to_show,
)

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


@pytest.mark.parametrize(
    ("least", "p"),
    [(4, 0.3), (3, 2 * 0.2), (2, 3 * 0.04), (1, 4 * 0.01)],
)
def test_a_conjunction_has_the_largest_p_value_and_a_union_the_smallest_times_all(
    least: int, p: float
) -> None:
    assert enough([0.2, 0.01, 0.3, 0.04], least) == pytest.approx(p)


def test_a_p_value_is_at_most_1() -> None:
    assert enough([0.6, 0.9], 1) == 1.0


@pytest.mark.parametrize("least", [1, 3, 5, 10])
def test_of_true_null_hypotheses_too_many_are_rejected_in_at_most_5_percent(least: int) -> None:
    """Of 10 statements `least - 1` are true beyond doubt; that `least` are is false."""
    rng = np.random.default_rng(least)
    wrong = [
        enough([0.0] * (least - 1) + list(rng.uniform(size=11 - least)), least) for _ in range(4000)
    ]
    # 0.05 and three standard errors.
    assert np.mean(np.array(wrong) < 0.05) < 0.06


def test_without_correction_ten_comparisons_would_err_in_four_of_ten() -> None:
    rng = np.random.default_rng(1)
    p = rng.uniform(size=(4000, 10))
    assert np.mean(p.min(axis=1) < 0.05) > 0.38
    assert np.mean([enough(list(row), 1) < 0.05 for row in p]) == pytest.approx(0.05, abs=0.01)


@pytest.mark.parametrize(
    ("runs", "interval"),
    [(39, (-math.inf, math.inf)), (40, (1, 40)), (199, (4, 196)), (200, (5, 196))],
)
def test_the_prediction_interval_is_of_order_statistics(
    runs: int, interval: tuple[float, float]
) -> None:
    assert prediction(np.arange(1.0, runs + 1), 0.95) == interval


@pytest.mark.parametrize("runs", [40, 63, 200])
def test_one_run_more_is_outside_in_at_most_5_percent(runs: int) -> None:
    """Also of a skewed distribution, whose mean says little about one run."""
    rng = np.random.default_rng(runs)
    outside = []
    for draws in rng.lognormal(sigma=1.5, size=(4000, runs + 1)):
        low, high = prediction(draws[:-1], 0.95)
        outside.append(not low <= draws[-1] <= high)
        assert outside[-1] == (p_one_run(draws[:-1], draws[-1]) < 0.05)
    assert 0.02 < np.mean(outside) < 0.06
