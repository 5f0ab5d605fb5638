"""Regressions of the first variable on all others, from the product likelihood and from the calibrated joint one.

The draws are those of :func:`dpsurvey.bayes_na`: the same kernels and the same coupling of counts, the product's mean
as the first estimate of R and the pilot chain's mean as the second; only chains are shorter and intervals stand at
plotting positions of effective draws (:mod:`dpsurvey.study.batch`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.coupled import advance_coupled, fill_coupled
from dpsurvey.copula.coupling import couple_counts
from dpsurvey.copula.inversion import InversionTable
from dpsurvey.copula.joint import PILOT_DRAWS
from dpsurvey.copula.least_squares import regression_functionals
from dpsurvey.study import batch

Array = NDArray[np.float64]
LIKELIHOODS = ("product", "joint")
SWEEPS = 700  # kept, one draw each, of either posterior


def quantities(p: int) -> tuple[tuple[str, str], ...]:
    """Return what is estimated with p variables, in order: the likelihood and the name of each quantity.

    Examples
    --------
    >>> quantities(3)[:5]
    (('product', 'beta2'), ('product', 'beta3'), ('product', 'partial2'), ('product', 'partial3'), ('product', 'R2'))
    """
    others = range(2, p + 1)
    names = [*(f"beta{j}" for j in others), *(f"partial{j}" for j in others), "R2"]
    return tuple((likelihood, name) for likelihood in LIKELIHOODS for name in names)


def settings() -> dict[str, int | str]:
    """Return what the draws depend on, for the record."""
    return {"sweeps": SWEEPS, "warmup": batch.WARMUP, "pilot": PILOT_DRAWS}


def functionals(R: Array) -> Array:
    """Return coefficients, partial correlations and R squared of the first variable on the others.

    Parameters
    ----------
    R : numpy.ndarray, shape (..., p, p)

    Returns
    -------
    numpy.ndarray, shape (..., 2p - 1)
    """
    beta, partial, r_squared, _ = regression_functionals(R, 0, range(1, R.shape[-1]))
    return np.concatenate((beta, partial, r_squared[..., None]), axis=-1)


def fit(
    book: batch.Catalogue,
    truth: Array,
    noisy: NDArray[np.int64],
    generators: Sequence[np.random.Generator],
) -> tuple[Array, Array, Array, Array]:
    """Return true values, posterior means and 95% intervals of :func:`quantities`.

    Parameters
    ----------
    book : Catalogue
    truth : numpy.ndarray, shape (runs, p, p)
    noisy : numpy.ndarray of int64, shape (runs, p(p-1)/2)
    generators : sequence of numpy.random.Generator, length runs

    Returns
    -------
    truth, mean, lower, upper : numpy.ndarray, shape (runs, 2 (2p - 1))
    """
    p = truth.shape[-1]
    table, which = book.table(noisy)
    answers = []
    for i, rng in enumerate(generators):
        own = batch.gather(table, which[i])
        product, joint = _draws(book, own, noisy[i], p, rng)
        answers.append(np.concatenate([batch.summarise(functionals(R)) for R in (product, joint)], axis=-1))
    mean, lower, upper = np.moveaxis(np.array(answers), 1, 0)
    return np.tile(functionals(truth), len(LIKELIHOODS)), mean, lower, upper


def _draws(
    book: batch.Catalogue,
    own: InversionTable,
    counts: NDArray[np.int64],
    p: int,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Return draws under both likelihoods, shape (draws, p, p) each."""
    laws, variances = (book.law,) * len(counts), np.full(len(counts), book.noise.variance)
    product, pilot = np.empty((SWEEPS, p, p)), np.empty((PILOT_DRAWS, p, p))
    batch.fill_product(own, batch.WARMUP, rng, product)
    joint, R = np.empty_like(product), product[-1].copy()
    estimate = product.mean(axis=0)
    for kept in (pilot, joint):
        coupling = couple_counts(laws, variances, counts, own, estimate)
        advance_coupled(own, coupling, R, batch.WARMUP, rng)
        fill_coupled(own, coupling, R, kept, 1, rng)
        estimate = kept.mean(axis=0)
    return product, joint
