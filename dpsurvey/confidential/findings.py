"""What can be wrong with a table that is to be released, one check at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpsurvey.confidential.domain import (
    MINIMUM_COLUMNS,
    MINIMUM_ROWS,
    as_array,
    column_problem,
    dtype_name,
    infinite_count,
    missing_count,
)
from dpsurvey.confidential.near import near_matches
from dpsurvey.confidential.nhanes_codes import MISSING_CODES
from dpsurvey.confidential.ties import id_problem
from dpsurvey.texts import is_text, shown

TIED_SHARE = 0.2  # from here on a warning: a fifth of the rows is split at random
_IBM_ZERO = 1e-70  # a reader's mistake for zero (5.397605e-79) is smaller; no measurement is

_ID = re.compile(r"SEQN|CASEID|(.*_)?ID|(PID|UID|HHID|RESPID|PERSONID|SUBJID|USUBJID)", re.IGNORECASE)
_WEIGHT = re.compile(r"WT[A-Z0-9_]*", re.IGNORECASE)
_DESIGN = re.compile(r"SDMV[A-Z0-9_]*|PSU|STRATA|STRATUM", re.IGNORECASE)
_NOMINAL = """
AIALANGA DMDBORN DMDBORN2 DMDBORN4 DMDCITZN DMDHRGND DMDHRMAR DMDHRMAZ DMDMARTL DMDMARTZ DMQADFC DMQMILIT
DMQMILIZ DRABF DR1DAY DR1DRSTZ DR1LANG DR2DAY DR2DRSTZ FIAINTRP FIALANG FIAPROXY MIAINTRP MIALANG MIAPROXY
RIAGENDR RIDEXMON RIDEXPRG RIDRETH1 RIDRETH2 RIDRETH3 RIDSTATR SDDSRVYR SIAINTRP SIALANG SIAPROXY
"""
_NOMINAL_NAMES = frozenset(_NOMINAL.split())


class Problem(NamedTuple):
    """One finding: the column (None for the whole table), a stable code, and a message without any value."""

    column: str | None
    code: str
    message: str


def row_problems(df: pd.DataFrame) -> Iterator[Problem]:
    """Yield problems of the index and of the number of rows."""
    if len(df) < MINIMUM_ROWS:
        yield Problem(None, "too_few_rows", f"{len(df)} row(s), and at least {MINIMUM_ROWS} are needed")
    if isinstance(df.index, pd.MultiIndex):
        yield Problem(None, "multiindex_rows", "the row index is a MultiIndex; use one unique id")
        return
    repeated = int(np.asarray(df.index.duplicated(keep=False)).sum())
    if repeated:
        yield Problem(
            None,
            "duplicate_ids",
            f"{repeated:,} rows share a row id with another; one row a person is needed",
        )
    if df.index.hasnans:
        yield Problem(None, "missing_ids", f"{int(np.asarray(df.index.isna()).sum()):,} rows have no row id")
    elif (problem := id_problem(df.index)) is not None:
        yield Problem(None, "id_type", problem)


def usable_names(df: pd.DataFrame, columns: Sequence[str] | None) -> tuple[list[str], list[Problem]]:
    """Return the names that stand for exactly one column, and what is wrong with the others."""
    given: list[Any] = list(df.columns if columns is None else columns)
    asked = [name for name in given if is_text(name)]
    show = repr if columns is None else shown  # names that were asked for may be cells, given by mistake
    others = dict.fromkeys(show(name) for name in given if not is_text(name))
    problems = [
        Problem(name, "name_not_text", "its name is not text; df.rename(columns=str)") for name in others
    ]
    usable = []
    for name in dict.fromkeys(asked):
        times = int((df.columns == name).sum())
        if times == 0:
            near = near_matches(name, [known for known in df.columns if isinstance(known, str)])
            meant = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
            problems.append(Problem(name, "unknown_column", f"there is no such column{meant}"))
        elif times > 1:
            problems.append(Problem(name, "duplicate_name", f"{times} columns have this name; rename them"))
        else:
            usable.append(name)
            if asked.count(name) > 1:
                problems.append(Problem(name, "asked_twice", "it is named more than once"))
    number = len(set(asked)) + len(others)
    if number < MINIMUM_COLUMNS:
        problems.append(
            Problem(None, "too_few_columns", f"{number} column(s), and at least {MINIMUM_COLUMNS} are needed")
        )
    return usable, problems


def column_problems(name: str, column: pd.Series[Any]) -> Iterator[Problem]:
    """Yield what would make a release refuse a column: its type, missing cells, infinite cells."""
    problem = column_problem(column)
    if problem is not None:
        yield Problem(name, "dtype", problem)
    missing = missing_count(column)
    if missing and missing == len(column):
        yield Problem(name, "all_missing", "every cell is missing; leave the column out")
    elif missing:
        yield Problem(
            name,
            "missing",
            f"{missing:,} of {len(column):,} cells are missing; dpsurvey.nhanes.complete keeps complete rows",
        )
    infinite = 0 if problem else infinite_count(column)
    if infinite:
        yield Problem(name, "infinite", f"{infinite:,} cells are infinite; recode them or drop those rows")


def value_warnings(name: str, column: pd.Series[Any]) -> Iterator[Problem]:
    """Yield what a release accepts and what hardly means anything: constants, ties, codes, false zeros."""
    if column_problem(column) is not None:
        return
    present = column.dropna()
    if len(present) and present.nunique() == 1:
        yield Problem(name, "constant", "all its cells are equal: it would be split at random")
        return
    tied = tied_at_median(present)
    if tied >= TIED_SHARE:
        yield Problem(
            name,
            "ties",
            f"{tied:.0%} of rows are tied at the median and split at random, which weakens correlations",
        )
    if isinstance(column.dtype, pd.CategoricalDtype):
        return
    codes = int(present.isin(MISSING_CODES.get(name, ())).sum())
    if codes:
        yield Problem(
            name,
            "missing_codes",
            f"{codes:,} cells hold codes for refused or unknown; read with missing_codes=",
        )
    if pd.api.types.is_float_dtype(column.dtype):
        size = np.abs(present.to_numpy(dtype=np.float64))
        zeros = int(((size > 0) & (size < _IBM_ZERO)).sum())
        if zeros:
            yield Problem(
                name,
                "tiny",
                f"{zeros:,} cells are zeros that another reader got wrong (5.4e-79); read with read_survey",
            )


def role_warnings(name: str, column: pd.Series[Any]) -> Iterator[Problem]:
    """Yield whether a column is hardly meant as a variable; for columns that were not named explicitly."""
    if _ID.fullmatch(name) or _numbers_rows(column):
        yield Problem(name, "id", "it looks like an id; make it the index, or name the columns to release")
    elif _WEIGHT.fullmatch(name):
        yield Problem(
            name, "weight", "it looks like a sample weight, which is no variable; name the columns to release"
        )
    elif _DESIGN.fullmatch(name):
        yield Problem(name, "design", "it describes the sampling design; name the columns to release")
    elif name.upper() in _NOMINAL_NAMES:
        yield Problem(
            name,
            "nominal",
            "its codes have no order, so a correlation means nothing; name the columns to release",
        )


def _numbers_rows(column: pd.Series[Any]) -> bool:
    """Whether whole numbers count the rows up or down by one: a row number under any name."""
    if not pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
        return False
    if len(column) < 10 or pd.api.types.is_complex_dtype(column.dtype) or column.isna().any():
        return False
    steps = np.diff(as_array(column).astype(np.float64))
    return bool((steps == 1).all() or (steps == -1).all())


def tied_at_median(present: pd.Series[Any]) -> float:
    """Return the share of rows that have the value at which the low half and the high half meet.

    Parameters
    ----------
    present : Series
        Numbers or ordered categories without missing cells.

    Returns
    -------
    float
        0 where the two halves part between two values, so that no tie is broken.

    Examples
    --------
    >>> tied_at_median(pd.Series([0, 0, 0, 1, 2, 3])), tied_at_median(pd.Series([0, 0, 0, 0, 1, 2]))
    (0.0, 0.6666666666666666)
    """
    n = len(present)
    if n < 2:
        return 0.0
    values = as_array(present)
    low = n // 2  # rows of the low half
    parted = np.partition(values, (low - 1, low))
    return float((values == parted[low]).mean()) if parted[low - 1] == parted[low] else 0.0


def facts_of(df: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """One row of facts per column."""
    rows = []
    for name in names:
        column = df[name]
        numeric = column_problem(column) is None
        rows.append(
            (
                dtype_name(column.dtype),
                missing_count(column),
                infinite_count(column) if numeric else 0,
                _distinct(column),
                tied_at_median(column.dropna()) if numeric else np.nan,
            )
        )
    facts = ["dtype", "missing", "infinite", "distinct", "tied_at_median"]
    return pd.DataFrame(rows, columns=facts, index=pd.Index(names, name="variable", dtype=object))


def _distinct(column: pd.Series[Any]) -> int | None:
    """Count distinct cells; None where cells cannot be compared (lists, dicts)."""
    try:
        return int(column.nunique())
    except TypeError:
        return None
