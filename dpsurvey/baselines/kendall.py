"""Concordant less discordant pairs of rows: the numerator of Kendall's tau, as an exact integer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsurvey.confidential.domain import as_array
from dpsurvey.copula.jit import njit


def concordance_scores(df: pd.DataFrame, variables: Sequence[str]) -> NDArray[np.int64]:
    """Return S_jk, concordant less discordant pairs of rows, of every pair of variables. CONFIDENTIAL.

    A pair of rows tied in either variable counts as neither, so tau-a is ``S / (n(n-1)/2)``. O(n log n) for
    each pair of variables (Knight, 1966).

    Parameters
    ----------
    df : pandas.DataFrame, n rows
        Complete rows of real columns (:func:`dpsurvey.confidential.domain.check_domain`).
    variables : sequence of str, length p

    Returns
    -------
    numpy.ndarray of int64, shape (p(p-1)/2,)
        In the order of ``numpy.triu_indices(p, 1)``.

    References
    ----------
    Knight, W. R. (1966). A computer method for calculating Kendall's tau with ungrouped data. Journal of the
    American Statistical Association 61, 436-439.

    Examples
    --------
    >>> df = pd.DataFrame({"x": [1, 2, 3, 4], "y": [1, 2, 3, 3], "z": [4, 3, 2, 1]})
    >>> concordance_scores(df, ["x", "y", "z"])
    array([ 5, -6, -5])
    """
    ranks = [np.unique(as_array(df[name]), return_inverse=True)[1] for name in variables]
    first, second = np.triu_indices(len(ranks), 1)
    scores = [_score(ranks[j], ranks[k]) for j, k in zip(first, second, strict=True)]
    return np.array(scores, dtype=np.int64)


def _score(x: NDArray[np.int64], y: NDArray[np.int64]) -> int:
    n = len(x)
    order = np.lexsort((y, x))
    cells = x * (int(y.max()) + 1) + y  # at most n**2, so no overflow below three thousand million rows
    untied = n * (n - 1) // 2 - _tied_pairs(x) - _tied_pairs(y) + _tied_pairs(cells)
    # Sorted by x, and by y among equal x, a descent in y is a discordant pair.
    return untied - 2 * int(inversions(y[order].astype(np.int64)))


def _tied_pairs(codes: NDArray[np.int64]) -> int:
    counts = np.unique(codes, return_counts=True)[1]
    return int(np.sum(counts * (counts - 1) // 2))


@njit
def inversions(values: NDArray[np.int64]) -> int:
    """Return how many pairs i < j have values[i] > values[j], by a merge sort.

    Parameters
    ----------
    values : numpy.ndarray of int64, shape (n,)
        Not changed.

    Examples
    --------
    >>> inversions(np.array([3, 1, 2, 2]))
    3
    """
    n = values.shape[0]
    source, target = values.copy(), np.empty_like(values)
    count, width = 0, 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            left, right = start, middle
            for position in range(start, stop):
                if left < middle and (right >= stop or source[left] <= source[right]):
                    target[position] = source[left]
                    left += 1
                else:
                    target[position] = source[right]
                    right += 1
                    count += middle - left  # all that is left of the left half is larger
        source, target = target, source
        width *= 2
    return count
