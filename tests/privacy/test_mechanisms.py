"""Geometric noise: its law against real draws and outside values, and what it costs."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsurvey.copula.mle_nn import posterior_mean_count
from dpsurvey.errors import ArgumentError, UnknownNameError
from dpsurvey.privacy.budget import spendable
from dpsurvey.privacy.laplace import SMALLEST_SCALE, discrete_laplace
from dpsurvey.privacy.mechanisms import Geometric, build_mechanism, load_mechanism
from dpsurvey.privacy.statistics import QuadrantCounts

DRAWS = 200_000
LEVEL = 1e-6  # of every test of noise: real noise cannot be seeded
NOT_A_SCALE = [0, 0.0, -1.0, True, math.nan, math.inf, -math.inf, "1", None]


@pytest.mark.parametrize("scale", [0.4, 3.0, 45.0])
def test_real_noise_has_the_law_that_inference_uses(scale: float, p_value: Callable[..., float]) -> None:
    law = Geometric(scale, 1 / scale)
    noisy = law.release(np.full(DRAWS, 1000))
    assert noisy.dtype == np.int64
    support = np.arange(1000 - 40 * math.ceil(scale), 1001 + 40 * math.ceil(scale))
    assert p_value(noisy, support, law.log_pmf(support, 1000)) > LEVEL


@pytest.mark.parametrize("scale", [0.4, 3.0, 45.0])
def test_simulated_noise_has_the_same_law(scale: float, p_value: Callable[..., float]) -> None:
    law = Geometric(scale, 1 / scale)
    noisy = law.simulate(np.full(DRAWS, 1000), np.random.default_rng(1))
    assert noisy.dtype == np.int64
    support = np.arange(1000 - 40 * math.ceil(scale), 1001 + 40 * math.ceil(scale))
    assert p_value(noisy, support, law.log_pmf(support, 1000)) > 1e-3


def test_simulation_is_a_function_of_the_seed_and_real_noise_is_not() -> None:
    law, counts = Geometric(1000.0, 0.001), np.arange(20)
    first, again = (law.simulate(counts, np.random.default_rng(7)) for _ in range(2))
    assert np.array_equal(first, again)
    assert not np.array_equal(law.release(counts), law.release(counts))  # equal with a chance below 1e-60


def test_law_is_equation_14() -> None:
    law = Geometric(2.5, 0.4)
    a = math.exp(-1 / 2.5)
    distance = np.arange(-30, 31)
    assert np.exp(law.log_pmf(distance, 0)) == pytest.approx(
        (1 - a) / (1 + a) * a ** np.abs(distance), rel=1e-13
    )
    assert law.log_pmf(np.array([[3], [4]]), np.array([1, 2, 3])).shape == (2, 3)
    assert float(law.log_pmf(3, 1)) == float(law.log_pmf(1, 3)) == float(law.log_pmf(13, 11))


@pytest.mark.parametrize("scale", [SMALLEST_SCALE, 1e-3, 0.3, 1.0, 30.0, 1e4])
def test_law_sums_to_one_and_is_log_concave_in_the_true_count(scale: float) -> None:
    law = Geometric(scale, 1 / scale)
    reach = math.ceil(40 * scale) + 2
    log_pmf = law.log_pmf(0, np.arange(-reach, reach + 1))
    assert np.exp(log_pmf).sum() == pytest.approx(1, abs=1e-12)
    assert (np.diff(log_pmf, 2) <= 1e-9).all()


@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 0.1, 1.0, 7.0, 200.0])
def test_one_count_leaks_its_share_and_no_more(epsilon: float) -> None:
    law = Geometric.build(QuadrantCounts(100, 3), epsilon)
    noisy, true = np.arange(-200, 301), np.arange(0, 51)
    log_pmf = law.log_pmf(noisy[:, None], true)
    assert np.abs(np.diff(log_pmf, axis=1)).max() == pytest.approx(epsilon / 3, rel=1e-9)


def test_posterior_mean_given_its_noise_is_the_reference_codes_btgm(reference: dict[str, Any]) -> None:
    """Golden values of the reference code: BTGM (22), also at sensitivity 2, and TGM."""
    for case in reference["btgm"] + reference["btgm_sensitivity2"]:
        law = Geometric(case["sensitivity"] / case["eps"], case["eps"])
        noisy = np.array(case["noisy"])
        means = posterior_mean_count(noisy, case["L"], case["U"], law)
        assert means == pytest.approx(np.array(case["btgm"], dtype=float), abs=1e-8)
        if "tgm" in case:
            assert np.clip(noisy, case["L"], case["U"]).tolist() == case["tgm"]


@pytest.mark.parametrize("p", [2, 3, 5, 7, 10, 20, 24, 60])
@pytest.mark.parametrize("epsilon", [1e-9, 0.01, 0.1, 0.3, 1 / 3, 0.7, 1.0, 1.1, 3.0, 9.9, 10.0])
def test_the_privacy_map_never_exceeds_epsilon(p: int, epsilon: float) -> None:
    """For scale = m/epsilon OpenDP's map exceeds epsilon by rounding in a fifth of cases (p = 24, epsilon = .3)."""
    statistic = QuadrantCounts(1000, p)
    law = Geometric.build(statistic, epsilon)
    assert law.privacy_map == discrete_laplace(law.scale).map(statistic.m)
    assert law.privacy_map <= spendable(epsilon)
    assert Fraction(statistic.m) / Fraction(law.scale) <= Fraction(str(epsilon))  # in exact numbers too
    smaller = discrete_laplace(math.nextafter(math.nextafter(law.scale, 0.0), 0.0))
    assert law.scale == pytest.approx(statistic.m / epsilon, rel=1e-15)
    assert smaller.map(statistic.m) > spendable(epsilon) or law.scale == statistic.m / spendable(epsilon)


