"""The calibrated joint posterior and informative priors."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from dpsurvey.confidential.disclose import release
from dpsurvey.copula.bayes_na import bayes_na
from dpsurvey.copula.chains import sample
from dpsurvey.copula.correlation import pair_values, prior_interval_length
from dpsurvey.copula.coupling import couple, product, residual_at, residual_correlation
from dpsurvey.copula.hermite import interpolate
from dpsurvey.copula.inversion import build_inversion, draw_between
from dpsurvey.copula.likelihood import LikelihoodTable, sampling_laws, tabulate
from dpsurvey.copula.posterior import CorrelationPosterior
from dpsurvey.copula.priors import add_priors
from dpsurvey.copula.quadrant import correlation, log_odds
from dpsurvey.errors import ArgumentError, ArgumentTypeError, LargeEpsilonWarning, UnknownNameError
from dpsurvey.privacy.release import Release

R3 = np.array([[1, 0.6, 0.4], [0.6, 1, 0.5], [0.4, 0.5, 1]])


def made(
    statistic: str, n: int = 800, epsilon: float = 5.0, R: NDArray[np.float64] = R3, seed: int = 1
) -> Release:
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(rng.multivariate_normal(np.zeros(len(R)), R, n), columns=list("abcdefgh"[: len(R)]))
    return release(df, epsilon, statistic=statistic, mechanism="linf", insecure_rng=rng)


def flat(p: int) -> LikelihoodTable:
    m = p * (p - 1) // 2
    nodes = np.linspace(-40, 40, 81)
    return LikelihoodTable(np.tile(nodes, m), np.zeros((81 * m, 3)), np.arange(m + 1) * 81)


@pytest.mark.parametrize("statistic", ["quadrant", "concordance"])
def test_residual_correlation_is_that_of_simulated_counts(statistic: str) -> None:
    from dpsurvey.confidential.counts import pair_counts
    from dpsurvey.confidential.discordance import discordant_counts
    from dpsurvey.confidential.ties import TieKeys

    rng, n, runs = np.random.default_rng(5), 120, 1200
    count = pair_counts if statistic == "quadrant" else discordant_counts
    counts = []
    for _ in range(runs):
        df = pd.DataFrame(rng.multivariate_normal(np.zeros(3), R3, n), columns=list("abc"))
        counts.append(count(df, list("abc"), TieKeys()))
    simulated = np.corrcoef(np.array(counts).T)
    G = residual_correlation(sampling_laws(made(statistic)), R3, np.zeros(3))
    assert pair_values(G) == pytest.approx(pair_values(simulated), abs=4.5 / math.sqrt(runs))


@pytest.mark.parametrize(("n", "epsilon"), [(800, 5.0), (5000, 1e4), (500, 0.1)])
@pytest.mark.parametrize("statistic", ["quadrant", "concordance"])
def test_residuals_are_exact_where_the_posterior_is(statistic: str, n: int, epsilon: float) -> None:
    """Without noise a likelihood falls by millions, and most of its table lies where no draw ever comes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LargeEpsilonWarning)
        record = made(statistic, n=n, epsilon=epsilon)
    table = build_inversion(tabulate(record))
    coupling = couple(record, table, R3)
    noise, laws = record.noise_law(), sampling_laws(record)
    for i, law in enumerate(laws):
        R = np.array([draw_between(table, i, -1.0, 1.0, v) for v in np.linspace(0.001, 0.999, 30)])
        spread = np.sqrt(law.variance(log_odds(R)) + noise.marginal(i).variance)
        exact = (record.counts[i] - law.mean(log_odds(R))) / spread
        found = [residual_at(table, coupling, i, r) for r in R]
        assert found == pytest.approx(exact, abs=0.03)
    assert len(table.points) < 100_000


def test_quadrant_correlation_is_the_closed_form_and_noise_dilutes_it() -> None:
    b = 2 / math.pi * np.arcsin(np.array([0.6, 0.4, 0.5]))
    closed = (b[2] - b[0] * b[1]) / math.sqrt((1 - b[0] ** 2) * (1 - b[1] ** 2))
    record = made("quadrant")
    laws = sampling_laws(record)
    G = residual_correlation(laws, R3, np.zeros(3))
    assert G[0, 1] == pytest.approx(closed, abs=0.03)
    law = laws[0]
    noise = np.array([float(law.variance(log_odds(R3[0, 1]))), 0.0, 0.0])
    assert residual_correlation(laws, R3, noise)[0, 1] == pytest.approx(G[0, 1] / math.sqrt(2), rel=1e-9)


