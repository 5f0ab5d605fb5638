"""Posteriors at p = 3 under the composite and the full joint likelihood, from the same draws.

Draws of the composite posterior (Gibbs) get weights ``joint likelihood / composite likelihood``, which keep most of
their effective size at p = 3. Besides the correlations both report functionals of all of them together, which is
where the two likelihoods differ.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.likelihood import LikelihoodTable, tabulate_counts
from dpsurvey.study import batch
from dpsurvey.study.joint import joint_log_likelihood

Array = NDArray[np.float64]
QUANTITIES = ("R12", "R13", "R23", "beta2", "beta3", "partial R12.3", "R squared")
_KEEP = 3  # every third draw of the chain is weighed


def functionals(R: Array) -> Array:
    """Return :data:`QUANTITIES` of correlation matrices: pairs, then the regression of x1 on x2 and x3.

    Parameters
    ----------
    R : numpy.ndarray, shape (..., 3, 3)

    Returns
    -------
    numpy.ndarray, shape (..., 7)

    Examples
    --------
    >>> functionals(np.array([[1, 0.5, 0.0], [0.5, 1, 0.0], [0.0, 0.0, 1]])).round(3)
    array([0.5 , 0.  , 0.  , 0.5 , 0.  , 0.5 , 0.25])
    """
    r12, r13, r23 = R[..., 0, 1], R[..., 0, 2], R[..., 1, 2]
    free = 1.0 - r23**2
    beta2, beta3 = (r12 - r13 * r23) / free, (r13 - r12 * r23) / free
    partial = (r12 - r13 * r23) / np.sqrt((1.0 - r13**2) * free)
    return np.stack([r12, r13, r23, beta2, beta3, partial, beta2 * r12 + beta3 * r13], axis=-1)


def fit(
    book: batch.Catalogue,
    truth: Array,
    noisy: NDArray[np.int64],
    generators: Sequence[np.random.Generator],
    *,
    joint: bool,
) -> tuple[Array, Array, Array, Array]:
    """Return true values, posterior means and 95% intervals of :data:`QUANTITIES`.

    Parameters
    ----------
    book : Catalogue
    truth : numpy.ndarray, shape (runs, 3, 3)
    noisy : numpy.ndarray of int64, shape (runs, 3)
    generators : sequence of numpy.random.Generator, length runs
    joint : bool
        Whether to weigh the draws by the full joint likelihood.

    Returns
    -------
    truth, mean, lower, upper : numpy.ndarray, shape (runs, 7)
    """
    summaries = [
        _summarise(*_weighted(book, counts, rng, joint))
        for counts, rng in zip(noisy, generators, strict=True)
    ]
    mean, lower, upper = (np.array(part) for part in zip(*summaries, strict=True))
    return functionals(truth), mean, lower, upper


def _weighted(
    book: batch.Catalogue, counts: NDArray[np.int64], rng: np.random.Generator, joint: bool
) -> tuple[Array, Array]:
    """Return draws of the quantities and their weights."""
    R = batch.draws(book, counts, 3, rng)[::_KEEP]
    if not joint:
        return functionals(R), np.ones(len(R))
    inside = book.representative(counts)
    table: LikelihoodTable = tabulate_counts(book.law, book.noise, inside.tolist())
    support = np.arange(book.law.upper + 1, dtype=float)
    log_noise = np.array([book.noise.log_pmf(float(count), support) for count in inside])
    log_weight = joint_log_likelihood(book.law.n, log_noise, R) - table.log_likelihood(R)
    return functionals(R), np.exp(log_weight - log_weight.max())


def _summarise(values: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Return weighted means and interval ends at plotting positions (N + 1) q of N effective draws."""
    shares = weights / weights.sum()
    effective = 1.0 / np.sum(shares**2)
    levels = ((effective + 1.0) * np.array(batch.LEVELS) - 0.5) / effective
    ends = np.empty((2, values.shape[1]))
    for i, column in enumerate(values.T):
        order = np.argsort(column)
        ranks = np.cumsum(shares[order]) - 0.5 * shares[order]
        ends[:, i] = np.interp(levels, ranks, column[order])
    return shares @ values, ends[0], ends[1]