def test_the_naive_scale_would_have_overspent() -> None:
    assert discrete_laplace(276 / 0.3).map(276) > 0.3
    assert Geometric.build(QuadrantCounts(1000, 24), 0.3).privacy_map <= 0.3


@pytest.mark.parametrize("scale", NOT_A_SCALE)
def test_a_scale_that_gives_no_noise_is_refused(scale) -> None:
    with pytest.raises(ArgumentError, match="finite and above 0"):
        discrete_laplace(scale)
    with pytest.raises(ArgumentError, match="finite and above 0"):
        Geometric(scale, 1.0)
    with pytest.raises(ArgumentError, match="finite and above 0"):
        Geometric(1.0, scale)


def test_tiny_epsilon_gives_huge_noise_or_a_named_error_and_never_saturates() -> None:
    statistic = QuadrantCounts(1000, 2)
    law = Geometric.build(statistic, 3e-16)
    noisy = law.release(np.full(300, 500))
    assert np.abs(noisy).max() < 2**62
    assert np.median(np.abs(noisy)) > 2**48
    assert len(set(noisy.tolist())) > 290
    for epsilon in (2.0**-53, 1e-300, 5e-324):
        with pytest.raises(ArgumentError, match="too small"):
            Geometric.build(statistic, epsilon)


@pytest.mark.parametrize("epsilon", [1e8, 1e15, 1e17, 1e300, 1.7e308])
@pytest.mark.parametrize("p", [2, 60])
def test_huge_epsilon_gives_the_counts_without_an_overflow(epsilon: float, p: int) -> None:
    statistic = QuadrantCounts(10**9, p)
    law = Geometric.build(statistic, epsilon)
    counts = np.array([0, 1, statistic.upper])
    assert np.array_equal(law.release(counts), counts)  # any noise has a chance below exp(-50000)
    assert np.array_equal(law.simulate(counts, np.random.default_rng(1)), counts)
    assert float(law.log_pmf(10, 10)) == pytest.approx(0, abs=1e-300)
    assert np.isfinite(law.log_pmf(2**62, 0))
    assert law.agrees(statistic, epsilon)
    assert law.privacy_map <= epsilon


def test_counts_stay_exact_integers() -> None:
    """A count beyond 2**53 - 1 would change if a float were on the way."""
    counts = np.array([2**53 + 1, 2**60 + 1])
    law = Geometric.build(QuadrantCounts(4, 2), 1e15)
    assert law.release(counts).tolist() == counts.tolist()
    assert law.simulate(counts, np.random.default_rng(1)).tolist() == counts.tolist()


@pytest.mark.parametrize("name", ["geometric", "rgm"])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 20.0])
def test_a_mechanism_is_rebuilt_from_its_public_parameters(name: str, epsilon: float) -> None:
    statistic = QuadrantCounts(501, 5)
    law = build_mechanism(name, statistic, epsilon)
    assert load_mechanism(name, law.parameters, statistic) == law
    assert law.name == name
    assert law.agrees(statistic, epsilon)
    assert not law.agrees(statistic, epsilon * 0.99)
    assert not law.agrees(QuadrantCounts(501, 6), epsilon)


def test_a_cost_recorded_too_low_does_not_agree() -> None:
    statistic = QuadrantCounts(100, 3)
    assert Geometric(3.0, 1.0).agrees(statistic, 1.0)
    assert not Geometric(3.0, 0.5).agrees(statistic, 1.0)
    assert not Geometric(2.9, 3 / 2.9).agrees(statistic, 1.0)


@pytest.mark.parametrize("name", ["laplace", "", None, ["geometric"], 1])
def test_an_unknown_mechanism_is_refused(name) -> None:
    with pytest.raises(UnknownNameError, match="'geometric' or 'rgm' or 'linf' or 'gaussian'"):
        build_mechanism(name, QuadrantCounts(10, 2), 1.0)
    with pytest.raises(UnknownNameError, match="'geometric' or 'rgm' or 'linf' or 'gaussian'"):
        load_mechanism(name, {}, QuadrantCounts(10, 2))


FORKED = """
import os, sys
import numpy as np
from dpsurvey.privacy.mechanisms import build_mechanism
from dpsurvey.privacy.statistics import QuadrantCounts
law = build_mechanism(sys.argv[1], QuadrantCounts(10**6, 2), 1e-5, 1e-6 if sys.argv[1] == "gaussian" else 0.0)
law.release(np.full(3, 250_000))  # whatever state there is exists before the fork
for _ in range(3):
    if os.fork() == 0:
        os.write(1, (str(law.release(np.full(8, 250_000)).tolist()) + "\\n").encode())
        os._exit(0)
    os.wait()
os.write(1, (str(law.release(np.full(8, 250_000)).tolist()) + "\\n").encode())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked on POSIX systems alone")
@pytest.mark.parametrize("name", ["geometric", "rgm", "gaussian"])
def test_forked_processes_do_not_share_their_noise(name: str) -> None:
    """Equal noise in two releases would cancel in their difference. (Chance of equal lines: below 1e-30.)"""
    done = subprocess.run([sys.executable, "-c", FORKED, name], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(set(lines)) == 4
