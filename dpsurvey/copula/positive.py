"""Staying inside the positive definite set in floating point."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.jit import njit

_MARGIN = 1e-10  # of the feasible interval, kept off both ends
_LARGEST_MARGIN = 1e-3
_ROUNDING = 64 * 2.0**-52
_SHRINK = 1e-9  # by which a matrix that rounding made singular is drawn towards the identity


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
def feasible_margin(largest: float) -> float:
    """Return the share of a feasible interval to keep off both of its ends.

    The ends are as inexact as the inverse they come from: a rounding error times its largest diagonal entry.
    The share cut off is far too small to be seen in a posterior, however near to singular.
    """
    return min(_LARGEST_MARGIN, _MARGIN + _ROUNDING * largest)


@njit
def shrink(R: NDArray[np.float64]) -> None:
    """Draw R a little towards the identity, in place."""
    for a in range(R.shape[0]):
        for b in range(R.shape[0]):
            if a != b:
                R[a, b] *= 1.0 - _SHRINK
