"""The range-preserving geometric mechanism: its rate, its law, its loss in full."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln

from dpsurvey.errors import ArgumentError
from dpsurvey.privacy.mechanisms import build_mechanism
from dpsurvey.privacy.rgm import RangePreservingGeometric, range_preserving_rate
from dpsurvey.privacy.statistics import QuadrantCounts

LEVEL = 1e-6  # real noise cannot be seeded
EPSILONS = [1e-10, 0.01, 0.1, 1 / 3, 1.0, 2.5, 8.0, 60.0]


def loss(law: RangePreservingGeometric, sensitivity: int = 1) -> float:
    """Return the largest log ratio over all outputs and all pairs of true counts that near."""
    support = np.arange(law.lower, law.upper + 1)
    log_pmf = law.log_pmf(support[:, None], support)
    near = range(1, min(sensitivity, len(support) - 1) + 1)
    return max(float(np.abs(log_pmf[:, d:] - log_pmf[:, :-d]).max()) for d in near)


@pytest.mark.parametrize("n", [4, 5, 6, 7, 11, 50, 51])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_loss_over_all_outputs_and_neighbours_is_epsilon(n: int, epsilon: float) -> None:
    law = RangePreservingGeometric.build(QuadrantCounts(n, 2), epsilon)
    assert loss(law) == pytest.approx(epsilon, rel=1e-6, abs=1e-13)
    assert loss(law) <= epsilon * (1 + 1e-12) + 1e-14


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 9, 20])
@pytest.mark.parametrize("sensitivity", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 4.0])
def test_loss_stays_within_epsilon_at_any_sensitivity(width: int, sensitivity: int, epsilon: float) -> None:
    if sensitivity > width:
        with pytest.raises(ArgumentError, match="does not fit"):
            range_preserving_rate(epsilon, 0, width, sensitivity)
        return
    rate = range_preserving_rate(epsilon, 3, 3 + width, sensitivity)
    assert epsilon / 2 <= sensitivity * rate * (1 + 1e-12)
    assert sensitivity * rate <= epsilon
    found = loss(RangePreservingGeometric(rate, 3, 3 + width), sensitivity)
    assert found <= epsilon * (1 + 1e-12)
    if 2 * sensitivity <= width:
        assert found == pytest.approx(epsilon, rel=1e-9)


def test_normalising_without_the_smaller_rate_would_leak_almost_twice_as_much() -> None:
    assert loss(RangePreservingGeometric(0.01, 0, 50)) > 1.9 * 0.01


@pytest.mark.parametrize("sensitivity", [0, -1])
def test_a_sensitivity_below_one_is_refused(sensitivity: int) -> None:
    with pytest.raises(ArgumentError):
        range_preserving_rate(1.0, 0, 10, sensitivity)


@pytest.mark.parametrize("n", [4, 5, 5820, 10**9])
@pytest.mark.parametrize("p", [2, 7, 60])
@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 0.3, 1.0, 10.0, 1e5])
def test_the_rate_is_the_largest_that_stays_within_epsilon_in_exact_numbers(
    n: int, p: int, epsilon: float
) -> None:
    """Checked in 80 digits, with the closed form of the paper's supplement rather than the one that is coded."""
    statistic = QuadrantCounts(n, p)
    width = statistic.upper - statistic.lower
    rate = RangePreservingGeometric.build(statistic, epsilon).rate

    def exact(value: float) -> Decimal:
        with localcontext() as context:
            context.prec = 80
            a = (-Decimal(value)).exp()
            g = (1 + a - a**2 - a**width) / (1 - a ** (width + 1))
            return (Decimal(value) + g.ln()) * statistic.m

    assert exact(rate) <= Decimal(repr(epsilon))
    assert exact(rate) == pytest.approx(Decimal(repr(epsilon)), rel=Decimal("1e-14"))


def test_rates_of_the_reference_code(reference: dict[str, Any]) -> None:
    compared = 0
    for case in reference["rtg_root"] + reference["rtg_root_sensitivity"]:
        if case["eps_geom_tol1e15"] is None:  # its bracket fails where the root is at its end
            assert case["n"] == 1
            continue
        rate = range_preserving_rate(case["eps"], 0, case["n"], case["sensitivity"])
        assert rate * case["sensitivity"] == pytest.approx(case["eps_geom_tol1e15"], abs=1e-8)
        compared += 1
    assert compared > 80


def test_law_of_the_reference_code(reference: dict[str, Any]) -> None:
    for case in reference["rtg_pmf"]:
        rate = range_preserving_rate(case["eps"], 0, case["n"], 1)
        assert rate == pytest.approx(case["eps_geom"], abs=1e-8)
        pmf = np.exp(
            RangePreservingGeometric(rate, 0, case["n"]).log_pmf(np.arange(case["n"] + 1), case["x"])
        )
        assert pmf == pytest.approx(np.array(case["prob"]), abs=1e-8)


