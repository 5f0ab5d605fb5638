"""Exact samplers, tested against their laws. The noise is real and cannot be seeded: tests at level 1e-6."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from dpsurvey.privacy.exact import (
    bernoulli,
    bernoulli_exp,
    truncated_two_sided_geometric,
    two_sided_geometric,
)

DRAWS = 30_000
LEVEL = 1e-6


@pytest.mark.parametrize(
    "probability", [Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(999, 1000), Fraction(1)]
)
def test_bernoulli_has_its_probability(probability: Fraction) -> None:
    from scipy.stats import binomtest

    heads = sum(bernoulli(probability) for _ in range(DRAWS))
    assert binomtest(heads, DRAWS, float(probability)).pvalue > LEVEL


@pytest.mark.parametrize(
    "x", [Fraction(0), Fraction(1, 1000), Fraction(1, 2), Fraction(1), Fraction(7, 3), Fraction(6)]
)
def test_bernoulli_exp_has_its_probability(x: Fraction) -> None:
    from scipy.stats import binomtest

    heads = sum(bernoulli_exp(x) for _ in range(DRAWS))
    assert binomtest(heads, DRAWS, float(np.exp(-float(x)))).pvalue > LEVEL


def test_bernoulli_exp_ends_at_once_where_it_is_hopeless() -> None:
    assert not bernoulli_exp(Fraction(10**30))


@pytest.mark.parametrize("rate", [Fraction(1, 7), Fraction(1), Fraction(5, 2)])
def test_two_sided_geometric(rate: Fraction, p_value: Callable[..., float]) -> None:
    support = np.arange(-400, 401)
    log_pmf = -float(rate) * np.abs(support)
    log_pmf -= np.log(np.exp(log_pmf).sum())
    assert p_value([two_sided_geometric(rate) for _ in range(DRAWS)], support, log_pmf) > LEVEL


@pytest.mark.parametrize("center", [3, 5, 9])
@pytest.mark.parametrize("rate", [Fraction(1, 100), Fraction(1, 7), Fraction(1, 5), Fraction(3)], ids=str)
def test_truncated_two_sided_geometric(rate: Fraction, center: int, p_value: Callable[..., float]) -> None:
    """Rates on both sides of where the proposal changes, 1 / width, and a center at each end and within."""
    support = np.arange(3, 10)
    log_pmf = -float(rate) * np.abs(support - center)
    log_pmf -= np.log(np.exp(log_pmf).sum())
    draws = [truncated_two_sided_geometric(center, 3, 9, rate) for _ in range(DRAWS // 3)]
    assert set(draws) <= set(range(3, 10))
    assert p_value(draws, support, log_pmf) > LEVEL
