"""Draws against the exact law, from the middle to far tails."""

import numba
import numpy as np
import pytest
from scipy.stats import kstest, truncnorm

from dpsurvey.baselines.truncated_normal import truncated_normal


@numba.njit
def sample(rng, a, b, size):
    out = np.empty(size)
    for i in range(size):
        out[i] = truncated_normal(rng, a, b)
    return out


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (-np.inf, np.inf),
        (-0.5, np.inf),
        (-1.0, 1.0),
        (-0.1, 2.0),
        (-0.1, 4.0),
        (0.0, 0.7),
        (0.0, 3.0),
        (1.9, 2.4),
        (2.0, np.inf),
        (-np.inf, -6.0),
        (-9.1, -9.0),
        (-12.0, -7.0),
    ],
)
def test_follows_the_truncated_law(a, b):
    x = sample(np.random.default_rng(3), a, b, 20_000)
    assert x.min() >= a
    assert x.max() <= b
    assert kstest(x, truncnorm(a, b).cdf).pvalue > 1e-4


@pytest.mark.parametrize("a", [40.0, 1e3, 1e5])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_far_tail_is_exponential(a, side):
    """Beyond a the excess times a is Exp(1) up to 1/a^2, where every cdf is 0 or 1 in floating point."""
    ends = (a, np.inf) if side > 0 else (-np.inf, -a)
    x = sample(np.random.default_rng(5), *ends, 20_000)
    excess = (side * x - a) * a
    assert abs(excess.mean() - 1.0) < 4 / np.sqrt(20_000) + 2 / a**2 + 1e-3


def test_narrow_interval_far_out_stays_inside():
    a = 38.0
    b = np.nextafter(a, 39.0)
    x = sample(np.random.default_rng(7), a, b, 100)
    assert ((x == a) | (x == b)).all()


def test_empty_interval_returns_its_lower_end():
    rng = np.random.default_rng(1)
    assert truncated_normal(rng, 1.5, 1.5) == 1.5
    assert truncated_normal(rng, 1.5, 1.0) == 1.5
