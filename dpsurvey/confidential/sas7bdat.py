"""What pyreadstat does not check or keep in a sas7bdat file: its size, and the letters of missing values.

The layout is that of the community's description of the format; only the file header and the row-size block
are read here, to tell how many pages and rows a file should have.
"""

from __future__ import annotations

import struct
from pathlib import Path

import pandas as pd

from dpsurvey.errors import FileFormatError


def check_whole(path: Path) -> None:
    """Refuse a file with fewer bytes than its header promises.

    Parameters
    ----------
    path : pathlib.Path
        A file that begins like a sas7bdat file.

    Raises
    ------
    FileFormatError
        With bytes, pages and (where the first page is there) rows expected and found.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(288)
        if len(head) < 288:
            raise _cut_short(path, "a header of at least 288 bytes", f"{size:,} bytes")
        order = "<" if head[37] == 1 else ">"
        shift = 4 if head[35] == 0x33 else 0
        header_bytes, page_bytes = struct.unpack_from(f"{order}II", head, 196 + shift)
        (pages,) = struct.unpack_from(order + ("Q" if head[32] == 0x33 else "I"), head, 204 + shift)
        if size >= header_bytes + pages * page_bytes:
            return
        file.seek(header_bytes)
        page = file.read(min(page_bytes, size))  # a damaged header may ask for any amount of memory
        rows = _declared_rows(page, order, wide=head[32] == 0x33)
    whole_pages = max(0, size - header_bytes) // max(page_bytes, 1)
    raise _cut_short(
        path,
        f"{header_bytes + pages * page_bytes:,} bytes, {pages:,} pages"
        + (f", {rows:,} rows" if rows else ""),
        f"{size:,} bytes, {whole_pages:,} whole pages" + (" and so fewer rows" if rows else ""),
    )


def _declared_rows(page: bytes, order: str, *, wide: bool) -> int | None:
    """Return the row count in the row-size block of the first page, or None where it is not there."""
    start, pointer, entry = (32, 24, f"{order}QQ") if wide else (16, 12, f"{order}II")
    if len(page) < start + 8:
        return None
    (blocks,) = struct.unpack_from(f"{order}H", page, start + 4)
    for at in range(start + 8, min(start + 8 + blocks * pointer, len(page) - pointer), pointer):
        place, length = struct.unpack_from(entry, page, at)
        if page[place : place + 4] == b"\xf7\xf7\xf7\xf7" and length >= 56 and place + 56 <= len(page):
            return (
                int(struct.unpack_from(f"{order}Q", page, place + 48)[0])
                if wide
                else int(struct.unpack_from(f"{order}I", page, place + 24)[0])
            )
    return None


def split_letters(
    frame: pd.DataFrame, numeric: frozenset[str]
) -> tuple[pd.DataFrame, dict[str, dict[str, int]]]:
    """Turn the letters of special missing values into missing values, and count them.

    Parameters
    ----------
    frame : pandas.DataFrame
        Read with ``user_missing=True``: numeric columns with special missing values are objects that mix
        numbers (or dates) and letters.
    numeric : frozenset of str
        Columns that SAS stores as numbers; text columns are left alone.

    Returns
    -------
    frame : pandas.DataFrame
        Columns that had letters are still objects.
    counts : dict
        Column -> letter -> count, for the columns that have any. Confidential.
    """
    counts: dict[str, dict[str, int]] = {}
    for name in frame.columns:
        column = frame[name]
        if name not in numeric or pd.api.types.is_numeric_dtype(column.dtype):
            continue
        column = column.astype(object)  # pandas 3 makes text of a column that holds letters alone
        is_letter = column.map(lambda cell: isinstance(cell, str)).astype(bool)
        if not is_letter.any():
            continue
        tally = column[is_letter].value_counts().sort_index()
        counts[str(name)] = {str(letter): int(n) for letter, n in tally.items()}
        frame[name] = column.mask(is_letter)
    return frame, counts


def _cut_short(path: Path, expected: str, got: str) -> FileFormatError:
    return FileFormatError(
        f"{path.name!r} is cut short",
        expected=expected,
        got=got,
        hint="download or copy the file again",
    )
