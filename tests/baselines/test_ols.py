"""The non-private yardstick: equal to statsmodels, and to the regression of its scores' correlations."""

import json

import numpy as np
import pandas as pd
import pyreadstat
import pytest
import statsmodels.formula.api as smf
from scipy import stats

from dpsurvey.baselines.ols import ols_benchmark
from dpsurvey.copula.correlation import as_correlation
from dpsurvey.copula.posterior import CorrelationPosterior
from dpsurvey.copula.regression import regress
from dpsurvey.errors import ArgumentError, ArgumentTypeError, DomainError, UnknownNameError

R = np.array([[1, 0.6, 0.4, 0.1], [0.6, 1, 0.2, -0.3], [0.4, 0.2, 1, 0], [0.1, -0.3, 0, 1]])
NAMES = ["Kcal", "Grain", "Veg", "Sugar"]


def survey(n: int, seed: int = 1) -> pd.DataFrame:
    """A Gaussian copula with skew margins, one of them rounded so that it has ties."""
    z = np.random.default_rng(seed).multivariate_normal(np.zeros(4), as_correlation(R), size=n)
    margins = [np.exp(z[:, 0]), z[:, 1] ** 3, np.round(np.exp(z[:, 2]), 1), z[:, 3]]
    return pd.DataFrame(dict(zip(NAMES, margins, strict=True)), index=range(1000, 1000 + n))


def scores(df: pd.DataFrame) -> pd.DataFrame:
    values = stats.norm.ppf(df.rank().to_numpy() / (len(df) + 1))
    return pd.DataFrame((values - values.mean(axis=0)) / values.std(axis=0), columns=df.columns)


def test_it_is_statsmodels_on_standardised_normal_scores() -> None:
    df = survey(300)
    fit = smf.ols("Kcal ~ Grain + Veg + Sugar", scores(df)).fit()
    result = ols_benchmark(df, "Kcal", on=["Grain", "Veg", "Sugar"])
    frame = result.summary()
    np.testing.assert_allclose(frame["estimate"], fit.params.iloc[1:], rtol=1e-10)
    np.testing.assert_allclose(frame["se"], fit.bse.iloc[1:], rtol=1e-10)
    np.testing.assert_allclose(frame[["lower", "upper"]], fit.conf_int().iloc[1:], rtol=1e-9)
    np.testing.assert_allclose(
        result.summary(0.8)[["lower", "upper"]], fit.conf_int(alpha=0.2).iloc[1:], rtol=1e-9
    )
    assert result.r_squared == pytest.approx(fit.rsquared)
    assert result.n == 300


def test_it_equals_the_regression_of_the_correlations_of_the_scores() -> None:
    df = survey(200)
    draws = np.corrcoef(scores(df).T)[None, None]
    posterior = CorrelationPosterior(draws, NAMES, {}, method="ERL", engine="native", private=False)
    regression = regress(posterior, "Kcal", on=["Sugar", "Grain"])
    benchmark = ols_benchmark(df, "Kcal", on=["Sugar", "Grain"])
    np.testing.assert_allclose(regression.coefficients[0, 0], benchmark.coefficients, rtol=1e-10)
    assert regression.r_squared[0, 0] == pytest.approx(benchmark.r_squared)


def test_it_finds_the_latent_coefficients_in_a_large_sample() -> None:
    result = ols_benchmark(survey(200_000), "Kcal", on=["Grain", "Veg", "Sugar"])
    truth = np.linalg.solve(R[1:, 1:], R[1:, 0])
    assert (np.abs(result.coefficients - truth) < 4 * result.standard_errors + 0.001).all()


def test_nhanes_diet_agrees_with_the_extended_rank_likelihood(shared) -> None:
    """Real sbgcop (R) on the same 5820 rows: coefficients within 2.5 of its posterior standard deviations."""
    folder = shared / "nhanes"
    demo, _ = pyreadstat.read_xport(str(folder / "DEMO_J_rebuilt.xpt"))
    day, _ = pyreadstat.read_xport(str(folder / "DR1TOT_J_subset_rebuilt.xpt"))
    food, _ = pyreadstat.read_sas7bdat(str(folder / "fped_dr1tot_1718.sas7bdat"))
    foods = {
        "DR1T_G_TOTAL": "Grain",
        "DR1T_D_TOTAL": "Dairy",
        "DR1T_V_TOTAL": "Veg",
        "DR1T_PF_TOTAL": "PF",
        "DR1T_ADD_SUGARS": "Sugar",
    }
    table = day.merge(demo[["SEQN", "INDFMPIR"]], on="SEQN").merge(food[["SEQN", *foods]], on="SEQN")
    names = {"DR1TKCAL": "Kcal", "INDFMPIR": "Income", **foods}
    table = table[(table["DRDINT"] == 2) & (table["DRABF"] == 2)][list(names)].dropna().rename(columns=names)
    assert len(table) == 5820
    predictors = ["Income", *foods.values()]
    result = ols_benchmark(table, "Kcal", on=predictors)
    golden = json.loads((shared / "golden" / "sbgcop" / "nhanes_erl.json").read_text())
    for name, coefficient in zip(predictors, result.coefficients, strict=True):
        reference = golden["regression_of_Kcal"][name]
        assert abs(coefficient - reference["mean"]) < 2.5 * reference["sd"]


def test_margins_do_not_matter() -> None:
    df = survey(100)
    other = df.assign(Kcal=np.log(df["Kcal"]), Sugar=df["Sugar"].rank().astype("int64"))
    first, second = (ols_benchmark(t, "Kcal", on=["Grain", "Sugar"]).coefficients for t in (df, other))
    np.testing.assert_allclose(first, second, rtol=1e-12)


def test_it_says_loudly_that_it_is_not_private() -> None:
    result = ols_benchmark(survey(50), "Kcal", on=["Grain"])
    assert result.private is False
    for text in (repr(result), result._repr_html_()):
        assert "NOT PRIVATE" in text
        assert "yardstick" in text
        assert "latent standard normal" in text
        assert "survey weights and design are not used" in text
        assert "Kcal on Grain" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda df: df.assign(Grain=1.0), "'Grain'"),
        (lambda df: df.assign(Veg=df["Grain"] ** 3), "collinear"),
        (lambda df: df.assign(Grain=df["Grain"].where(df.index > 1003)), "4 missing"),
        (lambda df: df.assign(Grain="a"), "'Grain'"),
        (lambda df: df.iloc[:3], "3 row"),
    ],
)
def test_tables_outside_the_domain_are_refused_without_their_values(change, message) -> None:
    df = change(survey(60))
    with pytest.raises(DomainError, match=message) as caught:
        ols_benchmark(df, "Kcal", on=["Grain", "Veg"])
    text = str(caught.value)
    for value in (*df["Kcal"].head(), *df.index[:5]):
        assert str(value) not in text


@pytest.mark.parametrize(
    ("on", "options", "error"),
    [
        (["Carrots"], {}, UnknownNameError),
        ("Grain", {}, ArgumentTypeError),
        ([], {}, ArgumentError),
        (["Kcal"], {}, ArgumentError),
        (["Grain", "Grain"], {}, ArgumentError),
        (["Grain"], {"prob": 95}, ArgumentError),
    ],
)
def test_bad_arguments_are_named(on, options, error) -> None:
    with pytest.raises(error):
        ols_benchmark(survey(20), "Kcal", on=on, **options)
