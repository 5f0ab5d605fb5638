"""Strict ranks with fixed tie-breaking keys, and the counts of pairs of rows that two variables order differently."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsurvey.confidential.domain import as_array
from dpsurvey.confidential.ties import TieKeys
from dpsurvey.copula.jit import njit

_SHORT = 16  # runs of this length are sorted by insertion


def strict_order(values: NDArray[Any], ids: pd.Index[Any], variable: str, keys: TieKeys) -> NDArray[np.int64]:
    """Return the rows of a variable from lowest to highest in the order (value, key, id).

    Keys are computed for tied rows alone. The order of two rows depends on nothing but their own values, keys and
    ids, so substituting one row leaves the order of all others as it is.

    Parameters
    ----------
    values : numpy.ndarray, shape (n,)
        Finite numbers.
    ids : pandas.Index, shape (n,)
        Unique row ids.
    variable : str
        Name of the variable, which its keys depend on.
    keys : TieKeys

    Returns
    -------
    numpy.ndarray of int, shape (n,)

    Examples
    --------
    >>> strict_order(np.array([3.0, 1.0, 2.0]), pd.RangeIndex(3), "x", TieKeys())
    array([1, 2, 0])
    """
    order = np.argsort(values, kind="stable")
    arranged = values[order]
    equal = arranged[1:] == arranged[:-1]
    tied = np.zeros(len(order), dtype=bool)
    tied[1:] |= equal
    tied[:-1] |= equal
    if tied.any():
        rows = order[tied]
        group = np.concatenate(([0], np.cumsum(~equal)))[tied]
        by_id = np.asarray(ids[rows].argsort())  # decides where two 64-bit keys are equal
        hashes = keys.hashes(variable, ids[rows])
        order[tied] = rows[by_id[np.lexsort((hashes[by_id], group[by_id]))]]
    return np.asarray(order, dtype=np.int64)


def discordant_counts(df: pd.DataFrame, variables: Sequence[str], keys: TieKeys) -> NDArray[np.int64]:
    """Return the true discordant counts D_jk of every pair: pairs of rows ordered differently. CONFIDENTIAL.

    With the rows in the order of j, D_jk is the number of inversions of k: a merge sort, O(n log n).

    Parameters
    ----------
    df : pandas.DataFrame, n rows
        A table of the domain (:func:`dpsurvey.confidential.domain.check_domain`).
    variables : sequence of str, length p
    keys : TieKeys

    Returns
    -------
    numpy.ndarray of int64, shape (p(p-1)/2,)
        In the order of ``numpy.triu_indices(p, 1)``.

    Examples
    --------
    >>> df = pd.DataFrame({"x": [1, 2, 3, 4], "y": [1, 2, 4, 3], "z": [4, 3, 2, 1]})
    >>> discordant_counts(df, ["x", "y", "z"], TieKeys())
    array([1, 6, 5])
    """
    return count_discordances([strict_order(as_array(df[name]), df.index, name, keys) for name in variables])


def count_discordances(orders: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the discordant counts of every pair of strict orders of the same rows. CONFIDENTIAL.

    Parameters
    ----------
    orders : sequence of numpy.ndarray of int, shape (n,)
        The rows of each variable from lowest to highest.

    Returns
    -------
    numpy.ndarray of int64, shape (p(p-1)/2,)

    Examples
    --------
    >>> count_discordances([np.array([0, 1, 2]), np.array([2, 1, 0])])
    array([3])
    """
    ranks = [rank_of(order) for order in orders]
    space = np.empty(len(orders[0]), dtype=np.int32)
    first, second = np.triu_indices(len(orders), 1)
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    counts = [_inversions(ranks[k][orders[j]], space) for j, k in pairs]
    return np.array(counts, dtype=np.int64)


def rank_of(order: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return each row's rank, 0 to n-1: the inverse permutation of an order."""
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank


@njit
def _inversions(source: NDArray[np.int32], target: NDArray[np.int32]) -> int:
    """Return how many pairs of a sequence of different numbers stand in the wrong order.

    Both arrays are work space. Merging takes from one side or the other without a branch on which, since that
    could not be predicted.
    """
    n, count = source.shape[0], 0
    for start in range(0, n, _SHORT):
        for i in range(start + 1, min(start + _SHORT, n)):
            value, place = source[i], i
            while place > start and source[place - 1] > value:
                source[place] = source[place - 1]
                place -= 1
            source[place] = value
            count += i - place
    width = _SHORT
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            left, right, place = start, middle, start
            while left < middle and right < stop:
                a, b = source[left], source[right]
                take = 1 if b < a else 0
                target[place] = b if take else a
                count += take * (middle - left)
                right += take
                left += 1 - take
                place += 1
            while left < middle:
                target[place] = source[left]
                left += 1
                place += 1
            while right < stop:
                target[place] = source[right]
                right += 1
                place += 1
        source, target = target, source
        width *= 2
    return count
