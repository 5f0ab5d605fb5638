"""Chains of the native sampler: what is laid out once, and how chains run side by side in threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsurvey.baselines.ranks import RankTable
from dpsurvey.copula.threads import available_cores

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Tick = Callable[[int], object]

_BLOCK_SECONDS = 0.1  # how long a chain computes before it looks for an interrupt and reports progress


@dataclass(frozen=True, slots=True)
class Layout:
    """The data of the sampler, shared by all chains and never changed.

    Attributes
    ----------
    z : ndarray, shape (p, n)
        Normal scores, nan where missing.
    order : ndarray of int64, shape (p, n)
        Rows in ascending order of the column, missing ones last.
    starts, first : ndarray of int64
        Levels of column j begin at ``starts[first[j]:first[j + 1]]``, its number of observed cells included.
    observed : ndarray of int64, shape (p,)
    ranked : ndarray of bool, shape (p,)
        Columns whose observed latents are drawn.
    active : ndarray of int64
        Columns with anything to draw.
    scores : ndarray, shape (2, p, n)
        Orthonormal directions in which the shape of the latents is watched, zero where missing.
    prior : ndarray, shape (p, p)
        n0 S0.
    df : float
        n0 + n.
    """

    z: Array
    order: Index
    starts: Index
    first: Index
    observed: Index
    ranked: NDArray[np.bool_]
    active: Index
    scores: Array
    prior: Array
    df: float

    @property
    def independent(self) -> bool:
        """Whether nothing is drawn but S, so that the draws are independent."""
        return self.active.size == 0


def lay_out(table: RankTable, S0: Array, n0: float, plugin_threshold: float | None) -> Layout:
    """Sort every column once and find its levels; all that the kernels need.

    Parameters
    ----------
    table : RankTable
    S0 : ndarray, shape (p, p)
    n0 : float
        Prior: S ~ IW(n0, n0 S0).
    plugin_threshold : float or None
        See :meth:`RankTable.plug_in`.
    """
    codes, observed = table.codes, table.observed
    last = np.where(codes < 0, table.levels, codes)
    order = np.ascontiguousarray(np.argsort(last, axis=0, kind="stable").T)
    counts = [np.bincount(codes[codes[:, j] >= 0, j]) for j in range(table.p)]
    starts = [np.concatenate([[0], np.cumsum(count)]) for count in counts]
    ranked = ~table.plug_in(plugin_threshold)
    z = table.normal_scores()
    return Layout(
        z=z,
        order=order,
        starts=np.concatenate(starts).astype(np.int64),
        first=np.concatenate([[0], np.cumsum([s.size for s in starts])]).astype(np.int64),
        observed=observed,
        ranked=ranked,
        active=np.flatnonzero(ranked | (observed < table.n)).astype(np.int64),
        scores=_shape_scores(z),
        prior=n0 * S0,
        df=float(n0 + table.n),
    )


def _shape_scores(z: Array) -> Array:
    """Return two orthonormal polynomial directions of each column's observed normal scores, shape (2, p, n).

    They are the quadratic and the cubic, or the two highest that a column with few levels allows: its
    cutpoints move along these.
    """
    scores = np.zeros((2, *z.shape))
    for j, column in enumerate(z):
        seen = ~np.isnan(column)
        degrees = min(4, np.unique(column[seen]).size)
        basis = np.linalg.qr(np.vander(column[seen], degrees, increasing=True))[0]
        scores[:, j, seen] = basis[:, degrees - 2 :].T
    return scores


def run_chains(
    layout: Layout,
    generators: list[np.random.Generator],
    *,
    draws: int,
    burn_in: int,
    odens: int,
    tick: Tick,
) -> tuple[Array, Array]:
    """Run one chain a generator, side by side in threads; the kernels hold no lock.

    The numbers depend on the generators alone, not on how many threads ran or how work was cut into blocks.

    Parameters
    ----------
    layout : Layout
    generators : list of numpy.random.Generator
        Independent streams, one a chain.
    draws, burn_in, odens : int
        Kept draws, iterations dropped first, and iterations between kept draws.
    tick : callable
        Told the number of iterations done, from any of the threads.

    Returns
    -------
    draws : ndarray, shape (chain, draw, p, p)
    shape : ndarray, shape (chain, draw, p, 2)
        Trace of the latents' shape; zero for plug-in columns.
    """
    stop = threading.Event()
    p = layout.prior.shape[0]
    out = np.empty((len(generators), draws, p, p))
    shape = np.zeros((len(generators), draws, p, 2))

    def chain(index: int) -> None:
        advance = _independent_chain(layout, generators[index])
        if not layout.independent:
            advance = _gibbs_chain(layout, generators[index])
            burned = np.empty((burn_in, p, p)), np.empty((burn_in, p, 2))
            _in_blocks(advance, *burned, odens=1, tick=tick, stop=stop)
        _in_blocks(advance, out[index], shape[index], odens=odens, tick=tick, stop=stop)

    with ThreadPoolExecutor(min(len(generators), available_cores())) as pool:
        futures = [pool.submit(chain, index) for index in range(len(generators))]
        try:
            for future in futures:
                future.result()
        except BaseException:  # an interrupt in the main thread: let the others end at their next block
            stop.set()
            for future in futures:
                future.cancel()
            raise
    return out, shape


Advance = Callable[[Array, Array, int], None]


def _gibbs_chain(layout: Layout, rng: np.random.Generator) -> Advance:
    """Return a function that continues one Gibbs chain, started as sbgcop starts."""
    from dpsurvey.baselines import erl_kernel

    z = layout.z.copy()
    missing = np.isnan(z)
    z[missing] = rng.standard_normal(int(missing.sum()))
    # The prior's share keeps the start invertible when there are more columns than rows.
    S = (layout.prior + z @ z.T) / layout.df
    omega = np.asarray(np.linalg.inv(S), dtype=np.float64)

    def advance(out: Array, shape: Array, odens: int) -> None:
        erl_kernel.gibbs(
            rng,
            z,
            S,
            omega,
            layout.order,
            layout.starts,
            layout.first,
            layout.observed,
            layout.ranked,
            layout.active,
            layout.prior,
            layout.df,
            odens,
            out,
            layout.scores,
            shape,
        )

    return advance


def _independent_chain(layout: Layout, rng: np.random.Generator) -> Advance:
    """Return a function that adds independent draws; thinning them would change nothing."""
    from dpsurvey.baselines import erl_kernel

    scale = layout.prior + layout.z @ layout.z.T

    def advance(out: Array, shape: Array, odens: int) -> None:
        erl_kernel.independent(rng, scale, layout.df, out)

    return advance


def _in_blocks(
    advance: Advance, out: Array, shape: Array, *, odens: int, tick: Tick, stop: threading.Event
) -> None:
    """Fill `out` a block at a time, each lasting about a tenth of a second."""
    done, block = 0, 1
    while done < len(out) and not stop.is_set():
        end = min(done + block, len(out))
        began = time.perf_counter()
        advance(out[done:end], shape[done:end], odens)
        elapsed = time.perf_counter() - began
        tick((end - done) * odens)
        block = max(1, min(4 * block, int(block * _BLOCK_SECONDS / max(elapsed, 1e-9))))
        done = end
