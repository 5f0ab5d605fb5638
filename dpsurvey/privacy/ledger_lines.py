"""The lines of a ledger file: how a record is written, what a damaged one looks like, what they say together.

Each record is a line of JSON that ends with a checksum of its own, so that damage to the last one shows too, and
each but the first holds the hash of the line before it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dpsurvey.errors import ArgumentError, ArgumentTypeError, LedgerError
from dpsurvey.privacy.ledger_accounts import Account, Cost
from dpsurvey.privacy.ledger_records import Completion, Header, Reservation

_SHORTEST = 80  # bytes of a line: its checksum takes as many
_LONGEST = 2**20  # the names of 1000 variables take some 20,000
_CHECKSUM = "sha256"  # key of a line's checksum, last in the line
# The end of a line with another byte in the place of its newline: damage, and no line that was never finished.
_REPLACED = re.compile(rb'"sha256": "[^"]{64}"\}.\Z', re.DOTALL)


@dataclass(slots=True)
class Pages:
    """What the lines of a ledger say.

    Parameters
    ----------
    header : Header
    head : str
        Hash of the last line.
    reservations : list of Reservation
        In order, the first being number 1.
    heads : list of str
        Hash of each reservation's line.
    lines : list of int
        Number of that line, from 1.
    completions : list of Completion
        In order.
    """

    header: Header
    head: str
    reservations: list[Reservation] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    completions: list[Completion] = field(default_factory=list)

    @property
    def account(self) -> Account:
        """The budget and how spending adds up."""
        return self.header.account

    @property
    def costs(self) -> list[Cost]:
        """What each reservation costs."""
        return [reservation.cost for reservation in self.reservations]


def to_line(record: Mapping[str, Any]) -> bytes:
    """Return the one way in which a record is written: sorted keys, its checksum last.

    Raises
    ------
    ArgumentTypeError
        If it holds anything but JSON values.
    ArgumentError
        If it is longer than any reader takes.

    Examples
    --------
    >>> to_line({"epsilon": "0.5"})[:34]
    b'{"epsilon": "0.5", "sha256": "d56c'
    """
    try:
        text = json.dumps(record, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            "a record of a ledger does not fit JSON", expected="texts, integers and lists of them"
        ) from None
    line = f'{text[:-1]}, "{_CHECKSUM}": "{line_hash(text.encode())}"}}\n'.encode()
    if len(line) > _LONGEST:
        raise ArgumentError(
            "a record of a ledger is too long to be read again",
            expected=f"at most {_LONGEST:,} bytes",
            got=f"{len(line):,} bytes",
        )
    return line


def line_hash(line: bytes) -> str:
    """Return the SHA-256 of a line."""
    return hashlib.sha256(line).hexdigest()


def split_lines(content: bytes) -> list[bytes]:
    r"""Return the lines of a ledger, each with its newline, without a last one that was never finished.

    A writer is told that its line is on disk only when all of it is, the newline included. So a last line without
    its newline never returned: nothing was released on it, it counts as nothing, and the next writer overwrites
    it. Whoever takes the newline from a line that did return undoes it, which shows only against its release.

    Examples
    --------
    >>> line = to_line({"epsilon": "0.5"})
    >>> split_lines(line + line[:20]) == split_lines(line + line.rstrip()) == [line]
    True
    """
    # More lines than can be whole are not split off: one of those before is too short, and will be refused.
    *lines, last = content.split(b"\n", len(content) // _SHORTEST + 1)
    if _REPLACED.search(last):
        lines.append(last)
    return [line + b"\n" for line in lines]


def read_lines(lines: Sequence[bytes], name: str) -> Pages:
    """Return what the lines of a ledger say.

    Parameters
    ----------
    lines : sequence of bytes
        As :func:`split_lines` returns them.
    name : str
        Of the file, for messages.

    Raises
    ------
    LedgerError
        If a line is damaged, with its number.
    """
    if not lines:
        raise LedgerError(f"{name} is empty", expected="a file made with Ledger.create")
    try:
        pages = Pages(Header.from_record(_parse(lines[0])), line_hash(lines[0]))
    except ValueError as problem:
        raise _damaged(name, 1, problem) from None
    for number, line in enumerate(lines[1:], start=2):
        try:
            _add(pages, _parse(line), line, number)
        except ValueError as problem:
            raise _damaged(name, number, problem) from None
    return pages


def _add(pages: Pages, record: dict[str, Any], line: bytes, number: int) -> None:
    """Add what an entry says.

    Raises
    ------
    ValueError
        With what is wrong.
    """
    if record.get("previous") != pages.head:
        raise ValueError("does not follow from the line before it")
    sequence = record.get("sequence")
    if not isinstance(sequence, int) or isinstance(sequence, bool):
        raise ValueError("has no number")
    pages.head = line_hash(line)
    last = len(pages.reservations)
    if record.get("record") == "reservation" and sequence == last + 1:
        pages.reservations.append(Reservation.from_record(record, pages.account))
        pages.heads.append(pages.head)
        pages.lines.append(number)
    elif record.get("record") == "completed" and 1 <= sequence <= last:
        pages.completions.append(Completion.from_record(record))
    else:
        raise ValueError("has a number that does not follow")


def _damaged(name: str, number: int, problem: ValueError) -> LedgerError:
    return LedgerError(
        f"line {number} of {name} {problem}",
        expected="lines written by dpsurvey, untouched",
        hint="restore the file from a backup that is not older than the last release",
    )


def _parse(line: bytes) -> dict[str, Any]:
    """Return the record of a line, without its checksum.

    Raises
    ------
    ValueError
        With what is wrong.
    """
    if len(line) > _LONGEST:
        raise ValueError("is longer than any record")
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None
    if not isinstance(record, dict):
        raise ValueError("is not a record")
    record.pop(_CHECKSUM, None)
    if not _is_written_as(record, line):
        raise ValueError("was changed after it was written")
    return record


def _is_written_as(record: Mapping[str, Any], line: bytes) -> bool:
    try:
        return to_line(record) == line
    except (ArgumentTypeError, RecursionError):  # it holds NaN, or is deeper than any record
        return False
