"""The tabulated likelihood against direct sums, the reference code, finite differences and its own symmetry."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import nchypergeom_fisher

from dpsurvey.copula.hermite import interpolate
from dpsurvey.copula.likelihood import log_likelihood, tabulate
from dpsurvey.copula.quadrant import QuadrantLaw, log_odds
from dpsurvey.errors import ArgumentError
from dpsurvey.privacy.mechanisms import Geometric
from dpsurvey.privacy.release import Release

Maker = Callable[..., Release]
LKJ = Callable[[int, np.random.Generator], np.ndarray]


@pytest.fixture(scope="module")
def reference(golden: Path) -> list[dict[str, float]]:
    return json.loads((golden / "dpbayescopula.json").read_text())["stan_pair_loglik"]


def near_mode(release: Release, R: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Return correlation matrices within a few posterior standard deviations of R."""
    n, scale = release.n, 1 + release.m / release.epsilon
    size = 3 * scale / n + 2 / np.sqrt(n)
    j, k = np.triu_indices(len(R), 1)
    out = np.broadcast_to(R, (draws, *R.shape)).copy()
    for at, noise in enumerate(rng.normal(scale=size, size=(draws, len(j)))):
        moved = R.copy()
        moved[j, k] += noise * (1 - R[j, k] ** 2)
        moved[k, j] = moved[j, k]
        if np.linalg.eigvalsh(moved)[0] > 0:
            out[at] = moved
    return out


def assert_close(table_value: np.ndarray, direct: np.ndarray, best: float) -> None:
    """1e-6 absolute within 50 log units of the mode, 1e-9 relative beyond."""
    error, depth = np.abs(table_value - direct), best - direct
    assert error[depth <= 50].max(initial=0.0) < 1e-6
    assert np.all(error[depth > 50] < 1e-9 * np.abs(direct[depth > 50]))


