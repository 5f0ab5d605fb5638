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
from dpsurvey.copula.positive import factorise, feasible_margin, shrink


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
    inverse, factor, whole = np.empty((p - 1, p - 1)), np.empty((p - 1, p - 1)), np.empty((p, p))
    others, row, product = np.empty(p - 1, dtype=np.int64), np.empty(p - 1), np.empty(p - 1)
    everyone = np.arange(p)
    for _ in range(sweeps):
        for j in range(p):
            _draw_row(table, R, j, others, row, product, inverse, factor, rng)
        if joint:
            move_groups(table, R, 2 * p, rng)
    while not factorise(R, everyone, whole):
        shrink(R)


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
    others: NDArray[np.int64],
    row: NDArray[np.float64],
    product: NDArray[np.float64],
    inverse: NDArray[np.float64],
    factor: NDArray[np.float64],
    rng: np.random.Generator,
) -> None:
    """Draw all correlations of variable j, one after the other; the arrays after j are work space.

    With A the matrix of the other variables and x the row of j, R is positive definite while x' A^-1 x < 1; A
    stays fixed, so one inverse serves the row and each draw costs O(p).
    """
    p = R.shape[0]
    margin = _prepare_row(R, j, others, row, product, inverse, factor)
    for a in range(p - 1):
        k = others[a]
        room = max(1.0 - np.dot(row, product), 0.0)
        root = math.sqrt(product[a] * product[a] + inverse[a, a] * room)
        low = max(row[a] - (root + product[a]) / inverse[a, a], -1.0)
        high = min(row[a] + (root - product[a]) / inverse[a, a], 1.0)
        edge = margin * (high - low)
        pair = pair_position(min(j, k), max(j, k), p)
        value = draw_between(table, pair, low + edge, high - edge, rng.random())
        change = value - row[a]
        row[a] = value
        for b in range(p - 1):
            product[b] += change * inverse[a, b]
        R[j, k] = value
        R[k, j] = value


@njit
def _prepare_row(
    R: NDArray[np.float64],
    j: int,
    others: NDArray[np.int64],
    row: NDArray[np.float64],
    product: NDArray[np.float64],
    inverse: NDArray[np.float64],
    factor: NDArray[np.float64],
) -> float:
    """Write the inverse of the others, the row of j and their product; return the share kept off the ends.

    Rounding can leave R on the wrong side of singular; it then shrinks towards the identity until it is not.
    """
    p = R.shape[0]
    for a in range(p - 1):
        others[a] = a if a < j else a + 1
    while True:
        if factorise(R, others, factor):
            _invert(factor, inverse)
            for a in range(p - 1):
                row[a] = R[j, others[a]]
            for a in range(p - 1):
                product[a] = np.dot(inverse[a], row)
            if np.dot(row, product) < 1.0:
                break
        shrink(R)
    largest = 0.0
    for a in range(p - 1):
        largest = max(largest, inverse[a, a])
    return feasible_margin(largest)


@njit
def _invert(factor: NDArray[np.float64], inverse: NDArray[np.float64]) -> None:
    """Write the inverse of L L', with L the lower triangle of `factor`."""
    size = factor.shape[0]
    for column in range(size):  # solve L L' x = e_column
        for a in range(size):
            total = 1.0 if a == column else 0.0
            for b in range(column, a):
                total -= factor[a, b] * inverse[b, column]
            inverse[a, column] = total / factor[a, a] if a >= column else 0.0
        for a in range(size - 1, -1, -1):
            total = inverse[a, column]
            for b in range(a + 1, size):
                total -= factor[b, a] * inverse[b, column]
            inverse[a, column] = total / factor[a, a]
