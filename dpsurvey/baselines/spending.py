"""What the private rivals share: exact noise on integers, what it costs, and facts about it for their results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsurvey.errors import ArgumentError
from dpsurvey.privacy.budget import spendable
from dpsurvey.privacy.laplace import LARGEST_SCALE, SMALLEST_SCALE, calibrated_scale, discrete_laplace
from dpsurvey.privacy.mechanisms import Geometric
from dpsurvey.privacy.statistics import NEIGHBOURS


@dataclass(frozen=True, slots=True)
class Spending:
    """How a vector of integer statistics gets its noise, and what that costs.

    The noise is two-sided geometric, the Laplace law on the integers: the same guarantee with slightly less
    variance, in exact draws, where a continuous Laplace draw in floating point is not private as it stands.

    Parameters
    ----------
    scale : float
        Of the noise, in units of the statistic.
    true_epsilon : float
        Privacy loss of the whole vector when one row is substituted, by OpenDP's privacy map.
    charge : float
        What a ledger is to reserve: the true epsilon, or the one asked for where rounding left that above.
    """

    scale: float
    true_epsilon: float
    charge: float

    @property
    def info(self) -> dict[str, Any]:
        """Facts for a result."""
        return {
            "true_epsilon": self.true_epsilon,
            "neighbours": NEIGHBOURS,
            "noise": "two-sided geometric",
            "scale": self.scale,
        }

    def noisy(self, values: NDArray[np.int64], rng: np.random.Generator | None) -> NDArray[np.int64]:
        """Add noise from the operating system's randomness, or from `rng` for a simulation."""
        noise = Geometric(self.scale, self.true_epsilon)
        return noise.release(values) if rng is None else noise.simulate(values, rng)


def spend(epsilon: float, *, sensitivity: int, shrink: float = 1.0) -> Spending:
    """Calibrate the noise of an integer vector.

    Parameters
    ----------
    epsilon : float
        Total privacy loss asked for.
    sensitivity : int
        Largest change of the vector in L1 when one row is substituted.
    shrink : float, default 1.0
        Factor on the scale; below 1 the true epsilon is above the one asked for, by its reciprocal.

    Raises
    ------
    ArgumentError
        If epsilon is so small that the noise would not fit 64-bit integers.

    Examples
    --------
    >>> spend(1.0, sensitivity=6)
    Spending(scale=6.0, true_epsilon=1.0, charge=1.0)
    >>> spend(1.0, sensitivity=6, shrink=0.5).true_epsilon
    2.0
    """
    budget = spendable(epsilon)
    if sensitivity > budget * LARGEST_SCALE:
        raise ArgumentError(
            "epsilon is too small for noise in 64-bit integers",
            expected=f"at least {sensitivity / LARGEST_SCALE:.3g}",
            got=repr(epsilon),
        )
    if shrink == 1.0:
        scale, cost = calibrated_scale(budget, sensitivity)
    else:
        scale = max(shrink * sensitivity / budget, SMALLEST_SCALE)
        cost = float(discrete_laplace(scale).map(sensitivity))
    return Spending(scale, cost, max(epsilon, cost))
