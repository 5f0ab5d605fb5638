"""The records of a ledger: its header, reservations of privacy, and notes of releases that were saved.

They hold public facts alone: nothing in them is computed from rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dpsurvey.privacy.budget import decimal
from dpsurvey.privacy.ledger_accounts import ACCOUNTS, Account, Cost, pure_rho
from dpsurvey.privacy.statistics import NEIGHBOURS
from dpsurvey.texts import is_text

_VERSION = 1
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class Header:
    """What is fixed when a ledger is made.

    Parameters
    ----------
    dataset : str
        Public label of the data set.
    account : Account
        Its budget, and how spending adds up.
    neighbours : str
        The neighbour rule that all entries share.
    """

    dataset: str
    account: Account
    neighbours: str = NEIGHBOURS

    def to_record(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "record": "header",
            "dpsurvey_ledger": _VERSION,
            "dataset": self.dataset,
            "accounting": self.account.name,
            "budget": str(self.account.budget),
            "delta": str(self.account.delta),
            "neighbours": self.neighbours,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Header:
        """Rebuild it from JSON values.

        Raises
        ------
        ValueError
            With what is wrong.
        """
        if record.get("record") != "header" or record.get("dpsurvey_ledger") != _VERSION:
            raise ValueError(f"is not the header of a version {_VERSION} ledger")
        _expect_fields(
            record, {"record", "dpsurvey_ledger", "dataset", "accounting", "budget", "delta", "neighbours"}
        )
        kind = ACCOUNTS.get(str(record["accounting"]))
        if kind is None or not is_text(record["dataset"]) or not is_text(record["neighbours"]):
            raise ValueError("has no valid data set, accounting or neighbour rule")
        budget, delta = _amount(record["budget"], "budget"), _delta(record["delta"])
        return cls(record["dataset"], kind(budget, delta), record["neighbours"])


@dataclass(frozen=True, slots=True)
class Reservation:
    """Privacy that was reserved for one release, and counts as spent.

    Parameters
    ----------
    sequence : int
        Its number among the reservations, from 1.
    cost : Cost
    spec : dict
        Public facts of what it is for, JSON values.
    """

    sequence: int
    cost: Cost
    spec: dict[str, Any]

    def to_record(self, previous: str, account: Account) -> dict[str, Any]:
        """Return it as JSON values; rho only where the account adds that up.

        Parameters
        ----------
        previous : str
            Hash of the line before it.
        account : Account
        """
        values = {
            "record": "reservation",
            "sequence": self.sequence,
            "epsilon": str(self.cost.epsilon),
            "delta": str(self.cost.delta),
            "spec": self.spec,
            "previous": previous,
        }
        return values | ({"rho": str(self.cost.rho)} if account.uses_rho else {})

    @classmethod
    def from_record(cls, record: Mapping[str, Any], account: Account) -> Reservation:
        """Rebuild it from JSON values.

        Raises
        ------
        ValueError
            With what is wrong.
        """
        rho = {"rho"} if account.uses_rho else set()
        _expect_fields(record, {"record", "sequence", "epsilon", "delta", "spec", "previous"} | rho)
        if not isinstance(record["spec"], dict):
            raise ValueError("has no facts of its release")
        epsilon, delta = _amount(record["epsilon"], "epsilon"), _delta(record["delta"])
        if not account.uses_rho:
            return cls(record["sequence"], Cost(epsilon, delta), record["spec"])
        pure = pure_rho(epsilon)
        if delta == 0 and record["rho"] != str(pure):
            raise ValueError("has no valid rho")
        cost = Cost(epsilon, delta, _amount(record["rho"], "rho") if delta else pure)
        return cls(record["sequence"], cost, record["spec"])


@dataclass(frozen=True, slots=True)
class Completion:
    """A note that the release of a reservation was saved.

    Parameters
    ----------
    sequence : int
        Number of the reservation.
    file : str
        Where, as seen from the ledger's folder.
    sha256 : str
        Of the saved file, in hexadecimal.
    """

    sequence: int
    file: str
    sha256: str

    def to_record(self, previous: str) -> dict[str, Any]:
        """Return it as JSON values, `previous` being the hash of the line before it."""
        return {
            "record": "completed",
            "sequence": self.sequence,
            "file": self.file,
            "file_sha256": self.sha256,
            "previous": previous,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Completion:
        """Rebuild it from JSON values.

        Raises
        ------
        ValueError
            With what is wrong.
        """
        _expect_fields(record, {"record", "sequence", "file", "file_sha256", "previous"})
        file, sha256 = record["file"], record["file_sha256"]
        if not (
            isinstance(file, str) and isinstance(sha256, str) and len(sha256) == 64 and set(sha256) <= _HEX
        ):
            raise ValueError("names no saved file")
        return cls(record["sequence"], file, sha256)


def _expect_fields(record: Mapping[str, Any], names: set[str]) -> None:
    if set(record) != names:
        raise ValueError("lacks a field or has one too many")


def _amount(text: Any, what: str) -> Decimal:
    """Return an amount as dpsurvey writes it: the shortest digits of a float above 0."""
    try:
        value = float(text) if isinstance(text, str) else math.nan
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0 and text == str(decimal(value))):
        raise ValueError(f"has no valid {what}")
    return decimal(value)


def _delta(text: Any) -> Decimal:
    if text == "0":
        return Decimal(0)
    value = _amount(text, "delta")
    if value >= 1:
        raise ValueError("has no valid delta")
    return value
