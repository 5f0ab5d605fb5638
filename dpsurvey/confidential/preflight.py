"""Every problem of a table at once, before anything is spent: a tool for the data holder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import pandas as pd

from dpsurvey.confidential.findings import (
    Problem,
    column_problems,
    facts_of,
    role_warnings,
    row_problems,
    usable_names,
    value_warnings,
)
from dpsurvey.confidential.table import asked_names, check_table
from dpsurvey.errors import DomainError

_CONFIDENTIAL = "Confidential: for the data holder, outside the privacy guarantee, in no release."


@dataclass(frozen=True, slots=True)
class Preflight:
    """What `preflight` found. Confidential: its counts and shares are exact.

    Attributes
    ----------
    problems : tuple of Problem
        Each would make a release refuse the table.
    warnings : tuple of Problem
        A release would go on, and probably not mean what is wanted.
    table : DataFrame
        One row per column: dtype, missing, infinite, distinct values, and tied_at_median, the share of rows
        that have the value at which high and low part, when both sides of the split have it.
    rows : int
        Rows of the table.

    Examples
    --------
    >>> import pandas as pd, dpsurvey as dps
    >>> report = dps.preflight(pd.DataFrame({"x": [1.5, 2.0, 3.0, 4.0], "y": [4.0, 2.5, 3.5, 1.0]}))
    >>> report.ok, report.rows, report.problems
    (True, 4, ())
    """

    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    table: pd.DataFrame
    rows: int

    @property
    def ok(self) -> bool:
        """True where a release would accept the table."""
        return not self.problems

    def raise_if_bad(self) -> None:
        """Raise one error that lists every problem.

        Raises
        ------
        DomainError
            If there is any.
        """
        if self.problems:
            raise DomainError(
                "; ".join(_line(problem) for problem in self.problems),
                expected="n >= 4 complete rows of real-valued columns with unique row ids",
            )

    def __str__(self) -> str:
        lines = [self._heading(), _CONFIDENTIAL]
        lines += [f"  problem [{p.code}] {_line(p)}" for p in self.problems]
        lines += [f"  warning [{p.code}] {_line(p)}" for p in self.warnings]
        if len(self.table):
            lines.append(self.table.to_string(max_rows=300, float_format=lambda share: f"{share:.3f}"))
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        items = "".join(
            f"<li><b>{kind}</b> <code>{p.code}</code> {escape(_line(p))}</li>"
            for kind, found in (("problem", self.problems), ("warning", self.warnings))
            for p in found
        )
        table = self.table.to_html(max_rows=300, float_format="{:.3f}".format)
        return f"<p>{self._heading()}<br>{_CONFIDENTIAL}</p><ul>{items}</ul>{table}"

    def _heading(self) -> str:
        verdict = "ready" if self.ok else f"{len(self.problems)} problem(s)"
        counts = f"{self.rows:,} rows, {len(self.table)} columns"
        return f"Preflight: {counts}: {verdict}, {len(self.warnings)} warning(s)"


def preflight(df: pd.DataFrame, columns: Sequence[str] | None = None) -> Preflight:
    """List all problems of a table at once, before any privacy budget is spent.

    This is a tool for the data holder and lies outside the privacy guarantee: it looks at the rows and its
    counts are exact. Nothing of it enters a release, a ledger or a log. Acting on it reveals something:
    dropping a column because it has missing cells or ties, or choosing columns by how many complete rows
    are left, lets the released set of columns and n depend on the data. Types and names can be mended
    freely, for they are public.

    Parameters
    ----------
    df : DataFrame
        One row a person.
    columns : list of str, optional
        The columns to be released. By default all of them; then ids, weights, design variables and nominal
        codes among them are warned of, since they were not named explicitly.

    Returns
    -------
    Preflight
        `ok` says whether a release would accept the table; `problems` and `warnings` list (column, code,
        message); `table` has one row per column.

    Raises
    ------
    ArgumentTypeError
        If `df` is no DataFrame, or `columns` no list.

    Examples
    --------
    >>> import pandas as pd, dpsurvey as dps
    >>> table = pd.DataFrame({"Kcal": [2000.0, None, 1800.0, 2100.0], "Sex": list("mfmf")})
    >>> report = dps.preflight(table)
    >>> report.ok
    False
    >>> [(problem.column, problem.code) for problem in report.problems]
    [('Kcal', 'missing'), ('Sex', 'dtype')]
    """
    check_table(df)
    asked = None if columns is None else asked_names(columns)
    problems = list(row_problems(df))
    warnings: list[Problem] = []
    usable: list[str] = []
    if isinstance(df.columns, pd.MultiIndex):
        problems.append(
            Problem(None, "multiindex_columns", "the columns are a MultiIndex; flatten their names first")
        )
    else:
        usable, found = usable_names(df, asked)
        problems += found
    for name in usable:
        column = df[name]
        problems += column_problems(name, column)
        warnings += value_warnings(name, column)
        if columns is None:
            warnings += role_warnings(name, column)
    return Preflight(tuple(problems), tuple(warnings), facts_of(df, usable), len(df))


def _line(problem: Problem) -> str:
    return problem.message if problem.column is None else f"column {problem.column!r}: {problem.message}"
