"""The sampling law of the discordant count under a Gaussian copula.

With tau Kendall's tau of n rows, ``E[tau] = u = (2/pi) asin R`` exactly and
``Var[tau] = 2/(n(n-1)) [1 - u^2 + 2(n-2)(1/9 - ((2/pi) asin(R/2))^2)]`` (Esscher, 1924; Kendall and Gibbons). The law
of ``(1+tau)/2 = 1 - D/(n(n-1)/2)`` is taken to be the Beta law with that mean and variance: within .004-.012 of the
true one in Kolmogorov's distance, where the normal law is off by .03 near R = +-1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsurvey.copula.jit import njit
from dpsurvey.copula.noisy_beta import lay_panels, log_mixture
from dpsurvey.copula.quadrant import LARGEST_ETA, log_odds

if TYPE_CHECKING:
    from dpsurvey.privacy.mechanisms import NoiseLaw

_FLAT = 26.0  # eta beyond which the likelihood no longer changes for n < 10^5
_PER_SD = 9.0  # nodes of the likelihood table per standard error of eta
_LARGEST_SD = 0.6  # or of this,
_CORE = 2.5  # within so many of the mode (noise of many counts is nearly a box, with edges at 1.7),
_PER_UNIT = 9.0  # per unit of log distance further out,
_WIDEST = 0.4  # and at least this often
_SLIVER = 1e-6  # counts this close to an end, as a share of the sensitivity, are taken for the end


@dataclass(frozen=True, slots=True)
class ConcordanceLaw:
    """Law of a discordant count of n rows given the correlation of its pair.

    Parameters
    ----------
    n : int
        Number of rows.

    Examples
    --------
    >>> law = ConcordanceLaw(100)
    >>> float(law.mean(0.0)), law.upper
    (2475.0, 4950)
    """

    statistic: ClassVar[str] = "concordance"
    n: int

    @property
    def lower(self) -> int:
        """Smallest count, 0."""
        return 0

    @property
    def upper(self) -> int:
        """Largest count, n(n-1)/2."""
        return self.n * (self.n - 1) // 2

    def mean(self, eta: ArrayLike) -> NDArray[np.float64]:
        """Return E[D] at log odds ratio eta, with ``u = tanh(eta/4)``."""
        return np.asarray(self.upper * _share_below(-np.asarray(eta, dtype=float)))

    def variance(self, eta: ArrayLike) -> NDArray[np.float64]:
        """Return Var[D] at log odds ratio eta."""
        return np.asarray((self.upper / 2.0) ** 2 * self._tau_variance(np.asarray(eta, dtype=float)))

    def solve(self, mean: float) -> float:
        """Return the correlation at which E[D] equals `mean`: +1 at or below the range, -1 at or above it.

        Examples
        --------
        >>> law = ConcordanceLaw(100)
        >>> round(law.solve(1650.0), 6), law.solve(-3.0)
        (0.5, 1.0)
        """
        if mean <= self.lower or mean >= self.upper:
            return 1.0 if mean <= self.lower else -1.0
        return math.cos(math.pi * mean / self.upper)  # sin(pi/2 tau), tau = 1 - 2 D / upper

    def log_likelihood(self, noise: NoiseLaw, noisy: int, R: ArrayLike) -> NDArray[np.float64]:
        """Return log Pr(noisy count | R) but for a constant: the noise integrated over the law of the count.

        Parameters
        ----------
        noise : NoiseLaw
        noisy : int
        R : array-like
            Correlations.
        """
        eta = np.clip(log_odds(R), -LARGEST_ETA, LARGEST_ETA)
        return self._integrate(noise, noisy, eta.ravel()).reshape(eta.shape)

    def log_between(self, low: ArrayLike, high: ArrayLike, R: ArrayLike) -> NDArray[np.float64]:
        """Return log Pr(low <= D <= high | R), elementwise with broadcasting.

        Examples
        --------
        >>> law = ConcordanceLaw(100)
        >>> law.log_between(1500, 1800, [0.0, 0.5]).round(4)
        array([-10.706,  -0.369])
        """
        from scipy.special import betainc

        a, b = self._beta(np.clip(log_odds(R), -LARGEST_ETA, LARGEST_ETA))
        ends = np.subtract(low, 0.5), np.add(high, 0.5)
        share_low, share_high = (np.clip(end / self.upper, 0.0, 1.0) for end in ends)
        below = betainc(b, a, share_high) - betainc(b, a, share_low)  # D / upper is Beta(b, a)
        above = betainc(a, b, 1.0 - share_low) - betainc(a, b, 1.0 - share_high)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(np.maximum(below, above), 0.0)))

    def tabulate(self, noise: NoiseLaw, noisy: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return nodes in eta and the log-likelihood there with two derivatives, of a quintic spline through it.

        Parameters
        ----------
        noise : NoiseLaw
        noisy : int

        Returns
        -------
        nodes : numpy.ndarray, shape (N,)
        jets : numpy.ndarray, shape (N, 3)
        """
        from scipy.interpolate import make_interp_spline

        nodes = self._nodes(noise, noisy)
        spline = make_interp_spline(nodes, self._integrate(noise, noisy, nodes), k=5)
        return nodes, np.stack([spline(nodes, order) for order in range(3)], axis=1)

    def influence(self, x: NDArray[np.float64], y: NDArray[np.float64], R: float) -> NDArray[np.float64]:
        """Return how rows at latent (x, y) sway the count, but for a constant factor.

        A row's excess of discordant over concordant others, ``2 F(x) + 2 F(y) - 1 - 4 F(x, y)`` with F normal cdfs.
        """
        from scipy.special import ndtr

        from dpsurvey.copula.bivariate import bivariate_cdf

        return np.asarray(2.0 * ndtr(x) + 2.0 * ndtr(y) - 1.0 - 4.0 * bivariate_cdf(x, y, R))

    def _tau_variance(self, eta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Var[tau] without cancellation near R = +-1, where 1 - |u| is tiny."""
        one_less_u = 2.0 * _share_below(-np.abs(eta))  # 1 - |u|
        angle = 0.5 * math.pi * one_less_u  # acos |R|
        c = np.cos(angle)
        # 1/3 - (2/pi) asin(c/2), by the sine of a difference of angles
        gap = np.sin(angle) ** 2 / 4.0 / (np.sqrt(1.0 - c * c / 4.0) / 2.0 + c * math.sqrt(3.0) / 4.0)
        gap = 2.0 / math.pi * np.arcsin(gap)
        pairs = self.n * (self.n - 1) / 2.0
        return np.asarray(
            (one_less_u * (2.0 - one_less_u) + 2.0 * (self.n - 2) * gap * (2.0 / 3.0 - gap)) / pairs
        )

    def _beta(self, eta: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the parameters of the Beta law of (1+tau)/2."""
        share, rest = _share_below(eta), _share_below(-eta)
        size = share * rest / (self._tau_variance(eta) / 4.0) - 1.0
        return share * size, rest * size

    def _logit_deviation(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return about the standard deviation of logit((1+tau)/2) where its mean is x."""
        a, b = self._beta(np.clip(2.0 * x, -LARGEST_ETA, LARGEST_ETA))
        return np.asarray(np.sqrt(1.0 / a + 1.0 / b))

    def _integrate(self, noise: NoiseLaw, noisy: int, eta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-likelihood at each eta, integrated over y = logit((1+tau)/2)."""
        from scipy.special import betainc, betaln

        a, b = self._beta(eta)
        sliver = _SLIVER * 2.0 / self.n  # as a share of the range
        end = math.log1p(-sliver) - math.log(sliver)
        panels = lay_panels(noise, noisy, float(self.upper), end, self._logit_deviation)
        value = log_mixture(panels, a, b, betaln(a, b))
        ends = noise.log_pmf(float(noisy), np.array([0.0, float(self.upper)]))
        with np.errstate(divide="ignore"):
            low, high = np.log(betainc(a, b, sliver)), np.log(betainc(b, a, sliver))
        return np.asarray(np.logaddexp(value, np.logaddexp(high + ends[0], low + ends[1])))

    def _nodes(self, noise: NoiseLaw, noisy: int) -> NDArray[np.float64]:
        """Return a grid in eta that is fine around the mode and coarse far from it."""
        limit = _FLAT + max(0.0, 4.0 * math.log(self.n / 1e5))
        limit = min(limit, LARGEST_ETA)
        blur = min(
            math.sqrt(noise.variance), 0.5 * self.upper
        )  # a count closer to an end changes little there
        R = self.solve(min(max(float(noisy), blur), self.upper - blur))
        R = min(max(R, -1.0 + 1e-9), 1.0 - 1e-9)
        mode = float(np.clip(log_odds(R), -limit, limit))
        slope = self.upper * 0.125 / math.cosh(mode / 4.0) ** 2 if abs(mode) < limit else 0.0  # dE[D]/d eta
        spread = math.sqrt(float(self.variance(mode)) + noise.variance)
        error = min(max(spread / slope if slope > 0.0 else _LARGEST_SD, 1e-4), _LARGEST_SD)
        side = partial(_graded, mode, error)
        inner = np.concatenate((side(-limit)[:0:-1], side(limit)))
        outer = np.linspace(limit, LARGEST_ETA, 12)[1:] if limit < LARGEST_ETA else np.zeros(0)
        return np.concatenate((-outer[::-1], inner, outer))


def _share_below(eta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (1+u)/2 = 1/(1 + exp(-eta/2)): the expected share of concordant pairs."""
    from scipy.special import expit

    return np.asarray(expit(0.5 * eta))


@njit
def _graded(mode: float, error: float, end: float) -> NDArray[np.float64]:
    """Return points from the mode to an end, with steps that grow with the distance from the mode."""
    room, reach, points = abs(end - mode), 0.0, [0.0]
    while reach < room:
        reach += min(_WIDEST, max(error / _PER_SD, (reach - _CORE * error) / _PER_UNIT))
        points.append(min(reach, room))
    if len(points) > 2 and points[-1] - points[-2] < 0.1 * (points[-2] - points[-3]):
        del points[-2]
    return mode + math.copysign(1.0, end - mode) * np.array(points)
