"""The declared domain of a release: n >= 4 complete rows, p >= 2 real columns, unique ids.

The checks read types and whether cells are finite, never the values themselves: on the domain a release is
total, since a refusal that depends on values would itself be a release.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsurvey.confidential.near import check_known
from dpsurvey.confidential.table import asked_names, check_table
from dpsurvey.confidential.ties import id_problem
from dpsurvey.errors import ArgumentError, DomainError, UnknownNameError
from dpsurvey.texts import is_text, shown

MINIMUM_ROWS = 4
MINIMUM_COLUMNS = 2


def column_problem(column: pd.Series[Any]) -> str | None:
    """Return why a column's type is not that of real numbers, or None where it is.

    Parameters
    ----------
    column : pandas.Series

    Returns
    -------
    str or None
        A message with the dtype and how to mend it; never a value.

    Examples
    --------
    >>> column_problem(pd.Series([1.0, 2.0])) is None
    True
    >>> column_problem(pd.Series(["a", "b"], dtype=object))
    'dtype object is not numeric; convert it with pandas.to_numeric'
    """
    dtype = column.dtype
    name = dtype_name(dtype)
    if isinstance(dtype, pd.CategoricalDtype):
        return None if dtype.ordered else f"dtype {name} has no order; declare one or drop the column"
    if pd.api.types.is_complex_dtype(dtype):
        return f"dtype {name} has no order; use its real or absolute part"
    if pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_numeric_dtype(dtype):
        return None
    if pd.api.types.is_datetime64_any_dtype(dtype) or pd.api.types.is_timedelta64_dtype(dtype):
        return f"dtype {name} is a date or duration; convert it to a number of days first"
    return f"dtype {name} is not numeric; convert it with pandas.to_numeric"


def dtype_name(dtype: Any) -> str:
    """Return the name of a dtype, without what pandas adds to it from the cells.

    Examples
    --------
    >>> dtype_name(pd.SparseDtype("float64", fill_value=8.5))  # the fill value is a cell
    'Sparse[float64]'
    """
    return f"Sparse[{dtype.subtype}]" if isinstance(dtype, pd.SparseDtype) else str(dtype)


def missing_count(column: pd.Series[Any]) -> int:
    """Return the number of missing cells: NaN, NA, None, NaT, and NaN where pandas does not count it as NA.

    Examples
    --------
    >>> missing_count(pd.Series([1, None], dtype="Int64"))
    1
    """
    if _is_float(column):
        return int(np.isnan(_floats(column)).sum())
    return int(column.isna().sum())


def infinite_count(column: pd.Series[Any]) -> int:
    """Return the number of infinite cells of a numeric column.

    Examples
    --------
    >>> infinite_count(pd.Series([1.0, float("inf")]))
    1
    """
    return int(np.isinf(_floats(column)).sum()) if _is_float(column) else 0


def _is_float(column: pd.Series[Any]) -> bool:
    return not isinstance(column.dtype, pd.CategoricalDtype) and pd.api.types.is_float_dtype(column.dtype)


def _floats(column: pd.Series[Any]) -> NDArray[Any]:
    """Return a column of floats as it is, NaN for NA: nullable and Arrow columns can hold both."""
    if isinstance(column.dtype, np.dtype):
        return np.asarray(column.to_numpy())
    return np.asarray(column.to_numpy(dtype="float64", na_value=np.nan))


def select_columns(df: pd.DataFrame, columns: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the variables to use, checked against the table.

    Parameters
    ----------
    df : pandas.DataFrame
    columns : sequence of str or None
        None means every column.

    Raises
    ------
    DomainError
        If the names of the table are not unique plain names, or fewer than two are left.
    UnknownNameError
        If a name is not in the table.
    ArgumentError, ArgumentTypeError
        If a name is asked for twice, `columns` is no list, or `df` no table.
    """
    check_table(df)
    if isinstance(df.columns, pd.MultiIndex):
        raise DomainError(
            "the columns are a MultiIndex",
            expected="one name a column",
            got=f"{df.columns.nlevels} levels",
            hint="flatten them, for example with df.columns = ['_'.join(c) for c in df.columns]",
        )
    names = tuple(df.columns) if columns is None else asked_names(columns)
    if not all(map(is_text, names)):
        raise DomainError("a column name is not text", expected="str names", hint="df.rename(columns=str)")
    known = [name for name in df.columns if isinstance(name, str)]
    check_known(names, known, what="column", where="the table")
    repeated = sorted({repr(n) for n in names if int((df.columns == n).sum()) > 1})
    if repeated:
        raise DomainError(
            f"the table has more than one column called {', '.join(repeated)}", hint="rename one of them"
        )
    if len(set(names)) != len(names):
        raise ArgumentError(
            "a column is named twice", expected="each column once", hint="drop the repeated name"
        )
    if len(names) < MINIMUM_COLUMNS:
        raise DomainError("too few columns", expected=f"at least {MINIMUM_COLUMNS}", got=str(len(names)))
    return names


