"""Tilted laws against sums over all terms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from dpsurvey.copula.quadrant import QuadrantLaw
from dpsurvey.copula.tilting import noise_jet, tilt_to_mean, tilted_moments, tilted_parts
from dpsurvey.privacy.mechanisms import build_mechanism
from dpsurvey.privacy.statistics import make_statistic


def brute_moments(weights: np.ndarray, eta: float) -> tuple[float, float, float]:
    terms, i = weights + eta * np.arange(len(weights)), np.arange(len(weights))
    log_total = logsumexp(terms)
    share = np.exp(terms - log_total)
    mean = share @ i
    return log_total, mean, share @ (i - mean) ** 2


def log_concave(size: int, rng: np.random.Generator) -> np.ndarray:
    """Return random log-concave weights: sums of sorted steps."""
    return np.concatenate(([0.0], np.cumsum(np.sort(rng.normal(scale=3.0, size=size - 1))[::-1])))


@pytest.mark.parametrize("eta", [-38.0, -3.0, -0.2, 0.0, 1e-9, 0.7, 12.0, 40.0])
@pytest.mark.parametrize("size", [2, 3, 7, 60, 1500])
def test_moments_are_those_of_the_full_sum(size: int, eta: float) -> None:
    weights = log_concave(size, np.random.default_rng(size))
    np.testing.assert_allclose(
        tilted_moments(weights, eta), brute_moments(weights, eta), rtol=1e-11, atol=1e-11
    )


@pytest.mark.parametrize("eta", [-20.0, -1.0, 0.0, 2.0, 20.0])
def test_moments_of_a_single_term(eta: float) -> None:
    assert tilted_moments(np.array([0.3]), eta) == (pytest.approx(0.3), 0.0, 0.0)


def test_flat_weights_put_the_peak_anywhere_but_sum_over_all() -> None:
    # Equal terms: the search for the peak has no slope to follow, and nothing may be cut off as negligible.
    log_total, mean, variance = tilted_moments(np.zeros(1001), 0.0)
    assert (log_total, mean, variance) == pytest.approx((np.log(1001), 500.0, (1001**2 - 1) / 12))


@pytest.mark.parametrize("n", [4, 51, 5820, 10**6])
def test_mean_and_variance_are_derivatives_of_the_log_total(n: int) -> None:
    weights = QuadrantLaw(n).log_weights
    for eta in (-5.0, -0.3, 0.0, 1.7, 9.0):
        step = 1e-3
        around = [tilted_moments(weights, eta + k * step) for k in (-2, -1, 1, 2)]
        _, mean, variance = tilted_moments(weights, eta)
        slope = np.dot([1, -8, 8, -1], [m[0] for m in around]) / (12 * step)
        curvature = np.dot([1, -8, 8, -1], [m[1] for m in around]) / (12 * step)
        assert mean == pytest.approx(slope, rel=1e-8, abs=1e-9)
        assert variance == pytest.approx(curvature, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("mechanism", ["geometric", "rgm"])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("n", [4, 5, 51, 1000])
def test_weights_and_noise_together_are_log_concave(n: int, epsilon: float, mechanism: str) -> None:
    # The search for the peak and the early stop rest on this. The normalising constant of rgm noise alone is
    # log-convex in the true count; the count's own weights outweigh it.
    statistic, law = make_statistic("quadrant", n, 2), QuadrantLaw(n)
    noise = build_mechanism(mechanism, statistic, epsilon)
    for noisy in range(law.lower, law.upper + 1, max(1, n // 60)):
        bend = np.diff(law.log_weights + noise.log_pmf(noisy, law.support), 2)
        assert bend.max() < 1e-9


@pytest.mark.parametrize("mechanism", ["geometric", "rgm"])
@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 40.0])
@pytest.mark.parametrize("n", [4, 5, 201])
def test_jet_is_log_likelihood_score_and_curvature(n: int, epsilon: float, mechanism: str) -> None:
    law = QuadrantLaw(n)
    noise = build_mechanism(mechanism, make_statistic("quadrant", n, 2), epsilon)
    for noisy in {law.lower, law.upper, (law.lower + law.upper) // 2}:
        log_noise = noise.log_pmf(noisy, law.support.astype(float))
        for eta in (-15.0, -0.4, 0.0, 3.0):
            total, mean, variance = brute_moments(law.log_weights, eta)
            posterior = brute_moments(law.log_weights + log_noise, eta)
            expected = np.subtract(posterior, (total, mean, variance))
            np.testing.assert_allclose(
                noise_jet(law.log_weights, log_noise, eta), expected, rtol=1e-9, atol=1e-9
            )


def test_parts_recombine_to_the_log_total() -> None:
    weights, noise = log_concave(80, np.random.default_rng(1)), -0.3 * np.abs(np.arange(80) - 200.0)
    peak, log_sum, shift, variance = tilted_parts(weights, noise, 0.8)
    total, mean, spread = brute_moments(weights + noise, 0.8)
    assert weights[peak] + noise[peak] + 0.8 * peak + log_sum == pytest.approx(total)
    assert (peak + shift, variance) == (pytest.approx(mean), pytest.approx(spread))


@pytest.mark.parametrize("n", [4, 5, 100, 5820, 10**7])
def test_tilt_to_mean_inverts_the_mean(n: int) -> None:
    weights = QuadrantLaw(n).log_weights
    last = len(weights) - 1
    for share in (1e-9, 1e-4, 0.1, 0.5, 0.77, 1 - 1e-5):
        eta = tilt_to_mean(weights, share * last, 160.0)
        _, mean, variance = tilted_moments(weights, eta)
        # At best the mean is as exact as a float of its size; in eta that is this much.
        assert abs(mean - share * last) < 1e-12 * last + 1e-9 * variance
