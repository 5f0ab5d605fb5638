"""One row a person: the id as a unique index, and files merged one-to-one on it."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

from dpsurvey.errors import MergeError

_LARGEST_EXACT = 2.0**53  # beyond it float64 cannot tell neighbouring whole numbers apart


def index_by_id(frame: pd.DataFrame, on: str, file: str) -> pd.DataFrame:
    """Make the id the index, as int64 where ids are whole numbers, and check that it is unique.

    Parameters
    ----------
    frame : pandas.DataFrame
    on : str
        The id's column.
    file : str
        Name of the file, for messages.

    Returns
    -------
    pandas.DataFrame
        Without the column `on`, in the order of the file.

    Raises
    ------
    MergeError
        If ids are missing, repeated or of a type that cannot identify; with counts, never with an id.
    """
    ids = _clean_ids(frame[on], on, file)
    repeated = int(ids.duplicated(keep=False).sum())
    if repeated:
        raise MergeError(
            f"the id {on!r} is not unique in {file!r}: {repeated:,} rows share an id with another row",
            expected="one row a person, the unit that privacy is about",
            got=f"{ids.nunique():,} different ids in {len(ids):,} rows",
            hint="a file with several rows a person (foods, medicines) must be summed up per person first",
        )
    indexed = frame.drop(columns=on)
    indexed.index = ids
    return indexed


def _clean_ids(column: pd.Series[Any], on: str, file: str) -> pd.Index[Any]:
    """Return ids as int64 or text, or refuse them by count."""
    is_text = pd.api.types.is_string_dtype(column.dtype) or column.dtype == object
    missing = column.isna()
    if is_text:
        missing |= column.map(lambda cell: isinstance(cell, str) and not cell.strip()).astype(bool)
    if missing.any():
        raise MergeError(
            f"the id {on!r} is missing in {int(missing.sum()):,} rows of {file!r}",
            expected="an id in each of the rows",
            got=f"{int((~missing).sum()):,} ids in {len(column):,} rows",
            hint="drop those rows from the file, or choose another id with on=",
        )
    if is_text:
        odd = int((~column.map(lambda cell: isinstance(cell, str))).sum())
        if odd:
            raise _wrong_type(on, file, f"{odd:,} ids that are no text beside ids that are")
        text: pd.Index[Any] = pd.Index(column, name=on)
        return text
    if pd.api.types.is_bool_dtype(column.dtype) or not pd.api.types.is_numeric_dtype(column.dtype):
        raise _wrong_type(on, file, f"dtype {column.dtype}")
    values = column.to_numpy()
    if not np.issubdtype(values.dtype, np.integer):
        values = values.astype(np.float64)
        broken = int((values != np.floor(values)).sum() + (np.abs(values) > _LARGEST_EXACT).sum())
        if broken:
            raise _wrong_type(on, file, f"{broken:,} ids that are no whole numbers within 2**53")
    elif values.dtype.kind == "u" and (values > np.iinfo(np.int64).max).any():
        raise _wrong_type(on, file, "ids beyond 2**63")
    return pd.Index(values.astype(np.int64), name=on)


def merge(frames: list[pd.DataFrame], files: list[str]) -> pd.DataFrame:
    """Merge tables one-to-one on their indexes, keeping the ids that are in every table.

    Components of a survey cover different people (everyone was interviewed, fewer were examined, fewer still
    gave blood). A row absent from one component would be missing in all its variables, and an analysis of
    complete rows would drop it anyway: so rows are kept that are in all of them (inner join), in the first
    file's order.

    Parameters
    ----------
    frames : list of pandas.DataFrame
        Each with a unique index.
    files : list of str
        Their files' names, for messages.

    Returns
    -------
    pandas.DataFrame
        A column that is in two files with the same values in every merged row is kept once.

    Raises
    ------
    MergeError
        If ids are of different types, no id is in every file, or a column differs between files.
    """
    kinds = {file: _kind(frame.index) for file, frame in zip(files, frames, strict=True)}
    if len(set(kinds.values())) > 1:
        raise MergeError(
            f"the id {frames[0].index.name!r} has different types",
            expected="the same type of id in all files",
            got=", ".join(f"{kind} in {file}" for file, kind in kinds.items()),
            hint="convert it in one of the files",
        )
    ids: pd.Index[Any] = reduce(lambda left, right: left[left.isin(right)], (frame.index for frame in frames))
    if ids.empty and all(len(frame) for frame in frames):
        raise MergeError(
            f"no {frames[0].index.name!r} is in all of the files",
            expected="files about the same people",
            got=", ".join(
                f"{len(frame):,} rows in {file}" for frame, file in zip(frames, files, strict=True)
            ),
            hint="files of different survey cycles do not merge: compare the letters in their names",
        )
    aligned = [frame if frame.index.equals(ids) else frame.loc[ids] for frame in frames]
    return pd.concat(_without_repeats(aligned, files), axis=1)


def _without_repeats(frames: list[pd.DataFrame], files: list[str]) -> list[pd.DataFrame]:
    """Drop columns that an earlier file already has with the same values; refuse those that differ."""
    origin: dict[str, int] = {}
    differing: list[str] = []
    kept = []
    for at, frame in enumerate(frames):
        repeated = [name for name in frame.columns if name in origin]
        for name in repeated:
            count = _differing(frames[origin[name]][name], frame[name])
            if count:
                differing.append(f"{name!r} ({files[origin[name]]} and {files[at]}: {count:,} rows)")
        origin.update({name: at for name in frame.columns if name not in origin})
        kept.append(frame.drop(columns=repeated))
    if differing:
        raise MergeError(
            f"{len(differing)} column(s) differ between files that have them: {', '.join(differing)}",
            expected="columns that agree wherever they are repeated",
            hint="leave them out with columns=, or give the one file whose values you want first, alone",
        )
    return kept


def _differing(left: pd.Series[Any], right: pd.Series[Any]) -> int:
    """Count rows in which two columns differ; both missing is no difference.

    Numbers agree within 1e-12 of their size: IBM and IEEE floating point round the same number differently.
    """
    left_missing, right_missing = left.isna().to_numpy(), right.isna().to_numpy()
    both = ~(left_missing | right_missing)
    if pd.api.types.is_numeric_dtype(left.dtype) and pd.api.types.is_numeric_dtype(right.dtype):
        a, b = left.to_numpy(np.float64)[both], right.to_numpy(np.float64)[both]
        unequal = ~np.isclose(a, b, rtol=1e-12, atol=0.0)
    else:
        unequal = left.to_numpy(object)[both] != right.to_numpy(object)[both]
    return int((left_missing != right_missing).sum() + np.asarray(unequal, bool).sum())


def _kind(index: pd.Index[Any]) -> str:
    return "whole numbers" if pd.api.types.is_integer_dtype(index.dtype) else "text"


def _wrong_type(on: str, file: str, got: str) -> MergeError:
    return MergeError(
        f"the id {on!r} of {file!r} cannot identify rows",
        expected="whole numbers, or text",
        got=got,
        hint="choose another id with on=",
    )