def test_coupled_kernel_without_coupling_draws_the_product_posterior() -> None:
    record = made("quadrant")
    table = tabulate(record)
    plain = sample(table, 3, draws=4000, chains=1, seed=1).draws
    coupled = sample(table, 3, draws=4000, chains=1, seed=2, coupling=product())
    assert coupled.accepted == 1.0
    for moment in (np.mean, np.std):
        assert moment(pair_values(coupled.draws), axis=(0, 1)) == pytest.approx(
            moment(pair_values(plain), axis=(0, 1)), abs=0.004
        )


def test_coupled_draws_have_the_density_on_a_grid() -> None:
    """Importance weights from the product posterior, the coupling density computed apart from the kernel."""
    record = made("quadrant", n=300, epsilon=2.0)
    table = tabulate(record)
    inversion = build_inversion(table)
    coupling = couple(record, inversion, R3)
    draws = pair_values(sample(table, 3, draws=30_000, chains=1, seed=1).draws[0])
    noise, laws = record.noise_law(), sampling_laws(record)
    z = np.column_stack(
        [
            (record.counts[i] - law.mean(log_odds(draws[:, i])))
            / np.sqrt(law.variance(log_odds(draws[:, i])) + noise.marginal(i).variance)
            for i, law in enumerate(laws)
        ]
    )
    log_weight = -0.5 * np.einsum("ij,jk,ik->i", z, coupling.precision, z)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    kept = pair_values(sample(table, 3, draws=30_000, chains=1, seed=2, coupling=coupling).draws[0])
    error = 5 * draws.std(axis=0) * math.sqrt((weight**2).sum() + 4 / len(kept))
    assert np.all(np.abs(weight @ draws - kept.mean(axis=0)) < error)
    cross = weight @ (draws[:, 0] * draws[:, 1]) - (weight @ draws[:, 0]) * (weight @ draws[:, 1])
    assert np.cov(kept[:, 0], kept[:, 1])[0, 1] == pytest.approx(
        cross, abs=0.1 * draws[:, 0].std() * draws[:, 1].std()
    )


@pytest.mark.parametrize("eta", [0.5, 2.0, 10.0])
@pytest.mark.parametrize("p", [3, 5])
def test_lkj_prior_has_its_margins(eta: float, p: int) -> None:
    """Under LKJ(eta) (1+R)/2 is Beta(eta - 1 + p/2, the same)."""
    draws = pair_values(sample(flat(p), p, draws=6000, chains=1, seed=1, coupling=product(eta)).draws[0])
    shape = eta - 1 + p / 2
    assert draws.std() == pytest.approx(1 / math.sqrt(2 * shape + 1), rel=0.03)
    assert abs(draws.mean()) < 0.03


def test_prior_length_of_lkj_one_is_met() -> None:
    draws = pair_values(sample(flat(3), 3, draws=8000, chains=1, seed=1, coupling=product()).draws[0])
    low, high = np.quantile(draws, [0.025, 0.975])
    assert high - low == pytest.approx(prior_interval_length(3), rel=0.02)


@pytest.mark.parametrize(("a", "b"), [(5.0, 2.0), (0.7, 3.0)])
def test_informative_prior_is_a_beta_law(a: float, b: float) -> None:
    table = add_priors(flat(2), {0: (a, b)})
    nodes, jets = table.pair(0)
    for R in (-0.999, -0.5, 0.1, 0.93):
        eta = float(log_odds(R))
        exact = (a - 1) * math.log((1 + R) / 2) + (b - 1) * math.log((1 - R) / 2)
        assert interpolate(eta, nodes, jets)[0] == pytest.approx(exact, abs=1e-4)
    step = 1e-5
    for i in (30, 40, 47):
        before, after = (interpolate(nodes[i] + d, nodes, jets)[0] for d in (-step, step))
        assert jets[i, 1] == pytest.approx((after - before) / (2 * step), abs=1e-6)
    draws = sample(table, 2, draws=20_000, chains=1, seed=1).draws[0, :, 0, 1]
    assert ((1 + draws) / 2).mean() == pytest.approx(a / (a + b), abs=0.01)
    assert float(correlation(0.0)) == 0.0


