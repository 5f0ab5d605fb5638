"""Median splits with fixed tie-breaking keys, and the counts of rows high in both variables of a pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsurvey.confidential.domain import as_array
from dpsurvey.confidential.ties import TieKeys


def median_split(values: NDArray[Any], ids: pd.Index[Any], variable: str, keys: TieKeys) -> NDArray[np.bool_]:
    """Return which rows are in the high half of a variable: the last ceil(n/2) in the order (value, key, id).

    A selection, not a sort: O(n), and keys are computed for the rows tied at the median alone.

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
    numpy.ndarray of bool, shape (n,)
        Exactly ``ceil(n/2)`` are True (paper, section 3).

    Examples
    --------
    >>> median_split(np.array([3.0, 1.0, 2.0]), pd.RangeIndex(3), "x", TieKeys())
    array([ True, False,  True])
    """
    rows_low = len(values) // 2
    high, tied, tied_low = _select(values, rows_low)
    if tied_low:
        ids_tied = ids[tied]
        by_key, collided, collided_low = _select(keys.hashes(variable, ids_tied), tied_low)
        # Two 64-bit keys are equal once in 2**64 pairs; the id then decides, so that the order is total.
        by_id = np.asarray(ids_tied[collided].argsort())
        by_key[collided[by_id[collided_low:]]] = True
        tied = tied[by_key]
    high[tied] = True
    return high


def _select(values: NDArray[Any], count_low: int) -> tuple[NDArray[np.bool_], NDArray[np.intp], int]:
    """Split off all but the lowest `count_low` values.

    Returns
    -------
    above : numpy.ndarray of bool
        Values above the threshold, which is the value at rank `count_low`.
    tied : numpy.ndarray of int
        Positions of the values equal to the threshold.
    tied_low : int
        How many of those still belong to the low ones.
    """
    threshold = np.partition(values, count_low)[count_low]
    above = np.asarray(values > threshold)
    tied = np.flatnonzero(values == threshold)
    return above, tied, count_low - (len(values) - int(np.count_nonzero(above)) - len(tied))


def pair_counts(df: pd.DataFrame, variables: Sequence[str], keys: TieKeys) -> NDArray[np.int64]:
    """Return the true quadrant counts t_jk of every pair: rows high in both variables. CONFIDENTIAL.

    Each split is packed into 64-bit words (n/8 bytes a variable); a count is an AND and a population count.

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
    >>> df = pd.DataFrame({"x": [1, 2, 3, 4], "y": [1, 2, 3, 4], "z": [4, 3, 2, 1]})
    >>> pair_counts(df, ["x", "y", "z"], TieKeys())
    array([2, 0, 0])
    """
    ids: pd.Index[Any] = df.index
    bits = [_pack(median_split(as_array(df[name]), ids, name, keys)) for name in variables]
    first, second = np.triu_indices(len(bits), 1)
    return np.array(
        [int(np.bitwise_count(bits[j] & bits[k]).sum()) for j, k in zip(first, second, strict=True)],
        dtype=np.int64,
    )


def _pack(high: NDArray[np.bool_]) -> NDArray[np.uint64]:
    packed = np.packbits(high)
    words = np.zeros(-(-len(packed) // 8) * 8, dtype=np.uint8)
    words[: len(packed)] = packed
    return words.view(np.uint64)
