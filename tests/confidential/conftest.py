"""A small writer of SAS transport files, independent of pyreadstat, for files that must be odd or damaged."""

from __future__ import annotations

import struct
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

RECORD = 80
STAMP = b"01JAN20:00:00:00"


def encode_ibm(value: float | str | None, width: int = 8) -> bytes:
    """Return a number as an IBM hexadecimal float; a letter or None as a missing value."""
    if value is None or isinstance(value, str):
        return (value or ".").encode("ascii") + bytes(width - 1)
    if value == 0:
        return bytes(width)
    size, exponent = abs(Fraction(value)), 64
    while size >= 1:
        size, exponent = size / 16, exponent + 1
    while size < Fraction(1, 16):
        size, exponent = size * 16, exponent - 1
    mantissa = int(size * 2**56)
    return (bytes([exponent | (0x80 if value < 0 else 0)]) + mantissa.to_bytes(7, "big"))[:width]


def decode_ibm(cell: bytes) -> float:
    """Return the number in an IBM hexadecimal float of any width; NaN for a missing value."""
    cell = cell.ljust(8, b"\0")
    if not any(cell[1:]) and cell[:1] in b"._ABCDEFGHIJKLMNOPQRSTUVWXYZ":
        return float("nan")
    mantissa = int.from_bytes(cell[1:], "big")
    size = Fraction(mantissa, 2**56) * Fraction(16) ** ((cell[0] & 0x7F) - 64)
    return float(-size if cell[0] & 0x80 else size)


def _record(text: bytes) -> bytes:
    return text.ljust(RECORD, b" ")


def _header(kind: str, numbers: str = "0" * 30) -> bytes:
    return _record(
        b"HEADER RECORD*******" + kind.ljust(8).encode() + b"HEADER RECORD!!!!!!!" + numbers.encode()
    )


def _padded(data: bytes) -> bytes:
    return data + b" " * (-len(data) % RECORD)


def build_member(
    name: str,
    columns: dict[str, list[Any]],
    *,
    version: int = 5,
    labels: dict[str, bytes] | None = None,
    widths: dict[str, int] | None = None,
    declared: int | None = None,
) -> bytes:
    """Return the bytes of one member; a column whose first cell is bytes is text."""
    labels, widths = labels or {}, widths or {}
    fields, offset = [], 0
    for at, (column, cells) in enumerate(columns.items()):
        text = bool(cells) and isinstance(cells[0], bytes)
        width = widths.get(column, max(map(len, cells)) if text else 8)
        label = labels.get(column, b"")
        block = struct.pack(">hhhh8s40s8s", 2 if text else 1, 0, width, at + 1, column.encode().ljust(8)[:8],
                            label.ljust(40), b" " * 8)  # fmt: skip
        block += struct.pack(">hhh2s8shhi", 0, 0, 0, b"", b" " * 8, 0, 0, offset)
        block += (column.encode().ljust(32) if version == 8 else b"").ljust(52, b"\0")
        fields.append((block, text, width))
        offset += width
    rows = b""
    for cells in zip(*columns.values(), strict=True):
        for cell, (_, text, width) in zip(cells, fields, strict=True):
            rows += cell.ljust(width) if text else encode_ibm(cell, width)
    count = len(next(iter(columns.values())))
    kinds = {5: ("MEMBER", "DSCRPTR", "NAMESTR", "OBS"), 8: ("MEMBV8", "DSCPTV8", "NAMSTV8", "OBSV8")}[
        version
    ]
    named = name.encode().ljust(8 if version == 5 else 32)
    number = count if declared is None else declared
    return b"".join([
        _header(kinds[0], "000000000000000001600000000140"),
        _header(kinds[1]),
        _record(b"SAS     " + named + b"SASDATA 9.4     "),
        _record(STAMP),
        _header(kinds[2], f"00000{len(fields):05d}{'0' * 20}"),
        _padded(b"".join(block for block, _, _ in fields)),
        _header(kinds[3], "0" * 30 if version == 5 else f"{number:15d}"),
        _padded(rows),
    ])  # fmt: skip


def build_library(*members: bytes, version: int = 5) -> bytes:
    """Return a transport file of some members."""
    head = _header("LIBRARY" if version == 5 else "LIBV8")
    return head + _record(b"SAS     SAS     SASLIB  9.4     ") + _record(STAMP) + b"".join(members)


@pytest.fixture(scope="session")
def transport() -> Callable[..., bytes]:
    """Return a builder of one-member files: name, columns and options of `build_member`."""

    def build(name: str, columns: dict[str, list[Any]], **options: Any) -> bytes:
        return build_library(build_member(name, columns, **options), version=options.get("version", 5))

    return build


@pytest.fixture(scope="session")
def library() -> Callable[..., bytes]:
    """Return a builder of files with several members, each given as (name, columns)."""

    def build(*members: tuple[str, dict[str, list[Any]]], version: int = 5) -> bytes:
        return build_library(*(build_member(*m, version=version) for m in members), version=version)

    return build


@pytest.fixture(scope="session")
def ibm() -> Callable[[bytes], float]:
    """Return the decoder of IBM floats."""
    return decode_ibm


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, bytes | str], Path]:
    """Return a function that writes a file into a fresh folder."""

    def write(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
