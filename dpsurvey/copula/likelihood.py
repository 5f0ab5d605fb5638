"""The noise-aware composite log-likelihood of a correlation matrix given a release (paper, eqs. 17 and 18).

``Pr(t_tilde | R_jk) = sum_t Pr(t_tilde | t) Pr(t | R_jk)`` for each pair, and their product over pairs. It
depends on R_jk through eta alone. The law of the true count and that of the noise come from the release's statistic
and mechanism; what they are called does not matter here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsurvey.copula.concordance import ConcordanceLaw
from dpsurvey.copula.correlation import pair_values
from dpsurvey.copula.hermite import interpolate
from dpsurvey.copula.jit import njit
from dpsurvey.copula.quadrant import QuadrantLaw, log_odds
from dpsurvey.copula.threads import available_cores
from dpsurvey.errors import ArgumentError

if TYPE_CHECKING:
    from dpsurvey.privacy.mechanisms import NoiseLaw
    from dpsurvey.privacy.release import Release


class SamplingLaw(Protocol):
    """What the likelihood needs of the law of a true count given the correlation of its pair."""

    statistic: ClassVar[str]  # of which it is the law

    @property
    def n(self) -> int:
        """Number of rows."""

    @property
    def lower(self) -> int:
        """Smallest count."""

    @property
    def upper(self) -> int:
        """Largest count."""

    def mean(self, eta: ArrayLike) -> NDArray[np.float64]:
        """Return the mean at log odds ratio eta."""

    def variance(self, eta: ArrayLike) -> NDArray[np.float64]:
        """Return the variance at log odds ratio eta."""

    def solve(self, mean: float) -> float:
        """Return the correlation at which the mean takes a value, -1 or 1 outside the range."""

    def log_likelihood(self, noise: NoiseLaw, noisy: int, R: ArrayLike) -> NDArray[np.float64]:
        """Return log Pr(noisy count | R), directly."""

    def log_between(self, low: ArrayLike, high: ArrayLike, R: ArrayLike) -> NDArray[np.float64]:
        """Return log Pr(low <= count <= high | R), elementwise."""

    def tabulate(self, noise: NoiseLaw, noisy: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return nodes in eta, and the log-likelihood with two derivatives there."""

    def influence(self, x: NDArray[np.float64], y: NDArray[np.float64], R: float) -> NDArray[np.float64]:
        """Return how rows at latent (x, y) sway the count, but for a constant factor."""


LAWS: dict[str, Callable[[int], SamplingLaw]] = {
    QuadrantLaw.statistic: QuadrantLaw,
    ConcordanceLaw.statistic: ConcordanceLaw,
}


def sampling_laws(release: Release) -> tuple[SamplingLaw, ...]:
    """Return the law of each true count of a release given the correlation of its pair."""
    laws = {kind: LAWS[kind](release.n) for kind in set(release.statistic_law().kinds)}
    return tuple(laws[kind] for kind in release.statistic_law().kinds)


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
    laws, noise = sampling_laws(release), release.noise_law()
    correlations = _pairs(release, R)
    parts = [
        law.log_likelihood(noise.marginal(i), noisy, correlations[..., i])
        for i, (law, noisy) in enumerate(zip(laws, release.counts, strict=True))
    ]
    return np.asarray(np.sum(parts, axis=0))


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
    laws, noise = sampling_laws(release), release.noise_law()
    return _tabulate(laws, [noise.marginal(i) for i in range(release.m)], release.counts)


def tabulate_counts(law: SamplingLaw, noise: NoiseLaw, counts: Sequence[int]) -> LikelihoodTable:
    """Tabulate the log-likelihood of noisy counts of one law and one noise, one part a count; see :func:`tabulate`.

    Parameters
    ----------
    law : SamplingLaw
        Of the true counts.
    noise : NoiseLaw
    counts : sequence of int
        Noisy counts; equal ones are tabulated once.

    Returns
    -------
    LikelihoodTable
    """
    return _tabulate((law,) * len(counts), (noise,) * len(counts), counts)


def _tabulate(
    laws: Sequence[SamplingLaw], noises: Sequence[NoiseLaw], counts: Sequence[int]
) -> LikelihoodTable:
    tasks = list(zip(laws, noises, counts, strict=True))
    distinct = list(dict.fromkeys(tasks))
    with ThreadPoolExecutor(available_cores()) as pool:
        tables = pool.map(lambda task: task[0].tabulate(task[1], int(task[2])), distinct)
        done = dict(zip(distinct, tables, strict=True))
    parts = [done[task] for task in tasks]
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
