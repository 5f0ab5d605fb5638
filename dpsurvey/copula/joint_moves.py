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
    p = R.shape[0]
    order, size = np.arange(p), 1 + int(rng.random() * (p - 1))
    for i in range(p - 1, 0, -1):
        j = int(rng.random() * (i + 1))
        order[i], order[j] = order[j], order[i]
    left, right, whole = np.zeros((p, p)), np.zeros((p, p)), np.zeros((p, p))
    if not (factorise(R, order[:size], left) and factorise(R, order[size:], right)):
        return  # rounding at the edge of the set, which the next draw of a row mends
    direction, before = np.empty(p), np.empty((p, p))
    for _ in range(moves):
        if not factorise(R, order, whole):
            return
        a, b = int(rng.random() * size), int(rng.random() * (p - size))
        for i in range(p):
            direction[i] = left[i, a] if i < size else right[i - size, b]
        _slide(table, R, order, size, direction, whole, before, rng)


@njit
def _slide(
    table: InversionTable,
    R: NDArray[np.float64],
    order: NDArray[np.int64],
    size: int,
    direction: NDArray[np.float64],
    whole: NDArray[np.float64],
    before: NDArray[np.float64],
    rng: np.random.Generator,
) -> None:
    """Move the block between the first `size` variables of the order and the others along u v'.

    The step s comes from its full conditional; `direction` holds u, then v, and `whole` the factor of R.
    """
    low, high = _feasible(whole, direction, size)
    level = _log_block(table, R, order, size) + math.log(1.0 - rng.random())
    _set_block(before, R, order, size, direction, 0.0)
    for _ in range(_TRIES):
        s = low + (high - low) * rng.random()
        _set_block(R, before, order, size, direction, s)
        if _log_block(table, R, order, size) >= level and factorise(R, order, whole):
            return
        if s < 0.0:
            low = s
        else:
            high = s
    _set_block(R, before, order, size, direction, 0.0)


@njit
def _set_block(
    target: NDArray[np.float64],
    source: NDArray[np.float64],
    order: NDArray[np.int64],
    size: int,
    direction: NDArray[np.float64],
    s: float,
) -> None:
    """Write the block of `source`, moved by s u v', and its mirror image into `target`."""
    for i in range(size):
        for k in range(size, order.shape[0]):
            value = source[order[i], order[k]] + s * direction[i] * direction[k]
            target[order[i], order[k]] = value
            target[order[k], order[i]] = value


@njit
def _feasible(whole: NDArray[np.float64], direction: NDArray[np.float64], size: int) -> tuple[float, float]:
    """Return the interval of s in which R, with factor `whole`, stays positive definite.

    With x = L^-1 (u, 0) and y = L^-1 (0, v), ``det(R + s (u v' + v u')) / det(R)`` is
    ``(1 + s x'y)^2 - s^2 x'x y'y``, positive between its roots nearest to 0.
    """
    p = direction.shape[0]
    x, y = np.zeros(p), np.zeros(p)
    across, x_square, y_square = 0.0, 0.0, 0.0
    for i in range(p):
        x[i] = direction[i] if i < size else 0.0
        y[i] = direction[i] if i >= size else 0.0
        for k in range(i):
            x[i] -= whole[i, k] * x[k]
            y[i] -= whole[i, k] * y[k]
        x[i] /= whole[i, i]
        y[i] /= whole[i, i]
        across += x[i] * y[i]
        x_square += x[i] * x[i]
        y_square += y[i] * y[i]
    spread = math.sqrt(x_square * y_square)
    keep = 1.0 - feasible_margin(1.0 / spread)
    return -keep / (spread + across), keep / (spread - across)


@njit
def _log_block(table: InversionTable, R: NDArray[np.float64], order: NDArray[np.int64], size: int) -> float:
    """Return the log-likelihood of the correlations between the first `size` variables and the others."""
    p, total = R.shape[0], 0.0
    for i in range(size):
        for k in range(size, p):
            one, other = min(order[i], order[k]), max(order[i], order[k])
            total += log_density(table, pair_position(one, other, p), R[one, other])
    return total
