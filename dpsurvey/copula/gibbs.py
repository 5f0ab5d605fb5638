"""Gibbs sampling of a correlation matrix under LKJ(1) times a product of one-pair likelihoods.

The LKJ(1) prior is uniform on the positive definite set, so the full conditional of one R_jk is its own
likelihood cut to the interval in which the matrix stays positive definite. Both ends come from the 2 x 2 block
of the inverse; the draw is by inversion: exact, without tuning, rejections or gradients.
"""

from __future__ import annotations

import math
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.inversion import InversionTable, build_inversion, draw_between
from dpsurvey.copula.jit import njit
from dpsurvey.copula.likelihood import LikelihoodTable
from dpsurvey.copula.threads import available_cores

WARMUP_SWEEPS = 500
_MARGIN = 1e-10  # of the feasible interval, kept off both ends
_SHRINK = 1e-9  # by which a matrix that rounding made singular is drawn towards the identity
_BLOCKS = 20  # a chain returns to Python this often, for progress and interruption


def sweeps_per_draw(p: int) -> int:
    """Return how many sweeps go into one kept draw: the memory of a chain grows with p.

    Examples
    --------
    >>> sweeps_per_draw(2), sweeps_per_draw(7)
    (1, 7)
    """
    return 1 if p == 2 else p


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

    def run(chain: int, report: tqdm[None]) -> None:
        rng, R = generators[chain], np.eye(p)
        advance(inversion, R, WARMUP_SWEEPS, rng)
        for start, stop in zip(bounds[:-1], bounds[1:], strict=True):
            if stopped:
                return
            fill(inversion, R, kept[chain, start:stop], sweeps_per_draw(p), rng)
            report.update(int(stop - start))

    with (
        tqdm(total=chains * draws, desc="Bayes-NA", unit="draw", disable=not progress, leave=False) as bar,
        ThreadPoolExecutor(min(chains, available_cores())) as pool,
    ):
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
    """Run `sweeps` sweeps over all pairs, changing R in place."""
    inverse, factor = np.empty_like(R), np.empty_like(R)
    for _ in range(sweeps):
        _sweep(table, R, inverse, factor, rng)


@njit
def fill(
    table: InversionTable,
    R: NDArray[np.float64],
    kept: NDArray[np.float64],
    sweeps: int,
    rng: np.random.Generator,
) -> None:
    """Fill `kept`, shape (draws, p, p), with R after each `sweeps` sweeps."""
    inverse, factor = np.empty_like(R), np.empty_like(R)
    for draw in range(kept.shape[0]):
        for _ in range(sweeps):
            _sweep(table, R, inverse, factor, rng)
        kept[draw] = R


@njit
def _sweep(
    table: InversionTable,
    R: NDArray[np.float64],
    inverse: NDArray[np.float64],
    factor: NDArray[np.float64],
    rng: np.random.Generator,
) -> None:
    p = R.shape[0]
    pair = 0
    for j in range(p - 1):
        _invert(R, inverse, factor)  # anew each row: rank-two updates drift near singular matrices
        for k in range(j + 1, p):
            root = math.sqrt(inverse[j, j] * inverse[k, k])
            low = max(R[j, k] - 1.0 / (root + inverse[j, k]), -1.0)
            high = min(R[j, k] + 1.0 / (root - inverse[j, k]), 1.0)
            margin = _MARGIN * (high - low)
            value = draw_between(table, pair, low + margin, high - margin, rng.random())
            _update_inverse(inverse, j, k, value - R[j, k])
            R[j, k] = value
            R[k, j] = value
            pair += 1


@njit
def _update_inverse(inverse: NDArray[np.float64], j: int, k: int, change: float) -> None:
    """Update the inverse in place for ``R[j, k]`` and ``R[k, j]`` changed by `change` (Woodbury, rank two)."""
    p = inverse.shape[0]
    jj, kk, jk = inverse[j, j], inverse[k, k], inverse[j, k]
    determinant = (1.0 + change * jk) ** 2 - change * change * jj * kk
    square, cross = change * change / determinant, change * (1.0 + change * jk) / determinant
    column_j, column_k = inverse[:, j].copy(), inverse[:, k].copy()
    for a in range(p):
        towards_j = square * kk * column_j[a] - cross * column_k[a]
        towards_k = square * jj * column_k[a] - cross * column_j[a]
        for b in range(p):
            inverse[a, b] += towards_j * column_j[b] + towards_k * column_k[b]


@njit
def _invert(R: NDArray[np.float64], inverse: NDArray[np.float64], factor: NDArray[np.float64]) -> None:
    """Write the inverse of R; a matrix that rounding made singular is first drawn towards the identity."""
    p = R.shape[0]
    while not _factorise(R, factor):
        for a in range(p):
            for b in range(p):
                if a != b:
                    R[a, b] *= 1.0 - _SHRINK
    for column in range(p):  # factor holds L; solve L L' x = e_column
        for a in range(p):
            total = 1.0 if a == column else 0.0
            for b in range(a):
                total -= factor[a, b] * inverse[b, column]
            inverse[a, column] = total / factor[a, a]
        for a in range(p - 1, -1, -1):
            total = inverse[a, column]
            for b in range(a + 1, p):
                total -= factor[b, a] * inverse[b, column]
            inverse[a, column] = total / factor[a, a]


@njit
def _factorise(R: NDArray[np.float64], factor: NDArray[np.float64]) -> bool:
    """Write the Cholesky factor of R; return False where R is not positive definite."""
    p = R.shape[0]
    for a in range(p):
        for b in range(a + 1):
            total = R[a, b]
            for c in range(b):
                total -= factor[a, c] * factor[b, c]
            if a == b:
                if total <= 0.0:
                    return False
                factor[a, a] = math.sqrt(total)
            else:
                factor[a, b] = total / factor[b, b]
    return True