def test_priors_move_the_posterior_and_are_recorded() -> None:
    record = made("concordance", n=100, epsilon=1.0)
    options = {"draws": 400, "chains": 2, "seed": 1, "joint": False, "progress": False}
    plain = bayes_na(record, **options)
    strict = bayes_na(record, lkj=40.0, **options)
    told = bayes_na(record, informative={("b", "a"): (300.0, 100.0)}, **options)
    assert np.abs(pair_values(strict.mean())).sum() < np.abs(pair_values(plain.mean())).sum()
    assert told.mean()[0, 1] == pytest.approx(0.5, abs=0.1)
    assert (strict.info["prior"], plain.info["prior"]) == ("LKJ(40)", "LKJ(1)")
    assert told.info["informative"] == {"a ~ b": [300.0, 100.0]}


@pytest.mark.parametrize("lkj", [0.0, -1.0, math.nan, math.inf])
def test_a_bad_lkj_is_refused(lkj: float) -> None:
    with pytest.raises(ArgumentError):
        bayes_na(made("quadrant"), lkj=lkj, progress=False)


@pytest.mark.parametrize(
    ("informative", "error"),
    [
        ([("a", "b")], ArgumentTypeError),
        ({("a", "x"): (1, 1)}, UnknownNameError),
        ({"ab": (1, 1)}, UnknownNameError),
        ({("a", "b"): 3}, ArgumentTypeError),
        ({("a", "b"): (1, 0)}, ArgumentError),
        ({("a", "b"): (1, True)}, ArgumentTypeError),
        ({("a", "b"): (1, 2), ("b", "a"): (1, 2)}, ArgumentError),
    ],
)
def test_bad_informative_priors_are_refused(informative: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        bayes_na(made("quadrant"), informative=informative, progress=False)  # type: ignore[arg-type]


def test_regression_uses_the_joint_draws_and_says_so(tmp_path: Path) -> None:
    posterior = bayes_na(made("concordance", epsilon=10.0), draws=400, chains=2, seed=1, progress=False)
    assert posterior.joint is not None
    assert posterior.joint.shape == posterior.draws.shape
    assert 0.3 < posterior.info["joint"]["accepted"] < 1.0
    calibrated = posterior.regress("a", on=["b", "c"])
    composite = posterior.regress("a", on=["b", "c"], calibrated=False)
    assert "calibrated joint posterior" in repr(calibrated)
    assert "err on the long side" in repr(composite)
    assert np.all(calibrated.coefficients.std((0, 1)) < 0.9 * composite.coefficients.std((0, 1)))
    loaded = CorrelationPosterior.load(posterior.save(tmp_path / "posterior.npz"))
    assert loaded.joint is not None
    assert np.array_equal(loaded.joint, posterior.joint)
    again = bayes_na(made("concordance", epsilon=10.0), draws=400, chains=2, seed=1, progress=False)
    assert again.joint is not None
    assert np.array_equal(again.joint, posterior.joint)


def test_joint_draws_are_left_out_where_they_say_nothing_more() -> None:
    two = bayes_na(made("quadrant", R=R3[:2, :2]), draws=50, chains=1, seed=1, progress=False)
    none = bayes_na(made("quadrant"), draws=50, chains=1, seed=1, joint=False, progress=False)
    assert two.joint is None
    assert none.joint is None
    assert "err on the long side" in repr(none.regress("a", on=["b"]))


def test_joint_draws_of_another_size_are_refused() -> None:
    draws = np.broadcast_to(R3, (1, 2, 3, 3))
    with pytest.raises(ArgumentError, match="another size"):
        CorrelationPosterior(draws, ("a", "b", "c"), {}, "Bayes-NA", "gibbs", True, joint=draws[..., :2, :2])


@pytest.mark.parametrize("statistic", ["quadrant", "concordance"])
def test_regression_covers_at_p_3(statistic: str) -> None:
    """A small version of the study in docs/results: 95% intervals of coefficients over R ~ LKJ(1)."""
    covered = []
    for run in range(60):
        rng = np.random.default_rng([9, run])
        A = rng.normal(size=(4, 3))
        S = A.T @ A
        R = S / np.sqrt(np.outer(np.diag(S), np.diag(S)))
        df = pd.DataFrame(rng.multivariate_normal(np.zeros(3), R, 400), columns=list("abc"))
        record = release(df, 1.0, statistic=statistic, mechanism="linf", insecure_rng=rng)
        posterior = bayes_na(record, draws=500, chains=1, seed=run, progress=False)
        interval = posterior.regress("a", on=["b", "c"]).intervals()
        beta = np.linalg.solve(R[1:, 1:], R[1:, 0])
        covered.append(((interval["lower"] < beta) & (beta < interval["upper"])).mean())
    assert np.mean(covered) > 0.88
