"""Discrete Gaussian noise: its law, its calibration through zCDP, and what a release records of it."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dpsurvey.errors import ArgumentError
from dpsurvey.privacy.exact import discrete_gaussian
from dpsurvey.privacy.gaussian import DiscreteGaussian
from dpsurvey.privacy.mechanisms import build_mechanism
from dpsurvey.privacy.statistics import ConcordanceCounts, QuadrantCounts

LEVEL = 1e-6
GOLDEN = Path(__file__).parents[1] / "golden" / "noise_scales.csv"
ROWS = list(csv.DictReader(GOLDEN.read_text().splitlines()[1:]))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Convert rho-zCDP to epsilon at delta (Canonne, Kamath and Steinke, 2020, corollary 13), on a grid of orders."""
    order = 1 + np.exp(np.linspace(-8, 12, 400_000))
    return float(
        np.min(order * rho + (math.log(1 / delta) - np.log(order)) / (order - 1) + np.log1p(-1 / order))
    )


@pytest.mark.parametrize("statistic", [QuadrantCounts(500, 5), ConcordanceCounts(500, 5)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-6), (1.0, 1e-9), (5.0, 1e-6)])
def test_scale_is_the_smallest_that_the_conversion_allows(
    statistic: QuadrantCounts | ConcordanceCounts, epsilon: float, delta: float
) -> None:
    law = DiscreteGaussian.build(statistic, epsilon, delta)
    assert law.rho == pytest.approx((statistic.l2_sensitivity / law.scale) ** 2 / 2, rel=1e-9)
    assert epsilon * (1 - 1e-6) < law.privacy_map <= epsilon
    assert zcdp_epsilon(law.rho, delta) == pytest.approx(law.privacy_map, rel=1e-4)


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['p']}-{r['eps']}")
def test_noise_is_a_little_larger_than_the_analytic_gaussians(row: dict[str, str]) -> None:
    scale = DiscreteGaussian.build(QuadrantCounts(500, int(row["p"])), float(row["eps"]), 1e-6).scale
    analytic, simple = float(row["sd_gauss_analytic_delta1e-6"]), float(row["sd_dgauss_zcdp_delta1e-6"])
    assert 0.99 * analytic < scale < 1.01 * simple  # OpenDP's conversion is sharper than the simple one


@pytest.mark.parametrize("scale", [0.3, 3.0, 40.0])
def test_real_and_simulated_noise_have_the_law(scale: float, p_value: Callable[..., float]) -> None:
    law, zeros = DiscreteGaussian(scale, 0.1, 1.0), np.zeros(4000, dtype=np.int64)
    support = np.arange(-30 - int(20 * scale), 31 + int(20 * scale))
    for noisy in (law.release(zeros), law.simulate(zeros, np.random.default_rng(1))):
        assert p_value(noisy, support, law.log_pmf(support, 0)) > LEVEL


def test_own_exact_draw_has_the_law_of_a_rational_variance(p_value: Callable[..., float]) -> None:
    draws = [discrete_gaussian(Fraction(7, 3)) for _ in range(4000)]
    support = np.arange(-40, 41)
    log_weight = -0.5 * support**2 * 3 / 7
    assert p_value(draws, support, log_weight - np.logaddexp.reduce(log_weight)) > LEVEL


@pytest.mark.parametrize("scale", [0.2, 1.0, 49.0, 51.0])
def test_variance_and_total(scale: float) -> None:
    law, d = DiscreteGaussian(scale, 0.1, 1.0), np.arange(-2000, 2001)
    pmf = np.exp(law.log_pmf(d, 0))
    assert pmf.sum() == pytest.approx(1.0, abs=1e-12)
    assert law.variance == pytest.approx(float(np.dot(pmf, d * d)), rel=1e-9, abs=1e-15)


def test_delta_and_gaussian_noise_belong_together() -> None:
    with pytest.raises(ArgumentError, match="no pure epsilon"):
        build_mechanism("gaussian", QuadrantCounts(500, 5), 1.0)
    for name in ("geometric", "rgm", "linf"):
        with pytest.raises(ArgumentError, match="pure epsilon"):
            build_mechanism(name, QuadrantCounts(500, 5), 1.0, 1e-6)


def test_counts_of_two_kinds_need_joint_noise() -> None:
    mixed = ConcordanceCounts(500, 5, (0,))
    for name in ("geometric", "rgm"):
        with pytest.raises(ArgumentError, match="two kinds"):
            build_mechanism(name, mixed, 1.0)
    with pytest.raises(ArgumentError, match="two kinds"):
        build_mechanism("gaussian", mixed, 1.0, 1e-6)


def test_tiny_epsilon_is_refused() -> None:
    with pytest.raises(ArgumentError, match="too small"):
        DiscreteGaussian.build(QuadrantCounts(500, 5), 1e-300, 1e-6)
