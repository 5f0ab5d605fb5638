"""The headers of SAS transport (XPT) files, versions 5 and 8: members, fields and the number of rows.

pyreadstat reads the rows. It does not notice a file that was cut short, reads a second member as if its
headers were rows, and forgets the letters of special missing values; what is needed to prevent all three
stands in the headers and is read here, from the published layout of the format (SAS technical papers TS-140
and its version 8 successor): records of 80 bytes, big-endian fields, one NAMESTR block a variable.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpsurvey.errors import FileFormatError

RECORD = 80
BLOCK_BYTES = 1 << 22  # rows looked at in one go
_HEADER = re.compile(rb"HEADER RECORD\*{7}(.{8})HEADER RECORD!{7}(.{32})", re.DOTALL)
_LETTERS = b"_ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Field:
    """A variable's place inside a row: name, kind, first byte and width in bytes."""

    name: str
    numeric: bool
    offset: int
    width: int


@dataclass(frozen=True, slots=True)
class Member:
    """One data set inside a transport file.

    Attributes
    ----------
    name : str
        Name of the data set.
    fields : tuple of Field
    row_bytes : int
        Bytes a row.
    start, data_start, end : int
        Where its headers and rows begin and where it ends, in bytes from the start of the file.
    rows : int
        Rows that the headers and the size imply.
    """

    name: str
    fields: tuple[Field, ...]
    row_bytes: int
    start: int
    data_start: int
    end: int
    rows: int


def read_members(path: Path) -> tuple[Member, ...]:
    """Return the members of a transport file after checking that none of them was cut short.

    Parameters
    ----------
    path : pathlib.Path
        A file that begins like a transport file.

    Returns
    -------
    tuple of Member

    Raises
    ------
    FileFormatError
        If the file ends inside a header or a row, has fewer rows than its header declares, or has headers
        that contradict each other; with bytes and rows expected and found.
    """
    size = path.stat().st_size
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        starts = _member_starts(data)
        ends = [*starts[1:], size]
        if not starts:
            raise _cut_short(path, size, "it ends before the header of its first data set")
        return tuple(_read_member(path, data, *span) for span in zip(starts, ends, strict=True))


def member_bytes(path: Path, member: Member) -> bytes:
    """Return one member as a transport file of its own: the library header, then the member."""
    with path.open("rb") as file:
        library = file.read(3 * RECORD)
        file.seek(member.start)
        return library + file.read(member.end - member.start)


