"""The full joint likelihood of three quadrant counts, against the composite one (p = 3).

Rows fall into the eight octants of the three median splits. By symmetry ``pi_abc = pi_(1-a)(1-b)(1-c)``, so given
the margins the number s of rows high in all three says nothing about R, and sums out into weights that are
computed once for each n::

    W(t12, t13, t23) = sum_s n! / prod(cells!)
    Pr(t12, t13, t23 | R) proportional to W(t) exp(theta_12 t12 + theta_13 t13 + theta_23 t23)

an exponential family in the three counts. The cells are s; t12 - s; t13 - s; t23 - s; h - t12 - t13 + s;
h - t12 - t23 + s; h - t13 - t23 + s; n - 3h + t12 + t13 + t23 - s, for the octants 111, 110, 101, 011, 100, 010,
001, 000. (The supplement's own formula is not to be had: this is a reconstruction.)
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.jit import njit

Array = NDArray[np.float64]
_CUT = 18.0  # log units below the total at which a falling term, row or plane ends a sum


def octant_probabilities(R: Array) -> Array:
    """Return the probabilities of the octants abc of three normals, a = 1 where the first is above 0.

    Parameters
    ----------
    R : numpy.ndarray, shape (..., 3, 3)

    Returns
    -------
    numpy.ndarray, shape (..., 2, 2, 2)
        Indexed by a, b, c.

    Examples
    --------
    >>> float(octant_probabilities(np.eye(3))[1, 1, 0])
    0.125
    """
    angle = np.arcsin(np.clip(np.asarray(R, dtype=float), -1.0, 1.0)) / (4.0 * math.pi)
    sign = np.array([-1.0, 1.0])
    u, v, w = sign[:, None, None], sign[None, :, None], sign[None, None, :]
    a12, a13, a23 = (angle[..., j, k, None, None, None] for j, k in ((0, 1), (0, 2), (1, 2)))
    probability = 0.125 + u * v * a12 + u * w * a13 + v * w * a23
    return np.asarray(np.maximum(probability, 1e-300))  # R on the edge of the positive definite set


def natural_parameters(R: Array) -> Array:
    """Return theta, what each of t12, t13, t23 adds to the log-probability, shape (..., 3).

    One more row high in both of two variables, at fixed margins, is one row more in two octants and one row less
    in two others.

    Examples
    --------
    >>> natural_parameters(np.eye(3))
    array([0., 0., 0.])
    """
    log_pi = np.log(octant_probabilities(R))
    none, third, second, first = (
        log_pi[..., a, b, c] for a, b, c in ((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0))
    )
    return np.stack(
        [
            log_pi[..., 1, 1, 0] + none - first - second,
            log_pi[..., 1, 0, 1] + none - first - third,
            log_pi[..., 0, 1, 1] + none - second - third,
        ],
        axis=-1,
    )


@lru_cache(maxsize=4)
def log_weights(n: int) -> Array:
    """Return log W over all (t12, t13, t23), shape (h + 1,) * 3; minus infinity where no rows have such counts.

    The largest is 0; read-only.
    """
    from scipy.special import gammaln

    weights = _sum_out(n, gammaln(np.arange(n + 1) + 1.0))
    weights -= weights.max()
    weights.setflags(write=False)
    return weights


def joint_log_pmf(n: int, counts: NDArray[np.int64], R: Array) -> Array:
    """Return log Pr(t12, t13, t23 | R) of true counts, normalised over all triples.

    Parameters
    ----------
    n : int
    counts : numpy.ndarray of int, shape (3,)
    R : numpy.ndarray, shape (draws, 3, 3)

    Returns
    -------
    numpy.ndarray, shape (draws,)

    Examples
    --------
    >>> joint_log_pmf(4, np.array([2, 2, 2]), np.eye(3)[None]).round(4)  # 1 way in 36, given the first split
    array([-3.5835])
    """
    theta, weights = natural_parameters(R), log_weights(n)
    t12, t13, t23 = (int(count) for count in counts)
    return np.asarray(weights[t12, t13, t23] + theta @ counts - _totals(n, None, theta, R))


def joint_log_likelihood(n: int, log_noise: Array, R: Array) -> Array:
    """Return ``log Pr(three noisy counts | R)`` under the full joint law of the true counts.

    Parameters
    ----------
    n : int
    log_noise : numpy.ndarray, shape (3, h + 1)
        Log-probability of each noisy count given every true count 0..h; finite, log-concave.
    R : numpy.ndarray, shape (draws, 3, 3)

    Returns
    -------
    numpy.ndarray, shape (draws,)
    """
    theta = natural_parameters(R)
    return _totals(n, log_noise, theta, R) - _totals(n, None, theta, R)


def _totals(n: int, log_noise: Array | None, theta: Array, R: Array) -> Array:
    """Return log sum over all triples of W exp(noise + theta . t), for every theta."""
    h = (n + 1) // 2
    noise = np.zeros((3, h + 1)) if log_noise is None else np.ascontiguousarray(log_noise)
    angle = np.arcsin(np.clip(R[..., (0, 0, 1), (1, 2, 2)], -1.0, 1.0)) / (2.0 * math.pi)
    starts = np.clip(np.rint(n * (0.25 + angle)), 0, h).astype(np.int64)
    return np.asarray(_log_totals(log_weights(n), noise, np.ascontiguousarray(theta), starts))


@njit
def _sum_out(n: int, log_factorial: Array) -> Array:
    h = (n + 1) // 2
    weights = np.full((h + 1, h + 1, h + 1), -np.inf)
    for t12 in range(h + 1):
        for t13 in range(h + 1):
            for t23 in range(h + 1):
                low = max(0, t12 + t13 - h, t12 + t23 - h, t13 + t23 - h)
                high = min(t12, t13, t23, n - 3 * h + t12 + t13 + t23)
                for s in range(low, high + 1):
                    term = -(
                        log_factorial[s]
                        + log_factorial[t12 - s]
                        + log_factorial[t13 - s]
                        + log_factorial[t23 - s]
                        + log_factorial[h - t12 - t13 + s]
                        + log_factorial[h - t12 - t23 + s]
                        + log_factorial[h - t13 - t23 + s]
                        + log_factorial[n - 3 * h + t12 + t13 + t23 - s]
                    )
                    weights[t12, t13, t23] = _log_add(weights[t12, t13, t23], term)
    return weights


@njit
def _log_add(a: float, b: float) -> float:
    high, low = max(a, b), min(a, b)
    return high if low == -np.inf else high + math.log1p(math.exp(low - high))


@njit
def _log_totals(weights: Array, noise: Array, theta: Array, starts: NDArray[np.int64]) -> Array:
    totals = np.empty(theta.shape[0])
    for i in range(theta.shape[0]):
        totals[i] = _sum_space(weights, noise, theta[i], starts[i])
    return totals


# The summand is log-concave, so sums over rows and planes are too: each sum walks both ways from a point near the
# peak, and ends where terms fall and are negligible.


@njit
def _sum_space(weights: Array, noise: Array, theta: Array, start: NDArray[np.int64]) -> float:
    total = -np.inf
    for direction in (1, -1):
        previous, place = -np.inf, start.copy()
        i = start[0] if direction == 1 else start[0] - 1
        while 0 <= i < weights.shape[0]:
            plane = noise[0, i] + theta[0] * i + _sum_plane(weights[i], noise, theta, place)
            total = _log_add(total, plane)
            if plane < previous and plane < total - _CUT:
                break
            previous = plane
            i += direction
    return total


@njit
def _sum_plane(weights: Array, noise: Array, theta: Array, place: NDArray[np.int64]) -> float:
    """Sum over t13 and t23, starting from `place`, which is moved to the best row and term found."""
    total, best, start, peak = -np.inf, -np.inf, place[1], place[2]
    for direction in (1, -1):
        previous = -np.inf
        near = peak
        i = start if direction == 1 else start - 1
        while 0 <= i < weights.shape[0]:
            row, near = _sum_row(weights[i], noise[2], theta[2], near)
            row += noise[1, i] + theta[1] * i
            total = _log_add(total, row)
            if row > best:
                best = row
                place[1], place[2] = i, near
            if row < previous and row < total - _CUT:
                break
            previous = row
            i += direction
    return total


@njit
def _sum_row(weights: Array, noise: Array, theta: float, start: int) -> tuple[float, int]:
    """Return the log sum over t23 and the largest term's place."""
    size = weights.shape[0]
    first, last = 0, size - 1
    while first < size and weights[first] == -np.inf:
        first += 1
    while last >= 0 and weights[last] == -np.inf:
        last -= 1
    if first > last:
        return -np.inf, start
    peak = min(max(start, first), last)
    top = weights[peak] + noise[peak] + theta * peak
    for direction in (1, -1):
        while first <= peak + direction <= last:
            step = peak + direction
            value = weights[step] + noise[step] + theta * step
            if value <= top:
                break
            peak, top = step, value
    total = 1.0
    for direction in (1, -1):
        i = peak + direction
        while first <= i <= last:
            drop = weights[i] + noise[i] + theta * i - top
            if drop < -_CUT:
                break
            total += math.exp(drop)
            i += direction
    return top + math.log(total), peak
