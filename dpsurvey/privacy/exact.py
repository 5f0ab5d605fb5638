"""Exact integer sampling from the operating system's randomness; no floating point touches a draw.

Bernoulli(exp(-x)) follows Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential
privacy", algorithm 1.
"""

from __future__ import annotations

from fractions import Fraction
from secrets import randbelow


def bernoulli(probability: Fraction) -> bool:
    """Return True with exactly the given rational probability.

    Examples
    --------
    >>> bernoulli(Fraction(1)), bernoulli(Fraction(0))
    (True, False)
    """
    return randbelow(probability.denominator) < probability.numerator


def bernoulli_exp(x: Fraction) -> bool:
    """Return True with probability exactly exp(-x), x >= 0 rational.

    Examples
    --------
    >>> bernoulli_exp(Fraction(0))
    True
    """
    whole, rest = divmod(x.numerator, x.denominator)
    return all(_bernoulli_exp(1, 1) for _ in range(whole)) and _bernoulli_exp(rest, x.denominator)


def _bernoulli_exp(numerator: int, denominator: int) -> bool:
    """Return True with probability exactly exp(-numerator / denominator), for a ratio of at most 1."""
    k = 1
    while randbelow(denominator * k) < numerator:
        k += 1
    return k % 2 == 1


def geometric(rate: Fraction) -> int:
    """Draw k = 0, 1, 2, ... with probability exactly (1 - exp(-rate)) exp(-rate k) (ibid., algorithm 2).

    Parameters
    ----------
    rate : Fraction
        Above 0.
    """
    step, scale = rate.numerator, rate.denominator
    while True:
        fine = randbelow(scale)
        if _bernoulli_exp(fine, scale):
            break
    coarse = 0
    while _bernoulli_exp(1, 1):
        coarse += 1
    return (fine + scale * coarse) // step


def two_sided_geometric(rate: Fraction) -> int:
    """Draw any integer z with probability exactly proportional to exp(-rate |z|), rate > 0 (ibid., algorithm 2).

    Examples
    --------
    >>> two_sided_geometric(Fraction(10**6))  # any other than 0 has a chance of exp(-10**6)
    0
    """
    while True:
        size, negative = geometric(rate), bool(randbelow(2))
        if size or not negative:  # 0 has one sign only
            return -size if negative else size


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
            s = lower + randbelow(upper - lower + 1)
            if bernoulli_exp(rate * abs(s - center)):
                return s
    while True:
        s = center + two_sided_geometric(rate)
        if lower <= s <= upper:
            return s
