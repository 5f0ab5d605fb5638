"""Survey files into one clean table: `read_survey`."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import Any, Literal, TypeAlias, overload

import numpy as np
import pandas as pd

from dpsurvey.confidential.choices import Choices, Columns, MissingCodes
from dpsurvey.confidential.codebook import Codebook, ConfidentialCounts
from dpsurvey.confidential.merge import index_by_id, merge
from dpsurvey.confidential.source import Source, open_sources, read_rows
from dpsurvey.confidential.variables import ATTRIBUTE
from dpsurvey.errors import ArgumentTypeError

Letters: TypeAlias = dict[str, dict[str, int]]


@overload
def read_survey(
    *paths: str | PathLike[str],
    on: str | None = None,
    columns: Columns = None,
    missing_codes: MissingCodes = None,
    where: str | None = None,
    round_to: int | None = None,
    encoding: str | None = None,
    member: str | None = None,
    return_codebook: Literal[False] = False,
) -> pd.DataFrame: ...
@overload
def read_survey(
    *paths: str | PathLike[str],
    on: str | None = None,
    columns: Columns = None,
    missing_codes: MissingCodes = None,
    where: str | None = None,
    round_to: int | None = None,
    encoding: str | None = None,
    member: str | None = None,
    return_codebook: Literal[True],
) -> tuple[pd.DataFrame, Codebook]: ...
def read_survey(
    *paths: str | PathLike[str],
    on: str | None = None,
    columns: Columns = None,
    missing_codes: MissingCodes = None,
    where: str | None = None,
    round_to: int | None = None,
    encoding: str | None = None,
    member: str | None = None,
    return_codebook: bool = False,
) -> pd.DataFrame | tuple[pd.DataFrame, Codebook]:
    """Read one survey file, or several merged one-to-one on the id of a person.

    Parameters
    ----------
    *paths : path-like
        SAS transport files of version 5 or 8 (.xpt), SAS data sets (.sas7bdat), .csv or .parquet files.
        Several files are merged on `on`: rows are kept whose id is in every file, in the order of the
        first file.
    on : str, optional
        The id, for example "SEQN". It becomes the index: unique, int64 where ids are whole numbers. Needed
        for several files; recommended for one, since a release is safest when its keys follow ids.
    columns : list of str, or dict, optional
        The columns to keep, in this order; a dict maps a column of the file to its new name. All by default.
    missing_codes : dict, optional
        Column of the file -> codes that mean "refused" or "don't know" and become missing. There is no
        global list, since 77 is a code in one column and an age in another;
        :func:`dpsurvey.nhanes.missing_codes` gives those of NHANES variables.
    where : str, optional
        Declared subpopulation rule in pandas query syntax on the file's own names, such as "RIDAGEYR >=
        20". It looks at one row at a time, after `missing_codes` and before `round_to`; its columns need
        not be in `columns`. It is recorded, and published with releases. Choose it without looking at the
        rows.
    round_to : int, optional
        Decimals to round floating-point columns to (FPED files carry float noise: 0.82000000000000006). It
        does not depend on the data and is recorded.
    encoding : str, optional
        Encoding of text and labels. By default that of the file, with Windows-1252 as the second try.
    member : str, optional
        The data set to read in a transport file that holds several.
    return_codebook : bool
        Return the codebook as well.

    Returns
    -------
    DataFrame
        Numbers of SAS files as float64 (zeros are zeros), special missing values (.A to .Z) as missing,
        dates as datetime64. ``attrs`` carries labels, filters and rounding as a convenience; pandas may
        lose them, and the codebook is the authority.
    Codebook
        Only with ``return_codebook=True``: labels, units, origin and declared choices; for the holder's eyes,
        the rows of each file and the counts of special missing values by letter.

    Raises
    ------
    MissingFileError
        If a file is not there.
    FileFormatError
        If a file is cut short, damaged, or not what its name says; with bytes and rows expected and found.
    UnknownNameError
        If a column or data set does not exist; with near matches.
    MergeError
        If ids are missing or repeated (by count), no id is in all files, or files disagree about a column.
    ArgumentError, ArgumentTypeError
        If an argument is not one of those described.

    Examples
    --------
    >>> import dpsurvey as dps
    >>> survey = dps.read_survey(
    ...     *dps.example_files(),
    ...     on="SEQN",
    ...     columns={"DR1TKCAL": "Kcal", "INDFMPIR": "Income", "BMXBMI": "BMI"},
    ...     where="RIDAGEYR >= 20",
    ... )
    >>> survey.columns.tolist(), survey.index.name
    (['Kcal', 'Income', 'BMI'], 'SEQN')
    """
    choices = Choices.parse(on, columns, missing_codes, where, round_to)
    sources = open_sources(paths, member=member, encoding=encoding)
    choices.check_names(sources)
    table, letters = _read_merged(sources, choices)
    merged = len(table)
    _strip_codes(table, choices.codes)
    if choices.rule is not None:
        table = table[choices.rule.keeps(table)]
    table = _named(table, choices.kept(sources), choices)
    counts = ConfidentialCounts(_rows(sources), merged, len(table), letters)
    book = _codebook(sources, choices, counts)
    table.attrs[ATTRIBUTE] = book.public()
    return (table, book) if return_codebook else table


def _read_merged(sources: list[Source], choices: Choices) -> tuple[pd.DataFrame, Letters]:
    """Read the columns of all files and merge them; return the table and special missing counts."""
    wanted, on = choices.read(sources), choices.on
    frames, letters = [], {}
    for source in sources:
        names = [name for name in wanted if name in source.names]
        frame, found = read_rows(source, names if on is None else [on, *names])
        letters.update(
            {choices.new_name(k): tally for k, tally in found.items() if choices.new_name(k) not in letters}
        )
        frames.append(frame if on is None else index_by_id(frame, on, source.path.name))
    files = [source.path.name for source in sources]
    return (frames[0] if len(frames) == 1 else merge(frames, files)), letters


def _strip_codes(table: pd.DataFrame, codes: dict[str, tuple[float | str, ...]]) -> None:
    """Turn missing codes into missing values, in place, each in its own column only."""
    for name, listed in codes.items():
        if name not in table.columns:
            continue
        column: pd.Series[Any] = table[name]
        numeric = pd.api.types.is_numeric_dtype(column.dtype)
        if any(isinstance(code, str) == numeric for code in listed):
            raise ArgumentTypeError(
                f"the missing codes of {name!r} do not fit its type",
                expected="numbers" if numeric else "text",
                got=f"dtype {column.dtype}",
            )
        if numeric:  # to float64 whether or not a code is found, so that the type does not depend on the rows
            column = column.astype(np.float64)
        table[name] = column.mask(column.isin(listed))


def _named(table: pd.DataFrame, kept: list[str], choices: Choices) -> pd.DataFrame:
    """Keep the chosen columns, in order and by their new names, and round them where that was asked for."""
    table = table[kept].rename(columns=choices.renames or {})
    if choices.on is not None:
        table = table.rename_axis(index=choices.new_name(choices.on))
    if choices.round_to is not None:
        for name in table.select_dtypes("float").columns:
            table[name] = table[name].round(choices.round_to)
    return table


def _rows(sources: list[Source]) -> dict[str, int]:
    """Return the rows of each file, for the holder; files of one name are told apart by a number."""
    rows: dict[str, int] = {}
    for source in sources:
        name, copy = source.path.name, 2
        while name in rows:
            name, copy = f"{source.path.name} ({copy})", copy + 1
        rows[name] = source.rows
    return rows


def _codebook(sources: list[Source], choices: Choices, counts: ConfidentialCounts) -> Codebook:
    """Put together what is documented and declared about the table."""
    documented = {
        v.column: v for source in reversed(sources) for v in source.variables
    }  # the first file wins
    kept = choices.kept(sources)
    used = set(choices.read(sources))
    return Codebook(
        variables=tuple(replace(documented[name], name=choices.new_name(name)) for name in kept),
        id=None if choices.on is None else choices.new_name(choices.on),
        filters=() if choices.rule is None else (choices.rule.text,),
        round_to=choices.round_to,
        missing_codes={name: codes for name, codes in choices.codes.items() if name in used},
        renames={name: choices.new_name(name) for name in kept if choices.new_name(name) != name},
        files=tuple(source.path.name for source in sources),
        confidential=counts,
    )
