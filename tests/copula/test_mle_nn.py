"""MLE-NN: adjusted counts and single estimates against the reference code, projection, flags, accuracy."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsurvey as dps
from dpsurvey.copula.mle_nn import posterior_mean_count
from dpsurvey.copula.quadrant import QuadrantLaw, correlation, log_odds
from dpsurvey.errors import ArgumentTypeError, UnknownNameError
from dpsurvey.privacy.mechanisms import Geometric, build_mechanism
from dpsurvey.privacy.release import Release
from dpsurvey.privacy.statistics import make_statistic

Maker = Callable[..., Release]


@pytest.fixture(scope="module")
def reference(golden: Path) -> dict[str, Any]:
    return json.loads((golden / "dpbayescopula.json").read_text())


def test_adjusted_counts_against_the_reference_code(reference: dict[str, Any]) -> None:
    entries = reference["btgm"] + reference["btgm_sensitivity2"]
    assert len(entries) == 11
    for entry in entries:
        scale = entry["sensitivity"] / entry["eps"]
        ours = posterior_mean_count(np.array(entry["noisy"]), entry["L"], entry["U"], Geometric(scale, 1.0))
        np.testing.assert_allclose(ours, entry["btgm"], rtol=0, atol=1e-9)


@pytest.mark.parametrize("epsilon", ["1e-12", "1e-6", "0.01", "0.7", "30"])
def test_adjusted_counts_against_exact_fractions(epsilon: str) -> None:
    # E[t | noisy] under a uniform prior over 0..12, in rational arithmetic with a rational a.
    a = Fraction(math.exp(-float(epsilon)))
    for noisy in (-5, 0, 4, 12, 20):
        weight = [a ** abs(noisy - t) for t in range(13)]
        expected = sum(t * w for t, w in enumerate(weight)) / sum(weight)
        ours = posterior_mean_count(np.array([noisy]), 0, 12, Geometric(1 / float(epsilon), 1.0))
        assert float(ours[0]) == pytest.approx(float(expected), rel=1e-13)


def test_adjusted_counts_stay_inside_and_in_order() -> None:
    noisy = np.array([-(10**6), -3, 0, 1, 40, 50, 60, 99, 100, 103, 10**6 + 100])
    for scale in (0.05, 1.0, 40.0, 1e9):
        means = posterior_mean_count(noisy, 0, 100, Geometric(scale, 1.0))
        assert np.all(np.diff(means) >= -1e-12)
        assert means.min() >= 0
        assert means.max() <= 100
        np.testing.assert_allclose(means + means[::-1], 100, rtol=1e-12)


def test_single_estimates_against_the_reference_code(reference: dict[str, Any]) -> None:
    # The reference takes C(h,t)^2 for odd n also, which is our law with n = 2h.
    compared = 0
    for entry in reference["single_mle"]:
        law = QuadrantLaw(2 * entry["n_half"])
        for count, expected in zip(entry["k"], entry["mle_precise"], strict=True):
            if expected is None:
                continue
            assert law.solve(count) == pytest.approx(expected, abs=1e-10)
            compared += 1
    assert compared > 200


def test_counts_for_which_the_reference_has_no_answer(reference: dict[str, Any]) -> None:
    # Its bracket +-(1 - 1e-8) misses roots within .01 of the end of the range at n = 5820.
    entry = next(e for e in reference["single_mle"] if e["n"] == 5820)
    lost = [k for k, value in zip(entry["k"], entry["mle_precise"], strict=True) if value is None]
    assert lost == [0.01, 2909.99]
    law = QuadrantLaw(5820)
    for count in lost:
        estimate = law.solve(count)
        assert 1 - 1e-8 < abs(estimate) < 1
        assert float(law.mean(log_odds(estimate))) == pytest.approx(count, abs=1e-5)


def test_btgm_estimate_near_the_top_is_a_number_below_one(count_release: Maker) -> None:
    # eps_pair > 4 at n = 5820 puts BTGM's count within .02 of h.
    for epsilon in (5.0, 8.0, 20.0):
        estimate = dps.mle_nn(count_release(5820, (2910,), epsilon))
        assert 0.99999 < estimate.R[0, 1] < 1
        assert estimate.info["boundary"] == [False]


@pytest.mark.parametrize("n", [100, 101])
def test_estimates_solve_the_likelihood_equation(n: int, count_release: Maker) -> None:
    release = count_release(n, (20, 25, 30), 9.0)
    law = QuadrantLaw(n)
    clamped = dps.mle_nn(release, adjust="tgm")
    assert not clamped.info["projected"]
    found = law.mean(log_odds(clamped.R[np.triu_indices(3, 1)]))
    np.testing.assert_allclose(found, [20, 25, 30], atol=1e-9)
    adjusted = posterior_mean_count(release.noisy, law.lower, law.upper, release.noise_law())
    found = law.mean(log_odds(dps.mle_nn(release).R[np.triu_indices(3, 1)]))
    np.testing.assert_allclose(found, adjusted, atol=1e-9)


def test_maximum_of_the_likelihood(count_release: Maker) -> None:
    # Solving E[T] = t maximises Pr(T = t): the law is an exponential family in eta.
    estimate = dps.mle_nn(count_release(50, (17,), 3.0), adjust="tgm").R[0, 1]
    law, eta = QuadrantLaw(50), float(log_odds(estimate))
    around = law.log_pmf(17, correlation(eta + np.array([-1e-3, 0.0, 1e-3])))
    assert around.argmax() == 1


def test_boundary_projection_and_distance(count_release: Maker) -> None:
    # Clamped counts say R12 = R13 = 1 and R23 = -1, which cannot be: projected, and far.
    release = count_release(100, (70, 60, -5), 3.0)
    estimate = dps.mle_nn(release, adjust="tgm")
    assert estimate.info["boundary"] == [True, True, True]
    assert estimate.info["projected"]
    raw = np.array([[1, 1, 1], [1, 1, -1], [1, -1, 1]])
    assert estimate.info["frobenius_distance"] == pytest.approx(np.linalg.norm(estimate.R - raw))
    np.testing.assert_allclose(estimate.R, [[1, 0.5, 0.5], [0.5, 1, -0.5], [0.5, -0.5, 1]], atol=1e-6)
    assert np.linalg.eigvalsh(estimate.R)[0] > -1e-12

    inside = dps.mle_nn(count_release(100, (30, 25, 28), 3.0))
    assert inside.info["boundary"] == [False] * 3
    assert not inside.info["projected"]
    assert inside.info["frobenius_distance"] == 0.0
    assert (inside.info["adjust"], inside.method, inside.private) == ("btgm", "MLE-NN", True)


def test_singular_matrix_within_rounding_is_not_projected(count_release: Maker) -> None:
    estimate = dps.mle_nn(count_release(100, (50, 50, 50), 3.0), adjust="tgm")
    np.testing.assert_array_equal(estimate.R, np.ones((3, 3)))
    assert not estimate.info["projected"]


def test_range_preserving_release(count_release: Maker) -> None:
    release = count_release(60, (0, 30, 21), 3.0, "rgm")
    plain = dps.mle_nn(release, adjust="tgm")  # counts are in range already: taken as they are
    assert plain.info["boundary"] == [True, True, False]
    adjusted = dps.mle_nn(release)
    assert adjusted.info["boundary"] == [False] * 3
    law, noise = QuadrantLaw(60), release.noise_law()
    weight = np.exp(noise.log_pmf(21, law.support))
    expected = weight @ law.support / weight.sum()
    assert posterior_mean_count(np.array([21]), 0, 30, noise)[0] == pytest.approx(expected)


def test_twenty_variables_are_a_correlation_matrix(
    model_release: Maker, lkj: Callable[..., np.ndarray]
) -> None:
    rng = np.random.default_rng(3)
    truth = lkj(20, rng)
    estimate = dps.mle_nn(model_release(truth, 5820, 20.0, rng))
    assert estimate.R.shape == (20, 20)
    assert np.linalg.eigvalsh(estimate.R)[0] > -1e-12
    assert estimate.info["projected"]
    assert np.abs(estimate.R - truth).mean() < 0.06


@pytest.mark.parametrize(
    ("n", "epsilon", "btgm", "tgm", "rgm"),
    [
        (50, 0.01, 0.503, 0.965, 0.692),
        (100, 0.1, 0.346, 0.394, 0.525),
        (200, 1.0, 0.071, 0.071, 0.074),
        (500, 0.1, 0.111, 0.111, 0.185),
    ],
)
def test_mean_absolute_errors_at_two_variables(
    n: int, epsilon: float, btgm: float, tgm: float, rgm: float
) -> None:
    # Expected values: an independent simulation of the paper's design, 1000 runs. R is uniform, in strata.
    runs, rng = 400, np.random.default_rng(n)
    error = np.empty((3, runs))
    for run in range(runs):
        R = -1 + 2 * (run + rng.random()) / runs
        z = rng.normal(size=(n, 2)) @ np.linalg.cholesky([[1, R], [R, 1]]).T
        df = pd.DataFrame({"x": np.exp(z[:, 0]), "y": z[:, 1]})
        noisy = dps.release(df, epsilon, statistic="quadrant", mechanism="geometric", insecure_rng=rng)
        inside = dps.release(df, epsilon, statistic="quadrant", mechanism="rgm", insecure_rng=rng)
        for at, (release, adjust) in enumerate(((noisy, "btgm"), (noisy, "tgm"), (inside, "tgm"))):
            error[at, run] = abs(dps.mle_nn(release, adjust=adjust).R[0, 1] - R)
    mean, spread = error.mean(axis=1), error.std(axis=1)
    monte_carlo = spread * np.sqrt(1 / runs + 1 / 1000)
    print(
        f"n = {n}, epsilon = {epsilon}: {mean.round(3)} (MC error of the difference {monte_carlo.round(3)})"
    )
    assert np.all(np.abs(mean - [btgm, tgm, rgm]) < 3.5 * monte_carlo + 0.001)


def test_wrong_arguments(count_release: Maker) -> None:
    release = count_release(100, (25,), 1.0)
    with pytest.raises(UnknownNameError, match="no such adjustment"):
        dps.mle_nn(release, adjust="rtg")
    with pytest.raises(ArgumentTypeError, match="never rows"):
        dps.mle_nn(pd.DataFrame({"x": [1.0], "y": [2.0]}))  # type: ignore[arg-type]


def test_mechanism_of_the_release_is_used(count_release: Maker) -> None:
    statistic = make_statistic("quadrant", 40, 2)
    for name in ("geometric", "rgm"):
        release = count_release(40, (20,), 0.5, name)
        count = posterior_mean_count(release.noisy, 0, 20, build_mechanism(name, statistic, 0.5))[0]
        assert dps.mle_nn(release).R[0, 1] == pytest.approx(QuadrantLaw(40).solve(count), abs=1e-12)
