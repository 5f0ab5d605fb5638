"""What is a table, what is a list of its columns' names, and what is not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from dpsurvey.errors import ArgumentTypeError


def check_table(df: pd.DataFrame) -> None:
    """Refuse what is not a table.

    Raises
    ------
    ArgumentTypeError
    """
    given: object = df
    if not isinstance(given, pd.DataFrame):
        raise ArgumentTypeError("df is not a table", expected="a pandas.DataFrame", got=type(given).__name__)


def asked_names(columns: Iterable[str], *, what: str = "columns") -> tuple[Any, ...]:
    """Return the elements of what was given for a list of names.

    One string would be taken apart letter by letter; the elements of a column or a table by mistake in its place
    are cells, and unknown names are shown.

    Parameters
    ----------
    columns : iterable of str
    what : str
        The argument, for messages.

    Raises
    ------
    ArgumentTypeError

    Examples
    --------
    >>> asked_names(["Kcal", "Grain"])
    ('Kcal', 'Grain')
    """
    given: object = columns
    if isinstance(given, str | bytes | pd.Series | pd.DataFrame) or not isinstance(given, Iterable):
        raise ArgumentTypeError(
            f"{what} must be a list of names",
            expected="list of str",
            got=type(given).__name__,
            hint=f"{what}=[{given!r}]" if isinstance(given, str) else None,
        )
    return tuple(given)
