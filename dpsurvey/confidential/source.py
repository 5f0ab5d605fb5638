"""One survey file: opened for its documentation first, read for its rows later."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from dpsurvey.confidential import plain, sas7bdat, sniff, xport
from dpsurvey.confidential.near import check_known
from dpsurvey.confidential.variables import Variable, unit_of
from dpsurvey.errors import ArgumentError, ArgumentTypeError, FileFormatError

FALLBACK_ENCODING = "WINDOWS-1252"


@dataclass(frozen=True, slots=True)
class Source:
    """A file whose variables are known and whose rows have not been read.

    Attributes
    ----------
    path : pathlib.Path
    reader : {"xpt", "sas7bdat", "csv", "parquet"}
    variables : tuple of Variable
        In file order.
    rows : int
        Rows that the file must have.
    encoding : str or None
        Encoding to read with; None leaves it to the file.
    member : xport.Member or None
        The data set inside a transport file.
    alone : bool
        False for one of several members, which is cut out before it is read.
    """

    path: Path
    reader: str
    variables: tuple[Variable, ...]
    rows: int
    encoding: str | None = None
    member: xport.Member | None = None
    alone: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables, in file order."""
        return tuple(variable.column for variable in self.variables)


def open_sources(
    paths: tuple[str | PathLike[str], ...], *, member: str | None = None, encoding: str | None = None
) -> list[Source]:
    """Open files for their documentation and check that each is whole.

    Parameters
    ----------
    paths : tuple of path-like
    member : str, optional
        The data set to read in a transport file that holds several.
    encoding : str, optional
        Encoding of text and labels, for all files.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If there is no path, or `member` is given where it chooses nothing.
    MissingFileError, FileFormatError
        If a file is not there, is not what its name says, or is damaged.
    UnknownNameError
        If no data set has the name `member`.
    """
    for name, value in (("member", member), ("encoding", encoding)):
        if value is not None and not isinstance(value, str):
            raise ArgumentTypeError(f"{name} must be a name", expected="str", got=type(value).__name__)
    if not paths:
        raise ArgumentError("no file was given", expected="one path or more")
    sources = [_open(sniff.existing_path(path), member, encoding) for path in paths]
    if member is not None and all(source.alone for source in sources):
        known = [source.member.name for source in sources if source.member is not None]
        check_known([member], known, what="data set", where="the transport files given")
    return sources


def read_rows(source: Source, names: list[str]) -> tuple[pd.DataFrame, dict[str, dict[str, int]]]:
    """Read some columns of a file.

    Parameters
    ----------
    source : Source
    names : list of str
        Columns, known to exist.

    Returns
    -------
    frame : pandas.DataFrame
        In the order of `names`, rows in file order. Numbers of SAS files are float64, dates and datetimes
        datetime64, times of day ``datetime.time`` objects.
    letters : dict
        Special missing values: column -> letter -> count in this file. Confidential.

    Raises
    ------
    FileFormatError
        If the rows cannot be read, or are not as many as the file's header promises.
    """
    letters: dict[str, dict[str, int]] = {}
    if source.reader == "csv":
        frame = plain.read_csv(source.path, source.names, names, source.encoding or "utf-8-sig")
    elif source.reader == "parquet":
        frame = plain.read_parquet(source.path, names)
    else:
        frame, letters = _read_sas(source, names)
    if len(frame) != source.rows:
        raise FileFormatError(
            f"{source.path.name!r} gave another number of rows than it must have",
            expected=f"{source.rows:,} rows in {source.path.stat().st_size:,} bytes",
            got=f"{len(frame):,} rows",
            hint="the file may be cut short, or end in rows of blanks; write or download it again",
        )
    return frame, letters


def _open(path: Path, member: str | None, encoding: str | None) -> Source:
    reader = sniff.reader_for(path)
    if reader == "csv":
        names, rows, encoding = plain.scan_csv(path, encoding)
        return Source(path, reader, _undocumented(path, names), rows, encoding)
    if reader == "parquet":
        names, rows = plain.parquet_names(path)
        return Source(path, reader, _undocumented(path, names), rows)
    if reader == "xpt":
        members = xport.read_members(path)
        chosen = _choose(path, members, member)
        return _open_sas(Source(path, reader, (), chosen.rows, encoding, chosen, len(members) == 1))
    sas7bdat.check_whole(path)
    return _open_sas(Source(path, reader, (), 0, encoding))


def _choose(path: Path, members: tuple[xport.Member, ...], member: str | None) -> xport.Member:
    """Return the member to read; several members need a choice."""
    if len(members) == 1:
        return members[0]
    names = [m.name for m in members]
    if member is None:
        raise ArgumentError(
            f"{path.name!r} holds {len(members)} data sets: {', '.join(map(repr, names))}",
            expected="the name of one of them",
            hint=f"member={names[0]!r}",
        )
    check_known([member], names, what="data set", where=path.name)
    return members[names.index(member)]


