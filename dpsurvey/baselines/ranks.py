"""What the extended rank likelihood sees of a table: the ranks of the observed cells of each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsurvey.confidential.domain import as_array, column_problem, infinite_count, select_columns
from dpsurvey.errors import DomainError

MINIMUM_ROWS = 3


@dataclass(frozen=True, slots=True)
class RankTable:
    """Columns reduced to dense ranks; confidential, since ranks are a function of the rows.

    Attributes
    ----------
    names : tuple of str
        The variables, length p.
    codes : ndarray of int64, shape (n, p)
        0, 1, ... for the ascending distinct values of a column, -1 where the cell is missing.
    levels : ndarray of int64, shape (p,)
        Number of distinct observed values of each column.
    """

    names: tuple[str, ...]
    codes: NDArray[np.int64]
    levels: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"RankTable(n={self.n}, p={self.p})"

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.codes.shape[0])

    @property
    def p(self) -> int:
        """Number of variables."""
        return int(self.codes.shape[1])

    @property
    def observed(self) -> NDArray[np.int64]:
        """Number of observed cells of each column, shape (p,)."""
        return np.asarray((self.codes >= 0).sum(axis=0), dtype=np.int64)

    def plug_in(self, threshold: float | None) -> NDArray[np.bool_]:
        """Return which columns keep their normal scores instead of being drawn, shape (p,).

        Parameters
        ----------
        threshold : float or None
            A column with more distinct values than this is "plug-in"; as in R's ``unique``, "missing" counts
            as one value. None: no column is.
        """
        if threshold is None:
            return np.zeros(self.p, dtype=np.bool_)
        distinct = self.levels + (self.observed < self.n)
        return np.asarray(distinct > threshold, dtype=np.bool_)

    def normal_scores(self) -> NDArray[np.float64]:
        """Return qnorm(rank / (N + 1)), ties at their largest rank; shape (p, n), nan where missing.

        N is the number of observed cells of the column.
        """
        from scipy.special import ndtri

        scores = np.full((self.p, self.n), np.nan)
        for j in range(self.p):
            codes = self.codes[:, j]
            seen = codes >= 0
            largest_rank = np.cumsum(np.bincount(codes[seen], minlength=int(self.levels[j])))
            scores[j, seen] = ndtri(largest_rank[codes[seen]] / (seen.sum() + 1))
        return scores


def rank_table(df: pd.DataFrame, columns: Sequence[str] | None = None) -> RankTable:
    """Rank the columns of a table, or refuse it with every problem at once.

    Parameters
    ----------
    df : pandas.DataFrame
        Numeric, boolean, nullable or ordered categorical columns; cells may be missing.
    columns : sequence of str, optional
        The variables; every column where None.

    Raises
    ------
    DomainError
        For fewer than two columns or three rows; columns without an order, with infinite cells, without
        observed cells or with one distinct value; and columns that order the rows identically or in reverse,
        whose correlation is +-1 whatever the model. Messages hold names, dtypes and counts, never values.
    UnknownNameError, ArgumentError
        For names that are not in the table or are asked for twice.

    Examples
    --------
    >>> table = rank_table(pd.DataFrame({"a": [2.5, 1.0, None, 2.5], "b": [1, 2, 3, 4]}))
    >>> table.codes.T.tolist()
    [[1, 0, -1, 1], [0, 1, 2, 3]]
    """
    names = select_columns(df, columns)
    problems = [f"column {name!r}: {why}" for name in names if (why := _unrankable(df[name])) is not None]
    if len(df) < MINIMUM_ROWS:
        problems.append(f"{len(df)} row(s), and at least {MINIMUM_ROWS} are needed")
    if not problems:
        codes = np.column_stack([_codes(df[name]) for name in names])
        levels = codes.max(axis=0) + 1
        problems += _uninformative(names, levels) or _twins(names, codes, levels)
    if problems:
        raise DomainError(
            "; ".join(problems),
            expected="n >= 3 rows and at least two different columns that vary and have an order",
            hint="drop or recode these columns; missing cells may stay",
        )
    return RankTable(names, codes, levels)


def _unrankable(column: pd.Series[Any]) -> str | None:
    problem = column_problem(column)
    if problem is None and (infinite := infinite_count(column)):
        problem = f"{infinite} infinite cell(s); recode them as missing or as a finite top code"
    return problem


def _codes(column: pd.Series[Any]) -> NDArray[np.int64]:
    """Return dense ranks, -1 where missing. Integers beyond 2**53 never pass through a float."""
    missing = column.isna().to_numpy(dtype=bool)
    codes = np.full(len(column), -1, dtype=np.int64)
    codes[~missing] = np.unique(as_array(column[~missing]), return_inverse=True)[1]
    return codes


def _uninformative(names: tuple[str, ...], levels: NDArray[np.int64]) -> list[str]:
    problems = [
        f"column {name!r} has no observed cell" for name, k in zip(names, levels, strict=True) if k == 0
    ]
    problems += [f"column {name!r} is constant" for name, k in zip(names, levels, strict=True) if k == 1]
    return problems


def _twins(names: tuple[str, ...], codes: NDArray[np.int64], levels: NDArray[np.int64]) -> list[str]:
    """Name the pairs of columns with the same ranks, or with ranks in reverse.

    A column is hashed up to reversal, so that p columns cost p passes and not p^2.
    """
    first: dict[bytes, str] = {}
    problems = []
    for j, name in enumerate(names):
        column = codes[:, j]
        reverse = np.where(column < 0, -1, levels[j] - 1 - column)
        key = min(column.tobytes(), reverse.tobytes())
        if key in first:
            problems.append(f"columns {first[key]!r} and {name!r} order the rows identically or in reverse")
        first.setdefault(key, name)
    return problems
