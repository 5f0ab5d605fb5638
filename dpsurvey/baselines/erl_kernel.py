"""Compiled Gibbs sampler for the extended rank likelihood of a Gaussian copula (Hoff 2007)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpsurvey.baselines.dense import cholesky, dot
from dpsurvey.baselines.group_moves import slide_column
from dpsurvey.baselines.truncated_normal import truncated_normal
from dpsurvey.copula.jit import njit

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@njit
def gibbs(
    rng: np.random.Generator,
    Z: Array,
    S: Array,
    omega: Array,
    order: Index,
    starts: Index,
    first: Index,
    observed: Index,
    ranked: NDArray[np.bool_],
    active: Index,
    prior: Array,
    df: float,
    odens: int,
    out: Array,
    scores: Array,
    shape: Array,
) -> None:
    """Run ``len(out) * odens`` iterations, storing the correlation matrix of every `odens`-th.

    One iteration visits the columns that have something to draw in random order (Hoff 2007, section 3), then
    draws S given the latent values. `Z`, `S` and `omega` change in place, so that calls continue each other.

    Parameters
    ----------
    rng : numpy.random.Generator
    Z : ndarray, shape (p, n)
        Latent normals, one row a variable.
    S, omega : ndarray, shape (p, p)
        Latent covariance and its inverse.
    order : ndarray of int64, shape (p, n)
        Rows with an observed cell in ascending order of the column, then those where it is missing.
    starts, first : ndarray of int64
        Levels of column j begin at positions ``starts[first[j]:first[j + 1]]`` of ``order[j]``, end included.
    observed : ndarray of int64, shape (p,)
        Number of observed cells.
    ranked : ndarray of bool, shape (p,)
        Columns whose observed latents are drawn; the others are plug-in.
    active : ndarray of int64
        Columns with anything to draw: ranked, or with missing cells.
    prior, df : ndarray (p, p), float
        n0 S0 and n0 + n.
    odens : int
        Iterations for each stored matrix.
    out : ndarray, shape (draws, p, p)
        Receives correlation matrices.
    scores : ndarray, shape (2, p, n)
        Two directions in which the shape of a ranked column's latents is watched.
    shape : ndarray, shape (draws, p, 2)
        Receives the standardised latents' components along `scores`, for mixing diagnostics.
    """
    p, n = Z.shape
    mean = np.empty(n)
    cross = np.empty((p, p))
    scale, factor, work = np.empty((p, p)), np.empty((p, p)), np.empty((p, p))
    visit = active.copy()
    for j in range(p):
        for k in range(j + 1):
            cross[j, k] = cross[k, j] = dot(Z[j], Z[k])
    for draw in range(out.shape[0]):
        for _ in range(odens):
            visit[:] = active  # the order depends on the generator alone, not on where this call began
            _shuffle(rng, visit)
            for j in visit:
                sd = 1.0 / math.sqrt(omega[j, j])
                if ranked[j]:
                    _conditional_mean(Z, omega, j, mean)
                    _sweep(rng, Z[j], mean, sd, order[j], starts[first[j] : first[j + 1]])
                    rows, levels = order[j, : observed[j]], first[j + 1] - first[j] - 1
                    slide_column(rng, Z[j], mean, sd, math.sqrt(S[j, j]), rows, levels)
                _draw_missing(rng, Z, omega, j, sd, order[j, observed[j] :])
            for j in visit:
                for k in range(p):
                    cross[j, k] = cross[k, j] = dot(Z[j], Z[k])
            for j in range(p):
                for k in range(p):
                    scale[j, k] = prior[j, k] + cross[j, k]
            cholesky(scale, factor)
            _inverse_wishart(rng, factor, df, work, S, omega)
        out[draw] = S
        _to_correlation(out[draw])
        _watch_shape(Z, cross, ranked, scores, shape[draw])


@njit
def independent(rng: np.random.Generator, scale: Array, df: float, out: Array) -> None:
    """Fill `out` with independent correlation matrices of S ~ IW(df, scale).

    This is the whole posterior when every column is plug-in and nothing is missing: the latents never move.

    Parameters
    ----------
    rng : numpy.random.Generator
    scale : ndarray, shape (p, p)
        n0 S0 + Z'Z.
    df : float
        n0 + n.
    out : ndarray, shape (draws, p, p)
    """
    p = scale.shape[0]
    factor, work, omega = np.empty((p, p)), np.empty((p, p)), np.empty((0, 0))
    cholesky(scale, factor)
    for draw in range(out.shape[0]):
        _inverse_wishart(rng, factor, df, work, out[draw], omega)
        _to_correlation(out[draw])


@njit
def _shuffle(rng: np.random.Generator, items: Index) -> None:
    for i in range(items.size - 1, 0, -1):
        j = int(rng.random() * (i + 1))
        items[i], items[j] = items[j], items[i]


@njit
def _conditional_mean(Z: Array, omega: Array, j: int, mean: Array) -> None:
    """Write E[Z_j | other columns] for every row: -sum_k omega_jk Z_k / omega_jj over k != j."""
    mean[:] = 0.0
    for k in range(Z.shape[0]):
        if k != j:
            weight = -omega[j, k] / omega[j, j]
            z = Z[k]
            for i in range(mean.size):
                mean[i] += weight * z[i]


@njit
def _sweep(rng: np.random.Generator, z: Array, mean: Array, sd: float, order: Index, starts: Index) -> None:
    """Draw the observed latents of one column level by level, in one ascending pass.

    A level lies between the largest latent of the level below (already drawn) and the smallest of the level
    above (not yet drawn): the full conditional of Hoff (2007), without a search for either.
    """
    levels, per_sd = starts.size - 1, 1.0 / sd
    below = -np.inf
    for level in range(levels):
        above = np.inf
        if level + 1 < levels:
            for position in range(starts[level + 1], starts[level + 2]):
                above = min(above, z[order[position]])
        largest = below
        for position in range(starts[level], starts[level + 1]):
            i = order[position]
            x = mean[i] + sd * truncated_normal(rng, (below - mean[i]) * per_sd, (above - mean[i]) * per_sd)
            z[i] = min(max(x, below), above)  # rounding must not break the order
            largest = max(largest, z[i])
        below = largest


@njit
def _draw_missing(rng: np.random.Generator, Z: Array, omega: Array, j: int, sd: float, rows: Index) -> None:
    """Draw the latents of missing cells from their untruncated conditional."""
    for i in rows:
        mean = 0.0
        for k in range(Z.shape[0]):
            if k != j:
                mean -= omega[j, k] * Z[k, i]
        Z[j, i] = mean / omega[j, j] + sd * rng.standard_normal()


@njit
def _inverse_wishart(
    rng: np.random.Generator, L: Array, df: float, work: Array, S: Array, omega: Array
) -> None:
    """Draw S ~ IW(df, L L') into `S`, and its inverse into `omega` unless that is empty.

    Bartlett: omega = (L'^-1 A)(L'^-1 A)' with A lower triangular, A_jj^2 ~ chi-square(df - j) and standard
    normals below; so S = B B' with B = L A'^-1, upper part and all.
    """
    p = L.shape[0]
    A = work
    for j in range(p):
        A[j, j] = math.sqrt(rng.chisquare(df - j))
        for i in range(j + 1, p):
            A[i, j] = rng.standard_normal()
    B = np.empty((p, p))
    for i in range(p):  # B A' = L, row by row: b_j = (l_j - sum_{k<j} b_k A_jk) / A_jj
        for j in range(p):
            s = L[i, j]
            for k in range(j):
                s -= B[i, k] * A[j, k]
            B[i, j] = s / A[j, j]
    for i in range(p):
        for j in range(i + 1):
            s = 0.0
            for k in range(p):
                s += B[i, k] * B[j, k]
            S[i, j] = S[j, i] = s
    if omega.size == 0:
        return
    for i in range(p - 1, -1, -1):  # M = L'^-1 A by back substitution, kept in B
        for j in range(p):
            s = A[i, j] if j <= i else 0.0
            for k in range(i + 1, p):
                s -= L[k, i] * B[k, j]
            B[i, j] = s / L[i, i]
    for i in range(p):
        for j in range(i + 1):
            s = 0.0
            for k in range(p):
                s += B[i, k] * B[j, k]
            omega[i, j] = omega[j, i] = s


@njit
def _to_correlation(S: Array) -> None:
    p = S.shape[0]
    for i in range(p):
        for j in range(i):
            S[i, j] = S[j, i] = S[i, j] / math.sqrt(S[i, i] * S[j, j])
    for i in range(p):
        S[i, i] = 1.0


@njit
def _watch_shape(Z: Array, cross: Array, ranked: NDArray[np.bool_], scores: Array, shape: Array) -> None:
    """Record how far the latents of each ranked column bend away from their normal scores."""
    for j in range(Z.shape[0]):
        for component in range(2):
            shape[j, component] = 0.0
            if ranked[j]:
                shape[j, component] = dot(Z[j], scores[component, j]) / math.sqrt(cross[j, j])
