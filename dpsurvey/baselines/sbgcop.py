"""sbgcop, and R code with the same contract, through rpy2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsurvey.baselines.ranks import RankTable
from dpsurvey.baselines.rbridge import RSession, open_r, rpy2_version, to_draws
from dpsurvey.baselines.sampling import Sampling
from dpsurvey.errors import MissingDependencyError

if TYPE_CHECKING:
    from dpsurvey.baselines.erl_native import Tick

Array = NDArray[np.float64]


def run_in_r(
    table: RankTable, sampling: Sampling, *, engine: str, tick: Tick
) -> tuple[Array, dict[str, Any]]:
    """Run every chain in R, one after the other, each with its own seed.

    Parameters
    ----------
    table : RankTable
    sampling : Sampling
        ``nsamp`` and ``odens`` go to R under these names: all iterations of a chain, since sbgcop has no
        burn-in, and iterations between kept draws. ``plugin_threshold=None`` is R's ``Inf``.
    engine : {"sbgcop", "r"}
    tick : callable
        Told the number of iterations done, once a chain.

    Returns
    -------
    draws : ndarray, shape (chain, draw, p, p)
    facts : dict
        ``chain_seeds`` and ``versions`` (of R, rpy2 and sbgcop).

    Raises
    ------
    MissingDependencyError, EngineError
        See :func:`dpsurvey.baselines.rbridge.open_r`; and if sbgcop is asked for and not installed.
    """
    session = open_r()
    versions = {"R": session.version, "rpy2": rpy2_version()}
    if engine == "sbgcop":
        versions["sbgcop"] = _sbgcop_version(session)
    seeds = chain_seeds(sampling.seed, sampling.chains)
    chains = []
    for seed in seeds:
        psamp = sbgcop_mcmc(
            session,
            table,
            engine=engine,
            S0=sampling.S0,
            n0=sampling.n0,
            nsamp=sampling.nsamp,
            odens=sampling.odens,
            plugin_threshold=sampling.plugin_threshold,
            seed=seed,
        )
        chains.append(psamp[-sampling.draws :])
        tick(sampling.nsamp)
    return np.stack(chains), {"chain_seeds": seeds, "versions": versions}


def sbgcop_mcmc(
    session: RSession,
    table: RankTable,
    *,
    engine: str,
    S0: Array,
    n0: float,
    nsamp: int,
    odens: int,
    plugin_threshold: float | None,
    seed: int,
) -> Array:
    """Run one chain of ``sbgcop::sbgcop.mcmc`` or of our R code with that contract.

    The dense ranks cross, as doubles with -1 as NA, and no names: factors, text and integers beyond 32 bits
    would be changed on the way, and the likelihood sees ranks alone.

    Parameters
    ----------
    session : RSession
    table : RankTable
    engine : {"sbgcop", "r"}
    S0 : ndarray, shape (p, p)
    n0 : float
        Prior: S ~ inverse-Wishart(n0, n0 S0).
    nsamp : int
        Iterations, none dropped.
    odens : int
        Iterations between kept draws.
    plugin_threshold : float or None
        Columns with more distinct values (missing counts as one) keep their normal scores; None for no such
        column.
    seed : int
        For R's generator, whose own state is put back afterwards.

    Returns
    -------
    ndarray, shape (nsamp // odens, p, p)
    """
    Y = np.where(table.codes < 0, np.nan, table.codes.astype(np.float64))
    threshold = float("inf") if plugin_threshold is None else plugin_threshold
    return to_draws(session.call("erl_draws", engine, Y, S0, n0, nsamp, odens, threshold, seed))


def chain_seeds(seed: int, chains: int) -> list[int]:
    """Return different seeds that R takes (below 2**31), a function of `seed`.

    Examples
    --------
    >>> len(set(chain_seeds(1, 50)))
    50
    """
    words = np.random.SeedSequence(seed).generate_state(2 * chains + 8) >> 1
    return list(dict.fromkeys(words.tolist()))[:chains]


def _sbgcop_version(session: RSession) -> str:
    version = session.package_version("sbgcop")
    if version is None:
        raise MissingDependencyError(
            "the R package sbgcop is not installed",
            expected="sbgcop, from CRAN: in R, install.packages('sbgcop')",
            hint="engine='r' runs R code with the same contract; engine='native' needs no R",
        )
    return version
