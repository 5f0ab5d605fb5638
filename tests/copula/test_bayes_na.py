"""`bayes_na` as users meet it: what it takes, what it gives, what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsurvey as dps
from dpsurvey.errors import ArgumentError, ArgumentTypeError, UnknownNameError, WideIntervalWarning
from dpsurvey.privacy.release import Release

Maker = Callable[..., Release]
QUICK: dict[str, Any] = {"draws": 50, "chains": 2, "progress": False}


@pytest.fixture
def survey() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    R = [[1, 0.7, 0.4], [0.7, 1, 0.2], [0.4, 0.2, 1]]
    z = rng.multivariate_normal([0, 0, 0], R, size=3000)
    return pd.DataFrame({"kcal": np.exp(7 + z[:, 0]), "grain": z[:, 1] ** 3, "income": z[:, 2].round(1)})


def test_from_rows_to_intervals(survey: pd.DataFrame) -> None:
    release = dps.release(survey, 3.0, insecure_rng=np.random.default_rng(1))
    posterior = dps.bayes_na(release, seed=1, progress=False)
    assert posterior.draws.shape == (4, 1000, 3, 3)
    assert posterior.variables == ("kcal", "grain", "income")
    assert (posterior.method, posterior.engine, posterior.private) == ("Bayes-NA", "gibbs", True)
    assert (posterior.release, posterior.seed) == (release, 1)
    coupled = posterior.info.pop("joint")
    assert 0.3 < coupled["accepted"] < 1.0
    assert posterior.info == {
        "prior": "LKJ(1)",
        "likelihood": "noise-aware composite",
        "warmup_sweeps": 250,
        "sweeps_per_draw": 1,
        "joint_moves": False,
    }
    lower, upper = posterior.interval()
    truth = np.array([[1, 0.7, 0.4], [0.7, 1, 0.2], [0.4, 0.2, 1]])
    assert np.all((lower <= truth) & (truth <= upper))
    table = posterior.summary()
    assert table["ess_bulk"].min() > 1000
    assert table["r_hat"].max() < 1.01


def test_marginal_scales_do_not_matter(survey: pd.DataFrame) -> None:
    monotone = survey.assign(kcal=np.log(survey["kcal"]), grain=survey["grain"] * 1e6 - 5)
    one, other = (
        dps.bayes_na(dps.release(df, 3.0, insecure_rng=np.random.default_rng(1)), seed=1, **QUICK)
        for df in (survey, monotone)
    )
    np.testing.assert_array_equal(one.draws, other.draws)


def test_order_of_variables_is_that_of_the_release(count_release: Maker) -> None:
    mean = dps.bayes_na(count_release(1000, (400, 310, 230), 30.0), seed=1, **QUICK).mean()
    np.testing.assert_allclose([mean[0, 1], mean[0, 2], mean[1, 2]], [0.81, 0.37, -0.12], atol=0.1)


def test_range_preserving_release(survey: pd.DataFrame) -> None:
    release = dps.release(survey, 3.0, mechanism="rgm", insecure_rng=np.random.default_rng(2))
    lower, upper = dps.bayes_na(release, draws=500, seed=1, progress=False).interval()
    assert lower[0, 1] < 0.7 < upper[0, 1]


def test_one_release_serves_both_estimators(survey: pd.DataFrame) -> None:
    release = dps.release(survey, 3.0, insecure_rng=np.random.default_rng(1))
    posterior, estimate = dps.bayes_na(release, seed=1, progress=False), dps.mle_nn(release)
    np.testing.assert_allclose(posterior.mean(), estimate.R, atol=0.03)


@pytest.mark.parametrize("mechanism", ["geometric", "rgm"])
@pytest.mark.parametrize(("n", "epsilon"), [(4, 0.01), (5, 1.0), (6, 10.0)])
def test_smallest_tables(n: int, epsilon: float, mechanism: str, model_release: Maker) -> None:
    release = model_release(np.eye(3), n, epsilon, np.random.default_rng(n), mechanism)
    posterior = dps.bayes_na(release, seed=1, **QUICK)
    assert np.linalg.eigvalsh(posterior.draws).min() > 0
    if epsilon < 1:
        with pytest.warns(WideIntervalWarning, match="3 of 3 intervals cover 0"):
            posterior.summary()


@pytest.mark.parametrize("name", ["draws", "chains"])
@pytest.mark.parametrize("bad", [0, -5])
def test_counts_below_one(name: str, bad: int, count_release: Maker) -> None:
    with pytest.raises(ArgumentError, match=f"{name} is below 1"):
        dps.bayes_na(count_release(100, (25,), 1.0), **{**QUICK, name: bad})


@pytest.mark.parametrize("name", ["draws", "chains", "seed"])
@pytest.mark.parametrize("bad", [True, 2.0, "10"])
def test_counts_and_seeds_of_the_wrong_type(name: str, bad: object, count_release: Maker) -> None:
    with pytest.raises(ArgumentTypeError, match=f"{name} is not an integer"):
        dps.bayes_na(count_release(100, (25,), 1.0), **{**QUICK, name: bad})


def test_other_refusals(count_release: Maker, survey: pd.DataFrame) -> None:
    release = count_release(100, (25,), 1.0)
    with pytest.raises(UnknownNameError, match="no such engine"):
        dps.bayes_na(release, engine="nuts", **QUICK)
    with pytest.raises(ArgumentError, match="seed is below 0"):
        dps.bayes_na(release, seed=-1, **QUICK)
    for rows in (survey, survey.to_numpy(), None):
        with pytest.raises(ArgumentTypeError, match="a release, never rows"):
            dps.bayes_na(rows, **QUICK)
