"""The sampling law of the median-quadrant count under a Gaussian copula (paper, equations 7 to 11).

``u = (2/pi) asin R``, the odds ratio of the median-split table is ``((1+u)/(1-u))**2`` and its logarithm is
``eta``. Given the margins, t_jk follows Fisher's noncentral hypergeometric law with that odds ratio:
``Pr(T = t) proportional to C(h, t) C(n-h, h-t) exp(eta t)`` with ``h = ceil(n/2)``. For even n that is
``C(h, t)**2 exp(eta t)``, equation (10); for odd n the paper keeps equation (10) with h = (n+1)/2, which is off
by a quarter of a count, and the exact law is used here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsurvey.copula.hermite import adaptive_nodes
from dpsurvey.copula.tilting import log_share, tilt_to_mean, tilted_moments

if TYPE_CHECKING:
    from dpsurvey.privacy.mechanisms import NoiseLaw

_ABSOLUTE, _RELATIVE = 2e-10, 2e-11  # of a table, in log-likelihood; relative to the distance below the mode
LARGEST_ETA = 40.0  # at the largest float below 1, R corresponds to eta = 38.3


def orthant_probability(R: ArrayLike) -> NDArray[np.float64]:
    """Return Pr(both standard normals above 0) = 1/4 + asin(R)/(2 pi) (paper, eq. 7).

    Parameters
    ----------
    R : array-like
        Correlations in [-1, 1].

    Returns
    -------
    numpy.ndarray of float64

    Examples
    --------
    >>> orthant_probability([-1.0, 0.0, 0.5]).round(4)
    array([0.    , 0.25  , 0.3333])
    """
    return np.asarray(np.arccos(-np.asarray(R, dtype=float)) / (2.0 * math.pi))


def log_odds(R: ArrayLike) -> NDArray[np.float64]:
    """Return eta, the log odds ratio of the median-split table (paper, eq. 9).

    Computed as ``2 log(acos(-R) / acos(R))``, which loses nothing near R = +-1.

    Examples
    --------
    >>> log_odds([0.0, 0.5, 1 - 1e-12]).round(4)
    array([ 0.    ,  1.3863, 29.2274])
    """
    R = np.asarray(R, dtype=float)
    with np.errstate(divide="ignore"):
        return np.asarray(2.0 * (np.log(np.arccos(-R)) - np.log(np.arccos(R))))


def correlation(eta: ArrayLike) -> NDArray[np.float64]:
    """Return the correlation with log odds ratio eta: the inverse of :func:`log_odds`.

    Examples
    --------
    >>> correlation(log_odds([-0.9, 0.1])).round(12)
    array([-0.9,  0.1])
    """
    return np.asarray(np.sin(0.5 * math.pi * np.tanh(0.25 * np.asarray(eta, dtype=float))))


@lru_cache(maxsize=16)
def _log_weights(n: int) -> NDArray[np.float64]:
    """Return log C(h,t) + log C(n-h,h-t) over t = 2h-n..h, less its largest value, read-only."""
    from scipy.special import gammaln

    h = (n + 1) // 2
    log_factorial = gammaln(np.arange(1.0, h + 2.0))  # of 0..h
    low = 2 * h - n
    weights = -log_factorial[low:] - log_factorial[: h + 1 - low]
    weights -= 2.0 * log_factorial[h - low :: -1]
    weights -= weights.max()
    weights.setflags(write=False)
    return np.asarray(weights)


@dataclass(frozen=True, slots=True)
class QuadrantLaw:
    """Law of a quadrant count of n rows given the correlation of its pair.

    Parameters
    ----------
    n : int
        Number of rows.

    Examples
    --------
    >>> law = QuadrantLaw(100)
    >>> float(np.exp(law.log_pmf(law.support, 0.3)).sum().round(12))
    1.0
    >>> float(law.mean(0.0)), float(QuadrantLaw(101).mean(0.0).round(4))
    (25.0, 25.7525)
    """

    statistic: ClassVar[str] = "quadrant"
    n: int

    @property
    def upper(self) -> int:
        """Largest count, h = ceil(n/2)."""
        return (self.n + 1) // 2

    @property
    def lower(self) -> int:
        """Smallest count, 2h - n."""
        return 2 * self.upper - self.n

    @property
    def support(self) -> NDArray[np.int64]:
        """All possible counts."""
        return np.arange(self.lower, self.upper + 1)

    @property
    def log_weights(self) -> NDArray[np.float64]:
        """Log weights of the counts at R = 0, over `support`, the largest being 0."""
        return _log_weights(self.n)

    def log_pmf(self, t: ArrayLike, R: ArrayLike) -> NDArray[np.float64]:
        """Return log Pr(T = t | R) with its normalising constant (paper, eqs. 10 and 11).

        Parameters
        ----------
        t : array-like of int
            Counts; minus infinity outside the support.
        R : array-like of float
            Correlations within (-1, 1); broadcasts against t.

        Returns
        -------
        numpy.ndarray of float64
        """
        index, eta = np.asarray(t) - self.lower, log_odds(R)
        inside = (index >= 0) & (index < len(self.log_weights))
        value = self.log_weights[np.where(inside, index, 0)] + eta * index - self._moments(eta)[0]
        return np.where(inside, value, -np.inf)

    def cdf(self, t: ArrayLike, R: float) -> NDArray[np.float64]:
        """Return Pr(T <= t | R) for one correlation."""
        cumulative = np.concatenate(([0.0], np.cumsum(np.exp(self.log_pmf(self.support, R)))))
        index = np.clip(np.floor(np.asarray(t, dtype=float)) - self.lower + 1, 0, len(cumulative) - 1)
        return np.asarray(np.minimum(cumulative[index.astype(int)], 1.0))

    def mean(self, eta: ArrayLike) -> NDArray[np.float64]:
        """Return E[T] at log odds ratio eta."""
        return np.asarray(self.lower + self._moments(eta)[1])

    def variance(self, eta: ArrayLike) -> NDArray[np.float64]:
        """Return Var[T] at log odds ratio eta, which is also dE[T]/d eta."""
        return np.asarray(self._moments(eta)[2])

    def solve(self, mean: float) -> float:
        """Return the correlation at which E[T] equals `mean`: -1 at or below the range, +1 at or above it.

        Parameters
        ----------
        mean : float
            Any real count. The root is sought in eta, where it stays apart from its neighbours near R = +-1.

        Returns
        -------
        float

        Examples
        --------
        >>> law = QuadrantLaw(100)
        >>> round(law.solve(30.0), 4), law.solve(0.0), law.solve(50.0)
        (0.306, -1.0, 1.0)
        """
        if mean <= self.lower or mean >= self.upper:
            return -1.0 if mean <= self.lower else 1.0
        eta = tilt_to_mean(self.log_weights, float(mean - self.lower), 4.0 * LARGEST_ETA)
        return float(correlation(eta))

    def log_likelihood(self, noise: NoiseLaw, noisy: int, R: ArrayLike) -> NDArray[np.float64]:
        """Return log Pr(noisy count | R), summed over the true count (paper, eq. 17).

        Parameters
        ----------
        noise : NoiseLaw
        noisy : int
        R : array-like
            Correlations.
        """
        from scipy.special import logsumexp

        R = np.asarray(R, dtype=float)
        log_noise = noise.log_pmf(noisy, self.support)
        return np.asarray(logsumexp(log_noise + self.log_pmf(self.support, R[..., None]), axis=-1))

    def log_between(self, low: ArrayLike, high: ArrayLike, R: ArrayLike) -> NDArray[np.float64]:
        """Return log Pr(low <= T <= high | R), elementwise with broadcasting.

        Examples
        --------
        >>> law = QuadrantLaw(100)
        >>> law.log_between(20, 30, [0.0, 0.5]).round(4)
        array([-0.0277, -2.2186])
        """
        first, last = np.subtract(low, self.lower), np.subtract(high, self.lower)
        shares = [
            log_share(self.log_weights, float(eta), int(a), int(b))
            for a, b, eta in np.broadcast(first, last, log_odds(R))
        ]
        return np.array(shares).reshape(np.broadcast_shapes(first.shape, last.shape, np.shape(R)))

    def tabulate(self, noise: NoiseLaw, noisy: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return nodes in eta and the log-likelihood there with its first two derivatives.

        Parameters
        ----------
        noise : NoiseLaw
        noisy : int

        Returns
        -------
        nodes : numpy.ndarray, shape (N,)
        jets : numpy.ndarray, shape (N, 3)
        """
        log_noise = noise.log_pmf(noisy, self.support.astype(float))
        nearest = float(noise.log_pmf(noisy, float(np.clip(noisy, self.lower, self.upper))))
        log_noise = (
            log_noise - nearest
        )  # far below 0 for a count far outside the range, where it would cost digits
        nodes, jets = adaptive_nodes(self.log_weights, log_noise, LARGEST_ETA, _ABSOLUTE, _RELATIVE)
        jets[:, 0] += nearest
        return nodes, jets

    def influence(self, x: NDArray[np.float64], y: NDArray[np.float64], R: float) -> NDArray[np.float64]:
        """Return how rows at latent (x, y) sway the count, but for a constant factor: the sign of their product.

        A row also sways both medians, which does not change the count to first order.
        """
        return np.sign(x) * np.sign(y)

    def _moments(self, eta: ArrayLike) -> NDArray[np.float64]:
        """Return log total, mean and variance (counted from `lower`), stacked in front of eta's shape."""
        eta = np.asarray(eta, dtype=float)
        flat = [tilted_moments(self.log_weights, float(value)) for value in eta.ravel()]
        return np.array(flat).T.reshape(3, *eta.shape)
