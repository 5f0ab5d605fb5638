"""The budget file: epsilon is reserved on disk, under a lock, before anything is computed from the rows.

A ledger is a text file of JSON lines. The first line says which data set it belongs to and how much may be
spent; each further line is one reservation and holds a hash of the line before it, and each line ends with a
checksum of its own, so that accidental damage shows. It holds public facts alone: nothing in it is computed
from rows. Whoever rewrites the whole file on purpose, or puts an old copy back, is found out only against the
sequence numbers and hashes that releases carry.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd

from dpsurvey.atomic import atomic_write
from dpsurvey.errors import (
    ArgumentError,
    ArgumentTypeError,
    BudgetExceededError,
    LedgerError,
    MissingFileError,
)
from dpsurvey.privacy.budget import check_amount, check_epsilon, decimal, difference
from dpsurvey.privacy.ledger_lines import (
    check_lines,
    header_record,
    line_hash,
    remaining_after,
    spent_by,
    to_line,
)
from dpsurvey.texts import is_text

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
    path : path-like
        Kept without links and relative parts, so that one file has one lock whichever way it is reached.

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", _real_path(self.path))

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
        MissingFileError
            If its folder does not exist or cannot be written.
        ArgumentError, ArgumentTypeError
            If the label is empty or the budget is not a finite number above 0.

        Warns
        -----
        LargeEpsilonWarning
            If the budget is above 10.
        """
        if not is_text(dataset) or not dataset.strip():
            raise ArgumentError("the data set has no label", expected="text such as 'NHANES 2017-18 diet'")
        ledger = cls(_real_path(path))
        header = header_record(str(dataset), decimal(check_epsilon(budget, what="budget")))
        with ledger._locked():
            if ledger.path.exists():
                raise LedgerError(
                    f"{ledger.path.name} exists already, and what was spent must not be forgotten",
                    hint="open it with Ledger.open(path), or choose another file for another data set",
                )
            with atomic_write(ledger.path, "wb") as file:
                file.write(to_line(header))
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
        ledger = cls(_real_path(path))
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
        return spent_by(self._read())

    @property
    def remaining(self) -> Decimal:
        """Epsilon that can still be spent."""
        return remaining_after(self._read())

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
        requested = decimal(check_amount(epsilon))
        with self._locked():
            lines = self._lines()
            records = check_lines(lines, self.path.name)
            _check_enough(records, requested)
            line = to_line(
                {
                    "sequence": len(records),
                    "epsilon": str(requested),
                    "spec": dict(spec),
                    "previous": line_hash(lines[-1]),
                }
            )
            self._append(line, sum(map(len, lines)))
        return Receipt(records[0]["dataset"], len(records), line_hash(line))

    def summary(self) -> pd.DataFrame:
        """Return one row a reservation: sequence, epsilon, what remained after it, and what it was for."""
        header, *entries = self._read()
        remaining, rows = Decimal(header["budget"]), []
        for number, entry in enumerate(entries, start=1):
            remaining = difference(remaining, Decimal(entry["epsilon"]))
            spec = {key: str(value) for key, value in entry["spec"].items()}
            rows.append(spec | {"sequence": number, "epsilon": entry["epsilon"], "remaining": str(remaining)})
        first = ["sequence", "epsilon", "remaining"]
        others = dict.fromkeys(key for row in rows for key in row if key not in first)
        return pd.DataFrame(rows, columns=first + list(others))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold an inter-process lock on the ledger, a file beside it."""
        from filelock import FileLock, Timeout

        if not self.path.parent.is_dir():
            raise MissingFileError(
                f"the folder of {self.path.name} does not exist",
                got=str(self.path.parent),
                hint="create it first",
            )
        lock = FileLock(f"{self.path}.lock", timeout=_LOCK_TIMEOUT)
        try:
            lock.acquire()
        except Timeout:
            raise LedgerError(
                f"{self.path.name} is locked by another process",
                hint="wait until its release is made, then try again",
            ) from None
        except OSError as error:
            raise MissingFileError(
                f"{self.path.name} cannot be locked: {error.strerror}",
                expected="a folder in which a lock file can be written",
                got=str(self.path.parent),
            ) from None
        try:
            yield
        finally:
            lock.release()

    def _append(self, line: bytes, end: int) -> None:
        """Write a line after the complete ones, which end at byte `end`, and wait until it is on disk.

        What follows them is a last line without its newline: a reservation that never returned, so nothing was
        released on it.
        """
        try:
            with self.path.open("r+b") as file:
                file.truncate(end)
                file.seek(end)
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise LedgerError(
                f"{self.path.name} cannot be written: {error.strerror}", hint="nothing was released"
            ) from None

    def _lines(self) -> list[bytes]:
        """Return the complete lines of the file, newlines included, byte for byte."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            raise MissingFileError(
                f"no ledger at {self.path}",
                expected="a file made with Ledger.create",
                hint="Ledger.create(path, dataset=..., budget=...) fixes the total once for the data set",
            ) from None
        except OSError as error:
            raise LedgerError(f"{self.path.name} cannot be read: {error.strerror}") from None
        return [line + b"\n" for line in content.split(b"\n")[:-1]]

    def _read(self) -> list[dict[str, Any]]:
        """Return the header and the reservations, checked."""
        return check_lines(self._lines(), self.path.name)


def as_ledger(ledger: Ledger | str | os.PathLike[str]) -> Ledger:
    """Return a ledger given itself or its path."""
    return ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)


def _real_path(path: object) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise ArgumentTypeError(
            "the ledger is not a path", expected="a path or a Ledger", got=type(path).__name__
        )
    return Path(os.path.realpath(os.fsdecode(path)))


def _check_enough(records: list[dict[str, Any]], requested: Decimal) -> None:
    remaining = remaining_after(records)
    if requested > remaining:
        raise BudgetExceededError(
            f"requested epsilon {requested}, remaining {remaining}: {difference(requested, remaining)} too much",
            expected=f"at most {remaining}",
            got=str(requested),
            hint=f"the budget of {records[0]['dataset']!r} is {records[0]['budget']}; what is spent stays "
            "spent. A saved release can be loaded and analysed as often as you like at no cost.",
        )
