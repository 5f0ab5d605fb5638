"""A million draws of every mechanism against its law, which is summed here from its definition alone.

Smaller samples run always; the full ones are marked slow, and their figures are in docs/results/trust.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from dpsurvey.errors import ArgumentError
from dpsurvey.privacy.mechanisms import Mechanism, build_mechanism
from dpsurvey.privacy.statistics import ConcordanceCounts, QuadrantCounts, Statistic

Note = Callable[..., None]
PValue = Callable[..., float]


def sizes(cases: dict[tuple[object, ...], bool], few: int, many: int) -> list[object]:
    """Return all cases with few draws, and those marked True with many too, behind the marker."""
    full = [pytest.param(*case, many, marks=pytest.mark.slow) for case, marked in cases.items() if marked]
    return [*(pytest.param(*case, few) for case in cases), *full]


def normalised(log_weight: NDArray[np.float64]) -> NDArray[np.float64]:
    return log_weight - np.logaddexp.reduce(log_weight, axis=None)


# --- one count: independent noise, a vector of a million counts


def scalar_law(law: Mechanism, true: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return noisy counts and their log-probabilities, from the definition and the public parameters."""
    given = law.parameters
    if law.name == "rgm":
        noisy = np.arange(given["lower"], given["upper"] + 1)
        return noisy, normalised(-given["rate"] * np.abs(noisy - true))
    reach = int(60 * given["scale"]) + 60
    noisy = np.arange(true - reach, true + reach + 1)
    distance = np.abs(noisy - true) / given["scale"]
    return noisy, normalised(-distance if law.name == "geometric" else -0.5 * distance**2)


ONE_COUNT = {
    ("geometric", QuadrantCounts(500, 5), 0.1, 250): False,
    ("geometric", QuadrantCounts(500, 5), 1.0, 0): True,
    ("geometric", QuadrantCounts(500, 2), 6.0, 7): False,
    ("geometric", ConcordanceCounts(60, 4), 1.0, 1770): True,
    ("gaussian", QuadrantCounts(500, 5), 1.0, 250): True,
    ("gaussian", QuadrantCounts(500, 2), 8.0, 0): False,
    ("gaussian", ConcordanceCounts(60, 4), 1.0, 5): False,
    ("rgm", QuadrantCounts(50, 2), 0.02, 25): False,
    ("rgm", QuadrantCounts(500, 5), 1.0, 0): True,
    ("rgm", QuadrantCounts(51, 2), 2.0, 13): False,
}


@pytest.mark.parametrize(
    ("mechanism", "statistic", "epsilon", "true", "draws"), sizes(ONE_COUNT, 20_000, 1_000_000), ids=str
)
def test_noise_of_one_count(
    mechanism: str,
    statistic: Statistic,
    epsilon: float,
    true: int,
    draws: int,
    p_value: PValue,
    level: float,
    note: Note,
) -> None:
    law = build_mechanism(mechanism, statistic, epsilon, 1e-6 if mechanism == "gaussian" else 0.0)
    noisy = law.release(np.full(draws, true))
    found = p_value(noisy, *scalar_law(law, true))
    note(
        mechanism=mechanism,
        statistic=repr(statistic),
        epsilon=epsilon,
        what=f"one count, true {true}",
        draws=draws,
        p=found,
    )
    assert found > level


# --- all counts of a release together: the joint law on the whole lattice