def coarse_columns(
    df: pd.DataFrame, names: tuple[str, ...], coarse: Sequence[str] | None, statistic: str
) -> tuple[str, ...]:
    """Return the variables declared to have few levels, in the order of `names`; none for quadrant counts.

    Parameters
    ----------
    df : pandas.DataFrame
    names : tuple of str
        The variables to be released.
    coarse : sequence of str or None
        None means the columns of boolean or ordered category type: types are schema, values are not looked at.
    statistic : str

    Raises
    ------
    ArgumentTypeError
        If it is no list.
    UnknownNameError
        If a name is not among the variables.

    Examples
    --------
    >>> df = pd.DataFrame({"smokes": [True, False], "kcal": [2000.0, 1800.0]})
    >>> coarse_columns(df, ("smokes", "kcal"), None, "concordance")
    ('smokes',)
    """
    if coarse is None:
        return (
            ()
            if statistic == "quadrant"
            else tuple(name for name in names if _has_few_levels(df[name].dtype))
        )
    few = asked_names(coarse, what="coarse")
    unknown = [name for name in few if name not in names]
    if unknown:
        raise UnknownNameError(
            f"{len(unknown)} coarse column(s) are not among the variables: {', '.join(map(shown, unknown))}",
            expected=f"some of {', '.join(map(repr, names))}",
        )
    return tuple(name for name in names if name in few)


def _has_few_levels(dtype: Any) -> bool:
    return isinstance(dtype, pd.CategoricalDtype) or bool(pd.api.types.is_bool_dtype(dtype))


def check_domain(df: pd.DataFrame, names: tuple[str, ...]) -> None:
    """Refuse a table that is not n >= 4 complete rows of real columns with unique ids, listing every problem.

    Parameters
    ----------
    df : pandas.DataFrame
    names : tuple of str
        The variables that are going to be released.

    Raises
    ------
    DomainError
        With all problems in one message: columns, dtypes and counts, never values.
    """
    problems = list(_row_problems(df))
    for name in names:
        problem = column_problem(df[name])
        if problem is None:
            missing, infinite = missing_count(df[name]), infinite_count(df[name])
            if missing:
                problem = f"{missing} missing cell(s); keep complete rows, e.g. with dpsurvey.nhanes.complete"
            elif infinite:
                problem = f"{infinite} infinite cell(s); recode them or drop those rows"
        if problem is not None:
            problems.append(f"column {name!r}: {problem}")
    if problems:
        raise DomainError(
            "; ".join(problems),
            expected="n >= 4 complete rows of real-valued columns with unique row ids",
            hint="dpsurvey.preflight(df) lists all problems at once",
        )


def _row_problems(df: pd.DataFrame) -> list[str]:
    problems = []
    if len(df) < MINIMUM_ROWS:
        problems.append(f"{len(df)} row(s), and at least {MINIMUM_ROWS} are needed")
    if isinstance(df.index, pd.MultiIndex):
        return [*problems, "the row index is a MultiIndex; use one unique id, or reset_index"]
    if not df.index.is_unique:
        problems.append(
            f"{int(df.index.duplicated().sum())} duplicate row id(s) in the index; one row a person is needed"
        )
    if df.index.hasnans:
        problems.append("missing row id(s) in the index")
    elif (problem := id_problem(df.index)) is not None:
        problems.append(problem)
    return problems


def as_array(column: pd.Series[Any]) -> NDArray[Any]:
    """Return a column of the domain as a plain numeric array that keeps its order.

    Integers stay integers, since beyond 2**53 a float would merge neighbours; ordered categories become
    their codes.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        return np.asarray(column.cat.codes.to_numpy())
    if pd.api.types.is_bool_dtype(column.dtype):
        return column.to_numpy(dtype="uint8")
    values = column.to_numpy() if isinstance(column.dtype, np.dtype) else _from_extension(column)
    return np.asarray(values)


def _from_extension(column: pd.Series[Any]) -> NDArray[Any]:
    """Return a nullable or Arrow column without missing cells as a numpy array."""
    if pd.api.types.is_unsigned_integer_dtype(column.dtype):
        return column.to_numpy(dtype="uint64")
    if pd.api.types.is_integer_dtype(column.dtype):
        return column.to_numpy(dtype="int64")
    return column.to_numpy(dtype="float64")
