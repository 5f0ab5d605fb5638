"""The budget file: epsilon is reserved on disk, under a lock, before anything is computed from the rows.

A ledger is a text file of JSON lines. The first line says which data set it belongs to and how much may be
spent; each further line is one reservation and holds a hash of the line before it, so that damage shows. It
holds public facts alone: nothing in it is computed from rows.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import pandas as pd

from dpsurvey.atomic import atomic_write
from dpsurvey.errors import ArgumentError, BudgetExceededError, LedgerError, MissingFileError
from dpsurvey.privacy.budget import check_epsilon, decimal

NEIGHBOURS = "substitute one row"
_LEDGER_VERSION = 1
_LOCK_TIMEOUT = 60.0  # seconds


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


@dataclass(frozen=True, slots=True)
class Ledger:
    """The privacy budget of one data set, kept in a file.

    Make one with :meth:`create`, or open it with :meth:`open`; the file is read anew at every use.

    Parameters
    ----------
    path : pathlib.Path

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "diet.ledger.json"
    >>> ledger = Ledger.create(path, dataset="NHANES 2017-18 diet", budget=3.0)
    >>> receipt = ledger.reserve(1.0, {"variables": ["Kcal", "Grain"]})
    >>> ledger.spent, ledger.remaining
    (Decimal('1.0'), Decimal('2.0'))
    """

    path: Path

    @classmethod
    def create(cls, path: str | os.PathLike[str], *, dataset: str, budget: float) -> Ledger:
        """Make the ledger of a data set.

        Parameters
        ----------
        path : path-like
            Where to keep it; must not exist yet.
        dataset : str
            A public label of the data set, such as "NHANES 2017-18 diet".
        budget : float
            Total epsilon that may ever be spent on it.

        Raises
        ------
        LedgerError
            If the file exists.
        ArgumentError
            If the label is empty or the budget is not finite and above 0.
        """
        if not isinstance(dataset, str) or not dataset.strip():
            raise ArgumentError("the data set has no label", expected="text such as 'NHANES 2017-18 diet'")
        target = Path(path)
        header = {
            "dpsurvey_ledger": _LEDGER_VERSION,
            "dataset": dataset,
            "budget": str(decimal(check_epsilon(budget))),
            "neighbours": NEIGHBOURS,
        }
        ledger = cls(target)
        with ledger._locked():
            if target.exists():
                raise LedgerError(
                    f"{target.name} exists already, and what was spent must not be forgotten",
                    hint="open it with Ledger.open(path), or choose another file for another data set",
                )
            with atomic_write(target) as file:
                file.write(_line(header))
        return ledger

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Ledger:
        """Open an existing ledger and check it from first to last line.

        Raises
        ------
        MissingFileError
            If there is none at `path`.
        LedgerError
            If it is damaged, with the number of the line.
        """
        ledger = cls(Path(path))
        ledger._read()
        return ledger

    @property
    def dataset(self) -> str:
        """Label of the data set."""
        return str(self._read()[0]["dataset"])

    @property
    def budget(self) -> Decimal:
        """Total epsilon that may ever be spent."""
        return Decimal(self._read()[0]["budget"])

    @property
    def spent(self) -> Decimal:
        """Epsilon reserved so far, whether or not its release was ever saved."""
        return _spent(self._read())

    @property
    def remaining(self) -> Decimal:
        """Epsilon that can still be spent."""
        records = self._read()
        return Decimal(records[0]["budget"]) - _spent(records)

    def reserve(self, epsilon: float, spec: Mapping[str, Any]) -> Receipt:
        """Write a reservation to disk, or refuse it.

        Parameters
        ----------
        epsilon : float
        spec : mapping
            Public facts of the release it is for (variables, n, statistic, mechanism), JSON values.

        Returns
        -------
        Receipt

        Raises
        ------
        BudgetExceededError
            If more is asked for than remains; nothing is written then.
        LedgerError, MissingFileError
            If the ledger is damaged or gone.
        """
        requested = decimal(check_epsilon(epsilon))
        with self._locked():
            records = self._read()
            remaining = Decimal(records[0]["budget"]) - _spent(records)
            if requested > remaining:
                raise BudgetExceededError(
                    f"requested epsilon {requested}, remaining {remaining}: {requested - remaining} too much",
                    expected=f"at most {remaining}",
                    got=str(requested),
                    hint=f"the budget of {records[0]['dataset']!r} is {records[0]['budget']}; what is spent stays "
                    "spent. A saved release can be loaded and analysed as often as you like at no cost.",
                )
            head = _hash(self._lines()[-1])
            record = {
                "sequence": len(records),
                "epsilon": str(requested),
                "spec": dict(spec),
                "previous": head,
            }
            line = _line(record)
            self._append(line)
        return Receipt(str(records[0]["dataset"]), len(records), _hash(line))

    def summary(self) -> pd.DataFrame:
        """Return one row a reservation: sequence, epsilon, what remained after it, and what it was for."""
        header, *entries = self._read()
        remaining, rows = Decimal(header["budget"]), []
        for entry in entries:
            remaining -= Decimal(entry["epsilon"])
            rows.append(
                {"sequence": entry["sequence"], "epsilon": entry["epsilon"], "remaining": str(remaining)}
            )
            rows[-1].update({key: str(value) for key, value in entry["spec"].items()})
        return pd.DataFrame(rows, columns=None if rows else ["sequence", "epsilon", "remaining"])

    def _locked(self) -> Any:
        """Return an inter-process lock on the ledger, a file beside it."""
        from filelock import FileLock

        if not self.path.parent.is_dir():
            raise MissingFileError(
                f"the folder of {self.path.name} does not exist",
                got=str(self.path.parent),
                hint="create it first",
            )
        return FileLock(f"{self.path}.lock", timeout=_LOCK_TIMEOUT)

    def _append(self, line: str) -> None:
        with self.path.open("ab") as file:
            # A last line without its newline is a reservation that never returned: nothing was released on it.
            complete = sum(len(whole.encode()) for whole in self._lines())
            file.truncate(complete)
            file.seek(complete)
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())

    def _lines(self) -> list[str]:
        """Return the complete lines of the file, newlines included."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise MissingFileError(
                f"no ledger at {self.path}",
                expected="a file made with Ledger.create",
                hint="Ledger.create(path, dataset=..., budget=...) fixes the total once for the data set",
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise LedgerError(f"{self.path.name} cannot be read: {type(error).__name__}") from None
        return [line for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def _read(self) -> list[dict[str, Any]]:
        lines = self._lines()
        if not lines:
            raise LedgerError(f"{self.path.name} is empty", expected="a file made with Ledger.create")
        records = [_parse(line, number, self.path.name) for number, line in enumerate(lines, start=1)]
        _check_header(records[0], self.path.name)
        for number, record in enumerate(records[1:], start=1):
            _check_entry(record, number, _hash(lines[number - 1]), self.path.name)
        return records


def as_ledger(ledger: Ledger | str | os.PathLike[str]) -> Ledger:
    """Return a ledger given itself or its path."""
    return ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, sort_keys=True, allow_nan=False) + "\n"


