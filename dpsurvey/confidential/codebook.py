"""What is documented and declared about a table, apart from what is confidential about it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from html import escape
from os import PathLike
from typing import Any

import pandas as pd

from dpsurvey.confidential.source import open_sources
from dpsurvey.confidential.variables import Variable
from dpsurvey.errors import ArgumentTypeError


@dataclass(frozen=True, slots=True)
class ConfidentialCounts:
    """Exact counts of rows and cells, for the data holder's eyes: they belong in no release, log or report.

    Attributes
    ----------
    rows : dict
        File -> its number of rows.
    merged : int
        Rows whose id is in every file.
    kept : int
        Rows left by the `where` rule.
    special_missing : dict
        Variable -> letter -> number of special missing values (.A to .Z, ._) in its file, before merging.
    """

    rows: dict[str, int]
    merged: int
    kept: int
    special_missing: dict[str, dict[str, int]]

    def __str__(self) -> str:
        lines = ["Confidential: for the data holder only, part of no release."]
        lines += [f"  rows in {file}: {n:,}" for file, n in self.rows.items()]
        lines += [
            f"  rows with an id in every file: {self.merged:,}",
            f"  rows kept by the rule: {self.kept:,}",
        ]
        for name, letters in self.special_missing.items():
            lines.append(f"  {name}: " + ", ".join(f".{letter} {n:,}" for letter, n in letters.items()))
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Codebook:
    """Documentation of a table, and the choices declared when it was read.

    Everything except `confidential` is documentation or a declared choice, says nothing about any record,
    and may be published. `confidential` holds exact counts; it is left out of the repr, of
    :meth:`to_frame` and of :meth:`public`, and nothing of it enters a release.

    Attributes
    ----------
    variables : tuple of Variable
        Name, column in the file, label, unit, SAS format and file of each variable, in table order.
    id : str or None
        The id that became the index.
    filters : tuple of str
        Declared subpopulation rules, as written.
    round_to : int or None
        Decimals that floating-point columns were rounded to.
    missing_codes : dict
        Column in the file -> the codes that were turned into missing values.
    renames : dict
        Column in the file -> new name, for the variables that were renamed.
    files : tuple of str
        Names of the files, without folders.
    confidential : ConfidentialCounts or None
        For the data holder; None where no rows were read.

    Examples
    --------
    >>> import dpsurvey as dps
    >>> book = dps.codebook(*dps.example_files())
    >>> book.filters, book.round_to, book.confidential
    ((), None, None)
    """

    variables: tuple[Variable, ...]
    id: str | None = None
    filters: tuple[str, ...] = ()
    round_to: int | None = None
    missing_codes: dict[str, tuple[float | str, ...]] = field(default_factory=dict)
    renames: dict[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    confidential: ConfidentialCounts | None = field(default=None, repr=False)

    @property
    def labels(self) -> dict[str, str]:
        """Variable -> label, for the variables that have one, by their names in the table."""
        labels: dict[str, str] = {}
        for variable in self.variables:
            if variable.label:
                labels.setdefault(variable.name, variable.label)
        return labels

    @property
    def units(self) -> dict[str, str]:
        """Variable -> unit, for the variables whose label ends in one."""
        units: dict[str, str] = {}
        for variable in self.variables:
            if variable.unit is not None:
                units.setdefault(variable.name, variable.unit)
        return units

    def public(self) -> dict[str, Any]:
        """Return the part a release may carry: labels, declared filters and rounding.

        Examples
        --------
        >>> Codebook((), filters=("RIDAGEYR >= 20",)).public()
        {'labels': {}, 'filters': ['RIDAGEYR >= 20'], 'round_to': None}
        """
        return {"labels": self.labels, "filters": list(self.filters), "round_to": self.round_to}

    def with_filter(self, rule: str) -> Codebook:
        """Return a codebook with one more declared rule, for rows that were selected after reading.

        Parameters
        ----------
        rule : str
            The rule in words or in query syntax. It is published with every release that carries this
            codebook, so it must not have been chosen by looking at the rows.

        Examples
        --------
        >>> Codebook(()).with_filter("DRABF == 2").filters
        ('DRABF == 2',)
        """
        if not isinstance(rule, str):
            raise ArgumentTypeError("a rule is text", expected="str", got=type(rule).__name__)
        return replace(self, filters=(*self.filters, rule))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per variable: column, label, unit, format, missing codes and file."""
        rows = [
            (
                variable.name,
                variable.column,
                variable.label,
                variable.unit or "",
                variable.format or "",
                ", ".join(map(str, self.missing_codes.get(variable.column, ()))),
                variable.file,
            )
            for variable in self.variables
        ]
        columns = ["variable", "column", "label", "unit", "format", "missing_codes", "file"]
        return pd.DataFrame(rows, columns=columns).astype(object).set_index("variable")

    def __repr__(self) -> str:
        lines = [f"Codebook: {len(self.variables)} variables of {', '.join(self.files) or 'no file'}"]
        if self.id is not None:
            lines.append(f"id: {self.id}")
        lines += [f"filter: {rule}" for rule in self.filters]
        if self.round_to is not None:
            lines.append(f"rounded to {self.round_to} decimals")
        with pd.option_context("display.max_colwidth", 60, "display.width", 160, "display.max_rows", 300):
            lines.append(self.to_frame().to_string(max_rows=300))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head, *_ = repr(self).split("\n", 1)
        facts = [f"filter: {rule}" for rule in self.filters]
        facts += [] if self.round_to is None else [f"rounded to {self.round_to} decimals"]
        caption = "".join(f"<p>{escape(line)}</p>" for line in (head, *facts))
        return caption + self.to_frame().to_html(escape=True, max_rows=300)


def codebook(*paths: str | PathLike[str], member: str | None = None, encoding: str | None = None) -> Codebook:
    """Read what files document about their variables, and none of their rows' values.

    Parameters
    ----------
    *paths : path-like
        Survey files (.xpt, .sas7bdat, .csv, .parquet). CSV and Parquet files document names alone.
    member : str, optional
        The data set to look at in a transport file that holds several.
    encoding : str, optional
        Encoding of the labels, where neither the file nor Windows-1252 is right.

    Returns
    -------
    Codebook
        The variables of all files, in order; a variable that is in two files is listed twice.

    Raises
    ------
    MissingFileError, FileFormatError, UnknownNameError, ArgumentError, ArgumentTypeError
        As in :func:`read_survey`.

    Examples
    --------
    >>> import dpsurvey as dps
    >>> book = dps.codebook(*dps.example_files())
    >>> book.labels["BMXBMI"], book.units["BMXBMI"]
    ('Body Mass Index (kg/m**2)', 'kg/m**2')
    """
    sources = open_sources(paths, member=member, encoding=encoding)
    variables = tuple(variable for source in sources for variable in source.variables)
    return Codebook(variables, files=tuple(source.path.name for source in sources))
