"""MLE-NN: a point estimate from each pair's adjusted count, projected to a correlation matrix (paper, section 4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.bayes_na import check_release
from dpsurvey.copula.correlation import matrix_from_pairs, project_indefinite
from dpsurvey.copula.estimate import CorrelationEstimate
from dpsurvey.copula.likelihood import sampling_law
from dpsurvey.errors import UnknownNameError
from dpsurvey.privacy.mechanisms import Mechanism
from dpsurvey.privacy.release import Release

ADJUSTMENTS = ("btgm", "tgm")


def mle_nn(release: Release, *, adjust: str = "btgm") -> CorrelationEstimate:
    """Estimate R from a release: one maximum likelihood estimate a pair, then the nearest correlation matrix.

    Each noisy count is brought back into the range of true counts and taken for exact; R_jk solves
    ``E[T | R_jk] = count``, -1 at the smallest count and +1 at the largest. If the matrix has a negative
    eigenvalue, the nearest correlation matrix in Frobenius norm replaces it (Higham, 2002).

    Parameters
    ----------
    release : Release
    adjust : {"btgm", "tgm"}
        How counts come back into range: their posterior mean given the noisy count under a uniform prior over
        the range (paper, eq. 22), a real number; or clamped to it. Counts of the "rgm" mechanism lie in range
        already, so "tgm" leaves them as they are, which is the paper's use of it.

    Returns
    -------
    CorrelationEstimate
        Its ``info`` holds ``adjust``, ``boundary`` (for each pair, whether its estimate is -1 or +1),
        ``projected`` and ``frobenius_distance`` (how far the projection moved the matrix).

    Raises
    ------
    ArgumentTypeError
        If `release` is not a Release.
    UnknownNameError
        If there is no such adjustment.

    Examples
    --------
    >>> import numpy as np, pandas as pd, dpsurvey as dps
    >>> rng = np.random.default_rng(1)
    >>> df = pd.DataFrame(rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 2000), columns=["x", "y"])
    >>> estimate = dps.mle_nn(dps.release(df, epsilon=1.0, insecure_rng=rng))
    >>> float(estimate.R[0, 1].round(1))
    0.6
    """
    check_release(release)
    check_adjustment(adjust)
    law = sampling_law(release)
    if adjust == "btgm":
        counts = posterior_mean_count(release.noisy, law.lower, law.upper, release.noise_law())
    else:
        counts = np.clip(release.noisy, law.lower, law.upper).astype(float)
    estimates = np.array([law.solve(float(count)) for count in counts])
    matrix = matrix_from_pairs(estimates, release.p)
    R, moved = project_indefinite(matrix)
    boundary = [bool(value) for value in np.abs(estimates) == 1.0]
    return CorrelationEstimate(
        R=R,
        variables=release.variables,
        labels=release.labels,
        method="MLE-NN",
        private=True,
        release=release,
        info={"adjust": adjust, "boundary": boundary, **moved},
    )


def check_adjustment(adjust: str) -> None:
    """Refuse an unknown way to bring counts back into range.

    Raises
    ------
    UnknownNameError
    """
    if adjust not in ADJUSTMENTS:
        raise UnknownNameError(
            "no such adjustment", expected=" or ".join(map(repr, ADJUSTMENTS)), got=repr(adjust)
        )


def posterior_mean_count(
    noisy: NDArray[np.int64], lower: int, upper: int, mechanism: Mechanism
) -> NDArray[np.float64]:
    """Return E[true count | noisy count] under a uniform prior over lower..upper (BTGM; paper, eq. 22).

    Summed in logs, since the closed form cancels for tiny epsilon.

    Parameters
    ----------
    noisy : numpy.ndarray of int, shape (m,)
        Any integers.
    lower, upper : int
        Range of true counts.
    mechanism : Mechanism
        Whose noise law to use.

    Returns
    -------
    numpy.ndarray of float64, shape (m,)

    Examples
    --------
    >>> from dpsurvey.privacy.mechanisms import Geometric
    >>> posterior_mean_count(np.array([-45, 5]), 0, 10, Geometric(1.0, 1.0)).round(6)
    array([0.581793, 5.      ])
    """
    support = np.arange(lower, upper + 1, dtype=float)
    means = np.empty(len(noisy))
    for i, count in enumerate(noisy):
        log_weight = mechanism.log_pmf(float(count), support)
        weight = np.exp(log_weight - log_weight.max())
        means[i] = np.dot(weight, support) / weight.sum()
    return means
