"""Bayes-NA: the noise-aware posterior of the copula correlations given a release (paper, section 3.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.chains import sample
from dpsurvey.copula.likelihood import tabulate
from dpsurvey.copula.posterior import CorrelationPosterior
from dpsurvey.errors import ArgumentError, ArgumentTypeError, UnknownNameError
from dpsurvey.privacy.release import Release

ENGINES = ("gibbs", "stan", "stan-direct")


def bayes_na(
    release: Release,
    *,
    draws: int = 1000,
    chains: int = 4,
    seed: int | None = None,
    engine: str = "gibbs",
    progress: bool = True,
) -> CorrelationPosterior:
    """Draw from the posterior of R given a release: composite likelihood, LKJ(1) prior, noise accounted for.

    The likelihood of each noisy count sums over the true count (paper, eq. 17), the composite likelihood is
    their product over pairs (eq. 18), and the prior is uniform over correlation matrices. It takes a release
    and never rows, so it costs no privacy, however often it is run.

    Parameters
    ----------
    release : Release
    draws : int, default 1000
        Kept draws of each chain.
    chains : int, default 4
    seed : int, optional
        For reproducible draws. It has nothing to do with the noise of the release.
    engine : {"gibbs", "stan", "stan-direct"}
        What draws; the posterior is the same. "gibbs": the embedded sampler, the fastest and the only one that
        needs nothing installed. "stan": NUTS through CmdStan on the tabulated likelihood. "stan-direct": the
        paper's own program, which sums over all true counts at every step: minutes to hours.
    progress : bool, default True
        Show a progress bar.

    Returns
    -------
    CorrelationPosterior
        Draws of shape (chains, draws, p, p), on the latent standard normal scale.

    Raises
    ------
    ArgumentTypeError
        If `release` is not a Release: rows never go in here.
    ArgumentError, UnknownNameError
        If another argument is not usable.
    MissingDependencyError, EngineError
        If Stan is asked for and not installed, or stops with an error.

    Warns
    -----
    DivergenceWarning, LowEnergyWarning, ConvergenceWarning, SlowMixingWarning
        If Stan's diagnostics give reason to doubt its draws.

    Notes
    -----
    Intervals of single correlations are calibrated. Joint functionals, such as regression coefficients, are
    conservative, since a composite likelihood takes the counts for independent: at p = 3 without noise, 95%
    intervals of coefficients cover in 98% of runs; where noise dominates, in 94 to 95%.

    Examples
    --------
    >>> import numpy as np, pandas as pd, dpsurvey as dps
    >>> rng = np.random.default_rng(1)
    >>> df = pd.DataFrame(rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 2000), columns=["x", "y"])
    >>> release = dps.release(df, epsilon=1.0, insecure_rng=rng)  # a simulation: the generator is seeded
    >>> posterior = dps.bayes_na(release, seed=1, progress=False)
    >>> posterior.draws.shape
    (4, 1000, 2, 2)
    >>> lower, upper = posterior.interval()
    >>> bool(lower[0, 1] < 0.6 < upper[0, 1])
    True
    """
    check_release(release)
    check_options(draws, chains, engine, seed)
    if engine == "gibbs":
        matrices, facts = _gibbs(release, draws=draws, chains=chains, seed=seed, progress=progress)
    else:
        from dpsurvey.copula import stan

        matrices, facts = stan.sample(
            release, engine=engine, draws=draws, chains=chains, seed=seed, progress=progress
        )
    return CorrelationPosterior(
        draws=matrices,
        variables=release.variables,
        labels=release.labels,
        method="Bayes-NA",
        engine=engine,
        private=True,
        release=release,
        seed=seed,
        info={"prior": "LKJ(1)", "likelihood": "noise-aware composite", **facts},
    )


def _gibbs(
    release: Release, *, draws: int, chains: int, seed: int | None, progress: bool
) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """Return draws of the embedded sampler, shape (chains, draws, p, p), and how they were made."""
    sampled = sample(tabulate(release), release.p, draws=draws, chains=chains, seed=seed, progress=progress)
    facts: dict[str, Any] = {
        "warmup_sweeps": sampled.warmup_sweeps,
        "sweeps_per_draw": sampled.sweeps_per_draw,
        "joint_moves": sampled.joint_moves,
    }
    return sampled.draws, facts


def check_options(draws: int, chains: int, engine: str, seed: int | None = None) -> None:
    """Refuse options of the sampler that it cannot take, and an engine that is not installed.

    Raises
    ------
    ArgumentTypeError, ArgumentError, UnknownNameError, MissingDependencyError
    """
    for name, value in (("draws", draws), ("chains", chains)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise ArgumentTypeError(f"{name} is not an integer", got=type(value).__name__)
        if value < 1:
            raise ArgumentError(f"{name} is below 1", expected="1 or more", got=str(value))
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise ArgumentTypeError(
            "seed is not an integer", expected="0 or more, or None", got=type(seed).__name__
        )
    if seed is not None and seed < 0:
        raise ArgumentError("seed is below 0", expected="0 or more, or None", got=str(seed))
    if engine not in ENGINES:
        raise UnknownNameError("no such engine", expected=" or ".join(map(repr, ENGINES)), got=repr(engine))
    if engine != "gibbs":
        from dpsurvey.copula.cmdstan import find_cmdstan

        find_cmdstan()


def check_release(release: Release) -> None:
    """Refuse anything but a release.

    Raises
    ------
    ArgumentTypeError
    """
    if not isinstance(release, Release):
        raise ArgumentTypeError(
            "inference takes a release, never rows",
            expected="a dpsurvey.Release",
            got=type(release).__name__,
            hint="release = dpsurvey.release(df, epsilon=...), then pass the release",
        )
