"""Staying inside the positive definite set in floating point."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.jit import njit

_LARGEST_MARGIN = 1e-3
_ROUNDING = 16 * 2.0**-52
_SMALLEST_PULL = 2.0**-52


@njit
def factorise(R: NDArray[np.float64], members: NDArray[np.int64], factor: NDArray[np.float64]) -> bool:
    """Write the Cholesky factor of R restricted to `members`; return False where it is not positive definite.

    Parameters
    ----------
    R : numpy.ndarray, shape (p, p)
    members : numpy.ndarray of int, shape (size,)
        Variables, in the order of the factor.
    factor : numpy.ndarray, shape (size, size) or larger
        Its lower triangle is written, the rest left as it is.
    """
    for a in range(members.shape[0]):
        for b in range(a + 1):
            total = R[members[a], members[b]]
            for c in range(b):
                total -= factor[a, c] * factor[b, c]
            if a == b:
                if not total > 0.0:
                    return False
                factor[a, a] = np.sqrt(total)
            else:
                factor[a, b] = total / factor[b, b]
    return True


@njit
def feasible_margin(smallest: float) -> float:
    """Return the share of a feasible interval to keep off both of its ends.

    The ends are as inexact as the differences they come from: a rounding error over the smaller of the two
    variances whose product is the square of the interval's half length. A fixed share would not do: where two
    variables are copies, the posterior can lie within 1e-10 of an end.

    Parameters
    ----------
    smallest : float
    """
    return min(_LARGEST_MARGIN, _ROUNDING / max(smallest, _ROUNDING))


@njit
def pull_inside(R: NDArray[np.float64], members: NDArray[np.int64], factor: NDArray[np.float64]) -> None:
    """Write the Cholesky factor of R; if rounding left R outside the set, first draw it to the identity.

    Parameters
    ----------
    R : numpy.ndarray, shape (p, p)
        Changed in place, by as little as will do.
    members, factor
        As for :func:`factorise`; all p variables.
    """
    share = _SMALLEST_PULL
    while not factorise(R, members, factor):
        for a in range(R.shape[0]):
            for b in range(R.shape[0]):
                if a != b:
                    R[a, b] *= 1.0 - share
        share *= 2.0
