"""The pandas accessor ``df.dpcopula``: a thin, stateless door to the functions of the package."""

from __future__ import annotations

import pandas as pd


@pd.api.extensions.register_dataframe_accessor("dpcopula")
class DpCopulaAccessor:
    """Private correlations of a table's columns."""

    def __init__(self, df: pd.DataFrame) -> None:
        self._df = df