def special_missing(path: Path, member: Member, names: Sequence[str]) -> dict[str, dict[str, int]]:
    """Count the special missing values (.A to .Z and ._) of numeric fields.

    A missing value is a letter followed by zero bytes, which as a floating-point number would have a
    mantissa of zero. The ordinary missing value "." and true zeros are not counted.

    Parameters
    ----------
    path : pathlib.Path
    member : Member
    names : sequence of str
        Fields to look at; character fields have no special missing values.

    Returns
    -------
    dict
        Field -> letter -> count, for the fields that have any. Confidential.
    """
    fields = [field for field in member.fields if field.numeric and field.name in names]
    if not member.rows or not fields:
        return {}
    table = np.memmap(path, np.uint8, "r", member.data_start, (member.rows, member.row_bytes))
    counts = {field.name: np.zeros(256, np.int64) for field in fields}
    step = max(1, BLOCK_BYTES // member.row_bytes)
    for start in range(0, member.rows, step):
        block = np.asarray(table[start : start + step])
        for field in fields:
            cells = block[:, field.offset : field.offset + field.width]
            first = cells[~cells[:, 1:].any(axis=1), 0]
            counts[field.name] += np.bincount(first, minlength=256)
    found = {
        name: {chr(code): int(tally[code]) for code in _LETTERS if tally[code]}
        for name, tally in counts.items()
    }
    return {name: letters for name, letters in found.items() if letters}


def narrow_numbers(path: Path, member: Member, names: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Decode numeric fields of one or two bytes, which pyreadstat gives back as missing.

    Parameters
    ----------
    path : pathlib.Path
    member : Member
    names : sequence of str
        Fields to look at.

    Returns
    -------
    dict
        Field -> its numbers, shape (n,), for the fields among `names` that are so narrow.
    """
    fields = [field for field in member.fields if field.numeric and field.width < 3 and field.name in names]
    if not member.rows or not fields:
        return {}
    table = np.memmap(path, np.uint8, "r", member.data_start, (member.rows, member.row_bytes))
    numbers = {}
    for field in fields:
        cells = np.asarray(table[:, field.offset : field.offset + field.width], dtype=np.int64)
        mantissa = cells[:, 1] if field.width == 2 else np.zeros(member.rows, np.int64)
        size = np.ldexp(mantissa / 256.0, 4 * ((cells[:, 0] & 0x7F) - 64))  # sign bit, power of 16, fraction
        signed = np.where(cells[:, 0] & 0x80, -size, size)
        numbers[field.name] = np.where((mantissa == 0) & (cells[:, 0] != 0), np.nan, signed)
    return numbers


def _member_starts(data: mmap.mmap) -> list[int]:
    """Return where members begin: aligned MEMBER headers followed by a DSCRPTR header."""
    starts = []
    at = data.find(b"HEADER RECORD*******MEMB")
    while at >= 0:
        if at % RECORD == 0 and data[at + RECORD : at + RECORD + 23] == b"HEADER RECORD*******DSC":
            starts.append(at)
        at = data.find(b"HEADER RECORD*******MEMB", at + 1)
    return starts


def _read_member(path: Path, data: mmap.mmap, start: int, end: int) -> Member:
    """Read a member's headers, in file order, and check its size against them."""
    _, numbers = _header(path, data, start, end, "MEMB")
    namestr_bytes = _number(path, numbers[25:30])
    if namestr_bytes not in (136, 140):
        raise _contradiction(
            path, f"a variable's header would take {namestr_bytes} bytes, and 140 or 136 are usual"
        )
    version8 = data[start + 20 : start + 28] == b"MEMBV8  "
    name = data[start + 168 : start + (200 if version8 else 176)].decode("ascii", "replace").strip()
    _, numbers = _header(path, data, start + 4 * RECORD, end, "NAMEST", "NAMSTV")
    count = _number(path, numbers[5:10])
    at = start + 5 * RECORD
    if at + count * namestr_bytes > end:
        raise _cut_short(path, path.stat().st_size, f"it ends inside the headers of its {count} variables")
    blocks = [data[at + i * namestr_bytes : at + (i + 1) * namestr_bytes] for i in range(count)]
    fields = _read_fields(blocks, version8)
    if any(field.width < 1 or (field.numeric and field.width > 8) for field in fields):
        raise _contradiction(path, "a variable has an impossible width")
    at = _next_record(at + count * namestr_bytes)
    kind, numbers = _header(path, data, at, end, "OBS", "LABELV")
    if kind.startswith("LABELV"):
        at = _skip_labels(data, at, end, _number(path, numbers), long_formats=kind.startswith("LABELV9"))
        kind, numbers = _header(path, data, at, end, "OBS")
    declared = _number(path, numbers) if version8 and numbers.strip() else None
    member = Member(name, fields, sum(field.width for field in fields), start, at + RECORD, end, 0)
    return replace(member, rows=_row_count(path, data, member, declared))


def _header(path: Path, data: mmap.mmap, at: int, end: int, *kinds: str) -> tuple[str, str]:
    """Return the kind of the header record at a place and the 30 characters of numbers after it."""
    record = data[at : min(at + RECORD, end)]
    if len(record) < RECORD:
        raise _cut_short(path, path.stat().st_size, "it ends inside its headers")
    match = _HEADER.match(record)
    kind = match.group(1).decode("ascii", "replace") if match else ""
    if match is None or not kind.startswith(kinds):
        raise _contradiction(path, f"the {kinds[0]} header record is missing at byte {at:,}")
    return kind, match.group(2).decode("ascii", "replace")


def _number(path: Path, text: str) -> int:
    if re.fullmatch(r" *[0-9]+ *", text) is None:
        raise _contradiction(path, "a header record holds no number where one must stand")
    return int(text)


def _read_fields(blocks: list[bytes], version8: bool) -> tuple[Field, ...]:
    """Read NAMESTR blocks: type, width, and the short name or in version 8 the long one.

    Values follow each other in the order of the blocks. The position that a block states is not used: SAS
    writes the place in its own data set there, which in version 8 files differs from the place in the row.
    """
    fields, offset = [], 0
    for block in blocks:
        kind, _, width, _, short = struct.unpack_from(">hhhh8s", block)
        long = block[88:120].rstrip(b" \x00") if version8 else b""
        name = (long or short).decode("ascii", "replace").rstrip(" \x00")
        fields.append(Field(name, kind == 1, offset, width))
        offset += width
    return tuple(fields)


def _skip_labels(data: mmap.mmap, at: int, end: int, count: int, *, long_formats: bool) -> int:
    """Return where the record after a section of long names, labels (and formats) begins."""
    lengths = 4 if long_formats else 2  # lengths that follow the variable's number
    at += RECORD
    for _ in range(count):
        if at + 2 + 2 * lengths > end:
            break
        at += 2 + 2 * lengths + sum(struct.unpack(f">{lengths}H", data[at + 2 : at + 2 + 2 * lengths]))
    return _next_record(at)


def _row_count(path: Path, data: mmap.mmap, member: Member, declared: int | None) -> int:
    """Return the number of rows, or refuse a size that no whole number of rows can have.

    Rows follow each other without a gap and blanks fill the last record, so n rows take more than the
    bytes up to the record before. Version 5 declares no number: blanks at the end may be filling or blank
    rows of a table of text, and the smallest number is meant, as in SAS. A cut exactly between two rows at
    a record's border leaves no trace in version 5.
    """
    found, width = member.end - member.data_start, member.row_bytes
    if not width:
        return 0
    filled = _last_filled(data, member.data_start, member.end) - member.data_start
    least = max(-(-filled // width), (found - RECORD) // width + 1) if found else 0
    if declared is not None:
        needed = -(-declared * width // RECORD) * RECORD
        if needed != found or filled > declared * width:
            kind = "cut short" if needed > found else "not whole"
            raise FileFormatError(
                f"{path.name!r} is {kind}: data set {member.name!r} declares another number of rows",
                expected=f"{needed:,} bytes of data, {declared:,} rows of {width:,} bytes",
                got=f"{found:,} bytes, {found // width:,} whole rows",
                hint="download or copy the file again",
            )
        return declared
    if found % RECORD or least > found // width:
        raise FileFormatError(
            f"{path.name!r} is cut short: data set {member.name!r} ends inside a row",
            expected=f"whole rows of {width:,} bytes, filled up to a multiple of {RECORD} bytes "
            f"(at least {-(-filled // width):,} rows)",
            got=f"{found:,} bytes of data ({path.stat().st_size:,} in the file), "
            f"{found // width:,} whole rows and {found % width:,} bytes more",
            hint="download or copy the file again",
        )
    return least


def _last_filled(data: mmap.mmap, start: int, end: int) -> int:
    """Return the place after the last byte that is not a blank."""
    while end > start:
        chunk = data[max(start, end - 4096) : end]
        kept = len(chunk.rstrip(b" "))
        if kept:
            return end - len(chunk) + kept
        end -= len(chunk)
    return start


def _next_record(at: int) -> int:
    return -(-at // RECORD) * RECORD


def _cut_short(path: Path, size: int, why: str) -> FileFormatError:
    return FileFormatError(
        f"{path.name!r} is cut short: {why}",
        expected="whole headers and then whole rows",
        got=f"{size:,} bytes and 0 rows",
        hint="download or copy the file again",
    )


def _contradiction(path: Path, why: str) -> FileFormatError:
    return FileFormatError(
        f"{path.name!r} has damaged headers: {why}",
        expected="a SAS transport file of version 5 or 8",
        hint="download or copy the file again",
    )
