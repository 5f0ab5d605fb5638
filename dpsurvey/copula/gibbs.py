"""The Gibbs kernel: a correlation matrix under LKJ(1) times a product of one-pair likelihoods.

The LKJ(1) prior is uniform on the positive definite set, so the full conditional of one R_jk is its own
likelihood cut to the interval in which the matrix stays positive definite, and is drawn by inversion: exact,
without tuning or gradients, and every draw is kept.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.inversion import InversionTable, draw_again, draw_whole, pair_position
from dpsurvey.copula.jit import njit
from dpsurvey.copula.joint_moves import move_groups
from dpsurvey.copula.positive import feasible_margin, pull_inside


@njit
def advance(
    table: InversionTable, R: NDArray[np.float64], sweeps: int, joint: bool, rng: np.random.Generator
) -> None:
    """Run `sweeps` sweeps, changing R in place.

    Parameters
    ----------
    table : InversionTable
        Of the p(p-1)/2 pairs.
    R : numpy.ndarray, shape (p, p)
        Positive definite; so it is left.
    sweeps : int
        Each draws every pair twice.
    joint : bool
        Whether each sweep also makes 2p joint moves (:mod:`dpsurvey.copula.joint_moves`).
    rng : numpy.random.Generator
    """
    p = R.shape[0]
    order, factor, columns = np.arange(p), np.zeros((p, p)), np.zeros((p, p))
    for _ in range(sweeps):
        for j in range(p):
            z = _row_last(R, j, order, factor, columns)
            for a in range(p - 1):
                k = order[a]
                low, high = _feasible(z, columns[a], a, R[j, k])
                pair = pair_position(min(j, k), max(j, k), p)
                value = draw_whole(table, pair, rng.random())
                if not low <= value <= high:
                    value = draw_again(table, pair, low, high, rng)
                change = value - R[j, k]
                for b in range(a, p - 1):
                    z[b] += change * columns[a, b]
                R[j, k] = value
                R[k, j] = value
        if joint:
            move_groups(table, R, 2 * p, rng)
    pull_inside(R, order, factor)


@njit
def fill(
    table: InversionTable,
    R: NDArray[np.float64],
    kept: NDArray[np.float64],
    sweeps: int,
    joint: bool,
    rng: np.random.Generator,
) -> None:
    """Fill `kept`, shape (draws, p, p), with R after each `sweeps` sweeps."""
    for draw in range(kept.shape[0]):
        advance(table, R, sweeps, joint, rng)
        kept[draw] = R


@njit
def _row_last(
    R: NDArray[np.float64],
    j: int,
    order: NDArray[np.int64],
    factor: NDArray[np.float64],
    columns: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Put variable j last in the order, write factor and columns of L^-1, and return z.

    The last row of R's Cholesky factor is (z, sqrt(1 - z'z)), where row j of R is L z for the factor L of the
    others. So R stays positive definite while z stays in the unit ball, and R_jk moves z along column k of L^-1,
    which is written as row k of `columns`, from the diagonal on. The factor, made afresh for each row, holds the
    last digits of a nearly singular matrix, which an inverse of R would lose.
    """
    size = R.shape[0] - 1
    for a in range(size):
        order[a] = a if a < j else a + 1
    order[size] = j
    pull_inside(R, order, factor)
    for a in range(size):
        columns[a, a] = 1.0 / factor[a, a]
        for b in range(a + 1, size):
            total = 0.0
            for c in range(a, b):
                total -= factor[b, c] * columns[a, c]
            columns[a, b] = total / factor[b, b]
    return factor[size, :size]


@njit
def _feasible(
    z: NDArray[np.float64], column: NDArray[np.float64], first: int, r: float
) -> tuple[float, float]:
    """Return the interval in which a correlation, now r, keeps z in the unit ball.

    It moves z along `column`, which is 0 before `first`.
    """
    square, along, total = 0.0, 0.0, 0.0
    for b in range(first):
        total += z[b] * z[b]
    for b in range(first, z.shape[0]):
        total += z[b] * z[b]
        along += z[b] * column[b]
        square += column[b] * column[b]
    room = 1.0 - total + along * along / square  # squared half of the chord through z along the column
    half = math.sqrt(max(room, 0.0) / square)
    half *= 1.0 - feasible_margin(min(room, 1.0 / square))
    centre = r - along / square
    return max(centre - half, -1.0), min(centre + half, 1.0)
