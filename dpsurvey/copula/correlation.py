"""Correlation matrices: what is one, the nearest one, and the vector of its pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsurvey.errors import ArgumentError, ArgumentTypeError

Matrix = NDArray[np.float64]

NEGATIVE_EIGENVALUE = -1e-12  # below this an eigenvalue is negative and no rounding error


def pair_values(R: Matrix) -> Matrix:
    """Return the entries above the diagonal, row by row.

    Parameters
    ----------
    R : ndarray, shape (..., p, p)

    Returns
    -------
    ndarray, shape (..., p(p-1)/2)
        In the order of ``np.triu_indices(p, 1)``: (1,2), (1,3), ..., (1,p), (2,3), ...

    Examples
    --------
    >>> pair_values(np.array([[1.0, 0.5], [0.5, 1.0]]))
    array([0.5])
    """
    rows, columns = np.triu_indices(R.shape[-1], 1)
    return np.ascontiguousarray(R[..., rows, columns])


def matrix_from_pairs(values: Matrix, p: int, *, diagonal: float = 1.0) -> Matrix:
    """Return the symmetric matrix with the given entries above and below the diagonal.

    Parameters
    ----------
    values : ndarray, shape (..., p(p-1)/2)
        Row by row, as :func:`pair_values` gives them.
    p : int
        Number of variables.
    diagonal : float, default 1.0

    Returns
    -------
    ndarray, shape (..., p, p)

    Examples
    --------
    >>> matrix_from_pairs(np.array([0.5]), 2)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    rows, columns = np.triu_indices(p, 1)
    R = np.full((*values.shape[:-1], p, p), diagonal)
    R[..., rows, columns] = values
    R[..., columns, rows] = values
    return R


