"""The simulated surveys have the stated laws."""

import numpy as np
import pytest
from scipy import stats

from dpsurvey.confidential.counts import pair_counts
from dpsurvey.confidential.ties import TieKeys
from dpsurvey.errors import UnknownNameError
from dpsurvey.study.batch import high_low_counts
from dpsurvey.study.designs import draw_correlation, find_design

# scipy's own laws, in the order of the designs; gamma and exponential by shape and rate.
LAWS = {
    2: [stats.gamma(2), stats.norm()],
    5: [stats.norm(), stats.expon(), stats.gamma(2), stats.beta(2, 5), stats.t(5)],
    10: [
        stats.norm(),
        stats.norm(1, 2),
        stats.t(3),
        stats.t(10),
        stats.gamma(1, scale=0.5),
        stats.gamma(5, scale=0.5),
        stats.beta(2, 5),
        stats.beta(5, 2),
        stats.expon(),
        stats.expon(scale=0.5),
    ],
}


@pytest.mark.parametrize("p", LAWS)
def test_columns_have_the_marginals_of_the_paper(p):
    design = find_design("continuous", p)
    _, latent = design.draw(4000, np.random.default_rng(p))
    table = design.table(latent)
    for name, law in zip(design.variables, LAWS[p], strict=True):
        assert stats.kstest(table[name], law.cdf).pvalue > 1e-4
        assert design.medians[name] == pytest.approx(law.median(), abs=1e-12)


@pytest.mark.parametrize("p", [2, 5, 10])
def test_correlations_follow_lkj_1(p):
    """Under LKJ(1) each (1 + R_jk)/2 is Beta(p/2, p/2), and det R has a known mean."""
    rng = np.random.default_rng(1)
    R = np.array([draw_correlation(p, rng) for _ in range(3000)])
    assert stats.kstest((1 + R[:, 0, 1]) / 2, stats.beta(p / 2, p / 2).cdf).pvalue > 1e-4
    assert stats.kstest((1 + R[:, -2, -1]) / 2, stats.beta(p / 2, p / 2).cdf).pvalue > 1e-4
    # Onion method: 1 - |row|^2 of row k + 1 is Beta((p - k + 1)/2, k/2); the determinant is their product.
    k = np.arange(1, p)
    expected = np.prod((p - k + 1) / (p + 1))
    determinants = np.linalg.det(R)
    assert determinants.mean() == pytest.approx(expected, abs=4 * determinants.std() / np.sqrt(3000))


def test_latent_normals_have_the_drawn_correlation():
    R, latent = find_design("continuous", 5).draw(40_000, np.random.default_rng(3))
    assert np.abs(np.corrcoef(latent.T) - R).max() < 4 / np.sqrt(40_000)


def test_discrete_design_ties_about_30_percent_at_the_median():
    design = find_design("discrete", 2)
    _, latent = design.draw(20_000, np.random.default_rng(4))
    table = design.table(latent)
    for column in design.variables:
        assert table[column].nunique() == 5
        at_median = (table[column] == table[column].median()).mean()
        assert at_median == pytest.approx(0.30, abs=4 * np.sqrt(0.3 * 0.7 / 20_000))


@pytest.mark.parametrize("p", [2, 5, 10])
@pytest.mark.parametrize("n", [50, 51, 1000])
def test_counts_from_latent_normals_are_those_of_the_table(p, n):
    design = find_design("continuous", p)
    for seed in range(5):
        _, latent = design.draw(n, np.random.default_rng(seed))
        honest = pair_counts(design.table(latent), design.variables, TieKeys())
        np.testing.assert_array_equal(high_low_counts(latent), honest)


def test_unknown_design_names_the_known_ones():
    with pytest.raises(UnknownNameError, match="continuous with p = 5"):
        find_design("continuous", 4)
