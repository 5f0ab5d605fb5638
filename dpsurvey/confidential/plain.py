"""CSV and Parquet files: names first, then rows; nothing is guessed, and nothing is lost in silence."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsurvey.errors import ArgumentError, FileFormatError, MissingDependencyError

Result = TypeVar("Result")

# pandas 3.1 reads every decimal number exactly and warns of the option that older versions need for it.
_EXACT_FLOATS: dict[str, Any] = (
    {} if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1) else {"float_precision": "round_trip"}
)


def scan_csv(path: Path, encoding: str | None) -> tuple[tuple[str, ...], int, str]:
    """Read a CSV file once to check it: every record must have as many fields as the first line.

    pandas fills short records with missing values, and takes the first column as an index when records are
    one field longer than the first line: both are silent, so the file is checked beforehand.

    Parameters
    ----------
    path : pathlib.Path
    encoding : str or None
        None tries UTF-8 and then Windows-1252.

    Returns
    -------
    names : tuple of str
        The first line; "Unnamed: 0" and so on where a column has no name.
    rows : int
        Records below the first line.
    encoding : str
        The encoding that worked.

    Raises
    ------
    FileFormatError
        If records are uneven, the encoding is wrong, or the first line holds data instead of names.
    ArgumentError
        If there is no such encoding.
    """
    tried = ("utf-8-sig", "cp1252") if encoding is None else (encoding,)
    for candidate in tried:
        try:
            with path.open(encoding=candidate, newline="") as file:
                names, rows, uneven = _scan(path, file)
        except UnicodeError:
            continue
        except LookupError:
            raise ArgumentError(
                "there is no such encoding", expected="such as 'utf-8'", got=repr(encoding)
            ) from None
        if uneven:
            raise FileFormatError(
                f"{path.name!r} has records that do not fit its first line (cut short, or a stray comma)",
                expected=f"{len(names):,} fields in each of {rows:,} records",
                got=f"another number of fields in {uneven:,} record(s)",
                hint="write the file again, with text that holds commas in quotes",
            )
        return names, rows, candidate
    raise FileFormatError(
        f"the text of {path.name!r} is not encoded as expected",
        expected=" or ".join(tried),
        hint="give its encoding, for example encoding='latin-1'",
    )


def _scan(path: Path, file: Any) -> tuple[tuple[str, ...], int, int]:
    """Return the names, the number of records and how many of them are uneven."""
    rows = uneven = 0
    damaged = False
    names: tuple[str, ...] = ()
    try:
        records = csv.reader(file, strict=True)
        names = tuple(name.strip() for name in next(records, []))
        width = len(names)
        for record in records:
            if record:  # blank lines are no records, as in pandas
                rows += 1
                uneven += len(record) != width
    except csv.Error:
        damaged = True  # raised below, out of reach of the message, which may quote the record
    if damaged:
        raise FileFormatError(
            f"{path.name!r} cannot be split into records after {rows:,} of them: a stray or open quote",
            expected="comma-separated text with quotes doubled inside quotes",
            hint="the file may be cut short; write it again",
        )
    _check_header(path, names)
    # As pandas calls them: R's write.csv leaves the column of row names without one.
    return tuple(name or f"Unnamed: {at}" for at, name in enumerate(names)), rows, uneven


def _check_header(path: Path, names: tuple[str, ...]) -> None:
    """Refuse a first line without usable names; what it holds is not shown, for it may be data."""
    filled = [name for name in names if name]
    if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
        raise FileFormatError(
            f"{path.name!r} is not separated by commas",
            expected="comma-separated fields",
            hint="write it with commas",
        )
    if not filled or any(_is_number(name) for name in filled):
        raise FileFormatError(
            f"the first line of {path.name!r} holds no names",
            expected="variable names in the first line",
            got="numbers" if filled else "nothing",
            hint="add a first line with the names",
        )
    if len(set(filled)) != len(filled):
        repeated = sorted({name for name in filled if filled.count(name) > 1})
        raise FileFormatError(
            f"{path.name!r} has more than one column called {', '.join(map(repr, repeated))}",
            expected="unique names",
            hint="rename them in the file",
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.lower() not in ("nan", "inf", "infinity")


def read_csv(path: Path, header: tuple[str, ...], names: list[str], encoding: str) -> pd.DataFrame:
    """Read columns of a CSV file that was scanned; "." is missing, as SAS writes it.

    Parameters
    ----------
    path : pathlib.Path
    header : tuple of str
        All names, in file order.
    names : list of str
        The names to read.
    encoding : str

    Returns
    -------
    pandas.DataFrame
        Columns in the order of `names`; whole numbers stay integers where nothing is missing.
    """
    places = [header.index(name) for name in names]

    def read() -> pd.DataFrame:
        frame: pd.DataFrame = pd.read_csv(
            path,
            header=0,
            names=range(len(header)),
            usecols=places,
            encoding=encoding,
            index_col=False,
            na_values=["."],
            low_memory=False,
            **_EXACT_FLOATS,
        )
        return frame

    frame = plainly(path, read)
    frame.columns = pd.Index([header[int(at)] for at in frame.columns])
    return frame[names]


def parquet_names(path: Path) -> tuple[tuple[str, ...], int]:
    """Return the names of the columns of a Parquet file, and its number of rows.

    A pandas index that has a name counts as a column, also where the file holds it as a range only.

    Raises
    ------
    MissingDependencyError
        If pyarrow is not installed.
    FileFormatError
        If the file is damaged.
    """
    parquet = _pyarrow_parquet()

    def read() -> tuple[list[str], int]:
        with parquet.ParquetFile(path) as file:
            return [*_stored_range(file), *file.schema_arrow.names], int(file.metadata.num_rows)

    names, rows = plainly(path, read)
    # pandas stores an index without a name under such a name: machinery, no variable.
    return tuple(name for name in names if not name.startswith("__index_level_")), rows


def read_parquet(path: Path, names: list[str]) -> pd.DataFrame:
    """Read columns of a Parquet file; a stored pandas index comes back as an ordinary column.

    Returns
    -------
    pandas.DataFrame
        numpy dtypes; integers with missing cells become float64.
    """
    parquet = _pyarrow_parquet()

    def read() -> pd.DataFrame:
        with parquet.ParquetFile(path) as file:
            ranges = {name: values for name, values in _stored_range(file).items() if name in names}
            stored = [name for name in names if name not in ranges]
            frame: pd.DataFrame = file.read(columns=stored).to_pandas(ignore_metadata=True)
            return frame.assign(**ranges)[names] if stored else pd.DataFrame(ranges)[names]

    return plainly(path, read)


def _stored_range(file: Any) -> dict[str, NDArray[np.int64]]:
    """Return the named index that pandas wrote as a range into the file's metadata, if there is one."""
    described = (file.schema_arrow.pandas_metadata or {}).get("index_columns", [])
    return {
        index["name"]: np.arange(index["start"], index["stop"], index["step"], dtype=np.int64)
        for index in described
        if isinstance(index, dict) and index.get("kind") == "range" and isinstance(index.get("name"), str)
    }


def _pyarrow_parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingDependencyError(
            "reading Parquet files needs pyarrow", hint="pip install 'dpsurvey[parquet]'"
        ) from None
    return pyarrow.parquet


def plainly(path: Path, read: Callable[[], Result]) -> Result:
    """Run a reader; replace its own error, which may quote cells, by one that names the file alone.

    The new error is raised after the old one is dropped, so that no traceback or error report drags it along.
    """
    try:
        return read()
    except Warning:  # a warning that was turned into an error says nothing about the file
        raise
    except Exception as error:
        failure = type(error).__name__
    raise FileFormatError(
        f"{path.name!r} is damaged and cannot be read ({failure})",
        expected=f"a whole {path.suffix.lower()} file",
        hint="download or write the file again",
    )
