"""The batch path gives what the package's own functions give, one release at a time."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpsurvey as dps
from dpsurvey.copula.correlation import pair_values
from dpsurvey.copula.quadrant import QuadrantLaw
from dpsurvey.privacy.mechanisms import build_mechanism
from dpsurvey.privacy.statistics import QuadrantCounts
from dpsurvey.study import batch, regressions
from dpsurvey.study.cells import Cell
from dpsurvey.study.designs import draw_correlation
from dpsurvey.study.methods import METHODS, answer, book_of, noisy_counts, simulate

COUNTS = {
    "Bayes-NA": ("quadrant", "geometric"),
    "Bayes-NA linf": ("quadrant", "linf"),
    "Bayes-NA concordance": ("concordance", "linf"),
    "Regression linf": ("quadrant", "linf"),
    "Regression concordance": ("concordance", "linf"),
}


def release_of(cell, run, seed=1):
    """The release of a run, by the public function, with the noise of the run's own stream."""
    survey = simulate(cell, run, seed)
    table = cell.find_design().table(survey.latent)
    statistic, mechanism = COUNTS[cell.method]
    return dps.release(
        table, cell.epsilon, statistic=statistic, mechanism=mechanism, insecure_rng=survey.streams.noise
    ), survey


@pytest.mark.parametrize("method", ["Bayes-NA", "Bayes-NA linf", "Bayes-NA concordance"])
@pytest.mark.parametrize("epsilon", [0.1, 5.0])
def test_batch_sees_the_counts_of_the_honest_route(epsilon, method):
    cell = Cell("continuous", 5, 51, epsilon, method)
    release, _ = release_of(cell, 3)
    book = book_of(cell, *COUNTS[method])
    assert tuple(noisy_counts(cell, [simulate(cell, 3, 1)], book)[0]) == release.counts


@pytest.mark.parametrize(
    ("n", "epsilon", "method"),
    [(50, 0.01, "Bayes-NA"), (51, 1.0, "Bayes-NA"), (1000, 5.0, "Bayes-NA"), (51, 1.0, "Bayes-NA concordance"),
     (500, 0.1, "Bayes-NA concordance"), (200, 0.5, "Bayes-NA linf")],
)  # fmt: skip
def test_two_variables_are_exact(n, epsilon, method):
    cell = Cell("continuous", 2, n, epsilon, method)
    frame = answer(cell, range(2), 1)
    for run, row in frame.iterrows():
        release, survey = release_of(cell, run)
        posterior = dps.bayes_na(release, seed=1, draws=8000, progress=False)
        lower, upper = posterior.interval()
        draws = pair_values(posterior.draws)
        sd = float(draws.std())
        assert row["truth"] == survey.R[0, 1]
        assert row["estimate"] == pytest.approx(float(draws.mean()), abs=0.03 * sd)
        assert row["lower"] == pytest.approx(lower[0, 1], abs=0.1 * sd)
        assert row["upper"] == pytest.approx(upper[0, 1], abs=0.1 * sd)


@pytest.mark.parametrize("method", ["Bayes-NA", "Bayes-NA concordance"])
def test_ten_variables_agree_with_a_long_chain(method):
    cell = Cell("continuous", 10, 500, 5.0, method)
    frame = answer(cell, range(1), 1)
    release, _ = release_of(cell, 0)
    posterior = dps.bayes_na(release, seed=1, draws=800, progress=False)
    draws = pair_values(posterior.draws).reshape(-1, cell.m)
    expected = {"estimate": draws.mean(axis=0)}
    expected["lower"], expected["upper"] = (pair_values(end) for end in posterior.interval())
    for name, tolerance in (("estimate", 0.3), ("lower", 0.6), ("upper", 0.6)):
        gap = (frame[name].to_numpy() - expected[name]) / draws.std(axis=0)
        assert np.abs(gap).max() < tolerance
        assert abs(gap.mean()) < 0.05


@pytest.mark.parametrize("method", ["Regression linf", "Regression concordance"])
def test_regressions_agree_with_the_public_ones(method):
    """Coefficients, partial correlations and R squared, product likelihood and joint posterior, from long chains."""
    cell = Cell("continuous", 3, 500, 5.0, method)
    frame = answer(cell, range(1), 1)
    release, _ = release_of(cell, 0)
    posterior = dps.bayes_na(release, seed=1, draws=3000, progress=False)
    for part, draws in zip((frame[:5], frame[5:]), (posterior.draws, posterior.joint), strict=True):
        values = regressions.functionals(draws.reshape(-1, 3, 3))
        sd = values.std(axis=0)
        np.testing.assert_allclose(part["estimate"], values.mean(axis=0), atol=0.2 * sd.max())
        length = np.subtract(*np.quantile(values, [0.975, 0.025], axis=0))
        gap = (part["upper"] - part["lower"]).to_numpy() / length - 1
        # From 700 draws these scatter by 4%, and by 9% in R squared, whose chain is slower and whose law is skew.
        assert np.all(np.abs(gap) < [0.15, 0.15, 0.15, 0.15, 0.35])


def test_tables_are_forgotten_when_there_are_many(monkeypatch):
    monkeypatch.setattr(batch, "_MOST_POINTS", 1)
    cell = Cell("continuous", 2, 50, 1.0, "Bayes-NA linf")
    book = batch.Catalogue(QuadrantLaw(50), cell.mechanism("linf"))
    first, _ = book.table(np.array([3, 4]))
    again, which = book.table(np.array([4]))
    other, place = book.table(np.array([5]))
    assert again is first
    assert which.tolist() == [1]
    assert len(other.mode) == 1
    assert place.tolist() == [0]


