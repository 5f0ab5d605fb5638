"""Joint moves of many correlations, for data in which some variables are nearly copies of each other.

Where x and y are near copies, the correlations of x and of y with a third variable can only move together, and
drawing one at a time creeps. Here the variables are split at random into two groups; in coordinates that are
uncorrelated within each group the positive definite set is round, so one coordinate of the block between the
groups is moved far, and with it all correlations of the copies. The move is slice sampling (Neal, 2003)
on the whole feasible interval: it leaves the posterior invariant and has nothing to tune.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.inversion import InversionTable, log_density, pair_position
from dpsurvey.copula.jit import njit
from dpsurvey.copula.positive import factorise, feasible_margin

_TRIES = 200  # the interval shrinks by a quarter or more on average: never reached


@njit
def move_groups(table: InversionTable, R: NDArray[np.float64], moves: int, rng: np.random.Generator) -> None:
    """Split the variables into two groups at random and make `moves` moves of the block between them.

    Parameters
    ----------
    table : InversionTable
    R : numpy.ndarray, shape (p, p)
        Positive definite; changed in place.
    moves : int
    rng : numpy.random.Generator
    """
    first, second = _split(R.shape[0], rng)
    left, right = np.zeros((len(first), len(first))), np.zeros((len(second), len(second)))
    if not (factorise(R, first, left) and factorise(R, second, right)):
        return  # rounding at the edge of the set, which the next draw of a row mends
    for _ in range(moves):
        a, b = int(rng.random() * len(first)), int(rng.random() * len(second))
        _slide(table, R, first, second, left[:, a], right[:, b], a, b, rng)


@njit
def _split(p: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return two groups that share out p variables at random, neither empty, each in random order."""
    order = np.arange(p)
    for i in range(p - 1, 0, -1):
        j = int(rng.random() * (i + 1))
        order[i], order[j] = order[j], order[i]
    size = 1 + int(rng.random() * (p - 1))
    return order[:size].copy(), order[size:].copy()


@njit
def _slide(
    table: InversionTable,
    R: NDArray[np.float64],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    u: NDArray[np.float64],
    v: NDArray[np.float64],
    a: int,
    b: int,
    rng: np.random.Generator,
) -> None:
    """Move the block R[first, second] by s u v' with s from its full conditional; u, v start at a and b."""
    whole = np.empty(R.shape)
    members = np.concatenate((first, second))
    if not factorise(R, members, whole):
        return
    low, high = _feasible(whole, u, v)
    level = _log_block(table, R, first, second, a, b) + math.log(1.0 - rng.random())
    before = R.copy()
    for _ in range(_TRIES):
        s = low + (high - low) * rng.random()
        for i in range(a, len(first)):
            for k in range(b, len(second)):
                value = before[first[i], second[k]] + s * u[i] * v[k]
                R[first[i], second[k]] = value
                R[second[k], first[i]] = value
        if _log_block(table, R, first, second, a, b) >= level and factorise(R, members, whole):
            return
        if s < 0.0:
            low = s
        else:
            high = s
    R[:] = before


@njit
def _feasible(
    whole: NDArray[np.float64], u: NDArray[np.float64], v: NDArray[np.float64]
) -> tuple[float, float]:
    """Return the interval of s in which R, with factor `whole`, stays positive definite.

    With x = L^-1 (u, 0) and y = L^-1 (0, v), ``det(R + s (u v' + v u')) / det(R)`` is
    ``(1 + s x'y)^2 - s^2 x'x y'y``, positive between its roots nearest to 0.
    """
    p, size = whole.shape[0], len(u)
    x, y = np.zeros(p), np.zeros(p)
    for i in range(p):
        x[i] = u[i] if i < size else 0.0
        y[i] = v[i - size] if i >= size else 0.0
        for k in range(i):
            x[i] -= whole[i, k] * x[k]
            y[i] -= whole[i, k] * y[k]
        x[i] /= whole[i, i]
        y[i] /= whole[i, i]
    across, spread = np.dot(x, y), math.sqrt(np.dot(x, x) * np.dot(y, y))
    keep = 1.0 - feasible_margin(1.0 / spread)
    return -keep / (spread + across), keep / (spread - across)


@njit
def _log_block(
    table: InversionTable,
    R: NDArray[np.float64],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    a: int,
    b: int,
) -> float:
    """Return the log-likelihood of the correlations between first[a:] and second[b:]."""
    p, total = R.shape[0], 0.0
    for i in range(a, len(first)):
        for k in range(b, len(second)):
            one, other = min(first[i], second[k]), max(first[i], second[k])
            total += log_density(table, pair_position(one, other, p), R[one, other])
    return total
