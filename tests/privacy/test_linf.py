"""L-infinity noise: both routes of the draw, the privacy ratio, the marginal law, and the secrecy of the radius."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from secrets import randbelow

import numpy as np
import pytest
from numpy.typing import NDArray

from dpsurvey.errors import ArgumentError
from dpsurvey.privacy import marginal
from dpsurvey.privacy.linf import LInfinity
from dpsurvey.privacy.marginal import marginal_noise
from dpsurvey.privacy.radius import (
    RadiusWeights,
    block_by_inversion,
    block_by_rejection,
    draw_block,
    draw_radius,
)
from dpsurvey.privacy.statistics import ConcordanceCounts, QuadrantCounts

GOLDEN = Path(__file__).parents[1] / "golden" / "noise_scales.csv"
LEVEL = 1e-6  # of every test of noise: real noise cannot be seeded
DRAWS = 4000
LAWS = [
    (1.0, 1, 3, 0),
    (5.0, 1, 45, 0),
    (0.01, 1, 3, 0),
    (1.0, 9, 3, 0),
    (0.05, 4, 10, 0),
    (30.0, 49, 6, 0),
    (1.0, 5, 2, 2),
    (0.2, 7, 3, 5),
    (12.0, 20, 4, 3),
]


def radius_log_pmf(budget: float, unit: int, wide: int, narrow: int) -> NDArray[np.float64]:
    k = np.arange(int((3 * (wide + narrow) + 100) * unit / budget) + 3 * unit)
    log_weight = wide * np.log(2 * k + 1) + narrow * np.log(2 * (k // unit) + 1) - budget * k / unit
    return np.asarray(log_weight - np.logaddexp.reduce(log_weight))


@pytest.mark.parametrize(("budget", "unit", "wide", "narrow"), LAWS)
def test_radius_has_its_law(
    budget: float, unit: int, wide: int, narrow: int, p_value: Callable[..., float]
) -> None:
    law = RadiusWeights(Fraction(budget), unit, wide, narrow)
    draws = [draw_radius(law, randbelow) for _ in range(DRAWS)]
    log_pmf = radius_log_pmf(budget, unit, wide, narrow)
    assert p_value(draws, np.arange(len(log_pmf)), log_pmf) > LEVEL


@pytest.mark.parametrize("budget", [0.02, 0.3])
@pytest.mark.parametrize("route", [block_by_inversion, block_by_rejection])
@pytest.mark.parametrize(("unit", "wide", "narrow"), [(1, 4, 0), (6, 3, 0), (6, 2, 3)])
def test_both_routes_to_a_block_have_the_same_law(
    budget: float,
    route: Callable[..., int],
    unit: int,
    wide: int,
    narrow: int,
    p_value: Callable[..., float],
) -> None:
    law = RadiusWeights(Fraction(budget), unit, wide, narrow)
    b = np.arange(int((3 * law.m + 100) / budget))
    log_weight = wide * np.log(2 * unit * (b + 1) - 1) + narrow * np.log(2 * b + 1) - budget * b
    log_pmf = log_weight - np.logaddexp.reduce(log_weight)
    assert p_value([route(law, randbelow) for _ in range(DRAWS)], b, log_pmf) > LEVEL


def test_routes_are_chosen_by_public_numbers() -> None:
    tiny = RadiusWeights(Fraction(1, 10**6), 1, 3, 0)
    assert draw_block(tiny, randbelow) > 1000  # a table of it would have millions of entries


def test_inversion_draws_more_bits_where_a_uniform_falls_on_an_edge() -> None:
    """With 2 bits to begin with nearly every uniform straddles an edge of a cell."""
    law = RadiusWeights(Fraction(1), 1, 3, 0)
    draws = [block_by_inversion(law, randbelow, bits=2) for _ in range(300)]
    assert (
        abs(
            np.mean(draws)
            - np.dot(np.exp(radius_log_pmf(1.0, 1, 3, 0)), np.arange(len(radius_log_pmf(1.0, 1, 3, 0))))
        )
        < 1.0
    )


@pytest.mark.parametrize(
    "row", list(csv.DictReader(GOLDEN.read_text().splitlines()[1:])), ids=lambda r: f"{r['p']}-{r['eps']}"
)
def test_standard_deviations_are_those_computed_elsewhere(row: dict[str, str]) -> None:
    law, _ = marginal_noise(float(row["eps"]), 1, int(row["m"]), 0)
    assert law is not None
    assert math.sqrt(law.variance) == pytest.approx(float(row["sd_linf_knorm_discrete"]), rel=1e-5)


@pytest.mark.parametrize(("m", "epsilon"), [(1, 0.7), (2, 1.0), (3, 2.0)])
def test_privacy_ratio_of_the_vector_is_at_most_epsilon(m: int, epsilon: float) -> None:
    """Over all outputs in a box and all changes in {-1, 0, 1}^m, with the joint law from its definition."""
    outputs = np.array(list(itertools.product(range(-6, 7), repeat=m)))
    changes = np.array(list(itertools.product((-1, 0, 1), repeat=m)))
    here = -epsilon * np.abs(outputs).max(-1)
    there = -epsilon * np.abs(outputs[:, None] - changes).max(-1)
    loss = np.abs(here[:, None] - there)
    assert loss.max() == pytest.approx(epsilon)


@pytest.mark.parametrize("coarse", [(), (2,)])
def test_joint_draws_have_the_law_of_the_norm(coarse: tuple[int, ...], p_value: Callable[..., float]) -> None:
    """The norm of a draw has ``Pr(N) proportional to #{z: N(z) = N} exp(-epsilon N)``: what the proof needs."""
    law = LInfinity.build(ConcordanceCounts(5, 3, coarse), 2.0)
    scale = np.array([law.unit // s for s in law.sensitivities])
    draws = np.array([law.release(np.zeros(3, dtype=np.int64)) for _ in range(DRAWS)])
    norms = np.abs(draws * scale).max(-1)
    k = np.arange(0, 60 * law.unit)
    inside = np.prod([2 * (k // s) + 1 for s in scale], axis=0)
    shell = np.diff(inside, prepend=0)
    with np.errstate(divide="ignore"):
        log_weight = np.log(shell) - 2.0 * k / law.unit
    assert p_value(norms, k, log_weight - np.logaddexp.reduce(log_weight)) > LEVEL
    given = norms == np.median(norms)
    assert np.abs(draws[given].mean(axis=0)).max() < 6 * law.unit / math.sqrt(
        given.sum()
    )  # centred in its shell


def test_noise_is_not_a_multiple_of_the_sensitivity() -> None:
    law = LInfinity.build(ConcordanceCounts(101, 3), 1.0)
    residues = {int(z) % 100 for _ in range(60) for z in law.release(np.zeros(3, dtype=np.int64))}
    assert len(residues) > 60


@pytest.mark.parametrize(
    ("statistic", "epsilon"),
    [
        (QuadrantCounts(500, 5), 1.0),
        (ConcordanceCounts(60, 4), 1.0),
        (ConcordanceCounts(60, 4, (0,)), 0.5),
        (ConcordanceCounts(30, 10), 5.0),
    ],
)
def test_marginal_law_is_that_of_draws_and_simulated_draws(
    statistic: QuadrantCounts | ConcordanceCounts, epsilon: float, p_value: Callable[..., float]
) -> None:
    law, zeros = LInfinity.build(statistic, epsilon), np.zeros(statistic.m, dtype=np.int64)
    rng = np.random.default_rng(1)
    for draws in (
        np.array([law.release(zeros) for _ in range(1500)]),
        np.array([law.simulate(zeros, rng) for _ in range(1500)]),
    ):
        for i in (0, statistic.m - 1):
            reach = int(40 * math.sqrt(law.marginal(i).variance)) + 20
            support = np.arange(-reach, reach + 1)
            assert p_value(draws[:, i], support, law.marginal(i).log_pmf(support, 0)) > LEVEL


@pytest.mark.parametrize(
    ("budget", "unit", "wide", "narrow"),
    [(1.0, 499, 6, 4), (0.05, 99, 3, 3), (5.0, 999, 45, 0), (0.01, 1, 45, 0)],
)
def test_integrals_agree_with_sums(
    budget: float, unit: int, wide: int, narrow: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    summed = marginal_noise.__wrapped__(budget, unit, wide, narrow)
    monkeypatch.setattr(marginal, "_FEW", 0)
    integrated = marginal_noise.__wrapped__(budget, unit, wide, narrow)
    for one, other in zip(summed, integrated, strict=True):
        assert (one is None) == (other is None)
        if one is None or other is None:
            continue
        z = np.unique(np.linspace(0, 8 * math.sqrt(one.variance), 300).astype(int))
        z = z[one.at(z) > -60.0]
        assert other.at(z) == pytest.approx(one.at(z), abs=0.02)
        assert np.abs(np.exp(other.at(z) - one.at(z)) - 1).mean() < 5e-4
        assert other.variance == pytest.approx(one.variance, rel=1e-5)


@pytest.mark.parametrize(("budget", "unit", "wide", "narrow"), LAWS)
def test_marginal_law_sums_to_one_and_is_log_concave(
    budget: float, unit: int, wide: int, narrow: int
) -> None:
    for law in marginal_noise(budget, unit, wide, narrow):
        if law is None:
            continue
        z = np.arange(min(len(law.distance) * 2, 100_000))
        log_pmf = law.at(z)
        assert 2 * np.exp(log_pmf[1:]).sum() + np.exp(log_pmf[0]) == pytest.approx(1.0, abs=1e-9)
        if not narrow:
            assert np.diff(log_pmf, 2).max() < 1e-3
        assert np.all(np.diff(log_pmf) <= 1e-12)


def test_law_between_integers_and_beyond_the_table_goes_on_smoothly() -> None:
    law, _ = marginal_noise(1.0, 49, 3, 0)
    assert law is not None
    between = law.at(np.array([10.0, 10.25, 10.5, 10.75, 11.0]))
    assert np.all(np.diff(between) < 0)
    last = float(law.distance[-1])
    slopes = np.diff(law.at(last + np.array([-2.0, -1.0, 0.0, 1.0, 2.0])))
    assert slopes == pytest.approx([slopes[0]] * 4, rel=0.02)


def test_one_count_gets_two_sided_geometric_noise() -> None:
    law, _ = marginal_noise(0.3, 1, 1, 0)
    assert law is not None
    z = np.arange(50)
    assert law.at(z) == pytest.approx(math.log(math.tanh(0.15)) - 0.3 * z, abs=1e-12)


@pytest.mark.parametrize("p", [2, 20, 60])
def test_any_number_of_variables(p: int) -> None:
    for statistic in (QuadrantCounts(500, p), ConcordanceCounts(500, p)):
        law = LInfinity.build(statistic, 1.0)
        noisy = law.release(np.zeros(statistic.m, dtype=np.int64))
        assert noisy.shape == (statistic.m,)
        assert np.abs(noisy).max() < 40 * statistic.m * law.unit
        assert math.isfinite(law.marginal(0).variance)


def test_radius_is_nowhere_to_be_found() -> None:
    law = LInfinity.build(QuadrantCounts(500, 5), 1.0)
    law.release(np.zeros(10, dtype=np.int64))
    assert set(law.parameters) == {"budget", "sensitivity", "m"}
    assert set(LInfinity.__slots__) == {"budget", "sensitivities"}
    assert repr(law) == f"LInfinity(budget=1.0, sensitivities={(1,) * 10})"
    with pytest.raises(ArgumentError) as caught:
        LInfinity.build(QuadrantCounts(500, 5), 1e-300)
    assert "radius" not in str(caught.value).lower()


@pytest.mark.parametrize("sensitivities", [(), (0, 1), (1, 2, 3)])
def test_sensitivities_are_one_and_one_other(sensitivities: tuple[int, ...]) -> None:
    with pytest.raises(ArgumentError):
        LInfinity(1.0, sensitivities)


@pytest.mark.parametrize("budget", [0.0, -1.0, math.nan, math.inf, 1, True])
def test_a_budget_is_a_positive_float(budget: float) -> None:
    with pytest.raises(ArgumentError):
        LInfinity(budget, (1, 1, 1))
