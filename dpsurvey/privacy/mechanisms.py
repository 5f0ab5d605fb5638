"""The mechanisms: how noise is added to the counts, what it costs, and its exact law.

A mechanism is built from public numbers alone (a statistic's range and sensitivities, and epsilon). It draws
secure noise with ``release``, insecure seeded noise for simulations with ``simulate``, and gives its law as
``log_pmf(noisy, true)``, which must be log-concave in the true count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsurvey.errors import ArgumentError, UnknownNameError
from dpsurvey.privacy.budget import spendable
from dpsurvey.privacy.exact import truncated_two_sided_geometric
from dpsurvey.privacy.statistics import QuadrantCounts

_LARGEST_SCALE = 2.0**52  # the noise then stays inside 64-bit integers but for a chance of exp(-2048)


class Mechanism(Protocol):
    """What the release and the likelihood need of a mechanism."""

    name: ClassVar[str]  # by which a release records it
    description: ClassVar[str]  # in a methods section: "... noise"

    @property
    def parameters(self) -> dict[str, float | int]:
        """Public parameters, enough to rebuild it together with the statistic and epsilon."""

    def release(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add secure noise to the vector of all m true counts."""

    def simulate(self, counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Add noise of the same law from a seeded generator: for simulations only."""

    def log_pmf(self, noisy: ArrayLike, true: ArrayLike) -> NDArray[np.float64]:
        """Return log Pr(noisy count | true count), elementwise with broadcasting."""

    def agrees(self, statistic: QuadrantCounts, epsilon: float) -> bool:
        """Return whether its parameters are those for this statistic and epsilon."""


@dataclass(frozen=True, slots=True)
class Geometric:
    """Two-sided geometric noise, Pr(d) = (1-a)/(1+a) a^|d| with a = exp(-1/scale) (paper, eq. 14).

    With ``scale = m / epsilon`` each of the m counts gets epsilon/m, and the vector as a whole is
    epsilon-differentially private, since its L1 sensitivity is m. Noise is OpenDP's discrete Laplace on 64-bit
    integers.

    Parameters
    ----------
    scale : float
        Of the noise, in counts.
    privacy_map : float
        What OpenDP's own privacy map says the vector costs; at most epsilon.
    """

    name: ClassVar[str] = "geometric"
    description: ClassVar[str] = "two-sided geometric"
    scale: float
    privacy_map: float

    @classmethod
    def build(cls, statistic: QuadrantCounts, epsilon: float) -> Geometric:
        """Return the mechanism whose privacy map is at most epsilon, with the smallest such scale.

        Raises
        ------
        ArgumentError
            If epsilon is so small that the noise would not fit 64-bit integers.

        Examples
        --------
        >>> Geometric.build(QuadrantCounts(n=100, p=3), 1.0)
        Geometric(scale=3.0, privacy_map=1.0)
        """
        budget, sensitivity = spendable(epsilon), statistic.l1_sensitivity
        scale = sensitivity / budget
        if scale > _LARGEST_SCALE:
            raise ArgumentError(
                "epsilon is too small for noise in 64-bit integers",
                expected=f"at least {sensitivity / _LARGEST_SCALE:.3g} for {statistic.m} pair(s)",
                got=repr(epsilon),
            )
        scale = max(scale, np.finfo(float).tiny)
        while (cost := _opendp_laplace(scale).map(sensitivity)) > budget:
            scale = math.nextafter(scale, math.inf)
        return cls(scale, cost)

    @property
    def parameters(self) -> dict[str, float | int]:
        """Scale of the noise in counts, and the value of OpenDP's privacy map."""
        return {"scale": self.scale, "privacy_map": self.privacy_map}

    def release(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add noise from the operating system's randomness to all m counts."""
        return np.array(_opendp_laplace(self.scale)([int(count) for count in counts]), dtype=np.int64)

    def simulate(self, counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Add noise from `rng`: reproducible, hence insecure."""
        success = -math.expm1(-1.0 / self.scale)
        noise = rng.geometric(success, (2, *counts.shape))
        return np.asarray(counts + noise[0] - noise[1])

    def log_pmf(self, noisy: ArrayLike, true: ArrayLike) -> NDArray[np.float64]:
        """Return log Pr(noisy | true) of eq. (14).

        Examples
        --------
        >>> law = Geometric(scale=1.0, privacy_map=1.0)
        >>> float(np.exp(law.log_pmf(np.arange(-60, 61), 0)).sum().round(12))
        1.0
        """
        value = np.asarray(np.subtract(noisy, true, dtype=float))  # then in place: there may be millions
        np.abs(value, out=value)
        value *= -1.0 / self.scale
        value += math.log(math.tanh(0.5 / self.scale))
        return value

    def agrees(self, statistic: QuadrantCounts, epsilon: float) -> bool:
        """Return whether scale = m / epsilon but for rounding, and the recorded cost is at most epsilon."""
        return math.isclose(self.scale * epsilon, statistic.l1_sensitivity, rel_tol=1e-9) and (
            0 < self.privacy_map <= epsilon
        )


@dataclass(frozen=True, slots=True)
class RangePreservingGeometric:
    """Range-preserving geometric mechanism, Pr(s | t) proportional to a'^|s-t| on lower..upper (supplement S.1).

    The normalising constant depends on t, so ``a' = exp(-rate)`` must be weaker than exp(-epsilon/m): rate
    solves ``rate + log g(rate) = epsilon/m`` with
    ``g = (1 + a' - a'^(d+1) - a'^(W+1-d)) / (1 - a'^(W+1))``, ``W = upper - lower``,
    ``d = min(sensitivity, ceil(W/2))``. Draws are exact.

    Parameters
    ----------
    rate : float
        epsilon' of one count.
    lower, upper : int
        Range of the counts.
    """

    name: ClassVar[str] = "rgm"
    description: ClassVar[str] = "range-preserving geometric"
    rate: float
    lower: int
    upper: int

    @classmethod
    def build(cls, statistic: QuadrantCounts, epsilon: float) -> RangePreservingGeometric:
        """Return the mechanism that spends epsilon/m on each count.

        Examples
        --------
        >>> RangePreservingGeometric.build(QuadrantCounts(n=50, p=2), 0.25).rate.__round__(5)
        0.14209
        """
        share = _float_below(Fraction(spendable(epsilon)) / statistic.m)
        rate = range_preserving_rate(share, statistic.lower, statistic.upper, statistic.sensitivity)
        return cls(rate, statistic.lower, statistic.upper)

    @property
    def parameters(self) -> dict[str, float | int]:
        """Rate of the law and its range."""
        return {"rate": self.rate, "lower": self.lower, "upper": self.upper}

    def release(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Draw all m noisy counts, each exactly from its law, from the operating system's randomness."""
        scale = 1.0 / self.rate
        laplace = _opendp_laplace(scale)
        rate = 1 / Fraction(scale)  # the rate OpenDP samples with; both routes use the same

        def unbounded() -> int:
            return int(laplace([0])[0])

        draws = [
            truncated_two_sided_geometric(int(count), self.lower, self.upper, rate, unbounded)
            for count in counts
        ]
        return np.array(draws, dtype=np.int64)

    def simulate(self, counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw from the same law by inversion with `rng`: reproducible, hence insecure."""
        support = np.arange(self.lower, self.upper + 1)
        draws = np.empty(counts.shape, dtype=np.int64)
        for i, count in enumerate(counts):
            cdf = np.cumsum(np.exp(self.log_pmf(support, count)))
            draws[i] = support[
                min(np.searchsorted(cdf, rng.random() * cdf[-1], side="right"), len(support) - 1)
            ]
        return draws

    def log_pmf(self, noisy: ArrayLike, true: ArrayLike) -> NDArray[np.float64]:
        """Return log Pr(noisy | true); minus infinity outside the range.

        Examples
        --------
        >>> law = RangePreservingGeometric(rate=0.5, lower=0, upper=10)
        >>> float(np.exp(law.log_pmf(np.arange(11), 3)).sum().round(12))
        1.0
        """
        s, t = np.asarray(noisy, dtype=float), np.asarray(true, dtype=float)
        below, above = np.expm1(-self.rate * (t - self.lower + 1)), np.expm1(-self.rate * (self.upper - t))
        log_total = np.log(-below - math.exp(-self.rate) * above) - math.log(-math.expm1(-self.rate))
        inside = (s >= self.lower) & (s <= self.upper)
        return np.asarray(np.where(inside, -self.rate * np.abs(s - t) - log_total, -np.inf))

    def agrees(self, statistic: QuadrantCounts, epsilon: float) -> bool:
        """Return whether rate and range are those for this statistic and epsilon."""
        expected = RangePreservingGeometric.build(statistic, epsilon)
        same_range = (self.lower, self.upper) == (expected.lower, expected.upper)
        return same_range and math.isclose(self.rate, expected.rate, rel_tol=1e-9)


def range_preserving_rate(epsilon: float, lower: int, upper: int, sensitivity: int) -> float:
    """Solve ``rate + log g(rate) = epsilon`` for one count, rounded down until the loss is at most epsilon.

    Parameters
    ----------
    epsilon : float
        Privacy loss allowed for one count.
    lower, upper, sensitivity : int
        Range of the count, and how far one row moves it.

    Returns
    -------
    float
        The unique root, which lies in [epsilon/2, epsilon].

    Raises
    ------
    ArgumentError
        If the sensitivity exceeds the width of the range.

    Examples
    --------
    >>> round(range_preserving_rate(0.25, 0, 25, 1), 5)
    0.14209
    """
    from scipy.optimize import brentq

    width = upper - lower
    if sensitivity > width:
        raise ArgumentError(
            "the sensitivity exceeds the width of the range",
            expected=f"at most {width}",
            got=str(sensitivity),
        )

    def excess(rate: float) -> float:
        return rate + _log_g(rate, width, sensitivity) - epsilon

    rate = float(brentq(excess, epsilon / 2, epsilon, xtol=1e-300, rtol=8.9e-16))
    while _exact_loss(rate, width, sensitivity) > Decimal(epsilon):
        rate = math.nextafter(rate, 0.0)
    return rate


def _log_g(rate: float, width: int, sensitivity: int) -> float:
    """Return log g(rate), with g - 1 = a(1 - a^d)(1 - a^(W-d)) / (1 - a^(W+1)), which nothing cancels in."""
    d = min(sensitivity, -(-width // 2))
    above_one = math.expm1(-d * rate) * math.expm1(-(width - d) * rate) / -math.expm1(-(width + 1) * rate)
    return math.log1p(math.exp(-rate) * above_one)


def _exact_loss(rate: float, width: int, sensitivity: int) -> Decimal:
    """Return rate + log g(rate) in 60 digits, rounded up, for the rational rate that the draws use."""
    with localcontext() as context:
        context.prec = 60
        exact = 1 / Decimal(1.0 / rate)
        d = min(sensitivity, -(-width // 2))
        a, one = (-exact).exp(), Decimal(1)
        g = one + a * (one - a**d) * (one - a ** (width - d)) / (one - a ** (width + 1))
        return exact + g.ln() + exact * Decimal("1e-30")


def _float_below(exact: Fraction) -> float:
    """Return the largest float that is not above a rational number."""
    value = float(exact)
    return value if Fraction(value) <= exact else math.nextafter(value, 0.0)


def _opendp_laplace(scale: float) -> Any:
    """Return OpenDP's discrete Laplace measurement on vectors of 64-bit integers."""
    if isinstance(scale, bool) or not (math.isfinite(scale) and scale > 0):
        raise ArgumentError(  # OpenDP would return the exact counts at scale 0, and takes True for 1
            "the scale of the noise must be finite and above 0", expected="a float above 0", got=repr(scale)
        )
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return dp.m.make_laplace(*space, scale=scale)


_BUILDERS: dict[str, Callable[[QuadrantCounts, float], Mechanism]] = {
    Geometric.name: Geometric.build,
    RangePreservingGeometric.name: RangePreservingGeometric.build,
}
_KINDS: dict[str, Callable[..., Mechanism]] = {
    Geometric.name: Geometric,
    RangePreservingGeometric.name: RangePreservingGeometric,
}


def build_mechanism(name: str, statistic: QuadrantCounts, epsilon: float) -> Mechanism:
    """Return the mechanism called `name`, calibrated so that the whole vector costs at most epsilon.

    Raises
    ------
    UnknownNameError
        If there is none of that name.
    """
    _check_name(name)
    return _BUILDERS[name](statistic, epsilon)


def load_mechanism(name: str, parameters: Mapping[str, float | int]) -> Mechanism:
    """Return the mechanism that a release records, from its public parameters.

    Raises
    ------
    UnknownNameError
        If there is none of that name.
    """
    _check_name(name)
    return _KINDS[name](**parameters)


def _check_name(name: str) -> None:
    if name not in _BUILDERS:
        raise UnknownNameError(
            "no such mechanism", expected=" or ".join(map(repr, _BUILDERS)), got=repr(name)
        )
