"""Discrete Gaussian noise: (epsilon, delta)-differential privacy by way of zero-concentrated privacy (zCDP)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsurvey.errors import ArgumentError
from dpsurvey.privacy.budget import spendable
from dpsurvey.privacy.exact import discrete_gaussian, seeded
from dpsurvey.privacy.laplace import LARGEST_SCALE, SMALLEST_SCALE, check_positive
from dpsurvey.privacy.statistics import Statistic

_SMALLEST_RHO, _LARGEST_RHO = 1e-60, 1e100  # between which OpenDP's conversion is asked
_SUMMED_UP_TO = 50.0  # scales whose normalising constant is summed; beyond, the integral is exact to rounding


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """Noise with Pr(d) proportional to exp(-d^2 / (2 scale^2)) on the integers, drawn exactly by OpenDP.

    A vector of L2 sensitivity D satisfies rho-zCDP with rho = (D / scale)^2 / 2 (Canonne, Kamath and Steinke,
    2020), which OpenDP converts to (epsilon, delta). The scale is the smallest whose converted epsilon is within
    the budget.

    Parameters
    ----------
    scale : float
        In counts.
    rho : float
        What OpenDP's privacy map says the vector costs, in zCDP.
    privacy_map : float
        The epsilon into which OpenDP converts rho at the release's delta.
    """

    name: ClassVar[str] = "gaussian"
    description: ClassVar[str] = "discrete Gaussian"
    scale: float
    rho: float
    privacy_map: float

    def __post_init__(self) -> None:
        for name in ("scale", "rho", "privacy_map"):
            check_positive(name.replace("_", " "), getattr(self, name))

    @classmethod
    def build(cls, statistic: Statistic, epsilon: float, delta: float) -> DiscreteGaussian:
        """Return the mechanism of the smallest scale that costs at most (epsilon, delta).

        Raises
        ------
        ArgumentError
            If delta is 0, or epsilon so small that the noise would not fit 64-bit integers.

        Examples
        --------
        >>> from dpsurvey.privacy.statistics import QuadrantCounts
        >>> law = DiscreteGaussian.build(QuadrantCounts(n=500, p=5), 1.0, 1e-6)
        >>> round(law.scale, 1), law.privacy_map <= 1.0
        (14.3, True)
        """
        if not delta > 0.0:
            raise ArgumentError(
                "Gaussian noise has no pure epsilon", expected="delta above 0, such as 1e-6", got=repr(delta)
            )
        return cls(*_calibrate(statistic.l2_sensitivity, spendable(epsilon), spendable(delta)))

    @property
    def parameters(self) -> dict[str, float | int]:
        """Scale of the noise in counts, its zCDP cost, and the epsilon that converts to."""
        return {"scale": self.scale, "rho": self.rho, "privacy_map": self.privacy_map}

    def release(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add noise from the operating system's randomness to all m counts."""
        return np.array(_opendp_gaussian(self.scale)([int(count) for count in counts]), dtype=np.int64)

    def simulate(self, counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Add noise of the same law from `rng`: reproducible, hence insecure."""
        randbelow = seeded(rng)
        square = Fraction(self.scale) ** 2
        return np.array([int(t) + discrete_gaussian(square, randbelow) for t in counts], dtype=np.int64)

    @property
    def variance(self) -> float:
        """Variance of the noise, in squared counts."""
        if self.scale > _SUMMED_UP_TO:
            return self.scale**2
        d = np.arange(-600, 601)
        return float(np.dot(np.exp(self.log_pmf(d, 0)), d * d))

    def log_pmf(self, noisy: ArrayLike, true: ArrayLike) -> NDArray[np.float64]:
        """Return log Pr(noisy | true).

        Examples
        --------
        >>> law = DiscreteGaussian(scale=3.0, rho=0.1, privacy_map=1.0)
        >>> float(np.exp(law.log_pmf(np.arange(-60, 61), 0)).sum().round(12))
        1.0
        """
        z = np.subtract(noisy, true, dtype=float) / self.scale
        return np.asarray(-0.5 * z * z - _log_total(self.scale))

    def marginal(self, i: int) -> DiscreteGaussian:
        """Return the law of count i: its noise is independent of the others'."""
        return self

    def agrees(self, statistic: Statistic, epsilon: float, delta: float = 0.0) -> bool:
        """Return whether its parameters are those for this statistic, epsilon and delta."""
        expected = DiscreteGaussian.build(statistic, epsilon, delta)
        return all(
            math.isclose(self.parameters[name], value, rel_tol=1e-6)
            for name, value in expected.parameters.items()
        ) and (self.privacy_map <= epsilon)


def converted_epsilon(rho: float, delta: float) -> float:
    """Return the epsilon at delta into which OpenDP converts a zCDP cost, rounded up; infinite beyond all floats.

    The conversion is that of a release, applied to noise of scale 1 on a sensitivity that costs at least rho.

    Parameters
    ----------
    rho : float
        At least 0.
    delta : float
        Above 0.

    Examples
    --------
    >>> round(converted_epsilon(0.1, 1e-6), 3)
    2.142
    """
    if rho > _LARGEST_RHO:
        return math.inf
    rho = max(rho, _SMALLEST_RHO)
    noise, sensitivity = _opendp_gaussian(1.0), math.sqrt(2.0 * rho)
    while float(noise.map(sensitivity)) < rho:
        sensitivity = math.nextafter(sensitivity, math.inf)
    return _epsilon(1.0, sensitivity, delta)


def _log_total(scale: float) -> float:
    """Return log of the sum of exp(-d^2 / (2 scale^2)) over all integers."""
    if scale > _SUMMED_UP_TO:
        return math.log(scale) + 0.5 * math.log(2.0 * math.pi)
    d = np.arange(-600, 601) / scale
    return float(np.log(np.exp(-0.5 * d * d).sum()))


@lru_cache(maxsize=64)
def _calibrate(sensitivity: float, epsilon: float, delta: float) -> tuple[float, float, float]:
    """Return the smallest scale within the budget, its rho and its epsilon, by bisection between floats."""
    largest = math.nextafter(sensitivity, math.inf)

    def cost(scale: float) -> float:
        return _epsilon(scale, largest, delta)

    start = largest * math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon
    if start > LARGEST_SCALE:
        raise ArgumentError(
            "epsilon is too small for noise in 64-bit integers",
            expected="a larger epsilon",
            got=repr(epsilon),
        )
    low = high = max(start, SMALLEST_SCALE)
    while cost(high) > epsilon:
        low, high = high, 2.0 * high
    while low > SMALLEST_SCALE and cost(low) <= epsilon:
        low, high = low / 2.0, low
    while high / low > 1.0 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if cost(middle) <= epsilon else (middle, high)
    return high, float(_opendp_gaussian(high).map(largest)), cost(high)


def _epsilon(scale: float, sensitivity: float, delta: float) -> float:
    """Return the epsilon at delta of noise of a scale on a sensitivity."""
    from opendp.mod import OpenDPException

    try:
        return float(_converted(scale).map(sensitivity).epsilon(delta))
    except OpenDPException as error:
        if error.variant != "Overflow":
            raise
        return math.inf  # so little noise that the conversion leaves the floats: more than any budget


def _opendp_gaussian(scale: float) -> Any:
    """Return OpenDP's discrete Gaussian measurement on vectors of 64-bit integers."""
    check_positive("scale", scale)
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    return dp.m.make_gaussian(*space, scale=float(scale))


def _converted(scale: float) -> Any:
    """Return the same measurement with its cost as a curve of (epsilon, delta)."""
    import opendp.prelude as dp

    return dp.c.make_zCDP_to_approxDP(_opendp_gaussian(scale))
