"""The Gibbs kernel: a correlation matrix under LKJ(1) times a product of one-pair likelihoods.

The LKJ(1) prior is uniform on the positive definite set, so the full conditional of one R_jk is its own
likelihood cut to the interval in which the matrix stays positive definite, and is drawn by inversion: exact,
without tuning, rejections or gradients.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.inversion import InversionTable, draw_between, pair_position
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
    order, factor, upper = np.arange(p), np.zeros((p, p)), np.zeros((p, p))
    for _ in range(sweeps):
        for j in range(p):
            _draw_row(table, R, j, order, factor, upper, rng)
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
def _draw_row(
    table: InversionTable,
    R: NDArray[np.float64],
    j: int,
    order: NDArray[np.int64],
    factor: NDArray[np.float64],
    upper: NDArray[np.float64],
    rng: np.random.Generator,
) -> None:
    """Draw all correlations of variable j, one after the other; `order`, `factor`, `upper` are work space.

    With j last in the order its row of the Cholesky factor is (z, sqrt(1 - z'z)), where row j of R is L z for
    the factor L of the others. For k, the last of these, R_jk is feasible within l sqrt(1 - z'z) of l'z, sums
    over all others but k, with l the row of k. Then the others turn by one place, so that each comes last; a
    factor holds the last digits of a nearly singular matrix, which its inverse loses.
    """
    size = R.shape[0] - 1
    for a in range(size + 1):
        order[a] = a if a < j else a + 1
    order[size] = j
    pull_inside(R, order, factor)
    for a in range(size + 1):
        for b in range(a + 1):
            upper[b, a] = factor[a, b]
    for _ in range(size):
        k, pivot = order[size - 1], upper[size - 1, size - 1]
        centre, room = 0.0, 1.0
        for b in range(size - 1):
            centre += upper[b, size - 1] * upper[b, size]
            room -= upper[b, size] * upper[b, size]
        half = pivot * math.sqrt(max(room, 0.0))
        half *= 1.0 - feasible_margin(min(room, pivot * pivot))
        low, high = max(centre - half, -1.0), min(centre + half, 1.0)
        R[j, k] = draw_between(table, pair_position(min(j, k), max(j, k), size + 1), low, high, rng.random())
        R[k, j] = R[j, k]
        upper[size - 1, size] = (R[j, k] - centre) / pivot
        _turn(upper, order, size)


@njit
def _turn(upper: NDArray[np.float64], order: NDArray[np.int64], size: int) -> None:
    """Move the last of the first `size` variables to the front: of `order` and of the transposed factor.

    Its column becomes the first; Givens rotations of neighbouring rows make the rest upper triangular again,
    and turn the column after the first `size`, that of z, along.
    """
    last = order[size - 1]
    moved = upper[:size, size - 1].copy()
    for column in range(size - 1, 0, -1):
        order[column] = order[column - 1]
    order[0] = last
    for row in range(size):
        for column in range(size - 1, row, -1):
            upper[row, column] = upper[row, column - 1]
        upper[row, row] = 0.0
    for row in range(size - 2, -1, -1):
        length = math.sqrt(moved[row] * moved[row] + moved[row + 1] * moved[row + 1])
        cosine, sine = moved[row] / length, moved[row + 1] / length
        moved[row] = length
        for column in range(row + 1, size + 1):
            above, below = upper[row, column], upper[row + 1, column]
            upper[row, column] = cosine * above + sine * below
            upper[row + 1, column] = sine * above - cosine * below
    upper[0, 0] = moved[0]
