"""The range-preserving geometric mechanism: noisy counts stay in the range of true ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal, DivisionByZero, InvalidOperation, Overflow, localcontext
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsurvey.errors import ArgumentError
from dpsurvey.privacy.budget import spendable
from dpsurvey.privacy.exact import truncated_two_sided_geometric
from dpsurvey.privacy.laplace import SMALLEST_SCALE, check_not_tiny, check_positive
from dpsurvey.privacy.statistics import Statistic

_DIGITS = Context(prec=60, traps=[InvalidOperation, DivisionByZero, Overflow])


@dataclass(frozen=True, slots=True)
class RangePreservingGeometric:
    """Range-preserving geometric mechanism, Pr(s | t) proportional to a'^|s-t| on lower..upper (supplement S.1).

    The normalising constant depends on t, so ``a' = exp(-rate)`` must be weaker than exp(-epsilon/m): rate
    solves ``sensitivity * rate + log g(rate) = epsilon/m`` with
    ``g = (1 + a' - a'^(d+1) - a'^(W+1-d)) / (1 - a'^(W+1))``, ``W = upper - lower``,
    ``d = min(sensitivity, ceil(W/2))``. Draws are exact. Alone the law is not log-concave in t, near the ends
    of the range; times the binomial coefficients of a true count it is.

    Parameters
    ----------
    rate : float
        Decay of the law in one count: epsilon'/sensitivity.
    lower, upper : int
        Range of the counts.
    """

    name: ClassVar[str] = "rgm"
    description: ClassVar[str] = "range-preserving geometric"
    rate: float
    lower: int
    upper: int

    def __post_init__(self) -> None:
        check_positive("rate", self.rate)
        if not (isinstance(self.lower, int) and isinstance(self.upper, int) and self.lower < self.upper):
            raise ArgumentError("the range is not two integers, the smaller one first")

    @classmethod
    def build(cls, statistic: Statistic, epsilon: float) -> RangePreservingGeometric:
        """Return the mechanism that spends epsilon/m on each count.

        Raises
        ------
        ArgumentError
            If epsilon is so small that rounding would swamp it.

        Examples
        --------
        >>> from dpsurvey.privacy.statistics import QuadrantCounts
        >>> RangePreservingGeometric.build(QuadrantCounts(n=50, p=2), 0.25).rate.__round__(5)
        0.14209
        """
        check_not_tiny(statistic, epsilon)
        share = min(_float_below(Fraction(spendable(epsilon)) / statistic.m), 1 / SMALLEST_SCALE)
        rate = range_preserving_rate(share, statistic.lower, statistic.upper, statistic.sensitivity)
        return cls(rate, statistic.lower, statistic.upper)

    @property
    def parameters(self) -> dict[str, float | int]:
        """Rate of the law and its range."""
        return {"rate": self.rate, "lower": self.lower, "upper": self.upper}

    def release(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Draw all m noisy counts, each exactly from its law, from the operating system's randomness."""
        rate = Fraction(self.rate)
        draws = [truncated_two_sided_geometric(int(count), self.lower, self.upper, rate) for count in counts]
        return np.array(draws, dtype=np.int64)

    def simulate(self, counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw from the same law by inversion with `rng`: reproducible, hence insecure."""
        t = counts.astype(float)
        below, above = (-np.expm1(-self.rate * width) for width in (t - self.lower, self.upper - t))
        a = math.exp(-self.rate)
        side = rng.random(counts.shape) * (1.0 - a + a * (below + above))
        left, right = side < a * below, side >= 1.0 - a + a * below
        inside = np.where(left, below, above) * rng.random(counts.shape)
        steps = 1.0 + np.floor(np.log1p(-inside) / -self.rate)
        noisy = t + np.where(left, -steps, np.where(right, steps, 0.0))
        return np.asarray(np.clip(noisy, self.lower, self.upper).astype(np.int64))

    @property
    def variance(self) -> float:
        """Variance of the noise of a count in the middle of the range."""
        reach, a = self.rate * (self.upper - self.lower) / 2.0, math.exp(-self.rate)
        if reach < 1e-3:
            return (self.upper - self.lower) ** 2 / 12.0
        kept = 1.0 - math.exp(-reach) * (1.0 + reach + reach * reach / 2.0) if reach < 700.0 else 1.0
        return 2.0 * a / (1.0 - a) ** 2 * kept / -math.expm1(-reach)

    def marginal(self, i: int) -> RangePreservingGeometric:
        """Return the law of count i: its noise is independent of the others'."""
        return self

    def log_pmf(self, noisy: ArrayLike, true: ArrayLike) -> NDArray[np.float64]:
        """Return log Pr(noisy | true) for true counts in the range; minus infinity for noisy ones outside it.

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

    def agrees(self, statistic: Statistic, epsilon: float, delta: float = 0.0) -> bool:
        """Return whether rate and range are those for this statistic and epsilon."""
        expected = RangePreservingGeometric.build(statistic, epsilon)
        same_range = (self.lower, self.upper) == (expected.lower, expected.upper)
        return same_range and math.isclose(self.rate, expected.rate, rel_tol=1e-9)


def range_preserving_rate(epsilon: float, lower: int, upper: int, sensitivity: int) -> float:
    """Solve ``sensitivity * rate + log g(rate) = epsilon``, rounded down until the loss is at most epsilon.

    Parameters
    ----------
    epsilon : float
        Privacy loss allowed for one count.
    lower, upper, sensitivity : int
        Range of the count, and how far one row moves it.

    Returns
    -------
    float
        The unique root; sensitivity * rate lies in [epsilon/2, epsilon].

    Raises
    ------
    ArgumentError
        If the sensitivity is below 1 or exceeds the width of the range.

    Examples
    --------
    >>> round(range_preserving_rate(0.25, 0, 25, 1), 5)
    0.14209
    """
    from scipy.optimize import brentq

    width = upper - lower
    if not 1 <= sensitivity <= width:
        raise ArgumentError(
            "the sensitivity does not fit the width of the range",
            expected=f"1 to {width}",
            got=str(sensitivity),
        )

    def excess(rate: float) -> float:
        return sensitivity * rate + _log_g(rate, width, sensitivity) - epsilon

    low, high = epsilon / (2 * sensitivity), epsilon / sensitivity
    rate = float(brentq(excess, low, high, xtol=1e-300, rtol=8.9e-16)) if excess(high) > 0 else high
    while _exact_loss(rate, width, sensitivity) > Decimal(epsilon):
        rate = math.nextafter(rate, 0.0)
    return rate


def _log_g(rate: float, width: int, sensitivity: int) -> float:
    """Return log g(rate), with g - 1 = a(1 - a^d)(1 - a^(W-d)) / (1 - a^(W+1)), which nothing cancels in."""
    d = min(sensitivity, -(-width // 2))
    above_one = math.expm1(-d * rate) * math.expm1(-(width - d) * rate) / -math.expm1(-(width + 1) * rate)
    return math.log1p(math.exp(-rate) * above_one)


def _exact_loss(rate: float, width: int, sensitivity: int) -> Decimal:
    """Return sensitivity * rate + log g(rate) in 60 digits, rounded up, for the rate's exact value."""
    with localcontext(_DIGITS):
        exact = Decimal(rate)
        d = min(sensitivity, -(-width // 2))
        a, one = (-exact).exp(), Decimal(1)
        g = one + a * (one - a**d) * (one - a ** (width - d)) / (one - a ** (width + 1))
        loss = sensitivity * exact + g.ln()
        return loss * (one + Decimal("1e-30"))


def _float_below(exact: Fraction) -> float:
    """Return the largest float that is not above a rational number."""
    value = float(exact)
    return value if Fraction(value) <= exact else math.nextafter(value, 0.0)
