"""The analytic model of TCP-DCA §IV-A beside its exact convolution, worked out apart from it."""

from __future__ import annotations

import math

import pytest

from airtcp.study.models import backoff_counts, burst_success, packet_success

SIX_DIGITS = 5e-7
F_EIGHT = {
    1: 1.0,
    2: 0.9999986,
    3: 0.9998462,
    4: 0.9982149,
    5: 0.9912618,
    6: 0.9727009,
    7: 0.9351980,
    8: 0.8716090,
    9: 0.7777860,
    10: 0.6568110,
    11: 0.5193899,
    12: 0.3799248,
    13: 0.2531098,
    14: 0.1511543,
    15: 0.0794171,
    16: 0.0354088,
    17: 0.0123806,
    18: 0.0029365,
    19: 0.0003439,
    20: 0.0000079,
}
TO_W = {
    1: 1.000000,
    2: 0.999999,
    3: 0.999845,
    4: 0.998060,
    5: 0.989339,
    6: 0.962331,
    7: 0.899970,
    8: 0.784422,
    9: 0.610112,
    10: 0.400728,
    12: 0.079075,
    15: 0.000240,
}
AS_PRINTED = {
    1: 1.000000,
    2: 1.000000,
    3: 0.999999,
    4: 0.999845,
    5: 0.998060,
    6: 0.989339,
    7: 0.962331,
    8: 0.899970,
    9: 0.784422,
    10: 0.610112,
    12: 0.208134,
    15: 0.003025,
}
# By burst size: chains of 4 to 10 hops.
PATHS = {
    2: (0.999999, 0.999997, 0.999996, 0.999994, 0.999993, 0.999991, 0.999990),
    3: (0.999845, 0.999690, 0.999534, 0.999379, 0.999224, 0.999069, 0.998914),
    4: (0.998060, 0.996124, 0.994191, 0.992262, 0.990337, 0.988416, 0.986498),
    5: (0.989339, 0.978791, 0.968356, 0.958032, 0.947818, 0.937713, 0.927715),
    6: (0.962331, 0.926080, 0.891195, 0.857625, 0.825318, 0.794229, 0.764311),
    7: (0.899970, 0.809945, 0.728926, 0.656012, 0.590390, 0.531334, 0.478184),
    8: (0.784422, 0.615317, 0.482668, 0.378615, 0.296994, 0.232969, 0.182746),
    9: (0.610112, 0.372237, 0.227106, 0.138560, 0.084537, 0.051577, 0.031468),
    10: (0.400728, 0.160583, 0.064350, 0.025787, 0.010334, 0.004141, 0.001659),
    12: (0.079075, 0.006253, 0.000494, 0.000039, 0.000003, 0.000000, 0.000000),
}


def moments(attempts: int) -> tuple[float, float]:
    counts = backoff_counts(attempts)
    total = sum(counts)
    mean = sum(slots * count for slots, count in enumerate(counts)) / total
    square = sum(slots * slots * count for slots, count in enumerate(counts)) / total
    return mean, math.sqrt(square - mean * mean)


@pytest.mark.parametrize(
    ("attempts", "mean", "deviation", "most"), [(8, 2028, 539.67, 4056), (7, 1516.5, 451.51, 3033)]
)
def test_the_back_offs_have_mean_and_spread_of_uniform_draws(
    attempts: int, mean: float, deviation: float, most: int
) -> None:
    counts = backoff_counts(attempts)
    assert len(counts) == most + 1
    assert counts == counts[::-1]
    assert moments(attempts) == pytest.approx((mean, deviation), abs=0.005)


def test_the_back_offs_have_the_quantiles_of_their_convolution() -> None:
    counts = backoff_counts(8)
    known = {0.01: 821, 0.05: 1135, 0.25: 1650, 0.5: 2028, 0.75: 2406, 0.95: 2921, 0.99: 3235}
    for share, slots in known.items():
        below, up_to = sum(counts[:slots]), sum(counts[: slots + 1])
        assert below < share * sum(counts) <= up_to


@pytest.mark.parametrize(("n", "value"), F_EIGHT.items())
def test_a_packet_gets_through_with_eight_attempts(n: int, value: float) -> None:
    assert float(packet_success(n, 8, 4000)) == pytest.approx(value, abs=SIX_DIGITS / 10)


@pytest.mark.parametrize(
    ("n", "value"), {4: 0.982570, 6: 0.863070, 8: 0.596586, 10: 0.274861}.items()
)
def test_a_packet_gets_through_with_seven_attempts(n: int, value: float) -> None:
    assert float(packet_success(n, 7, 4000)) == pytest.approx(value, abs=SIX_DIGITS)


def test_an_exchange_of_5_5_ms_is_275_slots() -> None:
    counts = backoff_counts(8)
    assert float(packet_success(3, 8, 5500)) == sum(counts[551:]) / sum(counts)


@pytest.mark.parametrize(("last", "table"), [(True, TO_W), (False, AS_PRINTED)])
def test_a_burst_gets_through_a_node(last: bool, table: dict[int, float]) -> None:
    values = {w: float(burst_success(w, 4, 8, 4000, last=last)) for w in table}
    assert values == pytest.approx(table, abs=SIX_DIGITS)


@pytest.mark.parametrize(
    ("w", "value"), {3: 0.997471, 4: 0.980085, 5: 0.922183, 6: 0.795909}.items()
)
def test_a_burst_gets_through_a_node_with_seven_attempts(w: int, value: float) -> None:
    assert float(burst_success(w, 4, 7, 4000)) == pytest.approx(value, abs=SIX_DIGITS)


@pytest.mark.parametrize(("w", "row"), PATHS.items())
def test_a_burst_gets_through_a_chain(w: int, row: tuple[float, ...]) -> None:
    values = [float(burst_success(w, hops, 8, 4000)) for hops in range(4, 11)]
    assert values == pytest.approx(row, abs=SIX_DIGITS)
    if w > min(PATHS):
        printed = float(burst_success(w, 7, 8, 4000, last=False))
        assert printed == float(burst_success(w - 1, 7, 8, 4000))


def test_seven_attempts_leave_less_of_a_burst_of_five_over_nine_hops() -> None:
    assert float(burst_success(5, 9, 7, 4000)) == pytest.approx(0.615039, abs=SIX_DIGITS)


def test_nothing_is_lost_on_short_chains() -> None:
    assert burst_success(50, 3, 8, 4000) == 1
