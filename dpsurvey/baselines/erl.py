"""Hoff's (2007) extended rank likelihood: the non-private yardstick for Gaussian-copula correlations."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpsurvey.baselines.erl_plan import make_plan
from dpsurvey.baselines.mixing import latent_ess
from dpsurvey.baselines.ranks import RankTable
from dpsurvey.baselines.sampling import (
    Sampling,
)
from dpsurvey.errors import ArgumentError
from dpsurvey.texts import shown

if TYPE_CHECKING:
    from dpsurvey.baselines.erl_native import Tick
    from dpsurvey.copula.posterior import CorrelationPosterior

Array = NDArray[np.float64]
ENGINES = ("native", "r", "sbgcop", "auto")


def erl(
    df: pd.DataFrame,
    columns: Sequence[str] | None = None,
    *,
    engine: str = "native",
    draws: int = 1000,
    burn_in: int | None = None,
    chains: int = 4,
    prior: tuple[ArrayLike | None, float | None] | None = None,
    plugin_threshold: float | None = 100,
    odens: int = 1,
    seed: int | None = None,
    progress: bool = True,
) -> CorrelationPosterior:
    """Draw Gaussian-copula correlations under the extended rank likelihood. NOT PRIVATE.

    The latent rows are Z_i ~ N(0, S) and only the order of the cells within each column is used:
    z_ij < z_i'j wherever x_ij < x_i'j (Hoff 2007, section 3). Ties and ordinal columns are therefore at
    home, and the latents of missing cells are drawn, so that no row is dropped. The result is computed from
    the confidential rows without any noise. It is the yardstick for a private analysis and must be guarded
    like the rows themselves.

    Parameters
    ----------
    df : pandas.DataFrame
        Numeric, boolean, nullable or ordered categorical columns. Cells may be missing.
    columns : sequence of str, optional
        The variables; every column where None.
    engine : {"native", "r", "sbgcop", "auto"}
        "native": compiled here. "sbgcop": the R package of that name, through rpy2. "r": R code that comes
        with dpsurvey and keeps sbgcop's contract, through the same rpy2 path. "auto": sbgcop where it is
        installed, else "r" where R and rpy2 are, else "native"; it prints which it took and why.
    draws, chains : int
        Kept draws of each chain, and number of chains.
    burn_in : int, optional
        Iterations dropped at the start of each chain. None: 500, or none when every column is plug-in and
        complete, as the draws are then independent. Rounded up to a multiple of `odens`.
    prior : (S0, n0), optional
        S ~ inverse-Wishart(n0, n0 S0). Either may be None: S0 is then the identity, n0 is p + 2.
    plugin_threshold : float or None, default 100
        As in R, a column with more distinct values than this ("missing" counting as one) is "plug-in": its
        latents are fixed at their normal scores, qnorm(rank / (N + 1)). None asks for the full rank
        likelihood of every column, whose latents mix slowly where a column has many levels:
        ``info["latent_ess"]`` of the result shows how slowly for "native", which moves many latents together
        to help it; R's sampler needs tens of thousands of iterations there.
    odens : int, default 1
        Iterations between kept draws (sbgcop's "output density").
    seed : int, optional
        The same seed and engine give the same numbers. None draws one and records it.
    progress : bool, default True
        Whether to show a progress bar.

    Returns
    -------
    CorrelationPosterior
        ``method="ERL"``, ``private=False``; draws of shape (chain, draw, p, p). ``info`` holds the settings,
        ``plug_in`` (names), ``independent`` (whether the draws are), versions, and for "native"
        ``latent_ess``: for each column whose latents are drawn, the effective sample size of their shape.

    Raises
    ------
    DomainError
        For p < 2, n < 3, and columns that are constant, wholly missing, without an order, infinite, or that
        order the rows like another one; see :func:`dpsurvey.baselines.ranks.rank_table`.
    ArgumentError, ArgumentTypeError
        For settings out of range.
    MissingDependencyError
        If the engine needs R, rpy2 or sbgcop and they are not to be had.
    EngineError
        If R stops with an error, is called from a second thread, or Python itself runs inside R.

    Warns
    -----
    SlowMixingWarning
        If a correlation, or the shape of a column's latents ("native"), has fewer than 100 effective draws, or
        R draws the latents of columns with many levels. Columns that others nearly determine mix slowly in
        every engine.

    References
    ----------
    Hoff, P. D. (2007). Extending the rank likelihood for semiparametric copula estimation. Annals of Applied
    Statistics 1, 265-283.

    Examples
    --------
    >>> rng = np.random.default_rng(7)
    >>> x = rng.standard_normal(500)
    >>> df = pd.DataFrame({"x": x, "y": 0.8 * x + 0.6 * rng.standard_normal(500)})
    >>> posterior = erl(df, draws=500, chains=2, seed=1, progress=False)
    >>> posterior.private, posterior.info["independent"]
    (False, True)
    >>> bool(abs(posterior.mean()[0, 1] - 0.8) < 0.05)
    True
    """
    if not isinstance(engine, str) or engine not in ENGINES:
        raise ArgumentError("unknown engine", expected=" or ".join(map(repr, ENGINES)), got=shown(engine))
    plan = make_plan(
        df,
        columns,
        draws=draws,
        burn_in=burn_in,
        chains=chains,
        prior=prior,
        plugin_threshold=plugin_threshold,
        odens=odens,
        seed=seed,
    )
    taken, matrices, facts = run_engine(engine, plan.table, plan.sampling, progress)
    return plan.posterior(taken, matrices, facts)


def run_engine(
    engine: str, table: RankTable, sampling: Sampling, progress: bool
) -> tuple[str, Array, dict[str, Any]]:
    """Sample, and return the engine taken, draws (chain, draw, p, p) and what the engine has to say."""
    facts: dict[str, Any] = {}
    if engine == "auto":
        from dpsurvey.baselines.rbridge import best_engine

        engine, reason = best_engine()
        facts["engine_reason"] = reason
        print(f"erl: engine {engine!r} taken: {reason}")
    total = sampling.chains * sampling.nsamp
    with _progress_bar(total, f"ERL ({engine})", progress) as tick:
        if engine == "native":
            matrices, more = _native(table, sampling, tick)
        else:
            from dpsurvey.baselines.sbgcop import run_in_r

            matrices, more = run_in_r(table, sampling, engine=engine, tick=tick)
    return engine, matrices, facts | more


def _native(table: RankTable, sampling: Sampling, tick: Tick) -> tuple[Array, dict[str, Any]]:
    from dpsurvey.baselines.erl_native import lay_out, run_chains

    layout = lay_out(table, sampling.S0, sampling.n0, sampling.plugin_threshold)
    streams = np.random.SeedSequence(sampling.seed).spawn(sampling.chains)
    matrices, shape = run_chains(
        layout,
        [np.random.Generator(np.random.PCG64DXSM(stream)) for stream in streams],
        draws=sampling.draws,
        burn_in=sampling.nsamp - sampling.draws * sampling.odens,
        odens=sampling.odens,
        tick=tick,
    )
    names = [name for name, ranked in zip(table.names, layout.ranked, strict=True) if ranked]
    ess = latent_ess(shape[:, :, layout.ranked, :])
    return matrices, {"latent_ess": dict(zip(names, ess, strict=True))}


@contextmanager
def _progress_bar(total: int, title: str, show: bool) -> Iterator[Tick]:
    """Yield a function that moves the bar, safe to call from any thread."""
    from tqdm.auto import tqdm

    lock = threading.Lock()
    with tqdm(total=total, desc=title, unit="it", disable=not show, delay=0.5, leave=False) as bar:

        def tick(iterations: int) -> None:
            with lock:
                bar.update(iterations)

        yield tick
