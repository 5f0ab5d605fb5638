"""The posterior that carries the radius of L-infinity noise, against sums over the radius and the default engine."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import dpsurvey as dps
from dpsurvey.copula.concordance import ConcordanceLaw
from dpsurvey.copula.correlation import pair_values, prior_interval_length
from dpsurvey.copula.likelihood import log_likelihood, sampling_laws
from dpsurvey.copula.quadrant import QuadrantLaw
from dpsurvey.errors import ArgumentError

R3 = np.array([[1.0, 0.7, 0.4], [0.7, 1.0, 0.2], [0.4, 0.2, 1.0]])


def released(R, n, epsilon, statistic, seed=2, **options):
    rng = np.random.default_rng(seed)
    columns = [f"v{j}" for j in range(len(R))]
    df = pd.DataFrame(rng.multivariate_normal(np.zeros(len(R)), R, n), columns=columns)
    return dps.release(df, epsilon, statistic=statistic, mechanism="linf", insecure_rng=rng, **options)


def log_likelihood_over_radii(record, R):
    """Return log sum_K exp(-rate K) prod_i Pr(|T_i - noisy_i| <= reach_i | R_i), the exact one."""
    mechanism, laws = record.noise_law(), sampling_laws(record)
    rate = mechanism.budget / mechanism.unit
    radii = np.unique(np.rint(np.concatenate((np.arange(150), np.geomspace(150, 80 / rate, 600))))).astype(
        int
    )
    parts = -rate * radii + np.log(np.gradient(radii.astype(float)))  # a radius stands for its neighbours
    for law, noisy, correlation, sensitivity in zip(
        laws, record.counts, pair_values(R), mechanism.sensitivities, strict=True
    ):
        reach = radii * sensitivity // mechanism.unit
        parts = parts + law.log_between(noisy - reach, noisy + reach, correlation)
    return logsumexp(parts)


@pytest.mark.parametrize("law", [QuadrantLaw(101), ConcordanceLaw(60)])
def test_probability_between_two_counts(law):
    cuts = np.linspace(law.lower, law.upper + 1, 8).astype(int)
    for R in (-0.9, 0.0, 0.3, 0.99):
        parts = law.log_between(cuts[:-1], cuts[1:] - 1, R)
        assert np.exp(parts).sum() == pytest.approx(1.0, abs=1e-9)
        assert law.log_between(-5, cuts[3] - 1, R) == pytest.approx(logsumexp(parts[:3]), abs=1e-9)
    assert law.log_between(law.upper + 1, law.upper + 9, 0.0) == -np.inf


def test_probability_between_two_quadrant_counts_is_a_sum_of_the_pmf():
    law = QuadrantLaw(101)
    for low, high in ((30, 32), (1, 51), (20, 20)):
        exact = logsumexp(law.log_pmf(np.arange(low, high + 1), 0.4))
        assert law.log_between(low, high, 0.4) == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize(("statistic", "tolerance"), [("quadrant", 1e-9), ("concordance", 5e-3)])
def test_one_pair_summed_over_the_radius_is_the_marginal_law(statistic, tolerance):
    """With one count nothing is tied together: the default likelihood is exact."""
    record = released(R3[:2, :2], 120, 0.5, statistic)
    values = [0.2, 0.5, 0.7, 0.9]
    matrices = np.array([[[1, r], [r, 1]] for r in values])
    direct = np.array([log_likelihood_over_radii(record, R) for R in matrices])
    marginal = log_likelihood(record, matrices)
    assert direct - direct[0] == pytest.approx(marginal - marginal[0], abs=tolerance)


@pytest.mark.parametrize("statistic", ["quadrant", "concordance"])
def test_one_pair_has_the_same_posterior(statistic):
    record = released(R3[:2, :2], 150, 1.0, statistic)
    usual = dps.bayes_na(record, seed=1, draws=4000, progress=False).summary()
    latent = dps.bayes_na(record, seed=1, engine="latent-radius", progress=False)
    summary = latent.summary()
    error = summary["sd"][0] / np.sqrt(summary["ess_bulk"][0])
    assert abs(summary["mean"][0] - usual["mean"][0]) < 4.5 * error
    assert summary["sd"][0] / usual["sd"][0] == pytest.approx(1.0, abs=0.15)
    assert summary["r_hat"][0] < 1.02
    assert 100 < latent.info["radius_ess"] < 4000 * 1.5


def test_three_variables_against_importance_weights():
    """The default posterior's draws, weighted by the exact likelihood over its own, are draws of this one."""
    record = released(R3, 200, 1.0, "quadrant")
    proposal = dps.bayes_na(record, seed=3, draws=300, chains=4, joint=False, progress=False)
    draws = proposal.draws.reshape(-1, 3, 3)
    exact = np.array([log_likelihood_over_radii(record, R) for R in draws])
    log_weight = exact - log_likelihood(record, draws)
    weight = np.exp(log_weight - logsumexp(log_weight))
    effective = 1.0 / np.sum(weight**2)
    assert effective > 200
    values = pair_values(draws)
    expected = weight @ values
    spread = np.sqrt(weight @ (values - expected) ** 2)
    latent = dps.bayes_na(record, seed=4, engine="latent-radius", joint=False, progress=False).summary()
    error = spread * np.sqrt(1.0 / effective + 1.0 / latent["ess_bulk"].to_numpy())
    assert np.all(np.abs(latent["mean"] - expected) < 4.5 * error)
    assert np.allclose(latent["sd"], spread, rtol=0.12)


def test_without_information_the_prior_comes_back():
    record = released(R3, 200, 1e-3, "concordance")
    latent = dps.bayes_na(record, seed=5, engine="latent-radius", joint=False, progress=False)
    lower, upper = latent.interval()
    length = pair_values(upper - lower)
    assert length == pytest.approx(prior_interval_length(3), rel=0.08)


def test_a_coarse_column_shares_the_radius_in_its_own_unit():
    record = released(R3, 300, 2.0, "concordance", coarse=["v2"])
    usual = dps.bayes_na(record, seed=1, joint=False, progress=False).summary()
    latent = dps.bayes_na(record, seed=1, engine="latent-radius", joint=False, progress=False).summary()
    assert np.all(np.abs(latent["mean"] - usual["mean"]) < 0.5 * usual["sd"])
    assert np.allclose(latent["sd"], usual["sd"], rtol=0.25)


def test_other_noise_has_no_radius():
    rng = np.random.default_rng(1)
    df = pd.DataFrame(rng.normal(size=(50, 2)), columns=["a", "b"])
    record = dps.release(df, 1.0, statistic="quadrant", mechanism="geometric", insecure_rng=rng)
    with pytest.raises(ArgumentError, match="radius"):
        dps.bayes_na(record, engine="latent-radius", progress=False)


def test_same_seed_same_draws_and_no_radius_among_the_results():
    record = released(R3, 100, 1.0, "quadrant")
    runs = [
        dps.bayes_na(record, seed=9, draws=50, chains=2, engine="latent-radius", joint=False, progress=False)
        for _ in range(2)
    ]
    assert np.array_equal(runs[0].draws, runs[1].draws)
    assert set(runs[0].info) == {"prior", "likelihood", "warmup_sweeps", "accepted", "radius_ess"}
