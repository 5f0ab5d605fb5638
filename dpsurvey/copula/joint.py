"""The calibrated joint posterior: draws for functionals of several correlations at once.

Intervals of single correlations come from the product likelihood. Regression coefficients, partial correlations and
R squared come from here: the product times the density that couples the counts (:mod:`dpsurvey.copula.coupling`),
with the counts' correlations held at an estimate of R. The estimate is the mean of the product posterior, then,
once more, the mean of the posterior that it gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.chains import sample
from dpsurvey.copula.coupling import couple
from dpsurvey.copula.inversion import InversionTable
from dpsurvey.copula.likelihood import LikelihoodTable
from dpsurvey.privacy.release import Release

PILOT_DRAWS = 300  # of one chain, whose mean is the second estimate


def joint_draws(
    release: Release,
    table: LikelihoodTable,
    inversion: InversionTable,
    R: NDArray[np.float64],
    *,
    lkj: float,
    draws: int,
    chains: int,
    seed: int | None,
    progress: bool,
) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """Return draws from the calibrated joint posterior, and how they were made.

    Parameters
    ----------
    release : Release
    table : LikelihoodTable
        Of its pairs, informative priors included.
    inversion : InversionTable
        Of `table`.
    R : numpy.ndarray, shape (p, p)
        Mean of the product posterior.
    lkj : float
        eta of the LKJ prior.
    draws, chains : int
    seed : int or None
    progress : bool

    Returns
    -------
    draws : numpy.ndarray of float64, shape (chains, draws, p, p)
    facts : dict
        ``accepted``, the share of proposals accepted, and ``sweeps_per_draw``.
    """
    children = np.random.SeedSequence(seed).generate_state(2)
    first = couple(release, inversion, R, lkj)
    pilot = sample(
        table,
        release.p,
        draws=PILOT_DRAWS,
        chains=1,
        seed=int(children[0]),
        coupling=first,
        inversion=inversion,
    )
    second = couple(release, inversion, pilot.draws.mean(axis=(0, 1)), lkj)
    sampled = sample(
        table, release.p, draws=draws, chains=chains, seed=int(children[1]), progress=progress,
        coupling=second, inversion=inversion,
    )  # fmt: skip
    facts = {"accepted": round(sampled.accepted, 4), "sweeps_per_draw": sampled.sweeps_per_draw}
    return sampled.draws, facts
