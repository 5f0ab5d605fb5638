"""The mechanisms: how noise is added to the counts, what it costs, and its exact law.

A mechanism is built from public numbers alone (a statistic's range and sensitivities, and epsilon). It draws
secure noise with ``release``, insecure seeded noise for simulations with ``simulate``, and gives the law of each
count's noise with ``marginal(i)``. Times the law of a true count that must be log-concave in the true count, since
the likelihood sums outwards from a single peak.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsurvey.errors import ArgumentError, UnknownNameError
from dpsurvey.privacy.budget import spendable
from dpsurvey.privacy.gaussian import DiscreteGaussian
from dpsurvey.privacy.laplace import (
    SMALLEST_SCALE,
    calibrated_scale,
    check_not_tiny,
    check_positive,
    discrete_laplace,
)
from dpsurvey.privacy.linf import LInfinity
from dpsurvey.privacy.rgm import RangePreservingGeometric
from dpsurvey.privacy.statistics import Statistic
from dpsurvey.texts import shown


class NoiseLaw(Protocol):
    """The law of one count's noise."""

    @property
    def variance(self) -> float:
        """Variance of the noise, in squared counts."""

    def log_pmf(self, noisy: ArrayLike, true: ArrayLike) -> NDArray[np.float64]:
        """Return log Pr(noisy count | true count), elementwise with broadcasting, smoothly between integers."""


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

    def marginal(self, i: int) -> NoiseLaw:
        """Return the law of the noise of count i, whatever happens to the others."""

    def agrees(self, statistic: Statistic, epsilon: float, delta: float = 0.0) -> bool:
        """Return whether its parameters are those for this statistic, epsilon and delta."""


@dataclass(frozen=True, slots=True)
class Geometric:
    """Two-sided geometric noise, Pr(d) = (1-a)/(1+a) a^|d| with a = exp(-1/scale) (paper, eq. 14).

    With scale = L1 sensitivity / epsilon the vector as a whole is epsilon-differentially private. For quadrant
    counts that is ``m / epsilon``: each of the m counts gets epsilon/m. Noise is OpenDP's discrete Laplace on
    64-bit integers.

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

    def __post_init__(self) -> None:
        check_positive("scale", self.scale)
        check_positive("privacy map", self.privacy_map)

    @classmethod
    def build(cls, statistic: Statistic, epsilon: float) -> Geometric:
        """Return the mechanism whose privacy map is at most epsilon, with the smallest such scale.

        Raises
        ------
        ArgumentError
            If epsilon is so small that the noise would not fit 64-bit integers.

        Examples
        --------
        >>> from dpsurvey.privacy.statistics import QuadrantCounts
        >>> Geometric.build(QuadrantCounts(n=100, p=3), 1.0)
        Geometric(scale=3.0, privacy_map=1.0)
        """
        check_not_tiny(statistic, epsilon)
        return cls(*calibrated_scale(spendable(epsilon), statistic.l1_sensitivity))

    @property
    def parameters(self) -> dict[str, float | int]:
        """Scale of the noise in counts, and the value of OpenDP's privacy map."""
        return {"scale": self.scale, "privacy_map": self.privacy_map}

    def release(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add noise from the operating system's randomness to all m counts."""
        return np.array(discrete_laplace(self.scale)([int(count) for count in counts]), dtype=np.int64)

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

    @property
    def variance(self) -> float:
        """Variance of the noise, ``1 / (2 sinh(1/(2 scale))^2)``."""
        half = 0.5 / self.scale
        return 0.5 / math.sinh(half) ** 2 if half < 300.0 else 0.0

    def marginal(self, i: int) -> Geometric:
        """Return the law of count i: its noise is independent of the others'."""
        return self

    def agrees(self, statistic: Statistic, epsilon: float, delta: float = 0.0) -> bool:
        """Return whether scale and cost are those of this sensitivity but for rounding, and at most epsilon."""
        sensitivity = statistic.l1_sensitivity
        return (
            math.isclose(self.scale, max(sensitivity / epsilon, SMALLEST_SCALE), rel_tol=1e-9)
            and math.isclose(self.scale * self.privacy_map, sensitivity, rel_tol=1e-9)
            and self.privacy_map <= epsilon
        )


MECHANISMS: dict[str, Any] = {
    kind.name: kind for kind in (Geometric, RangePreservingGeometric, LInfinity, DiscreteGaussian)
}


def build_mechanism(name: str, statistic: Statistic, epsilon: float, delta: float = 0.0) -> Mechanism:
    """Return the mechanism called `name`, calibrated so that the whole vector costs at most (epsilon, delta).

    Raises
    ------
    UnknownNameError
        If there is none of that name.
    ArgumentError
        If delta is above 0 where the mechanism has pure epsilon, or 0 where it cannot; or if counts of different
        kinds are to get noise other than "linf".
    """
    _check_name(name)
    if len(set(statistic.kinds)) > 1 and name != LInfinity.name:
        raise ArgumentError(
            "counts of two kinds in one release need joint noise",
            expected="mechanism='linf' where some columns are coarse",
            got=repr(name),
        )
    if name == DiscreteGaussian.name:
        return DiscreteGaussian.build(statistic, epsilon, delta)
    if delta != 0.0:
        raise ArgumentError(
            f"the {name!r} mechanism has pure epsilon", expected="delta = 0", got=repr(delta),
            hint="mechanism='gaussian' uses delta",
        )  # fmt: skip
    built: Mechanism = MECHANISMS[name].build(statistic, epsilon)
    return built


def load_mechanism(name: str, parameters: Mapping[str, float | int], statistic: Statistic) -> Mechanism:
    """Return the mechanism that a release records, from its public parameters and its statistic.

    Raises
    ------
    UnknownNameError
        If there is none of that name.
    """
    _check_name(name)
    if name == LInfinity.name:
        return LInfinity.load(statistic, **parameters)  # type: ignore[arg-type]
    loaded: Mechanism = MECHANISMS[name](**parameters)
    return loaded


def _check_name(name: str) -> None:
    if not isinstance(name, str) or name not in MECHANISMS:
        raise UnknownNameError(
            "no such mechanism", expected=" or ".join(map(repr, MECHANISMS)), got=shown(name)
        )
