"""Markov chains side by side: where they start, how they run in threads, and how they are interrupted."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from threading import Event
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.correlation import matrix_from_pairs, nearest_correlation
from dpsurvey.copula.coupled import advance_coupled, fill_coupled
from dpsurvey.copula.coupling import Coupling
from dpsurvey.copula.gibbs import advance, fill
from dpsurvey.copula.inversion import InversionTable, build_inversion, draw_between
from dpsurvey.copula.likelihood import LikelihoodTable
from dpsurvey.copula.threads import available_cores

WARMUP_SWEEPS = 250
_NEAR_COPIES = 0.99  # a pair whose median correlation is beyond this calls for joint moves
_PULLS = 10.0 ** -np.arange(11)  # towards the identity, tried for a start inside the positive definite set
_BLOCK = 2**22  # a chain looks up after about _BLOCK / p**4 sweeps, some tenths of a second,
_LONGEST_BLOCK = 20_000  # or this many


class Sample(NamedTuple):
    """Posterior draws, and how they were made.

    Attributes
    ----------
    draws : numpy.ndarray of float64, shape (chains, draws, p, p)
        Positive definite matrices.
    warmup_sweeps, sweeps_per_draw : int
    joint_moves : bool
        Whether sweeps contained the moves of :mod:`dpsurvey.copula.joint_moves`.
    accepted : float
        Share of proposals accepted: 1 for the product likelihood, whose draws are exact.
    """

    draws: NDArray[np.float64]
    warmup_sweeps: int
    sweeps_per_draw: int
    joint_moves: bool
    accepted: float


def sweeps_per_draw(p: int, joint: bool = False) -> int:
    """Return how many sweeps go into one kept draw: the memory of a chain grows with p, and with near copies.

    Each sweep draws every pair twice. Up to seven variables that is worth half a draw or more, even where the
    release says next to nothing and all the memory of the prior's bounds on R is left; sweeps beyond it would cost
    more than they add.

    Examples
    --------
    >>> sweeps_per_draw(7), sweeps_per_draw(10), sweeps_per_draw(7, joint=True)
    (1, 3, 4)
    """
    sweeps = (p + 3) // 4
    if joint:
        return 2 * sweeps
    return sweeps if p > 7 else 1


def sample(
    table: LikelihoodTable,
    p: int,
    *,
    draws: int,
    chains: int,
    seed: int | None,
    progress: bool = False,
    coupling: Coupling | None = None,
    inversion: InversionTable | None = None,
) -> Sample:
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
        Draws depend on it alone, not on the number of cores.
    progress : bool
        Show a progress bar.
    coupling : Coupling, optional
        What couples the pairs beside the bounds on R, and the prior; by default nothing and LKJ(1). Chains then
        move by the kernel of :mod:`dpsurvey.copula.coupled`.
    inversion : InversionTable, optional
        Of `table`, where it is at hand.

    Returns
    -------
    Sample
    """
    from tqdm.auto import tqdm

    if inversion is None:
        inversion = build_inversion(table)
    joint = coupling is None and p > 2 and has_near_copies(inversion)
    shares = np.ones(chains)
    sweeps = sweeps_per_draw(p, joint)
    block = min(_LONGEST_BLOCK, 1 + _BLOCK // p**4)
    generators = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(chains)]
    kept, done, stop = np.empty((chains, draws, p, p)), np.zeros(chains, dtype=np.int64), Event()

    def run(chain: int) -> None:
        rng = generators[chain]
        R = starting_matrix(table, inversion, p, rng)
        for size in _parts(WARMUP_SWEEPS, block):
            if stop.is_set():
                return
            if coupling is None:
                advance(inversion, R, size, joint, rng)
            else:
                advance_coupled(inversion, coupling, R, size, rng)
        for size in _parts(draws, max(1, block // sweeps)):
            if stop.is_set():
                return
            part = kept[chain, done[chain] : done[chain] + size]
            if coupling is None:
                fill(inversion, R, part, sweeps, joint, rng)
            else:
                shares[chain] = fill_coupled(inversion, coupling, R, part, sweeps, rng)
            done[chain] += size

    with (
        tqdm(total=chains * draws, desc="Bayes-NA", unit="draw", disable=not progress, leave=False) as bar,
        ThreadPoolExecutor(min(chains, available_cores())) as pool,
    ):
        pending: set[Future[None]] = {pool.submit(run, chain) for chain in range(chains)}
        try:
            while pending:  # short waits, so that an interrupt is seen at once
                finished, pending = wait(pending, timeout=0.1, return_when=FIRST_COMPLETED)
                if (
                    advanced := int(done.sum()) - bar.n
                ) > 0:  # else a log would fill with lines that say nothing
                    bar.update(advanced)
                for future in finished:
                    future.result()
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return Sample(kept, WARMUP_SWEEPS, sweeps, joint, float(shares.mean()))


def starting_matrix(
    table: LikelihoodTable, inversion: InversionTable, p: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return a random positive definite matrix near the bulk of the posterior, more dispersed than it.

    Each pair is drawn from its own likelihood, the matrix of these replaced by the nearest correlation matrix,
    and that drawn towards the identity as far as raises the likelihood times the root of the determinant. A
    chain that starts at the identity instead can take longer than anyone waits to reach correlations near 1,
    and all chains would wait in the same place, so that nothing shows.

    Parameters
    ----------
    table : LikelihoodTable
    inversion : InversionTable
        Made from `table`.
    p : int
    rng : numpy.random.Generator

    Returns
    -------
    numpy.ndarray, shape (p, p)
    """
    values = [draw_between(inversion, pair, -1.0, 1.0, rng.random()) for pair in range(table.m)]
    nearest = nearest_correlation(matrix_from_pairs(np.array(values), p))
    candidates = _PULLS[:, None, None] * np.eye(p) + (1.0 - _PULLS[:, None, None]) * nearest
    sign, log_determinant = np.linalg.slogdet(candidates)
    score = np.where(sign > 0, table.log_likelihood(candidates) + 0.5 * log_determinant, -np.inf)
    return np.ascontiguousarray(candidates[int(np.argmax(score))])


def has_near_copies(inversion: InversionTable) -> bool:
    """Return whether some pair's correlation lies within .01 of -1 or 1 with probability one half or more."""
    medians = [draw_between(inversion, pair, -1.0, 1.0, 0.5) for pair in range(len(inversion.mode))]
    return bool(np.max(np.abs(medians)) > _NEAR_COPIES)


def _parts(total: int, size: int) -> list[int]:
    """Return `total` as a sum of parts of at most `size`."""
    return [min(size, total - start) for start in range(0, total, size)]