@pytest.mark.parametrize(
    ("n", "epsilon", "mechanism", "draws"),
    [
        (5820, 1.0, "geometric", 1000),
        (5820, 1.0, "rgm", 100),
        (5821, 20.0, "geometric", 100),
        (1000, 1e-9, "geometric", 100),
        (1001, 1e4, "geometric", 100),
        (5, 3.0, "geometric", 100),
        (4, 3.0, "rgm", 100),
        (5, 1e-9, "rgm", 100),
    ],
)
def test_table_against_direct_sums(
    n: int, epsilon: float, mechanism: str, draws: int, model_release: Maker, lkj: LKJ
) -> None:
    rng = np.random.default_rng(7)
    truth = lkj(7, rng)
    release = model_release(truth, n, epsilon, rng, mechanism)
    anywhere = np.array([lkj(7, rng) for _ in range(draws // 2)])
    R = np.concatenate((anywhere, near_mode(release, truth, draws // 2, rng)))
    table, direct = tabulate(release), log_likelihood(release, R)
    best = max(direct.max(), float(log_likelihood(release, truth)))
    if epsilon >= 1 and n >= 1000:
        assert np.sum(best - direct <= 50) >= draws // 4  # both parts of the criterion are exercised
    assert_close(table.log_likelihood(R), direct, best)


@pytest.mark.parametrize("counts", [(-3000, 17, 6000), (-40000, 40000, 25)])
def test_table_for_counts_far_outside_the_range(
    counts: tuple[int, ...], count_release: Maker, lkj: LKJ
) -> None:
    release, rng = count_release(100, counts, 3.0), np.random.default_rng(1)
    R = np.array([lkj(3, rng) for _ in range(50)])
    direct, tabulated = log_likelihood(release, R), tabulate(release).log_likelihood(R)
    np.testing.assert_allclose(tabulated, direct, rtol=1e-9, atol=1e-6)
    # Between these matrices the likelihood differs by little: that difference must survive the deep constant.
    np.testing.assert_allclose(tabulated - tabulated[0], direct - direct[0], atol=1e-6)


def test_direct_sum_against_scipy(count_release: Maker) -> None:
    for n in (20, 21):
        release = count_release(n, (4,), 0.7)
        law, R = QuadrantLaw(n), -0.35
        odds = float(np.exp(log_odds(R)))
        pmf = nchypergeom_fisher(n, law.upper, law.upper, odds).pmf(law.support)
        a = np.exp(-0.7)
        noise = (1 - a) / (1 + a) * a ** np.abs(4 - law.support)  # eq. 14
        value = log_likelihood(release, [[1, R], [R, 1]])
        assert float(value) == pytest.approx(np.log(noise @ pmf), abs=1e-12)


def test_likelihood_sums_to_one_over_noisy_counts(count_release: Maker) -> None:
    # Only with the normalising constant of eq. (11), which the reference code once left out.
    R = np.array([[1, 0.8], [0.8, 1]])
    total = sum(
        np.exp(float(tabulate(count_release(15, (noisy,), 1.5)).log_likelihood(R)))
        for noisy in range(-40, 60)
    )
    assert total == pytest.approx(1.0, abs=1e-9)


def test_reference_code_has_the_constant_and_truncates_the_noise(reference: list[dict[str, float]]) -> None:
    # Its program sums over true counts within k = 18.4 / eps of the noisy one only: equal to ours over the same
    # counts, always with the constant of eq. (11), but up to 1400 log units too low in the tails.
    assert len(reference) == 120
    for entry in reference:
        law = QuadrantLaw(2 * ((entry["n"] + 1) // 2))  # it takes the even law for odd n
        noise = Geometric(1 / entry["eps"], entry["eps"])
        t = np.arange(entry["lb"], entry["ub"] + 1)
        if entry["loglik"] is None:
            assert len(t) == 0  # R returned NA: an empty sum
            continue
        terms = noise.log_pmf(entry["noisy"], t) + law.log_pmf(t, entry["rho"])
        assert float(logsumexp(terms)) == pytest.approx(entry["loglik"], rel=1e-9, abs=1e-9)


def test_table_against_the_reference_code(reference: list[dict[str, float]], count_release: Maker) -> None:
    whole = [e for e in reference if e["n"] % 2 == 0 and e["lb"] == 0 and e["ub"] == e["n"] // 2]
    assert len(whole) >= 20
    for entry in whole:
        release = count_release(entry["n"], (entry["noisy"],), entry["eps"])
        value = tabulate(release).pair_log_likelihood(0, entry["rho"])
        assert float(value) == pytest.approx(entry["loglik"], abs=1e-8)


def test_score_in_eta_against_the_exact_one(model_release: Maker, lkj: LKJ) -> None:
    rng = np.random.default_rng(3)
    truth = lkj(7, rng)
    release = model_release(truth, 5820, 1.0, rng)
    law, table = QuadrantLaw(5820), tabulate(release)
    for i, noisy in enumerate(release.counts):
        log_noise = release.noise_law().log_pmf(noisy, law.support)
        for R in np.tanh(np.arctanh(truth[np.triu_indices(7, 1)][i]) + rng.normal(scale=0.1, size=10)):
            eta = float(log_odds(R))
            prior = np.exp(law.log_pmf(law.support, R))
            posterior = np.exp(log_noise - log_noise.max()) * prior
            exact = posterior @ law.support / posterior.sum() - prior @ law.support / prior.sum()
            slope = interpolate(eta, *table.pair(i))[1]
            assert abs(slope - exact) < 1e-6 * (1 + abs(exact))


def test_score_is_the_derivative_of_the_table(model_release: Maker, lkj: LKJ) -> None:
    rng = np.random.default_rng(4)
    table = tabulate(model_release(lkj(3, rng), 500, 3.0, rng))
    for i in range(3):
        for eta in rng.uniform(-6, 6, 20):
            step = 1e-4
            value = [interpolate(eta + k * step, *table.pair(i))[0] for k in (-2, -1, 1, 2)]
            slope = interpolate(eta, *table.pair(i))[1]
            assert np.dot([1, -8, 8, -1], value) / (12 * step) == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_likelihood_is_flat_at_the_ends_and_finite_at_one(count_release: Maker) -> None:
    table = tabulate(count_release(200, (100,), 1.0))
    values = table.pair_log_likelihood(0, [-1.0, -1 + 1e-16, 0.0, 1 - 1e-16, 1.0])
    assert np.isfinite(values).all()
    assert values[-1] == pytest.approx(values[-2], abs=1e-6)
    assert np.argmax(values) == 4  # the count at the top of its range


def test_equal_counts_share_one_table(count_release: Maker) -> None:
    table = tabulate(count_release(300, (70, 80, 70), 1.0))
    assert table.m == 3
    for one, other in zip(table.pair(0), table.pair(2), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(table.pair(0)[1], table.pair(1)[1])


def test_stacks_of_matrices_and_wrong_sizes(count_release: Maker, lkj: LKJ) -> None:
    release, rng = count_release(100, (25, 30, 20), 1.0), np.random.default_rng(1)
    R = np.array([[lkj(3, rng) for _ in range(4)] for _ in range(2)])
    table = tabulate(release)
    assert table.log_likelihood(R).shape == log_likelihood(release, R).shape == (2, 4)
    np.testing.assert_allclose(table.log_likelihood(R)[1, 2], table.log_likelihood(R[1, 2]))
    for call in (lambda M: log_likelihood(release, M), table.log_likelihood):
        with pytest.raises(ArgumentError, match="wrong size"):
            call(np.eye(4))
