"""Gibbs sampling of a correlation matrix under LKJ(1) times a product of one-pair likelihoods.

The LKJ(1) prior is uniform on the positive definite set, so the full conditional of one R_jk is its own
likelihood cut to the interval in which the matrix stays positive definite, and is drawn by inversion: exact,
without tuning, rejections or gradients.
"""

from __future__ import annotations

import math
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.inversion import InversionTable, build_inversion, draw_between
from dpsurvey.copula.jit import njit
from dpsurvey.copula.likelihood import LikelihoodTable
from dpsurvey.copula.threads import available_cores

WARMUP_SWEEPS = 250
_MARGIN = 1e-10  # of the feasible interval, kept off both ends
_SHRINK = 1e-9  # by which a matrix that rounding made singular is drawn towards the identity
_BLOCKS = 20  # a chain returns to Python this often, for progress and interruption


def sweeps_per_draw(p: int) -> int:
    """Return how many sweeps go into one kept draw: the memory of a chain grows with p.

    Examples
    --------
    >>> sweeps_per_draw(2), sweeps_per_draw(7)
    (1, 2)
    """
    return (p + 3) // 4


def sample(
    table: LikelihoodTable, p: int, *, draws: int, chains: int, seed: int | None, progress: bool = False
) -> NDArray[np.float64]:
    """Draw correlation matrices from the posterior; chains run in parallel threads.

    Parameters
    ----------
    table : LikelihoodTable
        Of the p(p-1)/2 pairs.
    p : int
        Number of variables. With p = 2 the draws are independent.
    draws : int
        Kept draws of each chain.
    chains : int
    seed : int or None
    progress : bool
        Show a progress bar.

    Returns
    -------
    numpy.ndarray of float64, shape (chains, draws, p, p)
    """
    from tqdm.auto import tqdm

    inversion = build_inversion(table)
    generators = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(chains)]
    kept = np.empty((chains, draws, p, p))
    bounds = np.linspace(0, draws, min(_BLOCKS, draws) + 1).astype(int)
    stopped = False

    def run(chain: int, report: tqdm[Any]) -> None:
        rng, R = generators[chain], np.eye(p)
        advance(inversion, R, WARMUP_SWEEPS, rng)
        for start, stop in zip(bounds[:-1], bounds[1:], strict=True):
            if stopped:
                return
            fill(inversion, R, kept[chain, start:stop], sweeps_per_draw(p), rng)
            report.update(int(stop - start))

    bar: tqdm[Any] = tqdm(
        total=chains * draws, desc="Bayes-NA", unit="draw", disable=not progress, leave=False
    )
    with bar, ThreadPoolExecutor(min(chains, available_cores())) as pool:
        pending = {pool.submit(run, chain, bar) for chain in range(chains)}
        try:
            while pending:  # short waits, so that an interrupt is seen at once
                done, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
        except BaseException:
            stopped = True
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return kept


@njit
def advance(table: InversionTable, R: NDArray[np.float64], sweeps: int, rng: np.random.Generator) -> None:
    """Run `sweeps` sweeps, each drawing every pair twice, changing R in place."""
    p = R.shape[0]
    inverse, factor = np.empty((p - 1, p - 1)), np.empty((p - 1, p - 1))
    others, row, product = np.empty(p - 1, dtype=np.int64), np.empty(p - 1), np.empty(p - 1)
    for _ in range(sweeps):
        for j in range(p):
            _draw_row(table, R, j, others, row, product, inverse, factor, rng)


@njit
def fill(
    table: InversionTable,
    R: NDArray[np.float64],
    kept: NDArray[np.float64],
    sweeps: int,
    rng: np.random.Generator,
) -> None:
    """Fill `kept`, shape (draws, p, p), with R after each `sweeps` sweeps."""
    for draw in range(kept.shape[0]):
        advance(table, R, sweeps, rng)
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
    for a in range(p - 1):
        others[a] = a if a < j else a + 1
    _invert(R, others, inverse, factor)
    for a in range(p - 1):
        row[a] = R[j, others[a]]
    for a in range(p - 1):
        product[a] = np.dot(inverse[a], row)
    for a in range(p - 1):
        k = others[a]
        room = max(1.0 - np.dot(row, product), 0.0)
        root = math.sqrt(product[a] * product[a] + inverse[a, a] * room)
        low = max(row[a] - (root + product[a]) / inverse[a, a], -1.0)
        high = min(row[a] + (root - product[a]) / inverse[a, a], 1.0)
        margin = _MARGIN * (high - low)
        pair = _pair(min(j, k), max(j, k), p)
        value = draw_between(table, pair, low + margin, high - margin, rng.random())
        change = value - row[a]
        row[a] = value
        for b in range(p - 1):
            product[b] += change * inverse[a, b]
        R[j, k] = value
        R[k, j] = value


@njit
def _pair(j: int, k: int, p: int) -> int:
    """Return the position of pair j < k in the order of ``numpy.triu_indices(p, 1)``."""
    return j * (2 * p - j - 1) // 2 + k - j - 1


@njit
def _invert(
    R: NDArray[np.float64],
    others: NDArray[np.int64],
    inverse: NDArray[np.float64],
    factor: NDArray[np.float64],
) -> None:
    """Write the inverse of R restricted to `others`; if rounding made it singular, R first shrinks to identity."""
    size = others.shape[0]
    while not _factorise(R, others, factor):
        for a in range(R.shape[0]):
            for b in range(R.shape[0]):
                if a != b:
                    R[a, b] *= 1.0 - _SHRINK
    for column in range(size):  # factor holds L; solve L L' x = e_column
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


@njit
def _factorise(R: NDArray[np.float64], others: NDArray[np.int64], factor: NDArray[np.float64]) -> bool:
    """Write the Cholesky factor of R restricted to `others`; return False where it is not positive definite."""
    for a in range(others.shape[0]):
        for b in range(a + 1):
            total = R[others[a], others[b]]
            for c in range(b):
                total -= factor[a, c] * factor[b, c]
            if a == b:
                if total <= 0.0:
                    return False
                factor[a, a] = math.sqrt(total)
            else:
                factor[a, b] = total / factor[b, b]
    return True
