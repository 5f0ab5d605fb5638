"""The L-infinity mechanism: noise for all counts at once, with probability proportional to exp(-rate max|z|).

Substituting one row moves every count by at most the sensitivity Delta at once, and for quadrant counts every
vector in {-1, 0, 1}^m is attained, so the sensitivity hull is the whole cube and the best K-norm mechanism of
pure epsilon is the one whose norm is the largest absolute value.

*Privacy.* With ``rate = epsilon / Delta``, ``Pr(z) = exp(-rate max|z|) / S`` on all of Z^m. For neighbours with
counts t and t' and any output y, ``max|y - t'| <= max|y - t| + Delta``, so the two probabilities of y differ by
a factor of at most exp(epsilon): the vector as a whole is epsilon-differentially private.

*The draw.* Let K have probability proportional to ``(2K+1)^m exp(-rate K)`` and, given K, let each z be uniform
on -K..K. Then Pr(z) is proportional to the sum of exp(-rate K) over K >= max|z|, which is
``exp(-rate max|z|) / (1 - exp(-rate))``: the law above. K is as secret as the noise, since given K the loss is
infinite; it never leaves the function that draws it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from secrets import randbelow, randbits
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsurvey.errors import ArgumentError
from dpsurvey.privacy.budget import spendable
from dpsurvey.privacy.exact import bernoulli, geometric
from dpsurvey.privacy.statistics import QuadrantCounts

_REJECTION_UP_TO = 2.5  # -log of the acceptance rate
_SHORT_TABLE = 2000  # typical K up to which the inversion's table takes no time
_GUARD_DIGITS = 20  # beyond those claimed: room for the rounding of ten million operations
_TABLE_UP_TO = 1e5  # typical K up to which the marginal law is summed; beyond it the sum is an integral
_LARGEST_NOISE = 2.0**52  # the noise must fit 64-bit integers


@dataclass(frozen=True, slots=True)
class LInfinity:
    """Joint noise with Pr(z) proportional to exp(-rate max|z|), rate = epsilon / sensitivity.

    Parameters
    ----------
    budget : float
        Epsilon of the whole vector; the draw uses its exact rational value.
    sensitivity : int
        How far one row moves any count.
    m : int
        Number of counts.
    """

    name: ClassVar[str] = "linf"
    description: ClassVar[str] = "L-infinity (joint two-sided)"
    budget: float
    sensitivity: int
    m: int

    @classmethod
    def build(cls, statistic: QuadrantCounts, epsilon: float) -> LInfinity:
        """Return the mechanism of a statistic whose counts all move by at most its sensitivity.

        Raises
        ------
        ArgumentError
            If epsilon is so small that the noise would not fit 64-bit integers.

        Examples
        --------
        >>> LInfinity.build(QuadrantCounts(n=500, p=5), 1.0)
        LInfinity(budget=1.0, sensitivity=1, m=10)
        """
        law = cls(spendable(epsilon), statistic.sensitivity, statistic.m)
        if law.m / law.rate > _LARGEST_NOISE:
            raise ArgumentError(
                "epsilon is too small for noise in 64-bit integers",
                expected=f"at least {law.m * law.sensitivity / _LARGEST_NOISE:.3g} for {law.m} pair(s)",
                got=repr(epsilon),
            )
        return law

    @property
    def rate(self) -> float:
        """Decay of the law in one count, epsilon / sensitivity."""
        return self.budget / self.sensitivity

    @property
    def parameters(self) -> dict[str, float | int]:
        """Epsilon as spent, the sensitivity and the number of counts. The radius K is not among them."""
        return {"budget": self.budget, "sensitivity": self.sensitivity, "m": self.m}

    def release(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add one exact joint draw from the operating system's randomness."""
        radius = _draw_radius(Fraction(self.budget) / self.sensitivity, self.m)
        return np.array([int(count) + randbelow(2 * radius + 1) - radius for count in counts], dtype=np.int64)

    def simulate(self, counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Add one joint draw from `rng`: reproducible, hence insecure."""
        while True:  # the sum of m + 1 geometric numbers, accepted as in the exact route but in floats
            radius = int(rng.negative_binomial(self.m + 1, -math.expm1(-self.rate)))
            steps = np.arange(1, self.m + 1)
            if math.log(rng.random()) < np.log((2 * radius + 1) / (2 * radius + 2 * steps)).sum():
                return np.asarray(counts + rng.integers(-radius, radius + 1, counts.shape))

    def log_pmf(self, noisy: ArrayLike, true: ArrayLike) -> NDArray[np.float64]:
        """Return the log of each count's marginal noise law, K summed out.

        ``Pr(z_jk) = sum over K >= |z_jk| of (2K+1)^(m-1) exp(-rate K) / S``.

        Examples
        --------
        >>> law = LInfinity(budget=1.0, sensitivity=1, m=10)
        >>> float(np.exp(law.log_pmf(np.arange(-200, 201), 0)).sum().round(12))
        1.0
        """
        distance = np.abs(np.subtract(noisy, true, dtype=float))
        if self.m / self.rate > _TABLE_UP_TO:
            return _log_marginal_integral(distance, self.rate, self.m)
        table = _log_marginal_table(self.rate, self.m, _round_up(int(distance.max(initial=0.0)) + 1))
        return np.asarray(table[distance.astype(np.int64)])

    def agrees(self, statistic: QuadrantCounts, epsilon: float) -> bool:
        """Return whether its parameters are those for this statistic and epsilon."""
        return self == LInfinity.build(statistic, epsilon)


def _draw_radius(rate: Fraction, m: int) -> int:
    """Draw K with probability exactly proportional to (2K+1)^m exp(-rate K), by the quicker of two routes."""
    if m > _SHORT_TABLE * rate and m * rate / 2 <= _REJECTION_UP_TO:
        return _draw_radius_by_rejection(rate, m)
    return _draw_radius_by_inversion(rate, m)


def _draw_radius_by_rejection(rate: Fraction, m: int) -> int:
    """Propose the sum of m + 1 geometric draws, of weight C(K+m, m) exp(-rate K), and accept exactly.

    ``(2K+1)^m / C(K+m, m)`` is proportional to the product of ``(2K+1)/(2K+2i)`` over i = 1..m, all below 1.
    """
    while True:
        k = sum(geometric(rate) for _ in range(m + 1))
        if all(bernoulli(Fraction(2 * k + 1, 2 * k + 2 * i)) for i in range(1, m + 1)):
            return k


def _draw_radius_by_inversion(rate: Fraction, m: int, bits: int = 128) -> int:
    """Invert the cdf lazily: more random bits and digits until the uniform number lies in one cell for certain."""
    uniform = randbits(bits)
    while True:
        digits = int(bits * 0.302) + 6
        cumulative = _cumulative_weights(rate, m, digits)
        k = _certain_cell(cumulative, uniform, bits, digits)
        if k is not None:
            return k
        uniform = uniform << 64 | randbits(64)
        bits += 64


@lru_cache(maxsize=8)
def _cumulative_weights(rate: Fraction, m: int, digits: int) -> tuple[Decimal, ...]:
    """Return sums of (2j+1)^m exp(-rate j), j = 0..k, for k up to where the rest is below 10^-digits of them.

    Each is within a relative 10^-digits of the truth: every operation is rounded correctly in the last of
    `digits` + 20 places, and there are fewer than 10^8 of them.
    """
    with localcontext() as context:
        context.prec = digits + _GUARD_DIGITS
        decay = (-Decimal(rate.numerator) / Decimal(rate.denominator)).exp()
        negligible = Decimal(10) ** -(digits + 1)
        total, power, sums, j = Decimal(0), Decimal(1), [], 0
        while True:
            weight = Decimal(2 * j + 1) ** m * power
            total += weight
            sums.append(total)
            ratio = (Decimal(2 * j + 3) / Decimal(2 * j + 1)) ** m * decay  # of the next weight; it only falls
            if ratio < 1 and weight * ratio / (1 - ratio) < total * negligible:
                return tuple(sums)
            power *= decay
            j += 1


def _certain_cell(cumulative: tuple[Decimal, ...], uniform: int, bits: int, digits: int) -> int | None:
    """Return the cell that holds all of [uniform, uniform + 1) / 2^bits whatever the rounding, or None."""
    with localcontext() as context:
        context.prec = digits + _GUARD_DIGITS
        slack = Decimal(10) ** (1 - digits)
        share = cumulative[-1] / Decimal(2**bits)
        low, high = share * uniform * (1 - slack), share * (uniform + 1) * (1 + slack)
        first, last = 0, len(cumulative) - 1
        while first < last:
            middle = (first + last) // 2
            if cumulative[middle] > low:
                last = middle
            else:
                first = middle + 1
        below = cumulative[first - 1] if first else Decimal(0)
        certain = high < cumulative[first] * (1 - slack) and (first == 0 or low > below * (1 + slack))
        return first if certain else None


def _round_up(size: int) -> int:
    """Return the next power of two, so that few tables of different sizes are kept."""
    return 1 << max(size - 1, 1).bit_length()


@lru_cache(maxsize=8)
def _log_marginal_table(rate: float, m: int, size: int) -> NDArray[np.float64]:
    """Return the log marginal law at distances 0..size-1, read-only."""
    end = int(max(size, 2 * m / rate) + 80 / rate) + 2  # from there on terms fall at least like exp(-rate K / 2)
    k = np.arange(end, dtype=float)
    log_weights = (m - 1) * np.log(2 * k + 1) - rate * k
    tails = np.logaddexp.accumulate(log_weights[::-1])[::-1]
    table = np.ascontiguousarray(tails[:size] - np.logaddexp.reduce(log_weights + np.log(2 * k + 1)))
    table.setflags(write=False)
    return table


def _log_marginal_integral(distance: NDArray[np.float64], rate: float, m: int) -> NDArray[np.float64]:
    """Return the log marginal law where it is so wide that its sum is an integral (to 1e-8 of itself).

    By the midpoint rule the sum over K >= z of (2K+1)^(m-1) exp(-rate K) is a constant times the upper
    incomplete gamma function of order m at rate z, and S the same at order m + 1 and 0.
    """
    from scipy.special import gammaincc, gammaln

    x = rate * np.atleast_1d(distance)
    value = np.empty_like(x)
    near = x < m
    value[near] = np.log(gammaincc(m, x[near])) + gammaln(m)
    far = x[~near]
    series = np.ones_like(far)
    for i in range(1, m):  # gamma of integer order: a finite sum, by Horner's rule
        series = 1.0 + series * i / far
    value[~near] = -far + (m - 1) * np.log(far) + np.log(series)
    return np.asarray(value + math.log(rate / 2.0) - gammaln(m + 1)).reshape(np.shape(distance))
