"""The law of quadrant counts against scipy, exact arithmetic, enumeration of tables and simulated medians."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from itertools import product

import numpy as np
import pytest
from scipy.stats import multivariate_normal, nchypergeom_fisher

from dpsurvey.copula.quadrant import QuadrantLaw, correlation, log_odds, orthant_probability

EDGE = 1 - 1e-12
CORRELATIONS = [-EDGE, -0.999, -0.8, -0.3, 0.0, 1e-9, 0.5, 0.95, EDGE]


@pytest.mark.parametrize("R", [-0.999, -0.5, 0.0, 0.3, 0.9])
def test_orthant_probability_is_the_bivariate_normals(R: float) -> None:
    expected = multivariate_normal(cov=[[1, R], [R, 1]]).cdf([0, 0])
    assert orthant_probability(R) == pytest.approx(expected, abs=1e-9)


def test_log_odds_are_those_of_the_orthant_probabilities() -> None:
    R = np.linspace(-0.99, 0.99, 199)
    high = orthant_probability(R)
    np.testing.assert_allclose(log_odds(R), 2 * np.log(high / (0.5 - high)), atol=1e-12)
    u = 2 / np.pi * np.arcsin(R)
    np.testing.assert_allclose(log_odds(R), 2 * np.log((1 + u) / (1 - u)), atol=1e-12)  # eq. 9


def test_log_odds_and_correlation_invert_each_other() -> None:
    R = np.concatenate((CORRELATIONS, np.linspace(-0.999, 0.999, 101)))
    np.testing.assert_allclose(correlation(log_odds(R)), R, rtol=0, atol=4e-16)
    eta = np.linspace(-30, 30, 121)
    np.testing.assert_allclose(log_odds(correlation(eta)), eta, atol=1e-3, rtol=0)  # R itself is the limit
    np.testing.assert_allclose(log_odds(correlation(eta[40:81])), eta[40:81], atol=1e-12, rtol=0)


def test_log_odds_keep_their_precision_at_the_edge() -> None:
    # acos(1 - d) = sqrt(2 d) (1 + d/12 + ...), and 1 - EDGE is exact in floating point.
    d = 1.0 - EDGE
    small = math.sqrt(2 * d) * (1 + d / 12)
    assert float(log_odds(EDGE)) == pytest.approx(2 * math.log((math.pi - small) / small), rel=1e-15)
    assert float(log_odds(-EDGE)) == -float(log_odds(EDGE))
    assert log_odds([-1.0, 1.0]).tolist() == [-np.inf, np.inf]


@pytest.mark.parametrize("R", CORRELATIONS)
@pytest.mark.parametrize("n", [4, 5, 50, 51, 5820, 5821])
def test_pmf_is_fishers_noncentral_hypergeometric(n: int, R: float) -> None:
    law, odds = QuadrantLaw(n), math.exp(float(log_odds(R)))
    centre, spread = law.mean(log_odds(R)), math.sqrt(law.variance(log_odds(R)))
    near = np.abs(law.support - centre) <= max(2.0, 8 * spread)
    t = law.support[near][:: max(1, near.sum() // 40)]
    expected = nchypergeom_fisher(n, law.upper, law.upper, odds).logpmf(t)
    np.testing.assert_allclose(law.log_pmf(t, R), expected, rtol=1e-11, atol=1e-10)
    if n <= 51:
        cdf = nchypergeom_fisher(n, law.upper, law.upper, odds).cdf(law.support)
        np.testing.assert_allclose(law.cdf(law.support, R), cdf, rtol=0, atol=1e-12)


@pytest.mark.parametrize("R", CORRELATIONS)
@pytest.mark.parametrize("n", [20, 51, 300])
def test_pmf_against_sixty_digits(n: int, R: float) -> None:
    law, h = QuadrantLaw(n), (n + 1) // 2
    with localcontext() as context:
        context.prec = 60
        odds = Decimal(float(log_odds(R))).exp()
        terms = [math.comb(h, t) * math.comb(n - h, h - t) * odds ** int(t) for t in law.support]
        expected = [float((term / sum(terms)).ln()) for term in terms]
    np.testing.assert_allclose(law.log_pmf(law.support, R), expected, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("n", [4, 5, 6, 7, 8])
def test_law_is_that_of_tables_with_the_medians_margins(n: int) -> None:
    # Enumerate every assignment of n rows to the four quadrants; keep those with h rows high in each variable.
    h, R = (n + 1) // 2, 0.6
    both = float(orthant_probability(R))
    one = 0.5 - both
    mass = dict.fromkeys(range(h + 1), 0.0)
    for cells in product(range(4), repeat=n):  # 0 high-high, 1 high-low, 2 low-high, 3 low-low
        n11, n10, n01 = cells.count(0), cells.count(1), cells.count(2)
        if n11 + n10 == h == n11 + n01:
            mass[n11] += both ** (n11 + cells.count(3)) * one ** (n10 + n01)
    total = sum(mass.values())
    law = QuadrantLaw(n)
    for t, m in mass.items():
        assert float(np.exp(law.log_pmf(t, R))) == pytest.approx(m / total, abs=1e-12)


def test_odd_law_differs_from_the_papers_as_documented() -> None:
    # Total variation .055 at n = 51, R = 0, and a shift of a quarter of a count.
    exact, paper = QuadrantLaw(51), QuadrantLaw(52)
    t = np.arange(27)
    distance = 0.5 * np.abs(np.exp(exact.log_pmf(t, 0.0)) - np.exp(paper.log_pmf(t, 0.0))).sum()
    assert distance == pytest.approx(0.055, abs=0.005)
    assert exact.mean(0.0) - paper.mean(0.0) == pytest.approx(26**2 / 51 - 13)


@pytest.mark.parametrize("R", CORRELATIONS)
@pytest.mark.parametrize("n", [4, 5, 50, 51, 5820])
def test_law_is_whole(n: int, R: float) -> None:
    law, eta = QuadrantLaw(n), float(log_odds(R))
    pmf = np.exp(law.log_pmf(law.support, R))
    assert np.isfinite(law.log_pmf(law.support, R)).all()
    assert pmf.sum() == pytest.approx(1.0, abs=1e-10)
    assert law.mean(eta) == pytest.approx(pmf @ law.support, abs=1e-9 * n)
    assert law.variance(eta) == pytest.approx(pmf @ (law.support - law.mean(eta)) ** 2, rel=1e-6, abs=1e-13)
    assert law.cdf(law.upper, R) == pytest.approx(1.0, abs=1e-10)
    assert law.cdf([law.lower - 1, -5], R).tolist() == [0.0, 0.0]
    np.testing.assert_allclose(law.cdf(law.support + 0.5, R), np.cumsum(pmf), atol=1e-10)


@pytest.mark.parametrize("n", [4, 5, 50, 5820])
def test_outside_the_support_is_impossible(n: int) -> None:
    law = QuadrantLaw(n)
    assert law.log_pmf([law.lower - 1, law.upper + 1, -(10**9)], 0.3).tolist() == [-np.inf] * 3


@pytest.mark.parametrize("n", [4, 5, 50, 51, 1000])
def test_law_mirrors_when_a_variable_is_reversed(n: int) -> None:
    # For even n, reversing one variable exchanges t and h - t; for odd n the middle row stays high.
    law = QuadrantLaw(n)
    if n % 2 == 0:
        np.testing.assert_allclose(law.log_pmf(law.support, 0.7), law.log_pmf(law.upper - law.support, -0.7))
        np.testing.assert_allclose(law.mean([-2.0, 2.0]).sum(), law.upper)
    else:
        assert law.mean(2.0) + law.mean(-2.0) > law.upper


@pytest.mark.parametrize("n", [4, 5, 50, 51, 5820, 10**6])
def test_solve_inverts_the_mean(n: int) -> None:
    law = QuadrantLaw(n)
    for R in (-0.999, -0.6, 0.0, 0.01, 0.9, 0.999):
        assert law.solve(float(law.mean(log_odds(R)))) == pytest.approx(R, abs=1e-9)


@pytest.mark.parametrize("n", [4, 5, 50, 5820])
def test_solve_at_and_near_the_ends(n: int) -> None:
    law = QuadrantLaw(n)
    assert [law.solve(x) for x in (law.lower, law.lower - 1e9, -np.inf)] == [-1.0] * 3
    assert [law.solve(x) for x in (law.upper, law.upper + 0.5, np.inf)] == [1.0] * 3
    near = [law.solve(law.upper - gap) for gap in (0.9, 0.1, 1e-3, 1e-6)]
    assert near == sorted(near)
    assert all(0.0 < r <= 1.0 for r in near)
    low = [law.solve(law.lower + gap) for gap in (0.9, 0.1, 1e-3, 1e-6)]
    if n % 2 == 0:
        np.testing.assert_allclose(low, np.negative(near), atol=1e-9)


def test_law_against_counts_above_sample_medians() -> None:
    # Equation (10) takes the rows for independent given the population medians. Against counts above *sample*
    # medians it is a good law with a known bias: its mean lies .16 to .3 counts higher for R = .6 to .9,
    # whatever n. 40,000 samples: the standard error of a mean count is below .02.
    rng = np.random.default_rng(20260101)
    for n, R in ((50, 0.6), (200, 0.8), (51, 0.9), (200, 0.0)):
        counts = np.concatenate([_median_counts(n, R, 4000, rng) for _ in range(10)])
        law, eta = QuadrantLaw(n), float(log_odds(R))
        error = counts.std() / math.sqrt(len(counts))
        bias = float(law.mean(eta)) - counts.mean()
        print(f"n={n} R={R}: mean of the law less that of counts {bias:.3f} (MC error {error:.3f})")
        assert error < 0.02
        if R == 0.0:  # two independent splits: the law is exact
            assert abs(bias) < 4 * error
        else:
            assert 0.1 < bias < 0.4
        assert counts.var() / float(law.variance(eta)) == pytest.approx(1.0, abs=0.08)
        frequency = np.bincount(counts, minlength=law.upper + 1)[law.lower :] / len(counts)
        distance = 0.5 * np.abs(frequency - np.exp(law.log_pmf(law.support, R))).sum()
        assert distance < (0.02 if R == 0.0 else 0.12)


def _median_counts(n: int, R: float, samples: int, rng: np.random.Generator) -> np.ndarray:
    """Return counts of rows in the upper ceil(n/2) of both variables, one per sample."""
    x = rng.normal(size=(samples, n))
    y = R * x + math.sqrt(1 - R * R) * rng.normal(size=(samples, n))
    high = [v >= np.partition(v, n // 2, axis=1)[:, [n // 2]] for v in (x, y)]
    return (high[0] & high[1]).sum(axis=1)
