"""The noise-aware composite log-likelihood of a correlation matrix given a release (paper, eqs. 17 and 18).

``Pr(t_tilde | R_jk) = sum_t Pr(t_tilde | t) Pr(t | R_jk)`` for each pair, and their product over pairs. It
depends on R_jk through eta alone, as a difference of two log totals of tilted weights, with noise and without.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsurvey.copula.correlation import pair_values
from dpsurvey.copula.hermite import adaptive_nodes, interpolate
from dpsurvey.copula.jit import njit
from dpsurvey.copula.quadrant import LARGEST_ETA, QuadrantLaw, log_odds
from dpsurvey.copula.threads import available_cores
from dpsurvey.errors import ArgumentError

if TYPE_CHECKING:
    from dpsurvey.privacy.mechanisms import Mechanism
    from dpsurvey.privacy.release import Release

_ABSOLUTE, _RELATIVE = 2e-10, 2e-11  # per pair, in log-likelihood; relative to the distance below the mode

LAWS = {QuadrantLaw.statistic: QuadrantLaw}


def sampling_law(release: Release) -> QuadrantLaw:
    """Return the law of the release's true counts given a correlation."""
    return LAWS[release.statistic](release.n)


def log_likelihood(release: Release, R: ArrayLike) -> NDArray[np.float64]:
    """Return the exact composite log-likelihood, summed directly: slow, the yardstick of the tabulated one.

    Parameters
    ----------
    release : Release
    R : array-like, shape (..., p, p)
        Correlation matrices.

    Returns
    -------
    numpy.ndarray of float64, shape (...)
        ``sum_jk log sum_t Pr(t_tilde_jk | t) Pr(t | R_jk)`` (paper, eqs. 17 and 18).

    Examples
    --------
    >>> import numpy as np, pandas as pd, dpsurvey as dps
    >>> df = pd.DataFrame(np.arange(40.0).reshape(20, 2), columns=["x", "y"])
    >>> release = dps.release(df, epsilon=1.0, insecure_rng=np.random.default_rng(1))
    >>> bool(log_likelihood(release, np.eye(2)) < log_likelihood(release, [[1, 0.9], [0.9, 1]]))
    True
    """
    from scipy.special import logsumexp

    law, noise = sampling_law(release), release.noise_law()
    correlations = _pairs(release, R)
    total = np.zeros(correlations.shape[:-1])
    for pair, noisy in enumerate(release.counts):
        log_noise = noise.log_pmf(noisy, law.support)
        total += logsumexp(log_noise + law.log_pmf(law.support, correlations[..., pair, None]), axis=-1)
    return total


@dataclass(frozen=True, slots=True, eq=False)
class LikelihoodTable:
    """The log-likelihood of every pair, tabulated in eta: piecewise quintic on an adaptive grid.

    Parameters
    ----------
    nodes : numpy.ndarray, shape (N,)
        Grids of all pairs one after the other, each increasing in eta.
    jets : numpy.ndarray, shape (N, 3)
        Log-likelihood and its first two derivatives in eta at the nodes.
    offsets : numpy.ndarray of int, shape (m + 1,)
        Pair i has the nodes ``offsets[i]:offsets[i + 1]``.
    """

    nodes: NDArray[np.float64]
    jets: NDArray[np.float64]
    offsets: NDArray[np.int64]

    @property
    def m(self) -> int:
        """Number of pairs."""
        return len(self.offsets) - 1

    def pair(self, i: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return nodes and jets of pair i."""
        part = slice(self.offsets[i], self.offsets[i + 1])
        return self.nodes[part], self.jets[part]

    def pair_log_likelihood(self, i: int, R: ArrayLike) -> NDArray[np.float64]:
        """Return log Pr(t_tilde_i | R) for correlations R of any shape."""
        return _evaluate(log_odds(R), *self.pair(i))

    def log_likelihood(self, R: ArrayLike) -> NDArray[np.float64]:
        """Return the composite log-likelihood of correlation matrices.

        Parameters
        ----------
        R : array-like, shape (..., p, p)

        Returns
        -------
        numpy.ndarray of float64, shape (...)
        """
        R = np.asarray(R, dtype=float)
        values = pair_values(R)
        if values.shape[-1] != self.m:
            raise ArgumentError("R has the wrong size", expected=f"{self.m} pairs", got=str(R.shape))
        parts = [self.pair_log_likelihood(i, values[..., i]) for i in range(self.m)]
        return np.asarray(np.sum(parts, axis=0))


def tabulate(release: Release) -> LikelihoodTable:
    """Tabulate the log-likelihood of every pair once, so that a sampler never sums over counts again.

    Parameters
    ----------
    release : Release

    Returns
    -------
    LikelihoodTable
        About 1e-9 a pair from the direct sum near the mode.

    Notes
    -----
    The grid is fine within a few standard deviations of the mode and coarse elsewhere, and each exact value
    sums over the standard deviation of a count, so the cost grows like sqrt(n).
    """
    return tabulate_counts(sampling_law(release), release.noise_law(), release.counts)


def tabulate_counts(law: QuadrantLaw, noise: Mechanism, counts: Sequence[int]) -> LikelihoodTable:
    """Tabulate the log-likelihood of noisy counts, one part a count; see :func:`tabulate`.

    Parameters
    ----------
    law : QuadrantLaw
        Of the true counts.
    noise : Mechanism
    counts : sequence of int
        Noisy counts; equal ones are tabulated once.

    Returns
    -------
    LikelihoodTable
    """
    distinct = sorted(set(counts))
    true = law.support.astype(float)

    def one(noisy: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        log_noise = noise.log_pmf(noisy, true)
        nearest = float(noise.log_pmf(noisy, float(np.clip(noisy, law.lower, law.upper))))
        log_noise -= nearest  # far below 0 for a count far outside the range, where it would cost digits
        nodes, jets = adaptive_nodes(law.log_weights, log_noise, LARGEST_ETA, _ABSOLUTE, _RELATIVE)
        jets[:, 0] += nearest
        return nodes, jets

    with ThreadPoolExecutor(available_cores()) as pool:
        tables = dict(zip(distinct, pool.map(one, distinct), strict=True))
    parts = [tables[noisy] for noisy in counts]
    sizes = [len(nodes) for nodes, _ in parts]
    return LikelihoodTable(
        nodes=np.concatenate([nodes for nodes, _ in parts]),
        jets=np.concatenate([jets for _, jets in parts]),
        offsets=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
    )


def _pairs(release: Release, R: ArrayLike) -> NDArray[np.float64]:
    R = np.asarray(R, dtype=float)
    if R.shape[-2:] != (release.p, release.p):
        raise ArgumentError(
            "R has the wrong size", expected=f"(..., {release.p}, {release.p})", got=str(R.shape)
        )
    return pair_values(R)


def _evaluate(
    eta: NDArray[np.float64], nodes: NDArray[np.float64], jets: NDArray[np.float64]
) -> NDArray[np.float64]:
    values = _interpolate_all(np.ascontiguousarray(eta).ravel(), nodes, jets)
    return np.asarray(values).reshape(eta.shape)


@njit
def _interpolate_all(
    eta: NDArray[np.float64], nodes: NDArray[np.float64], jets: NDArray[np.float64]
) -> NDArray[np.float64]:
    values = np.empty(eta.shape[0])
    for i in range(eta.shape[0]):
        values[i] = interpolate(eta[i], nodes, jets)[0]
    return values
