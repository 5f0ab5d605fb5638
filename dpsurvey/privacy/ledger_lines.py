"""The lines of a ledger file: how a record is written, and what a damaged one looks like.

The first record is the header; each further one is a reservation, with its sequence number and the hash of the
line before it. Every line ends with a checksum of its own, so that damage to the last one shows too.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from dpsurvey.errors import ArgumentTypeError, LedgerError
from dpsurvey.privacy.budget import decimal, difference, total
from dpsurvey.privacy.statistics import NEIGHBOURS
from dpsurvey.texts import is_text

_VERSION = 1
_CHECKSUM = "sha256"  # key of a line's checksum, last in the line


def header_record(dataset: str, budget: Decimal) -> dict[str, Any]:
    """Return the first record of a ledger."""
    return {
        "dpsurvey_ledger": _VERSION,
        "dataset": dataset,
        "budget": str(budget),
        "neighbours": NEIGHBOURS,
    }


def to_line(record: Mapping[str, Any]) -> bytes:
    """Return the one way in which a record is written: sorted keys, its checksum last.

    Raises
    ------
    ArgumentTypeError
        If it holds anything but JSON values.

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
    return f'{text[:-1]}, "{_CHECKSUM}": "{line_hash(text.encode())}"}}\n'.encode()


def line_hash(line: bytes) -> str:
    """Return the SHA-256 of a line."""
    return hashlib.sha256(line).hexdigest()


def spent_by(records: Sequence[Mapping[str, Any]]) -> Decimal:
    """Return the exact sum of all reservations."""
    return total(Decimal(record["epsilon"]) for record in records[1:])


def remaining_after(records: Sequence[Mapping[str, Any]]) -> Decimal:
    """Return exactly what is left of the budget."""
    return difference(Decimal(records[0]["budget"]), spent_by(records))


def check_lines(lines: Sequence[bytes], name: str) -> list[dict[str, Any]]:
    """Return the records of a ledger's lines, header first, without their checksums.

    Parameters
    ----------
    lines : sequence of bytes
        Complete lines, newlines included.
    name : str
        Of the file, for messages.

    Raises
    ------
    LedgerError
        If a line is damaged, with its number.
    """
    if not lines:
        raise LedgerError(f"{name} is empty", expected="a file made with Ledger.create")
    records = [_parse(line, number, name) for number, line in enumerate(lines, start=1)]
    _check_header(records[0], name)
    for number, record in enumerate(records[1:], start=1):
        _check_entry(record, number, line_hash(lines[number - 1]), name)
    return records


def _damaged(name: str, number: int, why: str) -> LedgerError:
    return LedgerError(
        f"line {number} of {name} {why}",
        expected="lines written by dpsurvey, untouched",
        hint="restore the file from a backup that is not older than the last release",
    )


def _parse(line: bytes, number: int, name: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise _damaged(name, number, "is not JSON") from None
    if not isinstance(record, dict):
        raise _damaged(name, number, "is not a record")
    record.pop(_CHECKSUM, None)
    if not _is_written_as(record, line):
        raise _damaged(name, number, "was changed after it was written")
    return record


def _is_written_as(record: Mapping[str, Any], line: bytes) -> bool:
    try:
        return to_line(record) == line
    except (ArgumentTypeError, RecursionError):  # it holds NaN, or is deeper than any record
        return False


def _check_header(header: dict[str, Any], name: str) -> None:
    if header.get("dpsurvey_ledger") != _VERSION:
        raise _damaged(name, 1, f"is not the header of a version {_VERSION} ledger")
    if set(header) != {"dpsurvey_ledger", "dataset", "budget", "neighbours"}:
        raise _damaged(name, 1, "lacks a field or has one too many")
    if not (is_text(header["dataset"]) and _is_amount(header["budget"])):
        raise _damaged(name, 1, "has no valid data set or budget")
    if header["neighbours"] != NEIGHBOURS:
        raise LedgerError("the ledger uses another neighbour rule", expected=NEIGHBOURS)


def _check_entry(record: dict[str, Any], number: int, previous: str, name: str) -> None:
    if set(record) != {"sequence", "epsilon", "spec", "previous"} or not isinstance(record["spec"], dict):
        raise _damaged(name, number + 1, "lacks a field or has one too many")
    if record["previous"] != previous or record["sequence"] != number:
        raise _damaged(name, number + 1, "does not follow from the line before it")
    if not _is_amount(record["epsilon"]):
        raise _damaged(name, number + 1, "has no valid epsilon")


def _is_amount(text: Any) -> bool:
    """Whether a text is an amount as dpsurvey writes it: the shortest digits of a float above 0."""
    try:
        value = float(text) if isinstance(text, str) else math.nan
    except ValueError:
        return False
    return math.isfinite(value) and value > 0 and text == str(decimal(value))
