"""Receipts: what a release carries of its ledger, and what its ledger knows of a release."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpsurvey.errors import LedgerError, ReleaseExists
from dpsurvey.privacy.budget import decimal
from dpsurvey.privacy.ledger_lines import Pages
from dpsurvey.privacy.ledger_records import Reservation
from dpsurvey.texts import shown

if TYPE_CHECKING:
    from dpsurvey.privacy.release import Release


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof of a reservation, which the release carries.

    Parameters
    ----------
    dataset : str
        Label of the data set the ledger belongs to.
    sequence : int
        Number of the reservation in its ledger, from 1.
    head : str
        SHA-256 of the ledger's last line after the reservation.
    """

    dataset: str
    sequence: int
    head: str


def paid_entry(pages: Pages, release: Release, name: str) -> Reservation:
    """Return the reservation that a release was paid with.

    Parameters
    ----------
    pages : Pages
        What the ledger says.
    release : Release
    name : str
        Of the ledger's file, for messages.

    Raises
    ------
    LedgerError
        If the release carries no receipt, or one that the ledger does not bear out.
    """
    receipt = release.ledger
    if receipt is None:
        raise LedgerError("the release carries no receipt: it was made without a ledger")
    number = int(receipt["sequence"])
    if receipt["dataset"] != pages.header.dataset:
        raise LedgerError(
            "the release was paid from the ledger of another data set",
            expected=repr(pages.header.dataset),
            got=shown(receipt["dataset"]),
        )
    if number > len(pages.reservations):
        raise LedgerError(
            f"{name} ends before the reservation of the release: it was rolled back to an older state",
            expected=f"reservation {number}",
            got=f"{len(pages.reservations)} reservations",
            hint="put the newest copy back; until then the remaining budget is overstated",
        )
    at = number - 1
    entry, head, line = pages.reservations[at], pages.heads[at], pages.lines[at]
    if receipt["head"] != head:
        raise LedgerError(
            f"line {line} of {name} is not what the release was paid with: the ledger was rewritten, or rolled "
            "back and spent from again",
            expected=f"head {receipt['head']}",
            got=f"head {head}",
        )
    stated = decimal(release.epsilon), decimal(release.delta), release.spec()
    if stated != (entry.cost.epsilon, entry.cost.delta, entry.spec):
        raise LedgerError(
            f"the release does not say what line {line} of {name} reserved",
            hint="it was changed after it was made",
        )
    return entry


def refuse_repeated(pages: Pages, wanted: Reservation, folder: Path) -> None:
    """Refuse what was made and saved before, where the file is still as it was saved.

    This leaks nothing: what is compared are public facts of the request, and the checksum of a file that may leave
    the building. Nothing depends on rows.

    Parameters
    ----------
    pages : Pages
        What the ledger says.
    wanted : Reservation
    folder : pathlib.Path
        Of the ledger.

    Raises
    ------
    ReleaseExists
    """
    for note in reversed(pages.completions):
        entry = pages.reservations[note.sequence - 1]
        if (entry.cost, entry.spec) != (wanted.cost, wanted.spec):
            continue
        path = Path(os.path.normpath(folder / note.file))
        if file_digest(path) == note.sha256:
            raise ReleaseExists(
                "the same release was made and saved before; nothing was spent now",
                got=str(path),
                hint="Release.load(path) reads it at no cost; again=True (--again) spends epsilon on another draw",
            )


def file_digest(path: Path) -> str | None:
    """Return the SHA-256 of a file, None where there is none."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
