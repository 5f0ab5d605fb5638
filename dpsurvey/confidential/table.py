"""What is a table, and what is not."""

from __future__ import annotations

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
