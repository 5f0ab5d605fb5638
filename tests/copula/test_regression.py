"""Regression from correlations: closed form, statsmodels, collinear draws, and what the result says."""

import numpy as np
import pytest
import statsmodels.api as sm

from dpsurvey.copula.least_squares import regression_functionals
from dpsurvey.copula.posterior import CorrelationEstimate, CorrelationPosterior
from dpsurvey.copula.regression import RegressionPosterior, regress
from dpsurvey.errors import ArgumentError, ArgumentTypeError, UnknownNameError

NAMES = ("Kcal", "Grain", "Veg", "Sugar")


def wishart_draws(p: int, chains: int, draws: int, seed: int = 1) -> np.ndarray:
    """LKJ(1) matrices: Wishart(p + 1, I) scaled to unit diagonal."""
    factors = np.random.default_rng(seed).normal(size=(chains, draws, p, p + 1))
    wishart = factors @ np.swapaxes(factors, -1, -2)
    scale = 1 / np.sqrt(np.diagonal(wishart, axis1=-2, axis2=-1))
    return wishart * scale[..., None] * scale[..., None, :]


def posterior(draws: np.ndarray, **changes: object) -> CorrelationPosterior:
    fields: dict[str, object] = {
        "variables": NAMES[: draws.shape[-1]],
        "labels": {"Grain": "Grain (oz)"},
        "method": "Bayes-NA",
        "engine": "gibbs",
        "private": True,
    }
    return CorrelationPosterior(draws, **{**fields, **changes})


def test_two_predictors_have_the_closed_form() -> None:
    R = wishart_draws(3, 4, 500)
    result = regress(posterior(R), "Kcal", on=["Grain", "Veg"])
    r1, r2, r12 = R[..., 0, 1], R[..., 0, 2], R[..., 1, 2]
    np.testing.assert_allclose(result.coefficients[..., 0], (r1 - r2 * r12) / (1 - r12**2), rtol=1e-9)
    np.testing.assert_allclose(result.coefficients[..., 1], (r2 - r1 * r12) / (1 - r12**2), rtol=1e-9)
    partial = (r1 - r2 * r12) / np.sqrt((1 - r12**2) * (1 - r2**2))
    np.testing.assert_allclose(result.partial[..., 0], partial, rtol=1e-8)
    share = (r1**2 + r2**2 - 2 * r1 * r2 * r12) / (1 - r12**2)
    np.testing.assert_allclose(result.r_squared, share, rtol=1e-9)


def test_one_predictor_is_the_correlation_itself() -> None:
    R = wishart_draws(2, 2, 50)
    result = regress(posterior(R), "Grain", on=["Kcal"])
    for draws in (result.coefficients[..., 0], result.partial[..., 0]):
        np.testing.assert_allclose(draws, R[..., 0, 1], atol=1e-12)
    np.testing.assert_allclose(result.r_squared, R[..., 0, 1] ** 2, atol=1e-12)