@pytest.mark.parametrize("rate", [1e-16, 1e-6, 0.02, 0.7, 40.0, 2.0**52])
@pytest.mark.parametrize(("lower", "upper"), [(0, 2), (1, 3), (1, 26), (0, 500)])
def test_law_sums_to_one_for_every_true_count_and_is_nothing_outside(
    rate: float, lower: int, upper: int
) -> None:
    law = RangePreservingGeometric(rate, lower, upper)
    support = np.arange(lower, upper + 1)
    assert np.exp(law.log_pmf(support[:, None], support)).sum(axis=0) == pytest.approx(1, abs=1e-12)
    assert np.isneginf(law.log_pmf([lower - 1, upper + 1], lower)).all()


@pytest.mark.parametrize(("true", "draws"), [(1, 20_000), (3, 100_000), (26, 20_000)])
@pytest.mark.parametrize("rate", [0.02, 0.3])
def test_real_noise_has_the_law_that_inference_uses(
    rate: float, true: int, draws: int, p_value: Callable[..., float]
) -> None:
    """Rates 0.02 and 0.3 on a width of 25 take the uniform and the geometric proposal."""
    law = RangePreservingGeometric(rate, 1, 26)
    noisy = law.release(np.full(draws, true))
    assert noisy.dtype == np.int64
    assert 1 <= noisy.min() <= noisy.max() <= 26
    assert p_value(noisy, np.arange(1, 27), law.log_pmf(np.arange(1, 27), true)) > LEVEL


@pytest.mark.parametrize("rate", [0.02, 0.3, 6.0])
def test_simulated_noise_has_the_same_law(rate: float, p_value: Callable[..., float]) -> None:
    law = RangePreservingGeometric(rate, 1, 26)
    noisy = law.simulate(np.full(10_000, 3), np.random.default_rng(1))
    assert p_value(noisy, np.arange(1, 27), law.log_pmf(np.arange(1, 27), 3)) > 1e-3
    again = law.simulate(np.full(10_000, 3), np.random.default_rng(1))
    assert np.array_equal(noisy, again)


@pytest.mark.parametrize("n", [4, 5, 6, 7, 20, 51, 400])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 3.0, 10.0, 100.0])
def test_times_the_weights_of_a_true_count_it_is_log_concave(n: int, epsilon: float) -> None:
    """Alone it is not, near the ends of the range; the likelihood needs the product to have one peak."""
    statistic = QuadrantCounts(n, 2)
    h, t = statistic.high, np.arange(statistic.lower, statistic.upper + 1)
    ways = sum(
        gammaln(size + 1) - gammaln(k + 1) - gammaln(size - k + 1) for size, k in ((h, t), (n - h, h - t))
    )
    law = RangePreservingGeometric.build(statistic, epsilon)
    assert (np.diff(law.log_pmf(t[:, None], t) + ways, 2, axis=1) < 0).all()


@pytest.mark.parametrize("epsilon", [2.0**-53, 1e-300, 5e-324])
def test_epsilon_that_rounding_would_swamp_is_refused(epsilon: float) -> None:
    with pytest.raises(ArgumentError, match="too small"):
        build_mechanism("rgm", QuadrantCounts(100, 2), epsilon)


@pytest.mark.parametrize("epsilon", [1e3, 1e17, 1e300, 1.7e308])
def test_huge_epsilon_gives_the_counts_without_an_overflow(epsilon: float) -> None:
    law = RangePreservingGeometric.build(QuadrantCounts(5820, 2), epsilon)
    counts = np.array([0, 1, 2910])
    assert law.release(counts).tolist() == counts.tolist()
    assert law.simulate(counts, np.random.default_rng(1)).tolist() == counts.tolist()
    assert law.log_pmf(counts, counts) == pytest.approx(0, abs=1e-300)


@pytest.mark.parametrize("rate", [0, 0.0, -1.0, True, math.nan, math.inf, "1", None])
def test_a_rate_that_is_none_is_refused(rate) -> None:
    with pytest.raises(ArgumentError, match="finite and above 0"):
        RangePreservingGeometric(rate, 0, 10)


@pytest.mark.parametrize(("lower", "upper"), [(3, 3), (4, 3), (0.0, 3), (0, 3.0), (None, 3)])
def test_a_range_that_is_none_is_refused(lower, upper) -> None:
    with pytest.raises(ArgumentError, match="range"):
        RangePreservingGeometric(0.5, lower, upper)


def test_the_draw_uses_the_exact_value_of_the_rate() -> None:
    """The float's exact value is what the loss was computed for."""
    rate = RangePreservingGeometric.build(QuadrantCounts(5820, 7), 1.0).rate
    assert Fraction(rate) == Fraction(Decimal(rate))
