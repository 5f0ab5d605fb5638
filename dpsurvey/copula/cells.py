"""Cells in R on which a log-likelihood is taken to be linear, so that masses and quantiles are closed forms."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.hermite import quintic
from dpsurvey.copula.jit import njit

_FINE = 1e-4  # error of a linear cell in log density, near the mode
_COARSE = 0.008  # the same, far out in the tails
_TAIL = 20.0  # log units below the mode where cells may begin to grow,
_GROWTH = 4.0  # by a factor of e in their error for every so many units
_RELATIVE = 1e-6  # the same at least, as a share of the depth below the mode
_DEEPEST = 40  # halvings of a cell of the likelihood table


@njit
def _r_of(eta: float) -> float:
    return math.sin(0.5 * math.pi * math.tanh(0.25 * eta))


@njit
def linear_cells(
    nodes: NDArray[np.float64], jets: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return points in R and log-likelihoods between which linear interpolation is good enough."""
    best = jets[:, 0].max()
    far = _TAIL + _GROWTH * math.log(_COARSE / _FINE)
    points, logs = [-1.0], [jets[0, 0] - best]
    for i in range(1, nodes.shape[0]):
        pending = [(nodes[i], jets[i, 0] - best, 0)]
        start, width = nodes[i - 1], nodes[i] - nodes[i - 1]
        left_eta = start
        while len(pending) > 0:
            eta, log_right, depth = pending[-1]
            middle = 0.5 * (left_eta + eta)
            log_middle = quintic((middle - start) / width, width, jets[i - 1], jets[i])[0] - best
            left, right = points[-1], _r_of(eta)
            share = (_r_of(middle) - left) / (right - left) if right > left else 0.5
            chord = logs[-1] + share * (log_right - logs[-1])
            drop = -max(logs[-1], log_right, log_middle)
            allowed = _FINE * math.exp(max(drop - _TAIL, 0.0) / _GROWTH) if drop < far else _COARSE
            allowed = max(allowed, _RELATIVE * drop)
            if abs(chord - log_middle) > allowed and depth < _DEEPEST and right > left:
                pending[-1] = (eta, log_right, depth + 1)
                pending.append((middle, log_middle, depth + 1))
            else:
                if right > left:
                    points.append(right)
                    logs.append(log_right)
                left_eta = eta
                pending.pop()
    points[-1] = 1.0
    log_array = np.array(logs)
    return np.array(points), log_array - log_array.max()


@njit
def log_cell_mass(width: float, left: float, right: float) -> float:
    """Return log of the integral of a density whose log goes linearly from left to right."""
    rise = abs(right - left)
    shape = -0.5 * rise if rise < 1e-8 else math.log(-math.expm1(-rise) / rise)
    return math.log(width) + max(left, right) + shape


@njit
def cell_cdf(slope: float, s: float) -> float:
    """Return the cdf at s in [0, 1] of the density proportional to exp(slope s)."""
    if abs(slope) < 1e-8:
        return s + 0.5 * slope * s * (s - 1.0)
    if slope > 0.0:
        return math.exp(slope * (s - 1.0)) * math.expm1(-slope * s) / math.expm1(-slope)
    return math.expm1(slope * s) / math.expm1(slope)


@njit
def cell_quantile(slope: float, v: float) -> float:
    """Return the inverse of :func:`cell_cdf`."""
    if abs(slope) < 1e-8:
        s = v + 0.5 * slope * v * (1.0 - v)
    elif slope > 0.0:
        low = math.exp(-slope)
        s = 1.0 + math.log(v + (1.0 - v) * low) / slope if v > 0.0 or low > 0.0 else 0.0
    else:
        s = math.log1p(v * math.expm1(slope)) / slope
    return min(max(s, 0.0), 1.0)