def as_correlation(R: ArrayLike, *, tol: float = 1e-8, name: str = "R") -> Matrix:
    """Check that `R` is a correlation matrix, or a stack of them, and return a clean copy.

    Parameters
    ----------
    R : array-like, shape (..., p, p)
        Symmetric, with unit diagonal, finite and positive semidefinite, each up to `tol`. p is at least 2.
    tol : float, default 1e-8
        Largest asymmetry, distance of the diagonal from 1, excess of an entry over 1, and depth of an
        eigenvalue below 0.
    name : str, default "R"
        What to call the argument in an error.

    Returns
    -------
    ndarray of float64, shape (..., p, p)
        Exactly symmetric (the upper triangle counts), diagonal exactly 1, entries within [-1, 1].

    Raises
    ------
    ArgumentTypeError
        If `R` is not numeric.
    ArgumentError
        If it is not a correlation matrix; the error names the first rule that it breaks.

    Examples
    --------
    >>> as_correlation([[1, 0.5], [0.5, 1]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    values = _finite_square(R, name)
    asymmetry = np.abs(values - np.swapaxes(values, -1, -2)).max(initial=0.0)
    if asymmetry > tol:
        raise ArgumentError(
            f"{name} is not symmetric",
            expected=f"{name}[j, k] equal to {name}[k, j] within {tol:g}",
            got=f"a difference of {asymmetry:.3g}",
        )
    off_unit = np.abs(np.diagonal(values, axis1=-2, axis2=-1) - 1.0).max(initial=0.0)
    if off_unit > tol:
        raise ArgumentError(
            f"{name} does not have a unit diagonal",
            expected=f"1 within {tol:g}",
            got=f"a diagonal entry {off_unit:.3g} away from 1",
            hint="a covariance matrix becomes a correlation matrix when divided by the standard deviations",
        )
    largest = np.abs(values).max(initial=0.0)
    if largest > 1.0 + tol:
        raise ArgumentError(
            f"{name} has entries beyond 1", expected="entries in [-1, 1]", got=f"{largest:.6g}"
        )
    clean = matrix_from_pairs(np.clip(pair_values(values), -1.0, 1.0), values.shape[-1])
    _require_semidefinite(clean, tol, name)
    return clean


def _finite_square(A: ArrayLike, name: str) -> Matrix:
    """Return `A` as finite float64 matrices of shape (..., p, p), p >= 2, or say what is wrong with it."""
    try:
        raw = np.asarray(A)
        if raw.dtype.kind not in "iuf":
            raise TypeError
        values = raw.astype(np.float64)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"{name} is not an array of real numbers", expected="real numbers", got=type(A).__name__
        ) from None
    if values.ndim < 2 or values.shape[-1] != values.shape[-2] or values.shape[-1] < 2:
        raise ArgumentError(
            f"{name} is not a square matrix of two or more variables",
            expected="shape (..., p, p) with p >= 2",
            got=f"shape {values.shape}",
        )
    bad = int(np.count_nonzero(~np.isfinite(values)))
    if bad:
        raise ArgumentError(
            f"{name} is not finite", expected="finite numbers", got=f"{bad} NaN or infinite entries"
        )
    return values


def _require_semidefinite(R: Matrix, tol: float, name: str) -> None:
    """Raise unless every matrix of the stack has eigenvalues of at least -tol.

    A Cholesky factor of R + tol I exists exactly then, and costs a tenth of the eigenvalues.
    """
    try:
        np.linalg.cholesky(R + tol * np.eye(R.shape[-1]))
    except np.linalg.LinAlgError:
        smallest = float(np.linalg.eigvalsh(R).min())
        raise ArgumentError(
            f"{name} is not positive semidefinite",
            expected=f"eigenvalues of at least {-tol:g}",
            got=f"a smallest eigenvalue of {smallest:.3g}",
            hint="nearest_correlation(R) gives the nearest correlation matrix",
        ) from None


def nearest_correlation(
    A: ArrayLike, eigenvalue_floor: float = 0.0, *, tol: float = 1e-10, max_iter: int = 10_000
) -> Matrix:
    """Return the correlation matrix nearest to a symmetric matrix in the Frobenius norm.

    Alternating projections onto the matrices with eigenvalues of at least `eigenvalue_floor` and onto those
    with unit diagonal, with Dykstra's correction (without it the limit lies in both sets but is not the
    nearest point): Higham (2002), Algorithm 3.3.

    Parameters
    ----------
    A : array-like, shape (p, p)
        Symmetric and finite. The diagonal is taken as 1, whatever it holds.
    eigenvalue_floor : float, default 0.0
        Smallest eigenvalue of the result, reached to about `tol`; in [0, 1). A positive floor gives an
        invertible matrix.
    tol : float, default 1e-10
        Stop when a step and the distance between the two sets are below `tol` times the norm of the iterate.
    max_iter : int, default 10000
        Convergence is linear; tens of iterations are usual. A result cut short here is a correlation matrix
        all the same, only not quite the nearest.

    Returns
    -------
    ndarray of float64, shape (p, p)
        Exactly symmetric, diagonal exactly 1, entries within [-1, 1], positive semidefinite to rounding.
        A correlation matrix whose eigenvalues already reach the floor comes back unchanged.

    Raises
    ------
    ArgumentTypeError, ArgumentError
        If `A` is not a finite symmetric matrix, or an option is out of its range.

    References
    ----------
    Higham, N. J. (2002). Computing the nearest correlation matrix: a problem from finance. IMA Journal of
    Numerical Analysis 22, 329-343.

    Examples
    --------
    >>> nearest_correlation([[1, 1, 0], [1, 1, 1], [0, 1, 1]]).round(4)
    array([[1.    , 0.7607, 0.1573],
           [0.7607, 1.    , 0.7607],
           [0.1573, 0.7607, 1.    ]])
    """
    target = _finite_square(A, "A")
    _check_projection_options(target, eigenvalue_floor, tol, max_iter)
    target = (target + target.T) / 2
    np.fill_diagonal(target, 1.0)  # every candidate has this diagonal, so it does not matter to the distance
    rounding = 4 * len(target) * np.finfo(np.float64).eps
    if np.abs(target).max() <= 1.0 and np.linalg.eigvalsh(target)[0] >= eigenvalue_floor - rounding:
        return target
    unit, correction = target, np.zeros_like(target)
    for _ in range(max_iter):
        shifted = unit - correction
        eigenvalues, vectors = np.linalg.eigh(shifted)
        definite = (vectors * np.maximum(eigenvalues, eigenvalue_floor)) @ vectors.T
        correction = definite - shifted
        previous, unit = unit, definite.copy()
        np.fill_diagonal(unit, 1.0)
        moved = max(np.linalg.norm(unit - previous), np.linalg.norm(unit - definite))
        if moved <= tol * np.linalg.norm(unit):
            break
    return _unit_diagonal(definite)


def _unit_diagonal(S: Matrix) -> Matrix:
    """Scale a semidefinite matrix to unit diagonal; overwriting it would not keep it semidefinite."""
    scale = 1.0 / np.sqrt(np.diagonal(S))
    R = S * scale[:, None] * scale
    return matrix_from_pairs(np.clip(pair_values(R), -1.0, 1.0), len(R))


def _check_projection_options(A: Matrix, eigenvalue_floor: float, tol: float, max_iter: int) -> None:
    if A.ndim != 2:
        raise ArgumentError(
            "A is a stack of matrices", expected="one matrix, shape (p, p)", got=f"shape {A.shape}"
        )
    asymmetry = float(np.abs(A - A.T).max())
    if asymmetry > 1e-8 * max(1.0, float(np.abs(A).max())):
        raise ArgumentError(
            "A is not symmetric",
            expected="A[j, k] equal to A[k, j]",
            got=f"a difference of {asymmetry:.3g}",
            hint="(A + A.T) / 2 is the nearest symmetric matrix",
        )
    if not 0.0 <= eigenvalue_floor < 1.0:
        raise ArgumentError(
            "eigenvalue_floor is out of range",
            expected="0 <= eigenvalue_floor < 1 (the eigenvalues of a correlation matrix average 1)",
            got=repr(eigenvalue_floor),
        )
    if not tol > 0.0:
        raise ArgumentError("tol is not positive", expected="tol > 0", got=repr(tol))
    if max_iter < 1:
        raise ArgumentError("max_iter is not positive", expected="max_iter >= 1", got=repr(max_iter))


def prior_interval_length(p: int, prob: float = 0.95) -> float:
    """Return the length of the equal-tailed interval of one correlation under LKJ(1), without any data.

    Under LKJ(1) each (1 + R_jk)/2 is Beta(p/2, p/2), so the length is 2(2q - 1) with q the upper quantile.

    Parameters
    ----------
    p : int
        Number of variables.
    prob : float, default 0.95

    Returns
    -------
    float

    References
    ----------
    Lewandowski, D., Kurowicka, D. and Joe, H. (2009). Generating random correlation matrices based on vines
    and extended onion method. Journal of Multivariate Analysis 100, 1989-2001.

    Examples
    --------
    >>> [round(prior_interval_length(p), 3) for p in (2, 3, 5, 7, 10)]
    [1.9, 1.757, 1.509, 1.333, 1.152]
    """
    from scipy.special import betaincinv

    upper = betaincinv(p / 2, p / 2, (1.0 + prob) / 2.0)
    return float(2.0 * (2.0 * upper - 1.0))


def project_indefinite(matrix: Matrix) -> tuple[Matrix, dict[str, bool | float]]:
    """Replace a matrix with a negative eigenvalue by the nearest correlation matrix, and say how far it moved.

    Parameters
    ----------
    matrix : ndarray, shape (p, p)
        Symmetric with unit diagonal.

    Returns
    -------
    R : ndarray, shape (p, p)
        `matrix` itself where no eigenvalue is below ``NEGATIVE_EIGENVALUE``.
    facts : dict
        ``projected``, and ``frobenius_distance`` between the two.

    Examples
    --------
    >>> R, facts = project_indefinite(np.array([[1.0, 0.5], [0.5, 1.0]]))
    >>> facts
    {'projected': False, 'frobenius_distance': 0.0}
    """
    projected = bool(np.linalg.eigvalsh(matrix)[0] < NEGATIVE_EIGENVALUE)
    R = nearest_correlation(matrix) if projected else matrix
    return R, {"projected": projected, "frobenius_distance": float(np.linalg.norm(R - matrix))}
