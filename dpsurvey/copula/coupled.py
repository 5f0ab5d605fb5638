"""The Gibbs kernel for coupled pairs and for priors LKJ(eta): draws of the product kernel, accepted or not.

A correlation is proposed from its own likelihood cut to the interval in which the matrix stays positive definite,
as in :mod:`dpsurvey.copula.gibbs`, and accepted with the ratio of what is left out there: the coupling density and
``det(R)^(eta-1)``, which is quadratic in the one correlation (Metropolis within Gibbs; exact, nothing to tune).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.coupling import Coupling, log_gain, residual_at
from dpsurvey.copula.inversion import InversionTable, draw_again, draw_whole, pair_position
from dpsurvey.copula.jit import njit
from dpsurvey.copula.positive import factorise

_MARGIN = 1e-9  # of a feasible interval, kept off both ends

Array = NDArray[np.float64]


@njit
def advance_coupled(
    table: InversionTable, coupling: Coupling, R: Array, sweeps: int, rng: np.random.Generator
) -> float:
    """Run `sweeps` sweeps, changing R in place; return the share of proposals that were accepted.

    Parameters
    ----------
    table : InversionTable
        Of the p(p-1)/2 pairs.
    coupling : Coupling
    R : numpy.ndarray, shape (p, p)
        Positive definite; so it is left.
    sweeps : int
        Each visits every pair twice.
    rng : numpy.random.Generator
    """
    p, accepted = R.shape[0], 0
    z = residuals_of(table, coupling, R)
    others, everyone, whole = np.empty(p - 1, dtype=np.int64), np.arange(p), np.empty((p, p))
    for _ in range(sweeps):
        for j in range(p):
            before, z_before = R[j].copy(), z.copy()
            accepted += _visit_row(table, coupling, R, z, j, others, rng)
            if not factorise(
                R, everyone, whole
            ):  # rounding at the edge of the set: as if all had been rejected
                R[j] = before
                R[:, j] = before
                z[:] = z_before
    return float(accepted / (sweeps * p * (p - 1)))


@njit
def fill_coupled(
    table: InversionTable, coupling: Coupling, R: Array, kept: Array, sweeps: int, rng: np.random.Generator
) -> float:
    """Fill `kept`, shape (draws, p, p), with R after each `sweeps` sweeps; return the share accepted."""
    accepted = 0.0
    for draw in range(kept.shape[0]):
        accepted += advance_coupled(table, coupling, R, sweeps, rng)
        kept[draw] = R
    return float(accepted / kept.shape[0])


@njit
def residuals_of(table: InversionTable, coupling: Coupling, R: Array) -> Array:
    """Return the standardised residuals of all counts at R; none where nothing is coupled."""
    p = R.shape[0]
    z = np.zeros(coupling.precision.shape[0])
    if z.shape[0] > 0:
        for j in range(p):
            for k in range(j + 1, p):
                pair = pair_position(j, k, p)
                z[pair] = residual_at(table, coupling, pair, R[j, k])
    return z


@njit
def _visit_row(
    table: InversionTable,
    coupling: Coupling,
    R: Array,
    z: Array,
    j: int,
    others: NDArray[np.int64],
    rng: np.random.Generator,
) -> int:
    """Visit all correlations of variable j, one after the other; return how many proposals were accepted.

    With A the matrix of the other variables and x the row of j, R is positive definite while x' A^-1 x < 1.
    """
    p, accepted = R.shape[0], 0
    for a in range(p - 1):
        others[a] = a if a < j else a + 1
    within = np.empty((p - 1, p - 1))
    row = np.empty(p - 1)
    for a in range(p - 1):
        row[a] = R[j, others[a]]
        for b in range(p - 1):
            within[a, b] = R[others[a], others[b]]
    inverse = np.linalg.inv(within)
    product = np.dot(inverse, row)
    for a in range(p - 1):
        k, scale = others[a], inverse[a, a]
        room = 1.0 - np.dot(row, product)
        center = row[a] - product[a] / scale
        half = math.sqrt(max(product[a] * product[a] + scale * room, 0.0)) / scale
        low, high = max(center - half, -1.0), min(center + half, 1.0)
        edge = _MARGIN * (high - low)
        low, high = low + edge, high - edge
        if not low < high:
            continue
        pair = pair_position(min(j, k), max(j, k), p)
        value = draw_whole(table, pair, rng.random())
        if not low <= value <= high:
            value = draw_again(table, pair, low, high, rng)
        log_ratio, residual = 0.0, 0.0
        if z.shape[0] > 0:
            residual = residual_at(table, coupling, pair, value)
            log_ratio = log_gain(coupling, z, pair, residual)
        if coupling.shape != 1.0:
            new, old = half * half - (value - center) ** 2, half * half - (row[a] - center) ** 2
            if not (new > 0.0 and old > 0.0):
                continue
            log_ratio += (coupling.shape - 1.0) * math.log(new / old)
        if log_ratio < 0.0 and rng.random() >= math.exp(log_ratio):
            continue
        accepted += 1
        if z.shape[0] > 0:
            z[pair] = residual
        change = value - row[a]
        row[a] = value
        for b in range(p - 1):
            product[b] += change * inverse[a, b]
        R[j, k] = value
        R[k, j] = value
    return accepted
