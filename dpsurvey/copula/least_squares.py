"""Least squares from a correlation matrix: coefficients, partial correlations and R squared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def regression_functionals(
    R: NDArray[np.float64], y: int, on: Sequence[int]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return coefficients, partial correlations, R squared, and where the predictors are exactly collinear.

    With R_XX = V diag(w) V', beta = V diag(1/w) V' R_Xy, and the partial correlation of y with x_j given the
    other predictors is beta_j / sqrt(beta_j^2 + (1 - R^2) [R_XX^-1]_jj), which stays in [-1, 1] however close
    to singular R_XX is. Where an eigenvalue is zero to rounding, the pseudo-inverse gives beta of least norm.

    Parameters
    ----------
    R : ndarray, shape (..., p, p)
        Correlation matrices.
    y : int
        Position of the outcome.
    on : sequence of int, length k
        Positions of the predictors.

    Returns
    -------
    beta, partial : ndarray, shape (..., k)
    r_squared : ndarray, shape (...)
        Within [0, 1].
    collinear : ndarray of bool, shape (...)

    Examples
    --------
    >>> beta, partial, r_squared, _ = regression_functionals(np.array([[1.0, 0.6], [0.6, 1.0]]), 0, [1])
    >>> beta.round(3), partial.round(3), r_squared.round(3)
    (array([0.6]), array([0.6]), np.float64(0.36))
    """
    X = np.asarray(on)
    cross = R[..., X, y]
    w, V = np.linalg.eigh(R[..., X[:, None], X])
    zero = w <= 8 * len(X) * np.finfo(np.float64).eps
    inverse = np.where(zero, 0.0, 1.0 / np.where(zero, 1.0, w))
    beta = np.einsum("...jk,...k->...j", V, inverse * np.einsum("...jk,...j->...k", V, cross))
    r_squared = np.clip(np.sum(beta * cross, axis=-1), 0.0, 1.0)
    spread = np.einsum("...jk,...k->...j", V**2, inverse)
    size = np.sqrt(beta**2 + (1.0 - r_squared)[..., None] * spread)
    partial = np.divide(beta, size, out=np.zeros_like(beta), where=size > 0.0)
    return beta, partial, r_squared, np.asarray(zero.any(axis=-1))
