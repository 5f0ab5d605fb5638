"""The budget file: privacy is reserved on disk, under a lock, before anything is computed from the rows.

A ledger is a text file of JSON lines. The first says which data set it belongs to, how much may be spent, and how
spending adds up; each further line is a reservation, or notes that the release of one was saved. Each line holds
a hash of the line before it and ends with a checksum of its own.

What this detects: accidental damage and partial edits, with the number of the line. Whoever rewrites the whole
chain on purpose, cuts whole lines off its end, or puts an old copy back leaves a file that is consistent by itself;
that is found out only against the sequence number and head hash that each release carries
(:meth:`Ledger.check_release`), or against a head hash that was written down elsewhere. A copied ledger is another
ledger. Nothing here is computed from rows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from io import FileIO
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from dpsurvey.errors import ArgumentError, ArgumentTypeError, LedgerError, UnknownNameError
from dpsurvey.privacy.budget import check_delta, check_epsilon, decimal
from dpsurvey.privacy.ledger_accounts import ACCOUNTS, Account, PureAccount
from dpsurvey.privacy.ledger_file import append, locked, make_file, read_file
from dpsurvey.privacy.ledger_lines import Pages, line_hash, read_lines, split_lines, to_line
from dpsurvey.privacy.ledger_receipts import Receipt, file_digest, paid_entry, refuse_repeated
from dpsurvey.privacy.ledger_records import Completion, Header, Reservation
from dpsurvey.privacy.statistics import NEIGHBOURS
from dpsurvey.texts import is_text, shown

if TYPE_CHECKING:
    from dpsurvey.privacy.release import Release

# Head of every reservation that this process made -> its ledger. A release is a public value and does not hold
# the path of its ledger, yet saving it shall be noted there without being told.
_PAID_HERE: dict[str, Path] = {}


@dataclass(frozen=True, slots=True)
class Ledger:
    """The privacy budget of one data set, kept in a file.

    Make one with :meth:`create`, or open it with :meth:`open`; the file is read anew at every use.

    Parameters
    ----------
    path : path-like
        Kept without links and relative parts.

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
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        dataset: str,
        budget: float,
        neighbours: str = NEIGHBOURS,
        delta: float = 0.0,
        accounting: str = "pure",
    ) -> Ledger:
        """Make the ledger of a data set; what is given here stays as it is for good.

        Parameters
        ----------
        path : path-like
            Where to keep it; must not exist yet.
        dataset : str
            A public label of the data set, such as "NHANES 2017-18 diet".
        budget : float
            Total epsilon that may ever be spent on it.
        neighbours : str
            The rule by which tables are neighbours, which all entries share: the one of dpsurvey's releases.
        delta : float, default 0
            Total delta that may ever be spent (accounting "pure"), or at which rho is converted ("zcdp", where it
            must be above 0). With 0, Gaussian releases are refused.
        accounting : {"pure", "zcdp"}
            How spending adds up: exact sums of epsilon and of delta, or of rho in zero-concentrated privacy,
            epsilon^2 / 2 for a release with pure epsilon, converted to epsilon at `delta` as OpenDP converts it.
            "zcdp" is for many releases, above all Gaussian ones.

        Raises
        ------
        LedgerError
            If the file exists.
        MissingFileError
            If its folder does not exist or cannot be written.
        ArgumentError, ArgumentTypeError, UnknownNameError
            If the label is empty, the budget not a finite number above 0, or delta not in [0, 1) or 0 with "zcdp";
            if the neighbour rule or the accounting is unknown.

        Warns
        -----
        LargeEpsilonWarning
            If the budget is above 10.
        """
        if not is_text(dataset) or not dataset.strip():
            raise ArgumentError("the data set has no label", expected="text such as 'NHANES 2017-18 diet'")
        if not is_text(neighbours) or neighbours != NEIGHBOURS:
            raise UnknownNameError("no such neighbour rule", expected=repr(NEIGHBOURS), got=shown(neighbours))
        account = _account(accounting, check_epsilon(budget, what="budget"), check_delta(delta))
        ledger = cls(_real_path(path))
        make_file(ledger.path, to_line(Header(str(dataset), account, str(neighbours)).to_record()))
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
        return self._read().header.dataset

    @property
    def accounting(self) -> str:
        """How spending adds up: "pure" or "zcdp"."""
        return self._read().account.name

    @property
    def budget(self) -> Decimal:
        """Total epsilon that may ever be spent."""
        return self._read().account.budget

    @property
    def delta(self) -> Decimal:
        """Total delta that may ever be spent, or at which rho is converted."""
        return self._read().account.delta

    @property
    def neighbours(self) -> str:
        """The neighbour rule that all entries share."""
        return self._read().header.neighbours

    @property
    def spent(self) -> Decimal:
        """Epsilon reserved so far, whether or not its release was ever saved; with "zcdp", what rho converts to."""
        pages = self._read()
        return pages.account.spent(pages.costs)

    @property
    def remaining(self) -> Decimal:
        """Epsilon of one more release with pure epsilon that fits, never overstated."""
        pages = self._read()
        return pages.account.remaining(pages.costs)

    @property
    def head(self) -> str:
        """SHA-256 of the last line: written down elsewhere, it shows that the file was not put back since."""
        return self._read().head

    def reserve(
        self,
        epsilon: float,
        spec: Mapping[str, Any],
        *,
        delta: float = 0.0,
        rho: float | None = None,
        neighbours: str = NEIGHBOURS,
        again: bool = False,
    ) -> Receipt:
        """Write a reservation to disk, or refuse it.

        Parameters
        ----------
        epsilon, delta : float
            The guarantee of the release it is for.
        spec : mapping
            Public facts of that release (variables, n, statistic, mechanism and so on), JSON values.
        rho : float, optional
            What it costs in zero-concentrated privacy; for one with pure epsilon it follows from epsilon.
        neighbours : str
            The neighbour rule of the guarantee.
        again : bool
            Reserve also where a release with the same facts was saved and is still there.

        Returns
        -------
        Receipt

        Raises
        ------
        ReleaseExists
            If one was, and `again` is False; nothing is written then.
        BudgetExceededError
            If more is asked for than remains; nothing is written then.
        LedgerError, MissingFileError
            If the ledger is damaged or gone, or cannot add up such a release or its neighbour rule.
        """
        with locked(self.path) as file:
            content = file.readall()
            pages = self._pages(content)
            if neighbours != pages.header.neighbours:
                raise LedgerError(
                    "the ledger adds up entries of another neighbour rule",
                    expected=pages.header.neighbours,
                    got=shown(neighbours),
                    hint="convert the cost to the ledger's rule first",
                )
            cost = pages.account.cost(epsilon, delta, rho)
            entry = Reservation(len(pages.reservations) + 1, cost, dict(spec))
            line = to_line(entry.to_record(pages.head, pages.account))
            if not again:
                refuse_repeated(pages, entry, self.path.parent)
            pages.account.check(pages.costs, cost, pages.header.dataset)
            self._append(file, content, line)
        receipt = Receipt(pages.header.dataset, entry.sequence, line_hash(line))
        _PAID_HERE[receipt.head] = self.path
        return receipt

    def complete(self, release: Release, path: str | os.PathLike[str]) -> None:
        """Note that a release was saved, so that the same is not made again by mistake.

        Parameters
        ----------
        release : Release
            One that this ledger paid for.
        path : path-like
            The saved file, whose checksum is noted.

        Raises
        ------
        LedgerError, MissingFileError
            If the release was not paid for here, or the ledger is damaged, rolled back or gone.
        """
        saved = _real_path(path)
        sha256 = file_digest(saved)
        if sha256 is None:
            raise LedgerError(f"{saved.name} is not there", expected="the saved release")
        with locked(self.path) as file:
            content = file.readall()
            pages = self._pages(content)
            entry = paid_entry(pages, release, self.path.name)
            note = Completion(entry.sequence, os.path.relpath(saved, self.path.parent), sha256)
            if note not in pages.completions:
                self._append(file, content, to_line(note.to_record(pages.head)))

    def verify(self) -> None:
        """Check the ledger from first to last line, and that no more is reserved than its budget.

        Raises
        ------
        LedgerError
            With the number of the line that is damaged.
        MissingFileError
            If it is gone.
        """
        pages = self._read()
        if not pages.account.holds(pages.costs):
            raise LedgerError(
                f"{self.path.name} has reservations above its budget",
                expected=f"at most {pages.account.budget}",
                got=str(pages.account.spent(pages.costs)),
                hint="no version of dpsurvey writes this: the file was edited",
            )

    def check_release(self, release: Release) -> None:
        """Check that the ledger still holds the reservation that a release was paid with, as the release says it.

        A ledger that was rewritten, or rolled back to before the release, is consistent by itself and shows only
        here. Changes after the release's own line show only against later releases.

        Raises
        ------
        LedgerError
            If the release carries no receipt, or one that does not fit.
        """
        paid_entry(self._read(), release, self.path.name)

    def summary(self) -> pd.DataFrame:
        """Return one row a reservation.

        Returns
        -------
        pandas.DataFrame
            sequence, epsilon, delta, rho (with "zcdp"), remaining after it (see :attr:`remaining`), file (where its
            release was saved last, as seen from the ledger's folder; empty if that was never noted), and the facts
            of what it was for. Amounts are texts, digit for digit.
        """
        pages = self._read()
        account = pages.account
        files = {note.sequence: note.file for note in pages.completions}
        rows = []
        for entry, so_far in zip(pages.reservations, accumulate(pages.costs), strict=True):
            number, cost = entry.sequence, entry.cost
            amounts = {"epsilon": str(cost.epsilon), "delta": str(cost.delta)}
            if account.uses_rho:
                amounts["rho"] = str(cost.rho)
            amounts["remaining"] = str(account.remaining([so_far]))
            file = files.get(number, "").encode(errors="backslashreplace").decode()
            spec = {key: str(value) for key, value in entry.spec.items()}
            rows.append(spec | {"sequence": number, **amounts, "file": file})
        rho = ["rho"] if account.uses_rho else []
        first = ["sequence", "epsilon", "delta", *rho, "remaining", "file"]
        others = dict.fromkeys(key for row in rows for key in row if key not in first)
        return pd.DataFrame(rows, columns=first + list(others))

    def status(self) -> str:
        """Return in one line how the ledger stands."""
        pages = self._read()
        return f"ledger {self.path.name}: {pages.header.dataset!r}, {pages.account.describe(pages.costs)}"

    def _read(self) -> Pages:
        return self._pages(read_file(self.path))

    def _pages(self, content: bytes) -> Pages:
        pages = read_lines(split_lines(content), self.path.name)
        if pages.header.neighbours != NEIGHBOURS:
            raise LedgerError("the ledger uses another neighbour rule", expected=NEIGHBOURS)
        return pages

    def _append(self, file: FileIO, content: bytes, line: bytes) -> None:
        """Write a line after the finished ones; what follows them never returned and is dropped."""
        append(file, sum(map(len, split_lines(content))), line, self.path.name)


def as_ledger(ledger: Ledger | str | os.PathLike[str]) -> Ledger:
    """Return a ledger given itself or its path."""
    return ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)


def payer(release: Release) -> Ledger | None:
    """Return the ledger that paid for a release, if that was done in this process."""
    path = None if release.ledger is None else _PAID_HERE.get(str(release.ledger["head"]))
    return None if path is None else Ledger(path)


def _account(accounting: str, budget: float, delta: float) -> Account:
    kind = ACCOUNTS.get(accounting) if isinstance(accounting, str) else None
    if kind is None:
        raise UnknownNameError(
            "no such accounting", expected=" or ".join(map(repr, ACCOUNTS)), got=shown(accounting)
        )
    if not delta and kind is not PureAccount:
        raise ArgumentError(
            "rho converts to epsilon at a delta above 0 only",
            expected="delta above 0, such as 1e-6",
            got=repr(delta),
            hint="accounting='pure' needs none",
        )
    return kind(decimal(budget), decimal(delta) if delta else Decimal(0))


def _real_path(path: object) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise ArgumentTypeError(
            "the ledger is not a path", expected="a path or a Ledger", got=type(path).__name__
        )
    return Path(os.path.realpath(os.fsdecode(path)))
