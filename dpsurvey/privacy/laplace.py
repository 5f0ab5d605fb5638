"""The one door to OpenDP: exact discrete Laplace noise on 64-bit integers, for scales that are safe to use."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from dpsurvey.errors import ArgumentError
from dpsurvey.privacy.budget import spendable
from dpsurvey.privacy.statistics import Statistic

LARGEST_SCALE = 2.0**52  # the noise then stays inside 64-bit integers but for a chance of exp(-2048)
SMALLEST_SCALE = 2.0**-52  # no noise at all but for a chance of exp(-2**52); smaller ones would overflow


def check_not_tiny(statistic: Statistic, epsilon: float) -> None:
    """Refuse an epsilon whose noise would not fit 64-bit integers.

    Raises
    ------
    ArgumentError
    """
    smallest = statistic.l1_sensitivity / LARGEST_SCALE
    if spendable(epsilon) < smallest:
        raise ArgumentError(
            "epsilon is too small for noise in 64-bit integers",
            expected=f"at least {smallest:.3g} for {statistic.m} pair(s)",
            got=repr(epsilon),
        )


def check_positive(name: str, value: float) -> None:
    """Refuse what is not a number above 0: OpenDP would return the exact counts at scale 0, and takes True for 1."""
    if (
        isinstance(value, bool)
        or not isinstance(value, float | int)
        or not (math.isfinite(value) and value > 0)
    ):
        raise ArgumentError(
            f"the {name} of the noise must be finite and above 0", expected="a float above 0", got=repr(value)
        )


def discrete_laplace(scale: float) -> Any:
    """Return OpenDP's discrete Laplace measurement on vectors of 64-bit integers."""
    check_positive("scale", scale)
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return dp.m.make_laplace(*space, scale=float(scale))


@lru_cache(maxsize=64)
def calibrated_scale(budget: float, sensitivity: int) -> tuple[float, float]:
    """Return the smallest scale whose privacy map is at most the budget, and the value of the map there.

    Parameters
    ----------
    budget : float
        Epsilon that may be spent (:func:`dpsurvey.privacy.budget.spendable`).
    sensitivity : int
        Largest change of the vector in L1 when one row is substituted.

    Notes
    -----
    At ``sensitivity / budget`` the map exceeds the budget by rounding in a fifth of cases; the scale is raised
    until it does not.

    Examples
    --------
    >>> scale, cost = calibrated_scale(0.3, 276)
    >>> scale > 276 / 0.3, cost <= 0.3
    (True, True)
    """
    scale = max(sensitivity / budget, SMALLEST_SCALE)
    while (cost := float(discrete_laplace(scale).map(sensitivity))) > budget:
        scale = math.nextafter(scale, math.inf)
    return scale, cost