def _undocumented(path: Path, names: tuple[str, ...]) -> tuple[Variable, ...]:
    """Variables of a file without labels, units or formats."""
    if len(set(names)) != len(names) and path.suffix.lower() != ".csv":
        raise FileFormatError(f"{path.name!r} has several columns of one name", expected="unique names")
    return tuple(Variable(name, name, "", None, None, path.name) for name in names)


def _open_sas(source: Source) -> Source:
    """Fill in what pyreadstat says of the variables, with the encoding that works."""
    _, meta, encoding = _pyreadstat(source, metadataonly=True)
    names = list(meta.column_names)
    if not names:  # damaged headers look like this too
        raise _unreadable(source, "no variables")
    variables = tuple(
        Variable(
            name,
            name,
            meta.column_names_to_labels.get(name) or "",
            unit_of(meta.column_names_to_labels.get(name) or ""),
            meta.original_variable_types.get(name) or None,
            source.path.name,
        )
        for name in names
    )
    rows = source.rows if source.member else meta.number_rows
    # A row takes a byte or more, also in a compressed file; pyreadstat would reserve memory for any number.
    if rows is None or rows > source.path.stat().st_size:
        raise _unreadable(source, "the number of rows it declares cannot be right")
    return Source(source.path, source.reader, variables, int(rows), encoding, source.member, source.alone)


def _read_sas(source: Source, names: list[str]) -> tuple[pd.DataFrame, dict[str, dict[str, int]]]:
    frame, meta, _ = _pyreadstat(source, usecols=names)
    numeric = frozenset(name for name, kind in meta.readstat_variable_types.items() if kind != "string")
    if source.member is not None:
        letters = xport.special_missing(source.path, source.member, names)
        frame = frame.assign(**xport.narrow_numbers(source.path, source.member, names))
    else:
        frame, letters = sas7bdat.split_letters(frame, numeric)
    for name in numeric.intersection(frame.columns):
        frame[name] = _plain_type(frame[name])
    return frame[names], letters


def _plain_type(column: pd.Series[Any]) -> pd.Series[Any]:
    """Give a column that SAS stores as numbers one type, whatever the rows: float64 or datetime64.

    pyreadstat gives dates as objects, datetimes as objects or datetime64 of several units, and objects are
    left where special missing values were taken out; times of day stay objects.
    """
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return column.astype("datetime64[us]")
    if column.dtype != object:
        return column
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind == "date":
        return column.astype("datetime64[s]")
    if kind == "datetime":
        return column.astype("datetime64[us]")
    numbers = kind in ("empty", "floating", "integer", "mixed-integer-float")  # empty: nothing but missing
    return column.astype("float64") if numbers else column


def _pyreadstat(source: Source, **options: Any) -> tuple[pd.DataFrame, Any, str | None]:
    """Call pyreadstat; return the frame, its metadata and the encoding that worked.

    Transport files do not say how they are encoded, and labels of NHANES files are often Windows-1252, so
    that is tried second where the caller named no encoding.
    """
    import pyreadstat

    if source.reader == "sas7bdat":
        read: Callable[..., Any] = pyreadstat.read_sas7bdat
        options["user_missing"] = not options.get("metadataonly", False)
    else:
        read = pyreadstat.read_xport
    tried = [source.encoding]
    if source.encoding is None and source.reader == "xpt":
        tried.append(FALLBACK_ENCODING)
    failure = ""
    for encoding in tried:
        data = str(source.path)
        if source.member is not None and not source.alone:
            data = BytesIO(xport.member_bytes(source.path, source.member))  # type: ignore[assignment]
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("error", message="column .* is duplicated", category=UserWarning)
                frame, meta = read(data, encoding=encoding, **options)
            return frame, meta, encoding
        except UserWarning:  # pyreadstat would rename one of them
            failure = "several variables have one name"
            break
        except Warning:  # a warning that was turned into an error says nothing about the file
            raise
        except Exception as error:  # its message may quote bytes of a cell: only its kind is kept
            failure = "encoding" if _is_about_encoding(error) else type(error).__name__
            if failure != "encoding":
                break
    raise _unreadable(source, failure)


def _is_about_encoding(error: Exception) -> bool:
    text = str(error).lower()
    return isinstance(error, UnicodeError) or "encoding" in text or "character set" in text


def _unreadable(source: Source, failure: str) -> FileFormatError:
    if failure == "encoding":
        named = f"{source.encoding!r}" if source.encoding else "the usual encoding"
        return FileFormatError(
            f"text or labels of {source.path.name!r} cannot be read in {named}",
            expected="an encoding that the file's text follows",
            hint="give it, for example encoding='WINDOWS-1252' or encoding='ISO-8859-1'",
        )
    return FileFormatError(
        f"{source.path.name!r} is damaged or uses a feature that cannot be read ({failure})",
        expected=f"a whole {source.path.suffix.lower()} file",
        hint="download or copy the file again, or export it from SAS once more",
    )
