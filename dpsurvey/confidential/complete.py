"""Complete rows, and what each column costs: for the data holder's eyes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from dpsurvey.confidential.near import check_known
from dpsurvey.confidential.table import asked_names, check_table
from dpsurvey.confidential.variables import ATTRIBUTE
from dpsurvey.errors import ArgumentTypeError, DomainError


def rows_lost(df: pd.DataFrame, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Count, column by column, the rows lost to missing values. Confidential: for the data holder.

    Parameters
    ----------
    df : DataFrame
    columns : list of str, optional
        All columns by default.

    Returns
    -------
    DataFrame
        One row per column: `missing`, rows where it is missing; `only_here`, rows where nothing else is
        missing, so that leaving the column out would win them back.

    Raises
    ------
    UnknownNameError, ArgumentTypeError, DomainError

    Examples
    --------
    >>> import pandas as pd
    >>> from dpsurvey import nhanes
    >>> table = pd.DataFrame({"a": [1.0, None, 3.0, None], "b": [1.0, 2.0, 3.0, None]})
    >>> nhanes.rows_lost(table)["only_here"].to_dict()
    {'a': 1, 'b': 0}
    """
    names = _names(df, columns)
    missing = df[names].isna().to_numpy()
    alone = missing[missing.sum(axis=1) == 1]
    return pd.DataFrame(
        {"missing": missing.sum(axis=0).astype(np.int64), "only_here": alone.sum(axis=0).astype(np.int64)},
        index=pd.Index(names, name="variable"),
    )


def complete(df: pd.DataFrame, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Keep the rows that miss none of some columns, and print how many each column costs.

    The table that is printed is for the data holder's eyes: its counts are exact, and they are in no release.
    Choosing columns after looking at it is a choice that depends on the data: it, and the number of rows that
    is left (which a release publishes), are outside the privacy guarantee. Best choose the columns
    beforehand.

    Parameters
    ----------
    df : DataFrame
    columns : list of str, optional
        The columns that must be there; the result has these columns. All by default.

    Returns
    -------
    DataFrame
        Complete rows of the columns, in the same order. The filter is declared in ``attrs`` where
        `read_survey` put its codebook there.

    Raises
    ------
    UnknownNameError, ArgumentTypeError, DomainError

    Examples
    --------
    >>> import pandas as pd
    >>> from dpsurvey import nhanes
    >>> table = pd.DataFrame({"Kcal": [2000.0, None, 1800.0], "Income": [1.5, 3.2, None]})
    >>> kept = nhanes.complete(table)
    Rows lost to missing values (confidential: for the data holder, in no release)
              missing  only_here
    variable
    Kcal            1          1
    Income          1          1
    1 of 3 rows are complete.
    >>> len(kept)
    1
    """
    names = _names(df, columns)
    lost = rows_lost(df, names)
    kept = df.loc[df[names].notna().all(axis=1), names]
    table = "\n".join(line.rstrip() for line in lost.to_string().splitlines())
    print(
        f"Rows lost to missing values (confidential: for the data holder, in no release)\n{table}\n"
        f"{len(kept):,} of {len(df):,} rows are complete."
    )
    declared = kept.attrs.get(ATTRIBUTE)
    if isinstance(declared, dict) and isinstance(declared.get("filters"), list):
        rule = f"complete rows on {', '.join(names)}"
        kept.attrs[ATTRIBUTE] = {**declared, "filters": [*declared["filters"], rule]}
    return kept


def _names(df: pd.DataFrame, columns: Sequence[str] | None) -> list[str]:
    """Return the names of columns of a table, checked."""
    check_table(df)
    if isinstance(df.columns, pd.MultiIndex) or not df.columns.is_unique:
        raise DomainError("the names of the columns are not unique plain names", hint="rename the columns")
    if columns is None:
        return list(df.columns)
    asked = asked_names(columns)
    if not all(isinstance(name, str) for name in asked):
        raise ArgumentTypeError("columns holds something that is no name", expected="list of str")
    names = list(dict.fromkeys(asked))
    check_known(names, set(df.columns), what="column", where="the table")
    return names
