"""The kernels leave the joint law of latents and covariance unchanged, and sample small posteriors right."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, kstest, wishart

from dpsurvey.baselines.erl import erl
from dpsurvey.baselines.erl_kernel import gibbs, independent
from dpsurvey.baselines.erl_native import lay_out
from dpsurvey.baselines.ranks import rank_table

N0 = 7.0


def prior_covariance(rng, p):
    return np.linalg.inv(wishart(N0, np.eye(p) / N0).rvs(random_state=rng))


def successive_conditional(seed, *, n, levels, missing, iterations):
    """Draw (S, Z) from the prior, let Z's order be the data, run the sampler from there: still the prior."""
    rng = np.random.default_rng(seed)
    p = len(levels)
    S = prior_covariance(rng, p)
    Z = np.linalg.cholesky(S) @ rng.standard_normal((p, n))
    data = pd.DataFrame(Z.T, columns=list("abc"[:p])).mask(rng.random((n, p)) < missing)
    for name, k in zip(data, levels, strict=True):
        if k is not None:  # k levels of fixed sizes: the orders kept then split the latents' space
            data[name] = np.floor((data[name].rank() - 1) * k / data[name].count())
    table = rank_table(data)
    layout = lay_out(table, np.eye(p), N0, None)
    z, out, shape = Z.copy(), np.empty((1, p, p)), np.empty((1, p, 2))
    gibbs(
        rng, z, S, np.linalg.inv(S), layout.order, layout.starts, layout.first, layout.observed,
        layout.ranked, layout.active, layout.prior, layout.df, iterations, out, layout.scores, shape,
    )  # fmt: skip
    for j in range(p):  # the order of the data is kept
        seen = table.codes[:, j] >= 0
        rank, latent = table.codes[seen, j], z[j, seen]
        for level in range(int(table.levels[j]) - 1):
            assert latent[rank == level].max() <= latent[rank == level + 1].min()
    return z, S, out[0]


@pytest.mark.parametrize(
    ("levels", "missing"), [((None, None, None), 0.0), ((2, 5, None), 0.0), ((None, 3, 9), 0.2)]
)
def test_sampler_keeps_the_prior(levels, missing):
    """Every step and all of them: sweeps, slides, missing cells, inverse Wishart (Geweke's joint test)."""
    runs = [
        successive_conditional(seed, n=40, levels=levels, missing=missing, iterations=5)
        for seed in range(500)
    ]
    p = len(levels)
    rng = np.random.default_rng(99)
    reference = np.array([prior_covariance(rng, p) for _ in range(20_000)])
    S = np.array([run[1] for run in runs])
    C = np.array([run[2] for run in runs])
    scale = np.sqrt(np.einsum("ijj->ij", reference))
    for j, k in itertools.combinations(range(p), 2):
        assert kstest(C[:, j, k], reference[:, j, k] / (scale[:, j] * scale[:, k])).pvalue > 1e-4
    for j in range(p):
        assert kstest(S[:, j, j], reference[:, j, j]).pvalue > 1e-4
    # given S the latents are N(0, S): Mahalanobis sums are chi-square with n p degrees of freedom
    sums = [np.sum(np.linalg.solve(np.linalg.cholesky(s), z) ** 2) for z, s, _ in runs]
    assert kstest(sums, chi2(40 * p).cdf).pvalue > 1e-4
    moments = {1: (0.0, 1.0), 3: (0.0, 15.0), 4: (3.0, 96.0)}  # of N(0, 1): mean and variance of x^power
    for power, (mean, variance) in moments.items():
        for j in range(p):
            scores = [np.sum((z[j] / np.sqrt(s[j, j])) ** power - mean) for z, s, _ in runs]
            assert abs(np.sum(scores)) < 4.5 * np.sqrt(variance * 40 * len(runs))


def exact_posterior_means(n, draws, pattern, ties):
    """E[R | order] by brute force: prior draws that happen to show the order of the data.

    Rows are exchangeable, so each draw is relabelled to sort its first column, and kept when its second then
    has `pattern`; `ties` pools levels of the second column.
    """
    rng = np.random.default_rng(11)
    W = wishart(4.0, np.eye(2) / 4.0).rvs(draws, random_state=rng)
    S = np.linalg.inv(W)
    L = np.linalg.cholesky(S)
    Z = np.einsum("dij,djn->din", L, rng.standard_normal((draws, 2, n)))
    first = np.argsort(Z[:, 0], axis=1)
    second = np.take_along_axis(Z[:, 1], first, axis=1)
    ranks = np.argsort(np.argsort(second, axis=1), axis=1)
    level = np.asarray(ties)[ranks]
    kept = (level == np.asarray(pattern)).all(axis=1)
    R = S[kept, 0, 1] / np.sqrt(S[kept, 0, 0] * S[kept, 1, 1])
    return R.mean(), R.std(), R.std() / np.sqrt(kept.sum())


@pytest.mark.parametrize(
    ("pattern", "ties"),
    [((0, 2, 1, 3), (0, 1, 2, 3)), ((0, 0, 1, 1), (0, 0, 1, 1)), ((1, 0, 1, 0), (0, 0, 1, 1))],
)
def test_four_rows_against_brute_force(pattern, ties):
    mean, sd, error = exact_posterior_means(4, 400_000, pattern, ties)
    frame = pd.DataFrame({"a": np.arange(4.0), "b": np.asarray(pattern, float)})
    posterior = erl(frame, draws=20_000, chains=2, seed=5, progress=False)
    summary = posterior.summary().iloc[0]
    slack = 4 * np.hypot(error, summary["sd"] / np.sqrt(summary["ess_bulk"]))
    assert abs(summary["mean"] - mean) < slack
    assert abs(summary["sd"] / sd - 1) < 0.03


def test_independent_draws_are_the_scaled_inverse_wishart():
    rng = np.random.default_rng(2)
    scale = 40 * np.array([[1.0, 0.6, 0.1], [0.6, 2.0, -0.3], [0.1, -0.3, 0.5]])
    out = np.empty((20_000, 3, 3))
    independent(rng, scale, 45.0, out)
    S = np.linalg.inv(wishart(45.0, np.linalg.inv(scale)).rvs(20_000, random_state=rng))
    sd = np.sqrt(np.einsum("ijj->ij", S))
    for j, k in itertools.combinations(range(3), 2):
        assert kstest(out[:, j, k], S[:, j, k] / (sd[:, j] * sd[:, k])).pvalue > 1e-4
    assert np.linalg.eigvalsh(out)[:, 0].min() > 0
