"""Exponential tilting of log-concave weights on the integers: the kernel under every count law.

For log weights c_0..c_K the tilted law is Pr(i | eta) proportional to exp(c_i + eta i); its log total is the
cumulant generating function, so mean and variance are its first two derivatives in eta.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.jit import njit

_NEGLIGIBLE = 1e-20  # of the running total; log-concave terms fall geometrically from there


NO_NOISE = np.zeros(0)


@njit
def tilted_parts(
    weights: NDArray[np.float64], noise: NDArray[np.float64], eta: float
) -> tuple[int, float, float, float]:
    """Sum the law with log weights ``weights + noise`` tilted by eta, outwards from its peak.

    The parts are kept apart since weights and eta i grow like n and cancel in differences of two laws.

    Parameters
    ----------
    weights : numpy.ndarray, shape (K + 1,)
        Log weights, log-concave.
    noise : numpy.ndarray, shape (K + 1,) or (0,)
        Log weights to add, log-concave too; empty for none.
    eta : float
        Tilt.

    Returns
    -------
    peak : int
        Index of the largest term.
    log_sum : float
        Log of the sum of all terms relative to the largest.
    shift : float
        Mean less peak.
    variance : float
    """
    noisy = noise.shape[0] > 0
    low, high = 0, weights.shape[0] - 1
    while low < high:
        middle = (low + high) // 2
        rise = weights[middle + 1] - weights[middle] + eta
        if noisy:
            rise += noise[middle + 1] - noise[middle]
        if rise > 0.0:
            low = middle + 1
        else:
            high = middle
    peak = low
    total, first, second = 1.0, 0.0, 0.0
    for direction in (1, -1):
        i = peak + direction
        while 0 <= i < weights.shape[0]:
            log_term = weights[i] - weights[peak] + eta * (i - peak)
            if noisy:
                log_term += noise[i] - noise[peak]
            term = math.exp(log_term)
            total += term
            first += term * (i - peak)
            second += term * (i - peak) * (i - peak)
            if term < _NEGLIGIBLE * total:
                break
            i += direction
    shift = first / total
    return peak, math.log(total), shift, second / total - shift * shift


@njit
def tilted_moments(weights: NDArray[np.float64], eta: float) -> tuple[float, float, float]:
    """Return log total, mean and variance of the tilted law.

    Parameters
    ----------
    weights : numpy.ndarray, shape (K + 1,)
        Log weights, log-concave.
    eta : float
        Tilt.

    Returns
    -------
    log_total, mean, variance : float
    """
    peak, log_sum, shift, variance = tilted_parts(weights, NO_NOISE, eta)
    return weights[peak] + eta * peak + log_sum, peak + shift, variance


@njit
def noise_jet(weights: NDArray[np.float64], noise: NDArray[np.float64], eta: float) -> NDArray[np.float64]:
    """Return ``log sum exp(weights + noise + eta i) - log sum exp(weights + eta i)`` and two derivatives.

    That is the log-likelihood of one noisy count, with its score and second derivative in eta.

    Parameters
    ----------
    weights, noise : numpy.ndarray, shape (K + 1,)
    eta : float

    Returns
    -------
    numpy.ndarray, shape (3,)
    """
    peak, log_sum, shift, variance = tilted_parts(weights, noise, eta)
    peak0, log_sum0, shift0, variance0 = tilted_parts(weights, NO_NOISE, eta)
    value = noise[peak] + (weights[peak] - weights[peak0]) + eta * (peak - peak0) + log_sum - log_sum0
    return np.array([value, (peak - peak0) + shift - shift0, variance - variance0])


@njit
def tilt_to_mean(weights: NDArray[np.float64], mean: float, largest: float) -> float:
    """Solve for the tilt eta at which the tilted law has the given mean, within -largest..largest.

    Newton's steps on a function whose derivative, the variance, is known; a step that leaves the bracket is
    replaced by bisection.

    Parameters
    ----------
    weights : numpy.ndarray, shape (K + 1,)
    mean : float
        Strictly between 0 and K.
    largest : float
        Bound on abs(eta).

    Returns
    -------
    float
    """
    low, high, eta = -largest, largest, 0.0
    for _ in range(200):
        _, current, variance = tilted_moments(weights, eta)
        if current < mean:
            low = eta
        else:
            high = eta
        step = eta - (current - mean) / variance if variance > 0.0 else low - 1.0
        if not low < step < high:
            step = 0.5 * (low + high)
        if abs(step - eta) <= 1e-14 * (1.0 + abs(eta)):
            return step
        eta = step
    return eta


@njit
def log_share(weights: NDArray[np.float64], eta: float, first: int, last: int) -> float:
    """Return the log of the share of the law tilted by eta that lies on first..last, whether in range or not."""
    first, last = max(first, 0), min(last, weights.shape[0] - 1)
    if first > last:
        return -np.inf
    peak, log_sum, _, _ = tilted_parts(weights[first : last + 1], NO_NOISE, eta)
    top, log_total, _, _ = tilted_parts(weights, NO_NOISE, eta)
    place = first + peak
    return float(weights[place] - weights[top] + eta * (place - top) + log_sum - log_total)
