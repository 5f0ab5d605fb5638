"""MLE-NN: a point estimate from each pair's adjusted count, projected to a correlation matrix (paper, section 4)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.bayes_na import check_release
from dpsurvey.copula.correlation import matrix_from_pairs, project_indefinite
from dpsurvey.copula.estimate import CorrelationEstimate
from dpsurvey.copula.likelihood import SamplingLaw, sampling_laws
from dpsurvey.copula.peaks import log_integral
from dpsurvey.errors import UnknownNameError
from dpsurvey.privacy.mechanisms import NoiseLaw
from dpsurvey.privacy.release import Release
from dpsurvey.texts import shown

ADJUSTMENTS = ("btgm", "tgm")
_SUMMED_UP_TO = 200_000  # counts in the range of a posterior mean


def mle_nn(release: Release, *, adjust: str = "btgm") -> CorrelationEstimate:
    """Estimate R from a release: one maximum likelihood estimate a pair, then the nearest correlation matrix.

    Each noisy count is brought back into the range of true counts and taken for exact; R_jk solves
    ``E[count | R_jk] = count`` (for concordance ``R = sin(pi tau / 2)``), -1 or +1 at the ends of the range.
    If the matrix has a negative eigenvalue, the nearest correlation matrix in Frobenius norm replaces it (Higham,
    2002).

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
    laws, noise = sampling_laws(release), release.noise_law()
    estimates = np.array(
        [
            law.solve(_adjusted(noisy, law, noise.marginal(i), adjust))
            for i, (law, noisy) in enumerate(zip(laws, release.counts, strict=True))
        ]
    )
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
    if not isinstance(adjust, str) or adjust not in ADJUSTMENTS:
        raise UnknownNameError(
            "no such adjustment", expected=" or ".join(map(repr, ADJUSTMENTS)), got=shown(adjust)
        )


def _adjusted(noisy: int, law: SamplingLaw, noise: NoiseLaw, adjust: str) -> float:
    """Return a noisy count brought back into the range of true ones."""
    if adjust == "tgm":
        return float(min(max(noisy, law.lower), law.upper))
    return float(posterior_mean_count(np.array([noisy]), law.lower, law.upper, noise)[0])


def posterior_mean_count(
    noisy: NDArray[np.int64], lower: int, upper: int, noise: NoiseLaw
) -> NDArray[np.float64]:
    """Return E[true count | noisy count] under a uniform prior over lower..upper (BTGM; paper, eq. 22).

    Summed in logs, since the closed form cancels for tiny epsilon; integrated where the range is large.

    Parameters
    ----------
    noisy : numpy.ndarray of int, shape (m,)
        Any integers.
    lower, upper : int
        Range of true counts.
    noise : NoiseLaw

    Returns
    -------
    numpy.ndarray of float64, shape (m,)

    Examples
    --------
    >>> from dpsurvey.privacy.mechanisms import Geometric
    >>> posterior_mean_count(np.array([-45, 5]), 0, 10, Geometric(1.0, 1.0)).round(6)
    array([0.581793, 5.      ])
    """
    if upper - lower > _SUMMED_UP_TO:
        return np.array(
            [_mean_by_integrals(float(count), float(lower), float(upper), noise) for count in noisy]
        )
    support = np.arange(lower, upper + 1, dtype=float)
    means = np.empty(len(noisy))
    for i, count in enumerate(noisy):
        log_weight = noise.log_pmf(float(count), support)
        weight = np.exp(log_weight - log_weight.max())
        means[i] = np.dot(weight, support) / weight.sum()
    return means


def _mean_by_integrals(noisy: float, lower: float, upper: float, noise: NoiseLaw) -> float:
    """Return the mean of the noise law around `noisy` cut to lower..upper, as a ratio of two integrals."""
    peak, power = min(max(noisy, lower), upper), np.array([[0.0], [1.0]])

    def log_integrand(count: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(divide="ignore", invalid="ignore"):
            log_distance = np.where(power > 0.0, np.log(count - lower), 0.0)
        return np.asarray(noise.log_pmf(noisy, count) + log_distance)

    scale = np.full(2, min(math.sqrt(noise.variance), upper - lower))
    total = log_integral(log_integrand, peak, np.full(2, peak), scale, lower, upper)
    return lower + math.exp(total[1] - total[0])
