"""What a file is, told from its first bytes and never from its name alone."""

from __future__ import annotations

import os
from pathlib import Path

from dpsurvey.confidential.near import near_matches
from dpsurvey.errors import ArgumentTypeError, FileFormatError, MissingFileError

XPT_V5 = b"HEADER RECORD*******LIBRARY HEADER RECORD!!!!!!!"
XPT_V8 = b"HEADER RECORD*******LIBV8   HEADER RECORD!!!!!!!"
SAS_MAGIC = bytes.fromhex("000000000000000000000000c2ea8160b31411cfbd92080009c7318c181f1011")

READERS = {".xpt": "xpt", ".sas7bdat": "sas7bdat", ".csv": "csv", ".parquet": "parquet"}

# (first bytes of a file, the reader that takes such a file if there is one, what it looks like)
_SIGNATURES: tuple[tuple[bytes, str | None, str], ...] = (
    (b"HEADER RECORD*******", "xpt", "a SAS transport (XPT) file"),
    (
        b"**COMPRESSED** **COMPRESSED**",
        None,
        "a SAS CPORT file (made by PROC CPORT, a format only SAS reads)",
    ),
    (SAS_MAGIC, "sas7bdat", "a SAS data set (sas7bdat)"),
    (b"PAR1", "parquet", "a Parquet file"),
    (b"PK\x03\x04", None, "a zip archive (or an Excel .xlsx workbook)"),
    (b"\x1f\x8b", None, "a gzip-compressed file"),
    (b"BZh", None, "a bzip2-compressed file"),
    (b"\xfd7zXZ\x00", None, "an xz-compressed file"),
    (b"7z\xbc\xaf\x27\x1c", None, "a 7-zip archive"),
    (b"\xd0\xcf\x11\xe0", None, "an old Excel .xls workbook"),
    (b"%PDF", None, "a PDF document"),
    (b"$FL", None, "an SPSS file (.sav)"),
    (b"<stata_dta>", None, "a Stata file (.dta)"),
    (b"ARROW1", None, "an Arrow (Feather) file"),
    (b"version https://git-lfs", None, "a Git LFS pointer, not the file it points to"),
    (b"\xff\xfe", None, "UTF-16 text"),
    (b"\xfe\xff", None, "UTF-16 text"),
)

_HINTS = {
    "a web page (HTML)": "the address was probably wrong: correct it and download the file again",
    "an empty file": "the download or copy failed; fetch it again",
}


def existing_path(path: str | os.PathLike[str]) -> Path:
    """Return a path to a file that exists, or say which file was probably meant.

    Raises
    ------
    ArgumentTypeError
        If `path` is not a path.
    MissingFileError
        If there is no such file, or it is a folder.
    """
    if not isinstance(path, str | os.PathLike):
        raise ArgumentTypeError(
            "a file is given by its path",
            expected="str or os.PathLike",
            got=type(path).__name__,
            hint="several files are given one after the other: read_survey(*paths)",
        )
    found = Path(path)
    if found.is_file():
        return found
    if found.is_dir():
        raise MissingFileError(f"{found.name!r} is a folder", expected="the path of one file")
    siblings = [p.name for p in found.parent.iterdir()] if found.parent.is_dir() else []
    near = near_matches(found.name, siblings)
    raise MissingFileError(
        f"there is no file {found.name!r} in {str(found.parent)!r}",
        hint=f"did you mean {' or '.join(map(repr, near))}?" if near else "check the folder and the name",
    )


def reader_for(path: Path) -> str:
    """Return which reader takes a file: its name says so and its first bytes must agree.

    Parameters
    ----------
    path : pathlib.Path
        An existing file.

    Returns
    -------
    {"xpt", "sas7bdat", "csv", "parquet"}

    Raises
    ------
    FileFormatError
        If the name ends in none of the four suffixes, or the content is something else.
    MissingFileError
        If the file may not be opened.
    """
    reader, looks_like = look(path)
    named = READERS.get(path.suffix.lower())
    if named is None:
        wanted = next((suffix for suffix, kind in READERS.items() if kind == reader), None)
        raise FileFormatError(
            f"{path.name!r} does not say by its name what it is, and looks like {looks_like}",
            expected=f"a name ending in {', '.join(READERS)}",
            hint=f"rename it to end in {wanted}" if wanted else _HINTS.get(looks_like),
        )
    if reader != named:
        wanted = next((suffix for suffix, kind in READERS.items() if kind == reader), None)
        raise FileFormatError(
            f"{path.name!r} is not what its name says: it looks like {looks_like}",
            expected=f"a {path.suffix.lower()} file",
            got=looks_like,
            hint=_HINTS.get(looks_like, f"rename it to end in {wanted}" if wanted else None),
        )
    return named


def look(path: Path) -> tuple[str | None, str]:
    """Return (reader or None, what the file looks like)."""
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise MissingFileError(f"{path.name!r} cannot be opened: {error.strerror}") from None
    return look_at(head)


def look_at(head: bytes) -> tuple[str | None, str]:
    """Return (reader or None, what it looks like) for the first bytes of a file.

    Examples
    --------
    >>> look_at(b"<!DOCTYPE html><html>")
    (None, 'a web page (HTML)')
    >>> look_at(b"SEQN,RIDAGEYR")
    ('csv', 'delimited text (CSV)')
    """
    if not head.strip(b"\x00"):
        return None, "a file of zero bytes only" if head else "an empty file"
    for start, reader, description in _SIGNATURES:
        if head.startswith(start):
            if start == SAS_MAGIC and head[156:164].rstrip() == b"CATALOG":
                return None, "a SAS catalog (sas7bcat), which holds formats and no rows"
            return reader, description
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if text.startswith((b"<!doctype html", b"<html", b"<head", b"<?xml")) or b"<html" in text[:1024]:
        return None, "a web page (HTML)"
    if b"\x00" in head or sum(byte < 32 and byte not in b"\t\n\r\f" for byte in head):
        return None, "binary data of an unknown kind"
    return "csv", "delimited text (CSV)"
