"""The bivariate normal distribution function, by Owen's T."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def bivariate_cdf(x: NDArray[np.float64], y: NDArray[np.float64], R: float) -> NDArray[np.float64]:
    """Return Pr(X <= x, Y <= y) for standard normals of correlation R (Owen, 1956).

    Parameters
    ----------
    x, y : numpy.ndarray
        Not 0.
    R : float
        Within (-1, 1).

    Examples
    --------
    >>> bivariate_cdf(np.array([1e-12]), np.array([1e-12]), 0.5).round(6)
    array([0.333333])
    """
    from scipy.special import ndtr, owens_t

    root = np.sqrt((1.0 - R) * (1.0 + R))
    apart = np.where(x * y < 0.0, 0.5, 0.0)
    halves = 0.5 * (ndtr(x) + ndtr(y))
    value = halves - owens_t(x, (y / x - R) / root) - owens_t(y, (x / y - R) / root) - apart
    return np.asarray(np.clip(value, 0.0, 1.0))
