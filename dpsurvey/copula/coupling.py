"""How the noisy counts of different pairs go together: what a product over pairs leaves out.

The product likelihood takes the counts for independent. Counts of pairs such as (1,2) and (1,3) are not, and joint
functionals of R, such as regression coefficients, then get intervals that are too long. The working likelihood
here is the product times a Gaussian copula density of the counts' standardised residuals z,
``|G|^(-1/2) exp(-z'(G^-1 - I)z/2)``, with ``z_i = (t_tilde_i - E[T_i | R_i]) / sqrt(Var[T_i | R_i] + noise variance)``
and G their correlation, held fixed at an estimate of R: the sampling covariance of the true counts, diluted by the
noise, which is uncorrelated between counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.inversion import InversionTable
from dpsurvey.copula.jit import njit
from dpsurvey.copula.likelihood import SamplingLaw, sampling_laws
from dpsurvey.copula.quadrant import LARGEST_ETA, log_odds
from dpsurvey.privacy.release import Release

_FEW_PAIRS = 64  # up to which
_LOG_ROWS = 12, 14  # 2^12 latent rows estimate the sampling correlations, 2^14 beyond
_RIDGE = 0.02  # towards the identity: near singular matrices are overconfident when held fixed at an estimate
_INSIDE = 1e-9  # by which R is drawn towards the identity, so that it has a Cholesky factor
_RESIDUALS = 120  # points of a pair's table at which they are computed, linear in between, and as many
_CORE = 50.0  # within so many log units of the mode
_LARGEST_RESIDUAL = 6.0  # beyond it a residual says nothing about the others

Array = NDArray[np.float64]


class Coupling(NamedTuple):
    """What the kernel needs to couple pairs; nothing of it for the product likelihood.

    Attributes
    ----------
    precision : numpy.ndarray, shape (m, m) or (0, 0)
        G^-1 - I.
    residuals : numpy.ndarray, shape (N,) or (0,)
        z at the points of the inversion table, linear in between.
    shape : float
        eta of the LKJ(eta) prior: the density is proportional to det(R)^(eta-1).
    """

    precision: Array
    residuals: Array
    shape: float


def product(shape: float = 1.0) -> Coupling:
    """Return the coupling of the product likelihood: none, under the prior LKJ(shape).

    Examples
    --------
    >>> product().precision.shape
    (0, 0)
    """
    return Coupling(np.zeros((0, 0)), np.zeros(0), float(shape))


def couple(release: Release, table: InversionTable, R: Array, shape: float = 1.0) -> Coupling:
    """Return the coupling of a release's counts, with their sampling correlations at `R`.

    Parameters
    ----------
    release : Release
    table : InversionTable
        Of its pairs.
    R : numpy.ndarray, shape (p, p)
        Correlation matrix, such as the mean of the product posterior.
    shape : float
        eta of the LKJ prior.

    Returns
    -------
    Coupling
    """
    noise = release.noise_law()
    variances = np.array([noise.marginal(i).variance for i in range(release.m)])
    return couple_counts(sampling_laws(release), variances, np.array(release.counts), table, R, shape)


def couple_counts(
    laws: Sequence[SamplingLaw],
    noise_variances: Array,
    counts: NDArray[np.int64],
    table: InversionTable,
    R: Array,
    shape: float = 1.0,
) -> Coupling:
    """Return the coupling of noisy counts; see :func:`couple`.

    Parameters
    ----------
    laws : sequence of SamplingLaw, length m
        Of the true counts.
    noise_variances : numpy.ndarray, shape (m,)
    counts : numpy.ndarray of int64, shape (m,)
        Noisy counts.
    table : InversionTable
        Of these counts.
    R : numpy.ndarray, shape (p, p)
    shape : float
    """
    residuals = np.empty(len(table.points))
    for i, law in enumerate(laws):
        part = slice(table.offsets[i], table.offsets[i + 1])
        points, core = table.points[part], np.flatnonzero(table.logs[part] > -_CORE)
        places = [np.linspace(ends[0], ends[-1], _RESIDUALS) for ends in ((0, len(points) - 1), core)]
        some = points[np.unique(np.concatenate(places).astype(np.int64))]
        eta = np.clip(log_odds(some), -LARGEST_ETA, LARGEST_ETA)
        spread = np.sqrt(law.variance(eta) + noise_variances[i] + np.finfo(float).tiny)
        z = np.clip((counts[i] - law.mean(eta)) / spread, -_LARGEST_RESIDUAL, _LARGEST_RESIDUAL)
        residuals[part] = np.interp(points, some, z)
    G = residual_correlation(laws, R, noise_variances)
    return Coupling(np.linalg.inv(G) - np.eye(len(laws)), residuals, float(shape))


def residual_correlation(laws: Sequence[SamplingLaw], R: Array, noise_variances: Array) -> Array:
    """Return the correlation matrix of the noisy counts given R, shape (m, m).

    The true counts are sums over rows to first order, so their correlations are those of one row's influence,
    averaged over latent rows at R that are always the same.

    Parameters
    ----------
    laws : sequence of SamplingLaw, length m
    R : numpy.ndarray, shape (p, p)
    noise_variances : numpy.ndarray, shape (m,)
    """
    p = len(R)
    first, second = np.triu_indices(p, 1)
    R = (1.0 - _INSIDE) * R + _INSIDE * np.eye(p)
    rows = _normals(p) @ np.linalg.cholesky(R).T
    influence = np.column_stack(
        [
            law.influence(rows[:, j], rows[:, k], R[j, k])
            for law, j, k in zip(laws, first, second, strict=True)
        ]
    )
    influence -= influence.mean(axis=0)
    covariance = influence.T @ influence
    size = np.sqrt(np.diag(covariance))
    signal = np.array(
        [law.variance(log_odds(R[j, k])) for law, j, k in zip(laws, first, second, strict=True)]
    )
    kept = np.sqrt(signal / (signal + noise_variances)) / np.maximum(size, np.finfo(float).tiny)
    G = covariance * kept[:, None] * kept * (1.0 - _RIDGE)
    np.fill_diagonal(G, 1.0)
    return np.asarray(G)


@lru_cache(maxsize=4)
def _normals(p: int) -> Array:
    """Return rows of p independent standard normals, always the same: a Sobol net, more even than chance."""
    from scipy.special import ndtri
    from scipy.stats.qmc import Sobol

    log_rows = _LOG_ROWS[0 if p * (p - 1) // 2 <= _FEW_PAIRS else 1]
    net = Sobol(p, scramble=False).random_base2(log_rows) + 0.5 * 2.0**-log_rows  # off 0
    return np.asarray(ndtri(net))


@njit
def residual_at(table: InversionTable, coupling: Coupling, pair: int, r: float) -> float:
    """Return the standardised residual of one pair's count at correlation r."""
    low, high = table.offsets[pair], table.offsets[pair + 1] - 1
    while high - low > 1:
        middle = (low + high) // 2
        if table.points[middle] <= r:
            low = middle
        else:
            high = middle
    share = (r - table.points[low]) / (table.points[high] - table.points[low])
    return float(coupling.residuals[low] + share * (coupling.residuals[high] - coupling.residuals[low]))


@njit
def log_gain(coupling: Coupling, z: Array, pair: int, value: float) -> float:
    """Return by how much the log coupling density rises when residual `pair` changes to `value`."""
    row = coupling.precision[pair]
    old = z[pair]
    pull = np.dot(row, z) - row[pair] * old
    return float((old - value) * pull + 0.5 * row[pair] * (old * old - value * value))