@dataclass(frozen=True)
class Lattice:
    """Every vector of noise within a reach beyond which nothing is left, and its probability."""

    reach: NDArray[np.int64]
    log_pmf: NDArray[np.float64]  # from the most likely vector to the least
    order: NDArray[np.int64]

    def place(self, noise: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rank of each vector of noise."""
        rank = np.empty(len(self.order), dtype=np.int64)
        rank[self.order] = np.arange(len(self.order))
        return rank[np.ravel_multi_index(tuple((noise + self.reach).T), tuple(2 * self.reach + 1))]


def lattice(law: Mechanism, statistic: Statistic, epsilon: float) -> Lattice:
    sensitivities = np.array(statistic.sensitivities)
    if law.name == "linf":
        reach = np.ceil(30 / epsilon).astype(int) * sensitivities
    else:
        scale = law.parameters["scale"]
        reach = np.full(statistic.m, math.ceil((30 if law.name == "geometric" else 8) * scale))
    points = np.stack(np.meshgrid(*(np.arange(-r, r + 1) for r in reach), indexing="ij"), -1).reshape(
        -1, statistic.m
    )
    if law.name == "linf":
        log_weight = -epsilon * (np.abs(points) / sensitivities).max(1)
    elif law.name == "geometric":
        log_weight = -np.abs(points / scale).sum(1)
    else:
        log_weight = -0.5 * ((points / scale) ** 2).sum(1)
    log_pmf = normalised(log_weight)
    order = np.lexsort((*np.abs(points).T, -log_pmf))
    return Lattice(reach, log_pmf[order], order)


WHOLE_RELEASE = {
    ("geometric", QuadrantCounts(10, 3), 6.0): True,
    ("gaussian", QuadrantCounts(10, 3), 12.0): False,
    ("linf", QuadrantCounts(10, 2), 0.1): False,
    ("linf", QuadrantCounts(10, 3), 1.5): True,
    ("linf", ConcordanceCounts(4, 3), 2.5): True,
    ("linf", ConcordanceCounts(5, 3, (2,)), 2.0): True,
}


@pytest.mark.parametrize(
    ("mechanism", "statistic", "epsilon", "draws"), sizes(WHOLE_RELEASE, 10_000, 1_000_000), ids=str
)
def test_noise_of_a_whole_release(
    mechanism: str,
    statistic: Statistic,
    epsilon: float,
    draws: int,
    p_value: PValue,
    level: float,
    note: Note,
) -> None:
    """Every vector has its own cell: what one count tells about another is tested too."""
    law = build_mechanism(mechanism, statistic, epsilon, 1e-6 if mechanism == "gaussian" else 0.0)
    true, m = np.array([high for _, high in statistic.ranges]), statistic.m
    if mechanism == "linf":
        noisy = np.array([law.release(true) for _ in range(draws)])
    else:
        noisy = law.release(np.tile(true, draws)).reshape(draws, m)
    law_of_all = lattice(law, statistic, epsilon)
    found = p_value(law_of_all.place(noisy - true), np.arange(len(law_of_all.order)), law_of_all.log_pmf)
    note(
        mechanism=mechanism,
        statistic=repr(statistic),
        epsilon=epsilon,
        what=f"joint law of {m} counts",
        draws=draws,
        p=found,
    )
    assert found > level


# --- joint noise at sizes of real releases: what the joint law says of norms, residues, signs and order


def radius_log_pmf(epsilon: float, unit: int, wide: int, narrow: int) -> NDArray[np.float64]:
    """Return log Pr(K) for K = 0, 1, ...: where Pr(z) ~ exp(-epsilon N(z)) puts the shell in which z was drawn."""
    k = np.arange(int((3 * (wide + narrow) + 80) * unit / epsilon) + 2 * unit)
    return normalised(wide * np.log(2 * k + 1) + narrow * np.log(2 * (k // unit) + 1) - epsilon * k / unit)


def norm_log_pmf(epsilon: float, unit: int, wide: int, narrow: int) -> NDArray[np.float64]:
    """Return log Pr(unit * N(z) = k): the number of vectors on a shell times the decay."""
    k = np.arange(len(radius_log_pmf(epsilon, unit, wide, narrow)), dtype=float)
    log_inside = wide * np.log(2 * k + 1) + narrow * np.log(2 * np.floor(k / unit) + 1)
    log_shell = log_inside.copy()
    log_shell[1:] += np.log(-np.expm1(log_inside[:-1] - log_inside[1:]))
    return normalised(log_shell - epsilon * k / unit)


def wide_log_pmf(epsilon: float, unit: int, wide: int, narrow: int) -> NDArray[np.float64]:
    """Return log Pr(z) of one wide count for z = 0, 1, ...: the radius summed out."""
    log_radius = radius_log_pmf(epsilon, unit, wide, narrow)
    over = log_radius - np.log(2 * np.arange(len(log_radius)) + 1.0)
    return np.logaddexp.accumulate(over[::-1])[::-1]


def residue_log_pmf(log_pmf: NDArray[np.float64], unit: int) -> NDArray[np.float64]:
    """Return log Pr(z mod unit) of a symmetric law."""
    z = np.arange(len(log_pmf))
    mass = np.exp(log_pmf)
    return np.log(np.bincount(z % unit, mass, unit) + np.bincount(-z[1:] % unit, mass[1:], unit))


REAL_RELEASE = {
    (QuadrantCounts(500, 5), 1.0): True,
    (ConcordanceCounts(500, 5), 1.0): True,
    (ConcordanceCounts(100, 6, (5,)), 1.0): True,
    (ConcordanceCounts(40, 5, (0, 1)), 0.3): False,
}


@pytest.mark.parametrize(("statistic", "epsilon", "draws"), sizes(REAL_RELEASE, 2_000, 100_000), ids=str)
def test_joint_noise_at_the_size_of_a_real_release(
    statistic: Statistic, epsilon: float, draws: int, p_value: PValue, level: float, note: Note
) -> None:
    law = build_mechanism("linf", statistic, epsilon)
    sensitivities = np.array(statistic.sensitivities)
    unit = int(sensitivities.max())
    wide, narrow = int((sensitivities == unit).sum()), int((sensitivities < unit).sum())
    true = np.array([low for low, _ in statistic.ranges])
    noise = np.array([law.release(true) for _ in range(draws)]) - true
    norms = (np.abs(noise) * (unit // sensitivities)).max(1)
    wide_noise = noise[:, sensitivities == unit]
    log_pmf = wide_log_pmf(epsilon, unit, wide, narrow)
    support = np.arange(1 - len(log_pmf), len(log_pmf))
    signs = (wide_noise[np.all(wide_noise != 0, axis=1)][:, :3] > 0) @ (1 << np.arange(3))
    places = wide_noise[:, :3].argsort(1, kind="stable") @ np.array([9, 3, 1])
    distinct = np.array([len(set(row)) == 3 for row in wide_noise[:, :3].tolist()])
    order = np.unique(places[distinct], return_inverse=True)[1]
    found = {
        "largest noise": p_value(norms, np.arange(len(log_pmf)), norm_log_pmf(epsilon, unit, wide, narrow)),
        "first count": p_value(wide_noise[:, 0], support, log_pmf[np.abs(support)]),
        "last count": p_value(wide_noise[:, -1], support, log_pmf[np.abs(support)]),
        "signs": p_value(signs, np.arange(8), np.full(8, -math.log(8))),
        "order of three": p_value(order, np.arange(6), np.full(6, -math.log(6))),
    }
    if (
        unit > 1
    ):  # an integer draw at sensitivity 1, times the sensitivity, would give the counts away modulo it
        residues = residue_log_pmf(log_pmf, unit)
        assert np.abs(np.exp(residues) * unit - 1).max() < 0.01  # nearly uniform
        found["modulo n - 1"] = p_value(wide_noise[:, 0] % unit, np.arange(unit), residues)
    for what, p in found.items():
        note(mechanism="linf", statistic=repr(statistic), epsilon=epsilon, what=what, draws=draws, p=p)
    assert min(found.values()) > level


# --- the ends: tiny and huge epsilon, the largest counts


LARGEST = [
    (mechanism, statistic)
    for mechanism, statistic in itertools.product(
        ("geometric", "rgm", "linf", "gaussian"),
        (QuadrantCounts(10**9, 3), ConcordanceCounts(10**9, 3), ConcordanceCounts(10**9, 3, (2,))),
    )
    if mechanism == "linf"
    or (len(set(statistic.kinds)) == 1 and (mechanism, statistic.name) != ("gaussian", "quadrant"))
]  # Gaussian noise for quadrant counts is never that large: at any epsilon delta alone would be enough


def smallest_epsilon(mechanism: str, statistic: Statistic) -> float:
    """Return an epsilon just above where noise could leave 64 bits."""
    cost = {
        "linf": statistic.sensitivity * statistic.m,
        "gaussian": math.sqrt(2 * math.log(1.25 / 1e-6))
        * statistic.sensitivity
        * math.sqrt(statistic.p**2 // 4),
    }
    return 1.01 * cost.get(mechanism, statistic.l1_sensitivity) / 2.0**52


@pytest.mark.parametrize(("mechanism", "statistic"), LARGEST, ids=str)
def test_the_smallest_epsilon_neither_saturates_nor_rounds(
    mechanism: str, statistic: Statistic, p_value: PValue, level: float
) -> None:
    """Noise around 2^52, where a float has no room for the last bits: it has its law down to the last bit."""
    from scipy import stats

    draws, epsilon = 900, smallest_epsilon(mechanism, statistic)
    law = build_mechanism(mechanism, statistic, epsilon, 1e-6 if mechanism == "gaussian" else 0.0)
    if mechanism != "gaussian":
        with pytest.raises(ArgumentError, match="too small"):
            build_mechanism(mechanism, statistic, epsilon * 0.98)
    true = np.array([high for _, high in statistic.ranges])
    if mechanism == "linf":
        noisy = np.array([law.release(true) for _ in range(draws)])
    else:
        noisy = law.release(np.tile(true, draws)).reshape(draws, statistic.m)
    assert noisy.dtype == np.int64
    assert np.abs(noisy).max() < 2**61  # far from the ends of 64 bits
    noise, sensitivities = noisy - true, np.array(statistic.sensitivities)
    if mechanism == "rgm":  # so flat that the range is all there is
        lower, upper = law.parameters["lower"], law.parameters["upper"]
        assert lower <= noisy.min() <= noisy.max() <= upper
        scaled, expected = (
            noisy[:, 0] / upper,
            stats.truncexpon(law.parameters["rate"] * upper, scale=1 / (law.parameters["rate"] * upper)),
        )
        scaled = 1.0 - scaled  # the true count is at the upper end
    elif mechanism == "linf":
        scaled = (np.abs(noise) / sensitivities).max(1) * epsilon
        expected = stats.gamma(statistic.m)
    else:
        scaled = noise[:, 0] / law.parameters["scale"]
        expected = stats.laplace() if mechanism == "geometric" else stats.norm()
    assert stats.kstest(scaled, expected.cdf).pvalue > level
    assert len(np.unique(noise[:, 0])) > draws * 0.999
    assert p_value(noise[:, 0] & 15, np.arange(16), np.full(16, -math.log(16))) > level
    assert p_value((noise[:, 0] >> 4) & 15, np.arange(16), np.full(16, -math.log(16))) > level


@pytest.mark.parametrize("epsilon", [1e6, 1e11, 1e17, 1e300, 1.7e308])
@pytest.mark.parametrize("statistic", [statistic for name, statistic in LARGEST if name == "linf"], ids=str)
def test_a_huge_epsilon_overflows_nowhere(statistic: Statistic, epsilon: float) -> None:
    """Nor does it take memory: a saved release with such numbers must be refused or read in no time."""
    law = build_mechanism("linf", statistic, epsilon)
    true = np.array([high for _, high in statistic.ranges])
    noise = law.release(true) - true
    reach = 60 * np.array(statistic.sensitivities) / min(epsilon, 2.0**52)
    assert np.all(np.abs(noise) <= np.ceil(reach))
    assert law.agrees(statistic, epsilon)
    for i in (0, statistic.m - 1):
        near, far = law.marginal(i).log_pmf(0, 0), law.marginal(i).log_pmf(np.ceil(reach[i]), 0)
        assert 1e-9 > near > far + 20.0
        assert np.isfinite(law.marginal(i).log_pmf(2**62, 0))


@pytest.mark.parametrize("mechanism", ["geometric", "rgm", "linf"])
@pytest.mark.parametrize("epsilon", [1e8, 1e17, 1.7e308])
def test_a_huge_epsilon_gives_the_counts(mechanism: str, epsilon: float) -> None:
    for statistic in (QuadrantCounts(5820, 7), ConcordanceCounts(50, 7)):
        true = np.array([high for _, high in statistic.ranges])
        assert np.array_equal(build_mechanism(mechanism, statistic, epsilon).release(true), true)


def test_marginal_law_of_steep_joint_noise_is_that_of_its_sum(p_value: PValue) -> None:
    """Where the decay is fast but the unit is long, cells are fine at the start of each unit only."""
    unit, epsilon = 200_001, 5000.0
    law = build_mechanism("linf", ConcordanceCounts(unit + 1, 3, (2,)), epsilon)
    exact = wide_log_pmf(epsilon, unit, 1, 2)
    z = np.arange(0, 1500)
    assert law.marginal(0).log_pmf(z, 0) == pytest.approx(exact[z], abs=0.02)
    assert law.marginal(1).log_pmf(0, 0) == pytest.approx(0.0, abs=1e-9)
    assert law.marginal(1).log_pmf(1, 0) == pytest.approx(-epsilon, rel=0.01)
