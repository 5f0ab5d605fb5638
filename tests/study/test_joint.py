"""The joint likelihood of three counts."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

from dpsurvey.copula.quadrant import QuadrantLaw
from dpsurvey.study import batch
from dpsurvey.study.cells import Cell, streams
from dpsurvey.study.designs import draw_correlation
from dpsurvey.study.joint import (
    joint_log_likelihood,
    joint_log_pmf,
    log_weights,
    natural_parameters,
    octant_probabilities,
)
from dpsurvey.study.joint_fit import fit, functionals

R = np.array([draw_correlation(3, np.random.default_rng(seed)) for seed in range(6)])


def octants_of(rows):
    return np.stack([(rows >> shift) & 1 for shift in (2, 1, 0)], axis=-1)


@pytest.mark.parametrize("n", [4, 5, 6])
def test_pmf_is_that_of_all_possible_surveys(n):
    """Every assignment of n rows to octants, conditioned on margins of ceil(n/2)."""
    pi = octant_probabilities(R[0])
    rows = octants_of(np.array(list(itertools.product(range(8), repeat=n))))
    kept = rows[(rows.sum(axis=1) == (n + 1) // 2).all(axis=1)]
    weight = pi[kept[..., 0], kept[..., 1], kept[..., 2]].prod(axis=1)
    counts = np.stack(
        [(kept[..., j] & kept[..., k]).sum(axis=1) for j, k in ((0, 1), (0, 2), (1, 2))], axis=-1
    )
    triples, place = np.unique(counts, axis=0, return_inverse=True)
    exact = np.bincount(place.ravel(), weight) / weight.sum()
    ours = [np.exp(joint_log_pmf(n, triple, R[:1]))[0] for triple in triples]
    np.testing.assert_allclose(ours, exact, rtol=1e-7)
    assert np.isfinite(log_weights(n)).sum() == len(triples)


@pytest.mark.parametrize("n", [20, 51, 100])
def test_likelihood_is_the_plain_sum_over_all_triples(n):
    h = (n + 1) // 2
    t = np.arange(h + 1.0)
    noise = np.array([-np.abs(shift - t) / 3 for shift in (0.2 * h, 0.5 * h, 0.9 * h)])
    linear = sum(
        theta[:, None, None, None] * t.reshape(shape)
        for theta, shape in zip(natural_parameters(R).T, ((-1, 1, 1), (1, -1, 1), (1, 1, -1)), strict=True)
    )
    law = log_weights(n) + linear
    noisy = law + noise[0][:, None, None] + noise[1][:, None] + noise[2]
    direct = logsumexp(noisy, axis=(1, 2, 3)) - logsumexp(law, axis=(1, 2, 3))
    np.testing.assert_allclose(joint_log_likelihood(n, noise, R), direct, atol=1e-6)


def test_law_agrees_with_simulated_surveys():
    """Means and covariances of the counts of 4000 simulated surveys; the law conditions on the margins."""
    n, rng = 60, np.random.default_rng(1)
    matrix = np.array([[1.0, 0.5, 0.3], [0.5, 1.0, -0.2], [0.3, -0.2, 1.0]])
    factor = np.linalg.cholesky(matrix).T
    counts = np.array([batch.high_low_counts(rng.standard_normal((n, 3)) @ factor) for _ in range(4000)])
    triples = np.array(np.nonzero(np.isfinite(log_weights(n)))).T
    theta = natural_parameters(matrix)
    law = log_weights(n)[tuple(triples.T)] + triples @ theta
    share = np.exp(law - logsumexp(law))
    mean = share @ triples
    covariance = np.cov(triples.T, aweights=share, bias=True)
    sd = np.sqrt(covariance.diagonal())
    # conditioning on margins shifts means by up to .3 counts (a known property of equation 10)
    assert np.abs(counts.mean(axis=0) - mean).max() < 0.3 + 4 * sd.max() / np.sqrt(4000)
    simulated = np.corrcoef(counts.T)
    ours = covariance / np.outer(sd, sd)
    assert np.abs(simulated - ours).max() < 0.08


def test_independent_variables_have_independent_marginal_laws():
    """At R = I each count by itself has the law of the composite likelihood."""
    n = 30
    share = np.exp(log_weights(n) - logsumexp(log_weights(n)))
    law = QuadrantLaw(n)
    marginal = np.exp(law.log_pmf(law.support, 0.0))
    for axis in ((1, 2), (0, 2), (0, 1)):
        np.testing.assert_allclose(share.sum(axis=axis), marginal, atol=1e-12)


def test_functionals_are_the_regression():
    matrix = R[1]
    beta = np.linalg.solve(matrix[1:, 1:], matrix[1:, 0])
    precision = np.linalg.inv(matrix)
    partial = -precision[0, 1] / np.sqrt(precision[0, 0] * precision[1, 1])
    expected = [matrix[0, 1], matrix[0, 2], matrix[1, 2], *beta, partial, beta @ matrix[1:, 0]]
    np.testing.assert_allclose(functionals(matrix), expected, atol=1e-12)


def test_joint_posterior_is_shorter_for_joint_functionals_and_alike_for_pairs():
    cell = Cell("continuous", 3, 50, 100.0, "Joint")  # nearly no noise, where the likelihoods differ most
    book = batch.catalogue(QuadrantLaw(50), cell.mechanism())
    truth = np.broadcast_to(np.array([[1.0, 0.6, 0.6], [0.6, 1.0, 0.6], [0.6, 0.6, 1.0]]), (6, 3, 3))
    noisy = np.full((6, 3), 18)
    lengths = {}
    for joint in (False, True):
        generators = [streams(cell, run, 1).draws for run in range(6)]
        _, _, lower, upper = fit(book, truth, noisy, generators, joint=joint)
        lengths[joint] = (upper - lower).mean(axis=0)
    ratio = lengths[True] / lengths[False]
    assert 0.85 < ratio[:3].min() <= ratio[:3].max() < 1.15
    assert ratio[3:6].max() < 0.95
