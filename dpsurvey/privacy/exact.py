"""Exact integer sampling from the operating system's randomness; no floating point touches a draw.

Every draw takes its randomness from a `randbelow(bound)`, by default the operating system's. Simulations pass a
seeded one (:func:`seeded`), so that they draw from the same law through the same code.

Bernoulli(exp(-x)) follows Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential
privacy", algorithm 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from secrets import randbelow as secure_randbelow

import numpy as np

RandBelow = Callable[[int], int]


def seeded(rng: np.random.Generator) -> RandBelow:
    """Return a `randbelow` whose numbers come from `rng`: reproducible, hence for simulations only.

    Examples
    --------
    >>> randbelow = seeded(np.random.default_rng(1))
    >>> all(0 <= randbelow(10**30) < 10**30 for _ in range(100))
    True
    """

    def randbelow(bound: int) -> int:
        bits = (bound - 1).bit_length()
        while True:
            value = int.from_bytes(rng.bytes(-(-bits // 8)), "little") >> (-bits % 8)
            if value < bound:
                return value

    return randbelow


def bernoulli(probability: Fraction, randbelow: RandBelow = secure_randbelow) -> bool:
    """Return True with exactly the given rational probability.

    Examples
    --------
    >>> bernoulli(Fraction(1)), bernoulli(Fraction(0))
    (True, False)
    """
    return randbelow(probability.denominator) < probability.numerator


def bernoulli_exp(x: Fraction, randbelow: RandBelow = secure_randbelow) -> bool:
    """Return True with probability exactly exp(-x), x >= 0 rational.

    Examples
    --------
    >>> bernoulli_exp(Fraction(0))
    True
    """
    whole, rest = divmod(x.numerator, x.denominator)
    return all(_bernoulli_exp(1, 1, randbelow) for _ in range(whole)) and _bernoulli_exp(
        rest, x.denominator, randbelow
    )


def _bernoulli_exp(numerator: int, denominator: int, randbelow: RandBelow) -> bool:
    """Return True with probability exactly exp(-numerator / denominator), for a ratio of at most 1."""
    k = 1
    while randbelow(denominator * k) < numerator:
        k += 1
    return k % 2 == 1


def geometric(rate: Fraction, randbelow: RandBelow = secure_randbelow) -> int:
    """Draw k = 0, 1, 2, ... with probability exactly (1 - exp(-rate)) exp(-rate k) (ibid., algorithm 2).

    Parameters
    ----------
    rate : Fraction
        Above 0.
    """
    step, scale = rate.numerator, rate.denominator
    while True:
        fine = randbelow(scale)
        if _bernoulli_exp(fine, scale, randbelow):
            break
    coarse = 0
    while _bernoulli_exp(1, 1, randbelow):
        coarse += 1
    return (fine + scale * coarse) // step


def two_sided_geometric(rate: Fraction, randbelow: RandBelow = secure_randbelow) -> int:
    """Draw any integer z with probability exactly proportional to exp(-rate |z|), rate > 0 (ibid., algorithm 2).

    Examples
    --------
    >>> two_sided_geometric(Fraction(10**6))  # any other than 0 has a chance of exp(-10**6)
    0
    """
    while True:
        size, negative = geometric(rate, randbelow), bool(randbelow(2))
        if size or not negative:  # 0 has one sign only
            return -size if negative else size


def discrete_gaussian(variance: Fraction, randbelow: RandBelow = secure_randbelow) -> int:
    """Draw z with probability exactly proportional to exp(-z^2 / (2 variance)) on all integers (ibid., algorithm 3).

    Parameters
    ----------
    variance : Fraction
        Above 0: the square of the scale.
    """
    step = math.isqrt(variance.numerator // variance.denominator) + 1
    while True:
        z = two_sided_geometric(Fraction(1, step), randbelow)
        if bernoulli_exp((abs(z) - variance / step) ** 2 / (2 * variance), randbelow):
            return z


def truncated_two_sided_geometric(center: int, lower: int, upper: int, rate: Fraction) -> int:
    """Draw s in lower..upper with probability exactly proportional to exp(-rate |s - center|).

    Rejection from one of two exact proposals, chosen by public numbers alone: uniform on the range where the
    law is nearly flat over it, else the unbounded two-sided geometric around the center.

    Parameters
    ----------
    center, lower, upper : int
        ``lower <= center <= upper``.
    rate : Fraction
        Above 0.

    Examples
    --------
    >>> truncated_two_sided_geometric(0, 0, 9, Fraction(1, 1000)) in range(10)
    True
    """
    if rate * (upper - lower) < 1:
        while True:
            s = lower + secure_randbelow(upper - lower + 1)
            if bernoulli_exp(rate * abs(s - center)):
                return s
    while True:
        s = center + two_sided_geometric(rate)
        if lower <= s <= upper:
            return s
