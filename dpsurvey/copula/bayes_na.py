"""Bayes-NA: the noise-aware posterior of the copula correlations given a release (paper, section 3.3)."""

from __future__ import annotations

from typing import Any

from dpsurvey.copula.chains import sample
from dpsurvey.copula.coupling import product
from dpsurvey.copula.inversion import build_inversion
from dpsurvey.copula.joint import joint_draws
from dpsurvey.copula.latent_radius import sample_with_radius
from dpsurvey.copula.likelihood import tabulate
from dpsurvey.copula.posterior import CorrelationPosterior
from dpsurvey.copula.priors import PairPriors, add_priors, check_lkj, pair_densities
from dpsurvey.errors import ArgumentError, ArgumentTypeError, UnknownNameError
from dpsurvey.privacy.release import Release
from dpsurvey.texts import shown

ENGINES = ("gibbs", "latent-radius", "stan", "stan-direct")
_WITH_STAN = ("stan", "stan-direct")


def bayes_na(
    release: Release,
    *,
    draws: int = 1000,
    chains: int = 4,
    seed: int | None = None,
    engine: str = "gibbs",
    joint: bool = True,
    lkj: float = 1.0,
    informative: PairPriors | None = None,
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
    engine : {"gibbs", "latent-radius", "stan", "stan-direct"}
        What draws; the posterior is the same but for "latent-radius". "gibbs": the embedded sampler, the fastest.
        "stan": NUTS through CmdStan on the tabulated likelihood. "stan-direct": the paper's own program, which sums
        over all true counts at every step: minutes to hours. "latent-radius": for L-infinity noise, a check: it
        carries the noise's unknown radius, which ties the counts together, where the others take each count's noise
        for independent; effective draws of the radius are in ``info["radius_ess"]``.
    joint : bool, default True
        Also draw from the calibrated joint posterior, ``posterior.joint``, from which regressions are computed;
        with two variables it is the same and is left out.
    lkj : float, default 1.0
        eta of the LKJ(eta) prior: above 1 it prefers weak correlations. For the "gibbs" engine.
    informative : mapping of (str, str) to (float, float), optional
        Priors of single correlations, multiplied to it: the parameters of a Beta law of (R+1)/2. For the "gibbs"
        engine.
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
    Intervals of single correlations are calibrated: the draws come from a product over pairs, which takes the
    counts for independent. Joint functionals, such as regression coefficients, would have intervals that are too
    long (at p = 3 without noise, 95% intervals cover in 98% of runs), so they are computed from ``joint``, where
    the counts' correlations are accounted for; its intervals of single correlations are a few per cent longer.

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
    lkj, densities = check_lkj(lkj), pair_densities(release, informative)
    if engine != "gibbs" and (lkj != 1.0 or densities):
        raise ArgumentError(
            "this engine has the prior LKJ(1)",
            expected="lkj=1 and no informative priors, or engine='gibbs'",
            got=f"engine={engine!r}",
        )
    facts: dict[str, Any]
    table = add_priors(tabulate(release), densities)
    inversion = build_inversion(table)
    if engine == "gibbs":
        sampled = sample(
            table, release.p, draws=draws, chains=chains, seed=seed, progress=progress, inversion=inversion,
            coupling=None if lkj == 1.0 else product(lkj),
        )  # fmt: skip
        matrices, facts = (
            sampled.draws,
            {
                "warmup_sweeps": sampled.warmup_sweeps,
                "sweeps_per_draw": sampled.sweeps_per_draw,
                "joint_moves": sampled.joint_moves,
            },
        )
    elif engine == "latent-radius":
        matrices, facts = sample_with_radius(
            release, table, inversion, draws=draws, chains=chains, seed=seed, progress=progress
        )
    else:
        from dpsurvey.copula import stan

        matrices, facts = stan.sample(
            release, engine=engine, draws=draws, chains=chains, seed=seed, progress=progress
        )
    calibrated = None
    if joint and release.p > 2:
        center = matrices.mean(axis=(0, 1))
        calibrated, facts["joint"] = joint_draws(
            release,
            table,
            inversion,
            center,
            lkj=lkj,
            draws=draws,
            chains=chains,
            seed=seed,
            progress=progress,
        )
    prior = f"LKJ({lkj:g})"
    if densities:
        facts["informative"] = {" ~ ".join(release.pairs[i]): list(ab) for i, ab in densities.items()}
    return CorrelationPosterior(
        draws=matrices,
        variables=release.variables,
        labels=release.labels,
        method="Bayes-NA",
        engine=engine,
        private=True,
        release=release,
        seed=seed,
        info={"prior": prior, "likelihood": "noise-aware composite", **facts},
        joint=calibrated,
    )


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
    if not isinstance(engine, str) or engine not in ENGINES:
        raise UnknownNameError("no such engine", expected=" or ".join(map(repr, ENGINES)), got=shown(engine))
    if engine in _WITH_STAN:
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
