"""The L-infinity mechanism: noise for all counts at once, with probability that falls with the largest of it.

Substituting one row moves every quadrant count by at most 1 at once, and every vector in {-1, 0, 1}^m is attained:
the sensitivity hull is the whole cube, and the best K-norm mechanism of pure epsilon is the one whose norm is the
largest absolute value. For counts of different sensitivities Delta_i the norm is ``N(z) = max |z_i| / Delta_i``.

*Privacy.* ``Pr(z) = exp(-epsilon N(z)) / S`` on all of Z^m. For neighbours with counts t and t' and any output y,
``N(y - t') <= N(y - t) + N(t - t') <= N(y - t) + 1``, so the two probabilities of y differ by a factor of at most
exp(epsilon): the vector as a whole is epsilon-differentially private.

*The draw.* Sensitivities are ``unit`` for the wide counts and 1 for the narrow ones. Let the integer K have
probability proportional to ``(2K+1)^wide (2 floor(K/unit)+1)^narrow exp(-epsilon K/unit)`` and, given K, let each
z be uniform on -K..K if wide and on -floor(K/unit)..floor(K/unit) if narrow. Then Pr(z) is proportional to the sum
of exp(-epsilon K/unit) over ``K >= unit N(z)``, an integer: that is exp(-epsilon N(z)) but for a constant, the law
above. K is as secret as the noise, since given K the loss is infinite; it never leaves the function that draws it.
Drawing at sensitivity 1 and multiplying by the unit would be another mechanism: it gives the counts away modulo
the unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from secrets import randbelow as secure_randbelow
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsurvey.errors import ArgumentError
from dpsurvey.privacy.budget import spendable
from dpsurvey.privacy.exact import RandBelow, seeded
from dpsurvey.privacy.marginal import MarginalNoise, marginal_noise
from dpsurvey.privacy.radius import RadiusWeights, draw_radius
from dpsurvey.privacy.statistics import Statistic

_LARGEST_NOISE = 2.0**52  # the noise must fit 64-bit integers
_LARGEST_BUDGET = 2.0**52  # no noise at all but for a chance of exp(-2**52) at sensitivity 1


@dataclass(frozen=True, slots=True)
class LInfinity:
    """Joint noise with Pr(z) proportional to exp(-epsilon max |z_i| / sensitivity_i).

    Parameters
    ----------
    budget : float
        Epsilon of the whole vector; the draw uses its exact rational value.
    sensitivities : tuple of int, length m
        How far one row moves each count: 1 or one other number, the same for all others.
    """

    name: ClassVar[str] = "linf"
    description: ClassVar[str] = "L-infinity (joint two-sided)"
    budget: float
    sensitivities: tuple[int, ...]

    def __post_init__(self) -> None:
        kinds = set(self.sensitivities)
        if not kinds or min(kinds) < 1 or len(kinds - {1}) > 1:
            raise ArgumentError(
                "the sensitivities are not 1 or one other number", expected="integers of 1 or more"
            )
        if not isinstance(self.budget, float) or not 0.0 < self.budget < np.inf:
            raise ArgumentError("the budget is not finite and above 0", expected="a float above 0")

    @classmethod
    def build(cls, statistic: Statistic, epsilon: float) -> LInfinity:
        """Return the mechanism of a statistic.

        Raises
        ------
        ArgumentError
            If epsilon is so small that the noise would not fit 64-bit integers.

        Examples
        --------
        >>> from dpsurvey.privacy.statistics import QuadrantCounts
        >>> LInfinity.build(QuadrantCounts(n=500, p=3), 1.0)
        LInfinity(budget=1.0, sensitivities=(1, 1, 1))
        """
        law = cls(min(spendable(epsilon), _LARGEST_BUDGET), statistic.sensitivities)
        smallest = law.unit * len(law.sensitivities) / _LARGEST_NOISE
        if law.budget < smallest:
            raise ArgumentError(
                "epsilon is too small for noise in 64-bit integers",
                expected=f"at least {smallest:.3g} for {statistic.m} pair(s)",
                got=repr(epsilon),
            )
        return law

    @classmethod
    def load(cls, statistic: Statistic, *, budget: float, sensitivity: int, m: int) -> LInfinity:
        """Return the mechanism that a release of this statistic records."""
        law = cls(float(budget), statistic.sensitivities)
        if (law.unit, len(law.sensitivities)) != (sensitivity, m):
            raise ArgumentError("the sensitivities are not those of the statistic")
        return law

    @property
    def unit(self) -> int:
        """The largest sensitivity."""
        return max(self.sensitivities)

    @property
    def parameters(self) -> dict[str, float | int]:
        """Epsilon as spent, the largest sensitivity and the number of counts. The radius K is not among them."""
        return {"budget": self.budget, "sensitivity": self.unit, "m": len(self.sensitivities)}

    def release(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add one exact joint draw from the operating system's randomness."""
        return self._add(counts, secure_randbelow)

    def simulate(self, counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Add one joint draw from `rng`: reproducible, hence insecure. The code is that of the secure draw."""
        return self._add(counts, seeded(rng))

    def marginal(self, i: int) -> LInfinityMarginal:
        """Return the law of count i alone."""
        return LInfinityMarginal(self._law(self.sensitivities[i] == self.unit))

    def agrees(self, statistic: Statistic, epsilon: float, delta: float = 0.0) -> bool:
        """Return whether its parameters are those for this statistic and epsilon."""
        return self == LInfinity.build(statistic, epsilon)

    @property
    def _wide(self) -> int:
        return self.sensitivities.count(self.unit)

    def _add(self, counts: NDArray[np.int64], randbelow: RandBelow) -> NDArray[np.int64]:
        weights = RadiusWeights(Fraction(self.budget), self.unit, self._wide, len(counts) - self._wide)
        radius = draw_radius(weights, randbelow)
        reach = [radius if s == self.unit else radius // self.unit for s in self.sensitivities]
        noisy = [int(t) + randbelow(2 * k + 1) - k for t, k in zip(counts, reach, strict=True)]
        return np.array(noisy, dtype=np.int64)

    def _law(self, wide: bool) -> MarginalNoise:
        laws = marginal_noise(self.budget, self.unit, self._wide, len(self.sensitivities) - self._wide)
        law = laws[0 if wide else 1]
        assert law is not None
        return law


@dataclass(frozen=True, slots=True)
class LInfinityMarginal:
    """The law of one count's noise, the radius summed out.

    Examples
    --------
    >>> law = LInfinity(budget=1.0, sensitivities=(1,) * 10).marginal(0)
    >>> float(np.exp(law.log_pmf(np.arange(-200, 201), 0)).sum().round(12))
    1.0
    """

    noise: MarginalNoise

    @property
    def variance(self) -> float:
        """Variance of the noise, in squared counts."""
        return self.noise.variance

    def log_pmf(self, noisy: ArrayLike, true: ArrayLike) -> NDArray[np.float64]:
        """Return log Pr(noisy count | true count), elementwise with broadcasting."""
        return self.noise.at(np.abs(np.subtract(noisy, true, dtype=float)))