def test_functionals_are_those_of_least_squares_on_rows() -> None:
    """statsmodels on standardised rows whose sample correlations are R, p = 6."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(300, 6)) @ rng.normal(size=(6, 6))
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    beta, partial, r_squared, collinear = regression_functionals(np.corrcoef(rows.T), 2, [5, 0, 1, 3])
    X = rows[:, [5, 0, 1, 3]]
    fit = sm.OLS(rows[:, 2], X).fit()
    np.testing.assert_allclose(beta, fit.params, rtol=1e-10)
    assert r_squared == pytest.approx(fit.rsquared, rel=1e-10)
    # the t statistic of a coefficient is r sqrt(df) / sqrt(1 - r^2) of its partial correlation r
    np.testing.assert_allclose(partial, fit.tvalues / np.sqrt(fit.tvalues**2 + fit.df_resid), rtol=1e-10)
    assert not collinear


def test_partial_correlation_is_that_of_residuals() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4))
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    _, partial, _, _ = regression_functionals(np.corrcoef(rows.T), 0, [1, 2, 3])
    others = rows[:, 2:]
    residuals = [sm.OLS(rows[:, j], others).fit().resid for j in (0, 1)]
    assert partial[0] == pytest.approx(np.corrcoef(*residuals)[0, 1], abs=1e-12)


def test_near_singular_draws_stay_within_bounds() -> None:
    r = 1 - 1e-10
    R = np.array([[1, 0.5, 0.5], [0.5, 1, r], [0.5, r, 1]])
    beta, partial, r_squared, collinear = regression_functionals(R, 0, [1, 2])
    assert not collinear
    np.testing.assert_allclose(beta, [0.25, 0.25], atol=1e-5)
    assert np.abs(partial).max() < 1e-4
    assert r_squared == pytest.approx(0.25)
    extreme = np.array([[1, 0.8, 0.8], [0.8, 1, 0.28], [0.8, 0.28, 1]])  # R squared is exactly 1
    beta, partial, r_squared, _ = regression_functionals(extreme, 0, [1, 2])
    np.testing.assert_allclose(beta, [0.625, 0.625])
    np.testing.assert_allclose(partial, [1, 1], atol=1e-7)
    assert r_squared == pytest.approx(1.0)
    assert r_squared <= 1.0


def test_exactly_collinear_draws_take_the_least_norm_and_are_counted() -> None:
    R = np.array([[1, 0.6, 0.6], [0.6, 1, 1], [0.6, 1, 1]])
    draws = np.stack([np.broadcast_to(np.eye(3), (5, 3, 3)), np.broadcast_to(R, (5, 3, 3))])
    result = regress(posterior(draws), "Kcal", on=["Grain", "Veg"])
    assert result.collinear_draws == 5
    np.testing.assert_allclose(result.coefficients[1], 0.3)
    np.testing.assert_allclose(result.r_squared[1], 0.36)
    assert np.isfinite(result.partial).all()
    assert "5 draws with exactly collinear predictors" in repr(result)
    assert "collinear" not in repr(regress(posterior(draws[:1]), "Kcal", on=["Grain", "Veg"]))


def test_summary_rows_are_coefficients_partials_and_r_squared() -> None:
    R = wishart_draws(4, 2, 400)
    result = posterior(R).regress("Veg", on=["Sugar", "Kcal"])
    frame = result.summary()
    assert list(frame.columns) == [
        "term", "quantity", "mean", "sd", "lower", "upper", "ess_bulk", "ess_tail", "r_hat",
    ]  # fmt: skip
    assert list(frame["term"]) == ["Sugar", "Kcal", "Sugar", "Kcal", "Veg"]
    assert list(frame["quantity"]) == ["coefficient"] * 2 + ["partial correlation"] * 2 + ["R^2"]
    assert frame["mean"][4] == pytest.approx(result.r_squared.mean())
    assert frame["mean"][3] == pytest.approx(result.partial[..., 1].mean())
    ordered = np.sort(result.coefficients[..., 0].ravel())
    assert ordered[19] <= frame["lower"][0] <= ordered[20]  # (800 + 1) .025 = 20.025
    assert frame["ess_bulk"].between(500, 1100).all()
    assert frame["r_hat"].between(0.98, 1.03).all()


def test_intervals_agree_with_the_summary_and_prob_is_remembered() -> None:
    R = wishart_draws(3, 2, 200)
    half = regress(posterior(R), "Kcal", on=["Grain", "Veg"], prob=0.5)
    intervals, summary = half.intervals(), half.summary()
    assert list(intervals.columns) == ["term", "estimate", "lower", "upper"]
    np.testing.assert_allclose(intervals["lower"], summary["lower"][:2])
    np.testing.assert_allclose(intervals["estimate"], summary["mean"][:2])
    wide = half.intervals(0.95)
    assert (wide["upper"] - wide["lower"] > intervals["upper"] - intervals["lower"]).all()
    assert "50% lower" in repr(half)


def test_labels_are_shown_where_asked() -> None:
    result = regress(posterior(wishart_draws(3, 1, 10)), "Kcal", on=["Grain", "Veg"])
    assert list(result.summary(labels=True)["term"]) == ["Grain (oz)", "Veg", "Grain (oz)", "Veg", "Kcal"]


def test_result_says_privacy_scale_weights_and_coverage() -> None:
    R = wishart_draws(3, 2, 50)
    result = regress(posterior(R), "Kcal", on=["Grain", "Veg"])
    for text in (repr(result), result._repr_html_()):
        assert "Regression of Kcal on Grain, Veg" in text
        assert "latent standard normal" in text
        assert "survey weights and design are not used" in text
        assert "intervals err on the long side" in text
        assert "NOT PRIVATE" not in text
    assert result.private
    erl = regress(posterior(R, private=False, method="ERL"), "Kcal", on=["Grain"])
    assert not erl.private
    for text in (repr(erl), erl._repr_html_()):
        assert "NOT PRIVATE" in text
        assert "composite" not in text


def test_arrays_are_read_only() -> None:
    result = regress(posterior(wishart_draws(3, 1, 10)), "Kcal", on=["Grain", "Veg"])
    for draws in (result.coefficients, result.partial, result.r_squared):
        with pytest.raises(ValueError, match="read-only"):
            draws[...] = 0.0


@pytest.mark.parametrize(
    ("y", "on", "error", "message"),
    [
        ("Kcla", ["Grain"], UnknownNameError, "did you mean 'Kcal'"),
        ("Kcal", ["Carrots"], UnknownNameError, "no variable 'Carrots'"),
        ("Kcal", "Grain", ArgumentTypeError, r"on=\['Grain'\]"),
        ("Kcal", [], ArgumentError, "no predictor"),
        ("Kcal", ["Grain", "Grain"], ArgumentError, "repeats"),
        ("Kcal", ["Grain", "Kcal"], ArgumentError, "among its predictors"),
    ],
)
def test_bad_names_are_explained(y, on, error, message) -> None:
    with pytest.raises(error, match=message):
        regress(posterior(wishart_draws(3, 1, 4)), y, on=on)


def test_a_point_estimate_is_sent_to_bayes_na() -> None:
    estimate = CorrelationEstimate(np.eye(2), ("a", "b"), {}, method="MLE-NN", private=True)
    with pytest.raises(ArgumentTypeError, match="bayes_na on the same release"):
        regress(estimate, "a", on=["b"])  # type: ignore[arg-type]


def test_bad_prob_is_refused() -> None:
    result = regress(posterior(wishart_draws(3, 1, 4)), "Kcal", on=["Grain"])
    assert isinstance(result, RegressionPosterior)
    with pytest.raises(ArgumentError, match="prob"):
        result.summary(95)
    with pytest.raises(ArgumentError, match="prob"):
        regress(posterior(wishart_draws(3, 1, 4)), "Kcal", on=["Grain"], prob=1.0)
