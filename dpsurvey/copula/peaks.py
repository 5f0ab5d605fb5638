"""Integrals of exponentials of functions with one kink: Gauss and Legendre's rule where the mass is, in logs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_COARSE = 48  # points on either side of the kink and of the peak that look for the mass
_DEPTH = 40.0  # log units below the largest value that still count
_PANELS = 6  # on either side of the kink
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_SPREAD = (np.arange(_COARSE) + 0.5) / _COARSE
_GRADED = np.linspace(0.0, 1.0, _COARSE) ** 3  # fine near the kink


def log_integral(
    log_integrand: Callable[[Array], Array], kink: float, center: Array, width: Array, low: float, high: float
) -> Array:
    """Return the log of integrals over low..high of exp(log_integrand), one a row.

    Parameters
    ----------
    log_integrand : callable
        Takes points, shape (rows, points), and returns values of that shape.
    kink : float
        Where the integrand is not smooth; it is smooth on either side.
    center, width : numpy.ndarray, shape (rows,)
        Peak and standard deviation of the factor that differs between rows.
    low, high : float

    Returns
    -------
    numpy.ndarray, shape (rows,)

    Examples
    --------
    >>> one = np.ones(1)
    >>> value = log_integral(lambda x: -0.5 * x * x - 3.0 * abs(x), 0.0, 0.0 * one, one, -30.0, 30.0)
    >>> value.round(10)  # log(2 sqrt(2 pi) exp(9/2) Phi(-3))
    array([-0.49564051])
    """
    kink = min(max(kink, low), high)
    near = center[:, None] + width[:, None] * np.linspace(-12.0, 12.0, _COARSE)
    sides = []
    best = np.full(len(center), -np.inf)
    for end in (low, high):
        graded = np.broadcast_to(kink + (end - kink) * _GRADED, near.shape)
        inside = (near > min(kink, end)) & (near < max(kink, end))
        spread = kink + (end - kink) * _SPREAD  # in place of points that belong to the other side
        points = np.sort(np.concatenate((graded, np.where(inside, near, spread)), axis=1), axis=1)
        values = log_integrand(points)
        best = np.maximum(best, values.max(axis=1))
        sides.append((points, values))
    parts = [_side(log_integrand, points, values, best) for points, values in sides]
    return np.asarray(np.logaddexp(*parts))


def _side(log_integrand: Callable[[Array], Array], points: Array, values: Array, best: Array) -> Array:
    """Integrate between the outermost points that matter, one step further on either side."""
    matters = values > best[:, None] - _DEPTH
    last = points.shape[1] - 1
    first = np.maximum(np.argmax(matters, axis=1) - 1, 0)
    final = np.minimum(last - np.argmax(matters[:, ::-1], axis=1) + 1, last)
    rows = np.arange(len(points))
    start, stop = points[rows, first], points[rows, final]
    panel = (stop - start)[:, None] / _PANELS
    middles = start[:, None] + panel * (np.arange(_PANELS) + 0.5)
    nodes = (middles[:, :, None] + 0.5 * panel[:, :, None] * _NODES).reshape(len(points), -1)
    inner = log_integrand(nodes)
    with np.errstate(divide="ignore"):
        weights = np.log(0.5 * panel) + np.tile(np.log(_WEIGHTS), _PANELS)
    empty = ~matters.any(axis=1)
    value = np.logaddexp.reduce(inner + weights, axis=1)
    return np.asarray(np.where(empty, -np.inf, value))