def _hash(line: str) -> str:
    return hashlib.sha256(line.encode()).hexdigest()


def _spent(records: list[dict[str, Any]]) -> Decimal:
    return sum((Decimal(record["epsilon"]) for record in records[1:]), Decimal(0))


def _damaged(name: str, number: int, why: str) -> LedgerError:
    return LedgerError(
        f"line {number} of {name} {why}",
        expected="lines written by dpsurvey, untouched",
        hint="restore the file from a backup that is not older than the last release",
    )


def _parse(line: str, number: int, name: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise _damaged(name, number, "is not JSON") from None
    if not isinstance(record, dict):
        raise _damaged(name, number, "is not a record")
    return record


def _check_header(header: dict[str, Any], name: str) -> None:
    if header.get("dpsurvey_ledger") != _LEDGER_VERSION:
        raise _damaged(name, 1, f"is not the header of a version {_LEDGER_VERSION} ledger")
    if set(header) != {"dpsurvey_ledger", "dataset", "budget", "neighbours"} or not _is_amount(
        header["budget"]
    ):
        raise _damaged(name, 1, "lacks a field or has one too many")
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
    try:
        value = Decimal(text) if isinstance(text, str) else Decimal("NaN")
    except InvalidOperation:
        return False
    return value.is_finite() and value > 0
