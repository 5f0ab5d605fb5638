"""Draws by inversion against a quadrature that knows nothing of the cells."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import kstest

from dpsurvey.copula.inversion import (
    InversionTable,
    build_inversion,
    draw_again,
    draw_between,
    draw_whole,
    log_density,
)
from dpsurvey.copula.likelihood import LikelihoodTable, tabulate
from dpsurvey.copula.quadrant import correlation, log_odds
from dpsurvey.privacy.release import Release

Maker = Callable[..., Release]
LEVELS = np.linspace(0.001, 0.999, 41)
CASES = {
    "wide": (50, 12, 0.01),
    "usual": (1000, 370, 1.0),
    "sharp": (5820, 1800, 100.0),
    "mode at +1": (5820, 2910, 5.0),
    "mode at -1": (5820, 0, 5.0),
    "out of range": (50, 400, 1.0),
    "flat": (5820, 1455, 1e-6),
    "smallest n": (4, 1, 2.0),
    "odd n": (51, 20, 3.0),
    "huge n": (10**6, 340_000, 1.0),
    "collinear": (10**5, 50_000, 5.0),
}


def make_table(count_release: Maker, case: str) -> tuple[LikelihoodTable, InversionTable]:
    n, count, epsilon = CASES[case]
    table = tabulate(count_release(n, (count,), epsilon))
    return table, build_inversion(table)


def exact_cdf(table: LikelihoodTable, low: float, high: float, x: np.ndarray) -> np.ndarray:
    """Return the cdf at x of the density on low..high, by Gauss-Legendre panels fine in R, in eta and at the top."""
    nodes, jets = table.pair(0)
    ends = np.clip(log_odds([low, high]), -39.9, 39.9)
    top = np.clip(nodes[np.argmax(jets[:, 0])], *ends)
    steps = np.geomspace(1e-9, 80, 1500)
    eta = np.concatenate((top - steps, [top], top + steps, np.linspace(*ends, 2000)))
    r = np.concatenate((correlation(eta[(eta > ends[0]) & (eta < ends[1])]), np.linspace(low, high, 2000), x))
    r = np.unique(np.clip(r, low, high))
    abscissae, weights = np.polynomial.legendre.leggauss(4)
    half = np.diff(r)[:, None] / 2
    logs = table.pair_log_likelihood(0, (r[1:, None] + r[:-1, None]) / 2 + half * abscissae)
    mass = (np.exp(logs - logs.max()) * weights * half).sum(axis=1)
    cdf = np.concatenate(([0.0], np.cumsum(mass)))
    return np.interp(x, r, cdf / cdf[-1])


def intervals(inversion: InversionTable) -> list[tuple[float, float]]:
    """Return intervals of many widths around the median, near and far, in units of the standard deviation."""
    low, median, high = (draw_between(inversion, 0, -1.0, 1.0, v) for v in (0.16, 0.5, 0.84))
    unit, found = (high - low) / 2, [(-1.0, 1.0)]
    for centre in (-100, -30, -10, -5, -2, -0.5, 0, 0.5, 2, 5, 10, 30, 100):
        for width in (1e-3, 1e-2, 0.5, 3, 30):
            ends = (
                max(median + (centre - width / 2) * unit, -1.0),
                min(median + (centre + width / 2) * unit, 1.0),
            )
            if ends[1] - ends[0] > 1e-11:  # below, there are too few floats to speak of quantiles
                found.append(ends)
    mode = float(inversion.points[inversion.mode[0]])
    return found + [(max(mode - g, -1.0), min(mode + g, 1.0)) for g in (1e-3, 0.1)]


@pytest.mark.parametrize("case", CASES)
def test_quantiles_in_intervals_near_and_far(case: str, count_release: Maker) -> None:
    table, inversion = make_table(count_release, case)
    worst = 0.0
    for low, high in intervals(inversion):
        x = np.array([draw_between(inversion, 0, low, high, v) for v in LEVELS])
        assert x.min() >= low
        assert x.max() <= high
        assert np.all(np.diff(x) >= 0)
        worst = max(worst, np.abs(exact_cdf(table, low, high, x) - LEVELS).max())
    print(f"{case}: worst error of a cdf {worst:.1e}")
    assert worst < 1e-3  # in tails a hundred standard deviations out
    x = np.array([draw_between(inversion, 0, -1.0, 1.0, v) for v in LEVELS])
    assert np.abs(exact_cdf(table, -1.0, 1.0, x) - LEVELS).max() < 3e-5


@pytest.mark.parametrize("case", ["usual", "mode at +1", "sharp", "huge n"])
def test_tails_hundreds_of_log_units_down(case: str, count_release: Maker) -> None:
    table, inversion = make_table(count_release, case)
    best = table.pair_log_likelihood(0, inversion.points[inversion.mode[0]])
    depths = []
    for low, high in ((-0.999, -0.99), (-0.9, -0.6), (-0.6, -0.59999), (-1.0, -0.5)):
        depths.append(float(best - table.pair_log_likelihood(0, high)))
        x = np.array([draw_between(inversion, 0, low, high, v) for v in LEVELS])
        assert np.abs(exact_cdf(table, low, high, x) - LEVELS).max() < 2e-3
    print(f"{case}: {min(depths):.0f} to {max(depths):.0f} log units below the mode")
    assert max(depths) > 200


@pytest.mark.parametrize("case", CASES)
def test_draws_stay_inside_at_the_extremes(case: str, count_release: Maker) -> None:
    _, inversion = make_table(count_release, case)
    for low, high in intervals(inversion):
        for v in (0.0, 5e-324, 1e-300, 1e-17, 0.5, 1 - 2**-53):
            assert low <= draw_between(inversion, 0, low, high, v) <= high
    for r in (-1.0, -0.3, 0.999, 1 - 1e-12):  # intervals of a few floats
        high = min(np.nextafter(np.nextafter(r, 2), 2), 1.0)
        assert r <= draw_between(inversion, 0, r, high, 0.5) <= high


def test_flat_likelihood_gives_uniform_draws(count_release: Maker) -> None:
    _, inversion = make_table(count_release, "flat")
    for low, high in ((-1.0, 1.0), (0.2, 0.9), (-0.01, 0.01)):
        x = [draw_between(inversion, 0, low, high, v) for v in LEVELS]
        np.testing.assert_allclose(x, low + (high - low) * LEVELS, atol=2e-4 * (high - low))


def test_random_draws_follow_the_density(count_release: Maker) -> None:
    table, inversion = make_table(count_release, "usual")
    rng = np.random.default_rng(5)
    for low, high in ((-1.0, 1.0), (0.5, 0.65), (0.68, 0.9)):
        x = np.array([draw_between(inversion, 0, low, high, v) for v in rng.random(20_000)])
        assert kstest(x, lambda at, a=low, b=high: exact_cdf(table, a, b, np.sort(at))).pvalue > 1e-3


@pytest.mark.parametrize("case", CASES)
def test_the_whole_has_the_quantiles_of_its_longest_part(case: str, count_release: Maker) -> None:
    _, inversion = make_table(count_release, case)
    for v in (0.0, 1e-300, *np.linspace(1e-6, 1 - 1e-6, 999), 1 - 2**-53):
        found, again = draw_whole(inversion, 0, v), draw_between(inversion, 0, -1.0, 1.0, v)
        assert -1.0 <= found <= 1.0
        if 1e-6 <= v <= 1 - 1e-6:  # close to 1 a cdf has few digits left
            assert found == pytest.approx(again, abs=1e-9)


@pytest.mark.parametrize("case", ["usual", "mode at +1", "flat"])
def test_second_draws_follow_the_density_of_their_part(case: str, count_release: Maker) -> None:
    table, inversion = make_table(count_release, case)
    rng = np.random.default_rng(6)
    for share in (0.9, 0.4, 0.1, 1e-3):  # of the mass: the draws are mostly first ones, or mostly inversions
        low, high = draw_whole(inversion, 0, 0.02), draw_whole(inversion, 0, 0.02 + share)
        x = np.array([draw_again(inversion, 0, low, high, rng) for _ in range(20_000)])
        assert low <= x.min()
        assert x.max() <= high
        assert kstest(x, lambda at, a=low, b=high: exact_cdf(table, a, b, np.sort(at))).pvalue > 1e-3


@pytest.mark.parametrize("case", CASES)
def test_cells_follow_the_likelihood(case: str, count_release: Maker) -> None:
    table, inversion = make_table(count_release, case)
    assert inversion.points[0] == -1.0
    assert inversion.points[-1] == 1.0
    assert np.all(np.diff(inversion.points) > 0)
    best = table.pair_log_likelihood(0, inversion.points).max()
    r = correlation(np.linspace(-24, 24, 3001))  # beyond, neighbouring floats are far apart in likelihood
    error = np.abs([log_density(inversion, 0, x) for x in r] - (table.pair_log_likelihood(0, r) - best))
    depth = best - table.pair_log_likelihood(0, r)
    assert error[depth < 20].max() < 4e-4
    assert np.all(error < 0.1 + 2e-6 * depth)


def test_pairs_do_not_mix(count_release: Maker) -> None:
    counts = (20, 60, 95)
    inversion = build_inversion(tabulate(count_release(200, counts, 6.0)))
    alone = [
        build_inversion(tabulate(count_release(200, (c,), 2.0))) for c in counts
    ]  # the same noise a pair
    for pair, single in enumerate(alone):
        for v in (0.01, 0.5, 0.99):
            joint = draw_between(inversion, pair, -0.9, 0.95, v)
            assert joint == pytest.approx(draw_between(single, 0, -0.9, 0.95, v), abs=1e-12)
    medians = [draw_between(inversion, pair, -1.0, 1.0, 0.5) for pair in range(3)]
    assert medians == sorted(medians)
    assert math.isclose(medians[0], correlation(log_odds(medians[0])), abs_tol=1e-12)