def test_results_do_not_depend_on_the_block():
    cell = Cell("continuous", 5, 200, 1.0, "Bayes-NA")
    together = answer(cell, range(batch.BLOCK + 2), 1)
    apart = [answer(cell, range(run, run + 1), 1) for run in (0, batch.BLOCK - 1, batch.BLOCK + 1)]
    runs = [0, batch.BLOCK - 1, batch.BLOCK + 1]
    pd.testing.assert_frame_equal(
        together[together["run"].isin(runs)].reset_index(drop=True), pd.concat(apart, ignore_index=True)
    )


def test_likelihood_does_not_depend_on_how_far_out_a_count_lies():
    """Geometric noise is memoryless: that is why a catalogue needs h + 1 tables only."""
    cell = Cell("continuous", 2, 50, 0.5, "Bayes-NA")
    book = book_of(cell)
    support = book.law.support
    for near, far in ((25, 31), (0, -400)):
        ratio = book.mechanism.log_pmf(far, support) - book.mechanism.log_pmf(near, support)
        assert np.ptp(ratio) < 1e-9
        assert np.array_equal(*book.pair_summaries(np.array([near, far])))
    assert not np.array_equal(*book.pair_summaries(np.array([24, 25])))


@pytest.mark.parametrize(
    ("method", "adjust", "mechanism"), [("MLE-NN", "btgm", "geometric"), ("MLE-NN RGM", "tgm", "rgm")]
)
def test_mle_nn_is_the_public_one(method, adjust, mechanism):
    cell = Cell("continuous", 5, 51, 0.5, method)
    frame = answer(cell, range(3), 1)
    stream = "noise" if mechanism == "geometric" else "range_preserving"
    for run, part in frame.groupby("run"):
        survey = simulate(cell, int(run), 1)
        table = cell.find_design().table(survey.latent)
        release = dps.release(
            table,
            cell.epsilon,
            statistic="quadrant",
            mechanism=mechanism,
            insecure_rng=getattr(survey.streams, stream),
        )
        estimate = dps.mle_nn(release, adjust=adjust)
        np.testing.assert_allclose(part["estimate"], pair_values(estimate.R), atol=1e-6)


@pytest.mark.parametrize("memory", [0.0, 0.6])
def test_intervals_of_few_draws_cover_as_intended(memory):
    """Quantiles of 1200 autoregressive normal draws: the mass between them averages .95 (plainly taken .948)."""
    rng, draws, pairs = np.random.default_rng(1), 1200, 45
    mass, effective = [], []
    for _ in range(40):
        values = rng.standard_normal((pairs, draws))
        for i in range(1, draws):
            values[:, i] = memory * values[:, i - 1] + np.sqrt(1 - memory**2) * values[:, i]
        ordered = np.sort(values, axis=1)
        count = batch._effective(values, ordered, np.array(batch.LEVELS))
        ends = [[batch._quantile(row, level, count) for row in ordered] for level in batch.LEVELS]
        mass += list(np.diff(stats.norm.cdf(ends), axis=0).ravel())
        effective.append(count)
    error = np.std(mass) / np.sqrt(len(mass))
    assert np.mean(mass) == pytest.approx(0.95, abs=4 * error + 5e-4)
    assert error < 2e-4
    assert 0.8 * draws < np.mean(effective) <= draws if memory == 0.0 else np.mean(effective) < 0.6 * draws


def test_ends_of_independent_draws_stand_at_plotting_positions():
    ordered = np.arange(1.0, 400.0)  # 399 draws: (N + 1) q is the 10th and the 390th
    ends = [batch._quantile(ordered, level, 399.0) for level in batch.LEVELS]
    np.testing.assert_allclose(ends, [10.0, 390.0])


def test_every_method_answers_every_pair():
    for method in METHODS:
        p = 3 if method.split()[0] in ("Composite", "Joint", "Regression") else 2
        frame = answer(Cell("continuous", p, 50, 1.0, method), range(2), 1)
        assert list(frame.columns) == ["run", "quantity", "truth", "estimate", "lower", "upper"]
        assert len(frame) == 2 * (1 if p == 2 else 10 if method.startswith("Regression") else 7)
        assert frame[["truth", "estimate"]].abs().max().max() < 50
        assert frame["lower"].isna().all() == (method.split()[0] in ("MLE-NN", "Li-Kendall", "Asghar-dpc"))


@pytest.mark.parametrize(
    ("p", "n", "epsilon", "runs"),
    [(3, 100, 1.0, 200), pytest.param(10, 1000, 5.0, 1000, marks=pytest.mark.slow)],
)
def test_counts_drawn_from_the_composite_model_itself_are_covered(p, n, epsilon, runs):
    """With R from the prior and independent counts the posterior is exact, so 95% intervals cover in 95% of runs.

    Rows give correlated counts, of which the composite likelihood knows nothing: at p = 10, n = 1000, epsilon 5 their
    coverage is 94.5% (docs/results/table1.md).
    """
    law = QuadrantLaw(n)
    mechanism = build_mechanism("geometric", QuadrantCounts(n=n, p=p), epsilon)
    rng = np.random.default_rng(11)
    true = pair_values(np.array([draw_correlation(p, rng) for _ in range(runs)]))
    pmfs = [np.exp(law.log_pmf(law.support, r)) for r in true.ravel()]
    counts = np.array([rng.choice(law.support, p=pmf / pmf.sum()) for pmf in pmfs]).reshape(true.shape)
    noisy = np.array([mechanism.simulate(t, rng) for t in counts])
    generators = [np.random.default_rng([5, run]) for run in range(runs)]
    _, lower, upper = batch.posteriors(batch.catalogue(law, mechanism), noisy, p, generators)
    covered = np.mean((lower < true) & (true < upper), axis=1)
    error = covered.std(ddof=1) / np.sqrt(runs)
    assert abs(covered.mean() - 0.95) < 3.5 * error
