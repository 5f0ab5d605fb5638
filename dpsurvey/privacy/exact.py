"""Exact integer sampling from the operating system's randomness; no floating point touches a draw.

Bernoulli(exp(-x)) follows Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential
privacy", algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable
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
    while x > 1:
        if not _bernoulli_exp_below_one(Fraction(1)):
            return False
        x -= 1
    return _bernoulli_exp_below_one(x)


def _bernoulli_exp_below_one(x: Fraction) -> bool:
    k = 1
    while bernoulli(x / k):
        k += 1
    return k % 2 == 1


def truncated_two_sided_geometric(
    center: int, lower: int, upper: int, rate: Fraction, unbounded: Callable[[], int]
) -> int:
    """Draw s in lower..upper with probability exactly proportional to exp(-rate |s - center|).

    Rejection from one of two exact proposals, chosen by public numbers alone: uniform on the range where the
    law is nearly flat over it, else the unbounded two-sided geometric around the center.

    Parameters
    ----------
    center, lower, upper : int
        ``lower <= center <= upper``.
    rate : Fraction
        Above 0.
    unbounded : callable
        Draws z on all integers with probability proportional to exp(-rate |z|).
    """
    if rate * (upper - lower) < 1:
        while True:
            s = lower + randbelow(upper - lower + 1)
            if bernoulli_exp(rate * abs(s - center)):
                return s
    while True:
        s = center + unbounded()
        if lower <= s <= upper:
            return s
