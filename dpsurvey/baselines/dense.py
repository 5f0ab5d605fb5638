"""Linear algebra of small dense matrices inside kernels, without a call into LAPACK for every draw."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.jit import njit

Array = NDArray[np.float64]


@njit
def cholesky(A: Array, L: Array) -> None:
    """Write the lower Cholesky factor of `A` (positive definite) into `L`, zeros above its diagonal.

    Examples
    --------
    >>> L = np.empty((2, 2))
    >>> cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]), L)
    >>> L.tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    p = A.shape[0]
    for j in range(p):
        for i in range(j):
            L[i, j] = 0.0
        for i in range(j, p):
            s = A[i, j]
            for k in range(j):
                s -= L[i, k] * L[j, k]
            L[i, j] = math.sqrt(s) if i == j else s / L[j, j]


@njit
def dot(x: Array, y: Array) -> float:
    """Return the inner product, with eight running sums that the compiler may keep in vector registers.

    Examples
    --------
    >>> dot(np.arange(11.0), np.ones(11))
    55.0
    """
    n = x.size
    whole = n - n % 8
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for i in range(0, whole, 8):
        s0 += x[i] * y[i]
        s1 += x[i + 1] * y[i + 1]
        s2 += x[i + 2] * y[i + 2]
        s3 += x[i + 3] * y[i + 3]
        s4 += x[i + 4] * y[i + 4]
        s5 += x[i + 5] * y[i + 5]
        s6 += x[i + 6] * y[i + 6]
        s7 += x[i + 7] * y[i + 7]
    for i in range(whole, n):
        s0 += x[i] * y[i]
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
