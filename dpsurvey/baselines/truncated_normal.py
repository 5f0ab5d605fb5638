"""Exact draws from a standard normal kept to an interval, by rejection, however far out the interval lies."""

from __future__ import annotations

import math

import numpy as np

from dpsurvey.copula.jit import njit

_SQRT_2PI = math.sqrt(2.0 * math.pi)


@njit
def truncated_normal(rng: np.random.Generator, a: float, b: float) -> float:
    """Draw x ~ N(0, 1) given a <= x <= b.

    Inverting the normal cdf loses all digits beyond |a| = 8 and fails beyond 38. Rejection never evaluates
    the cdf, so it is as accurate at a = 1e6 as at 0, and for the narrow intervals between neighbouring ranks
    a uniform proposal is accepted nearly always.

    Parameters
    ----------
    rng : numpy.random.Generator
    a, b : float
        Ends of the interval, possibly infinite. An empty or single-point interval returns `a`.

    Returns
    -------
    float

    Notes
    -----
    The proposals are those of Robert (1995), Simulation of truncated normal variables, Statistics and
    Computing 5, 121-125: uniform where the density hardly falls, else an exponential of rate
    (a + sqrt(a^2 + 4)) / 2 shifted to `a`, his equation for the optimal rate.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> bool(40.0 <= truncated_normal(rng, 40.0, 40.5) <= 40.5)
    True
    """
    if not a < b:
        return a
    if a >= 0.0:
        return _right_tail(rng, a, b)
    if b <= 0.0:
        return -_right_tail(rng, -b, -a)
    if b - a > _SQRT_2PI:  # the interval holds 0 and is wide: plain draws are accepted at least half the time
        while True:
            x = rng.standard_normal()
            if a <= x <= b:
                return x
    while True:
        x = a + (b - a) * rng.random()
        if _keep(rng, 0.5 * x * x):
            return x


@njit
def _right_tail(rng: np.random.Generator, a: float, b: float) -> float:
    """Draw x ~ N(0, 1) given 0 <= a <= x <= b."""
    width = b - a
    if width * (a + 0.5 * width) < 1.0:  # the density falls by less than a factor e: a uniform proposal
        while True:
            step = width * rng.random()
            # (x^2 - a^2) / 2 at x = a + step, without the difference of squares
            if _keep(rng, step * (a + 0.5 * step)):
                return a + step
    rate = 0.5 * (a + math.sqrt(a * a + 4.0))
    while True:
        x = a + rng.standard_exponential() / rate
        if x <= b and _keep(rng, 0.5 * (x - rate) * (x - rate)):
            return x


@njit
def _keep(rng: np.random.Generator, energy: float) -> bool:
    """Return True with probability exp(-energy), mostly without computing it: exp(-e) >= 1 - e."""
    u = rng.random()
    return u <= 1.0 - energy or u <= math.exp(-energy)
