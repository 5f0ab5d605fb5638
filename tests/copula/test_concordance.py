"""The law of discordant counts: moments against simulation, the noisy likelihood against quadrature of its own."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import betaln
from scipy.stats import beta as beta_law
from scipy.stats import kendalltau, kstest, multivariate_normal

from dpsurvey.confidential.disclose import release
from dpsurvey.copula.bayes_na import bayes_na
from dpsurvey.copula.bivariate import bivariate_cdf
from dpsurvey.copula.concordance import ConcordanceLaw
from dpsurvey.copula.hermite import interpolate
from dpsurvey.copula.likelihood import log_likelihood, sampling_laws, tabulate
from dpsurvey.copula.mle_nn import mle_nn, posterior_mean_count
from dpsurvey.copula.quadrant import QuadrantLaw, log_odds
from dpsurvey.privacy.mechanisms import Geometric, NoiseLaw, build_mechanism
from dpsurvey.privacy.statistics import ConcordanceCounts


def noise_of(n: int, p: int, epsilon: float, name: str) -> NoiseLaw:
    return build_mechanism(
        name, ConcordanceCounts(n, p), epsilon, 1e-6 if name == "gaussian" else 0.0
    ).marginal(0)


@pytest.mark.parametrize(("n", "R"), [(10, 0.0), (30, 0.7), (100, -0.5), (50, 0.98), (20, 0.999)])
def test_moments_and_shape_are_those_of_simulated_counts(n: int, R: float) -> None:
    rng = np.random.default_rng(n)
    runs = 3000
    x = rng.multivariate_normal([0, 0], [[1, R], [R, 1]], (runs, n))
    signs = np.sign(x[:, :, None] - x[:, None])
    tau = (signs[..., 0] * signs[..., 1]).sum((1, 2)) / (n * (n - 1))
    assert tau[0] == pytest.approx(float(kendalltau(*x[0].T).statistic), abs=1e-12)
    law, eta = ConcordanceLaw(n), float(log_odds(R))
    counts = law.upper * (1 - tau) / 2
    assert counts.mean() == pytest.approx(float(law.mean(eta)), abs=4.5 * counts.std() / math.sqrt(runs))
    assert counts.var() == pytest.approx(float(law.variance(eta)), rel=0.16)
    a, b = law._beta(np.array([eta]))
    if n >= 20 and abs(R) < 0.99:
        assert kstest((1 + tau) / 2, beta_law(a[0], b[0]).cdf).statistic < 0.02 + 1.63 / math.sqrt(runs)


@pytest.mark.parametrize("R", [0.2, -0.6, 0.9])
def test_variance_is_the_published_formula(R: float) -> None:
    n, u = 40, 2 / math.pi * math.asin(R)
    v = 2 / math.pi * math.asin(R / 2)
    tau_variance = 2 / (n * (n - 1)) * (1 - u * u + 2 * (n - 2) * (1 / 9 - v * v))
    law = ConcordanceLaw(n)
    assert float(law.variance(log_odds(R))) == pytest.approx((law.upper / 2) ** 2 * tau_variance, rel=1e-12)


def test_variance_keeps_its_digits_at_the_ends() -> None:
    law = ConcordanceLaw(1000)
    eta = np.array([-40.0, -39.0, 39.0, 40.0])
    variance = law.variance(eta)
    assert np.all(variance > 0)
    assert variance[[0, 1]] == pytest.approx(variance[[3, 2]])
    assert variance[1] / variance[0] == pytest.approx(math.exp(0.5), rel=1e-3)  # like 1 - |u|


def test_solve_inverts_the_mean() -> None:
    law = ConcordanceLaw(501)
    for R in (-0.99, -0.2, 0.0, 0.7):
        assert law.solve(float(law.mean(log_odds(R)))) == pytest.approx(R, abs=1e-12)
    assert (law.solve(-1.0), law.solve(law.upper + 1.0)) == (1.0, -1.0)


def by_trapezoid(law: ConcordanceLaw, noise: NoiseLaw, noisy: int, eta: float) -> float:
    a, b = (float(value[0]) for value in law._beta(np.array([eta])))
    y = np.linspace(-90, 90, 3_000_001)
    log_rest = np.logaddexp(0, y)
    log_density = a * y - (a + b) * log_rest - betaln(a, b)
    log_noise = noise.log_pmf(float(noisy), law.upper * np.exp(-log_rest))
    return float(np.logaddexp.reduce(log_density + log_noise) + math.log(y[1] - y[0]))


@pytest.mark.parametrize(
    ("n", "p", "epsilon", "name"),
    [(50, 2, 1.0, "linf"), (500, 5, 1.0, "linf"), (500, 5, 1.0, "geometric"), (500, 5, 1.0, "gaussian"),
     (200, 3, 5.0, "rgm"), (5820, 7, 3.0, "linf"), (500, 5, 100.0, "linf")],
)  # fmt: skip
@pytest.mark.parametrize("R", [0.0, 0.6, -0.97])
def test_likelihood_is_the_integral_and_the_table_follows_it(
    n: int, p: int, epsilon: float, name: str, R: float
) -> None:
    law, noise = ConcordanceLaw(n), noise_of(n, p, epsilon, name)
    noisy = int(law.mean(log_odds(R)) + 0.5 * math.sqrt(noise.variance))
    noisy = min(max(noisy, 0), law.upper)
    nodes, jets = law.tabulate(noise, noisy)
    values = jets[:, 0]
    near = np.flatnonzero(values > values.max() - 20)
    for i in near[:: max(1, len(near) // 4)]:
        eta = 0.5 * (nodes[i] + nodes[min(i + 1, len(nodes) - 1)])
        exact = by_trapezoid(law, noise, noisy, float(eta)) if abs(eta) < 20 else None
        direct = float(law._integrate(noise, noisy, np.array([eta]))[0])
        assert interpolate(float(eta), nodes, jets)[0] == pytest.approx(direct, abs=2e-3)
        if exact is not None:
            assert direct == pytest.approx(exact, abs=1e-4)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0, 10_000.0])
@pytest.mark.parametrize("noisy", [-(10**7), 0, 1, 60_000, 124_750, 10**7])
def test_tables_are_finite_whatever_the_count(epsilon: float, noisy: int) -> None:
    law, noise = ConcordanceLaw(500), noise_of(500, 5, epsilon, "linf")
    nodes, jets = law.tabulate(noise, noisy)
    assert np.all(np.isfinite(jets))
    assert np.all(np.diff(nodes) > 0)
    assert (nodes[0], nodes[-1]) == (-40.0, 40.0)


def test_table_and_direct_likelihood_of_a_release_agree() -> None:
    rng = np.random.default_rng(2)
    R = np.array([[1, 0.5, -0.3], [0.5, 1, 0.2], [-0.3, 0.2, 1]])
    df = pd.DataFrame(rng.multivariate_normal(np.zeros(3), R, 400), columns=list("abc"))
    made = release(df, 1.0, statistic="concordance", mechanism="linf", coarse=["c"], insecure_rng=rng)
    assert [type(law) for law in sampling_laws(made)] == [ConcordanceLaw, QuadrantLaw, QuadrantLaw]
    assert float(tabulate(made).log_likelihood(R)) == pytest.approx(float(log_likelihood(made, R)), abs=1e-4)


@pytest.mark.parametrize("name", ["linf", "geometric", "rgm", "gaussian"])
def test_every_mechanism_finds_the_correlations(name: str) -> None:
    rng = np.random.default_rng(3)
    R = np.array([[1, 0.7, 0.2], [0.7, 1, -0.1], [0.2, -0.1, 1]])
    df = pd.DataFrame(rng.multivariate_normal(np.zeros(3), R, 20_000), columns=list("abc"))
    made = release(df, 5.0, statistic="concordance", mechanism=name, insecure_rng=rng,
                   delta=1e-6 if name == "gaussian" else 0.0)  # fmt: skip
    posterior, estimate = bayes_na(made, seed=1, chains=2, draws=300, progress=False), mle_nn(made)
    assert posterior.mean() == pytest.approx(R, abs=0.05)
    assert pytest.approx(R, abs=0.05) == estimate.R


def test_posterior_mean_by_integrals_is_that_by_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = noise_of(300, 3, 0.5, "linf")
    upper = ConcordanceLaw(300).upper
    noisy = np.array([-3000, -100, 0, 700, 22_000, upper - 5, upper + 10_000])
    summed = posterior_mean_count(noisy, 0, upper, noise)
    monkeypatch.setattr("dpsurvey.copula.mle_nn._SUMMED_UP_TO", 0)
    assert posterior_mean_count(noisy, 0, upper, noise) == pytest.approx(summed, rel=2e-4, abs=1.0)
    geometric = Geometric(500.0, 1 / 500)
    assert posterior_mean_count(np.array([-2000]), 0, 10**7, geometric) == pytest.approx(500.0, rel=2e-3)


@pytest.mark.parametrize("R", [-0.99, -0.3, 0.0, 0.8])
def test_bivariate_normal_cdf(R: float) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 40)) * 1.5
    exact = [multivariate_normal([0, 0], [[1, R], [R, 1]]).cdf([a, b]) for a, b in zip(x, y, strict=True)]
    assert bivariate_cdf(x, y, R) == pytest.approx(np.array(exact), abs=2e-5)


def test_influence_is_that_of_one_row_on_the_count() -> None:
    """The expected excess of discordant over concordant partners of a row at (x, y)."""
    rng = np.random.default_rng(1)
    R, point = 0.6, np.array([0.8, -0.4])
    others = rng.multivariate_normal([0, 0], [[1, R], [R, 1]], 400_000)
    excess = -np.mean(np.prod(np.sign(others - point), axis=1))
    influence = ConcordanceLaw(50).influence(point[:1], point[1:], R)
    assert float(influence[0]) == pytest.approx(excess, abs=0.006)
