"""The release: the only thing that crosses the wall between the rows and everything else."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsurvey.atomic import atomic_write
from dpsurvey.errors import DpsurveyError, LedgerError, MissingFileError, ReleaseFormatError
from dpsurvey.privacy.budget import written
from dpsurvey.privacy.ledger import Ledger, as_ledger, payer
from dpsurvey.privacy.mechanisms import Mechanism, load_mechanism
from dpsurvey.privacy.release_check import check_release, is_integer
from dpsurvey.privacy.statement import methods_statement
from dpsurvey.privacy.statistics import Statistic, make_statistic
from dpsurvey.strict_json import parse_json

FORMAT = "dpsurvey.release"
SCHEMA_VERSION = 1
_TABLES = ("parameters", "labels", "versions", "ledger")
_LARGEST_FILE = 2**23  # bytes; a release of p = 60 variables has some 50 kB, of p = 1000 some 6 MB


@dataclass(frozen=True, slots=True)
class Release:
    """Noisy counts of all pairs of variables, with every public fact needed to use them.

    Made by :func:`dpsurvey.release`; read back with :meth:`load`. Anything computed from a release is
    post-processing and costs no further privacy.

    Parameters
    ----------
    variables : tuple of str, length p
    labels : dict
        Variable -> label, for variables that have one.
    n : int
        Number of rows, public and exact.
    counts : tuple of int, length m = p(p-1)/2
        Noisy counts t_tilde in the order of ``numpy.triu_indices(p, 1)``.
    statistic, mechanism : str
        What was counted, and how noise was added.
    parameters : dict
        Public parameters of the mechanism.
    epsilon, delta : float
        Privacy loss of the whole release.
    neighbours : str
        The neighbour rule.
    key_seed : int
        Seed of the tie-breaking keys.
    key_fingerprint : str
        Short hash of that seed.
    filters : tuple of str
        Declared subpopulation rules.
    rounding : int or None
        Decimals to which values were rounded before counting.
    coarse : tuple of str
        Variables declared to have few levels: pairs with one of them are quadrant counts in a release of
        concordance counts.
    versions : dict
        Library -> version.
    secure : bool
        False where the noise came from a seeded generator (simulations).
    ledger : dict or None
        Data set, sequence number and head hash of the ledger entry that paid for it.

    Examples
    --------
    >>> import numpy as np, pandas as pd, dpsurvey as dps
    >>> df = pd.DataFrame(np.arange(40.0).reshape(20, 2), columns=["x", "y"])
    >>> release = dps.release(df, epsilon=1.0, insecure_rng=np.random.default_rng(1))
    >>> release.n, release.p, release.m, release.secure
    (20, 2, 1, False)
    >>> Release.from_dict(release.to_dict()) == release
    True
    """

    variables: tuple[str, ...]
    n: int
    counts: tuple[int, ...]
    statistic: str
    mechanism: str
    parameters: dict[str, float | int]
    epsilon: float
    delta: float
    neighbours: str
    key_seed: int
    key_fingerprint: str
    secure: bool
    labels: dict[str, str] = field(default_factory=dict)
    filters: tuple[str, ...] = ()
    rounding: int | None = None
    coarse: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    ledger: dict[str, str | int] | None = None

    def __post_init__(self) -> None:
        check_release(self)
        for name in _TABLES:  # copies: a release does not change when the caller's dicts do
            table = getattr(self, name)
            object.__setattr__(self, name, None if table is None else dict(table))

    def __hash__(self) -> int:
        return hash((self.variables, self.n, self.counts, self.mechanism, self.epsilon))

    @property
    def p(self) -> int:
        """Number of variables."""
        return len(self.variables)

    @property
    def m(self) -> int:
        """Number of pairs."""
        return len(self.counts)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Names of the variables of each pair, in the order of `counts`."""
        first, second = np.triu_indices(self.p, 1)
        return tuple((self.variables[j], self.variables[k]) for j, k in zip(first, second, strict=True))

    @property
    def noisy(self) -> NDArray[np.int64]:
        """The noisy counts as an array, shape (m,)."""
        return np.array(self.counts, dtype=np.int64)

    def statistic_law(self) -> Statistic:
        """Return the statistic's range and sensitivities for this n and p."""
        return make_statistic(
            self.statistic, self.n, self.p, tuple(self.variables.index(name) for name in self.coarse)
        )

    @property
    def counted(self) -> str:
        """What was counted, such as "concordance counts", or "concordance and quadrant counts" with coarse columns."""
        return " and ".join(sorted(set(self.statistic_law().kinds))) + " counts"

    def noise_law(self) -> Mechanism:
        """Return the mechanism, whose ``marginal(i)`` is the law of the noise of count i."""
        return load_mechanism(self.mechanism, self.parameters, self.statistic_law())

    def to_frame(self) -> pd.DataFrame:
        """Return one row a pair: var1, var2 and the noisy count."""
        frame = pd.DataFrame(self.pairs, columns=["var1", "var2"])
        return frame.assign(noisy_count=self.noisy)

    def to_dict(self) -> dict[str, Any]:
        """Return the release as JSON values."""
        values: dict[str, Any] = {"format": FORMAT, "schema": SCHEMA_VERSION}
        for item in fields(self):
            value = getattr(self, item.name)
            values[item.name] = list(value) if isinstance(value, tuple) else value
        for name in _TABLES:
            values[name] = None if values[name] is None else dict(values[name])
        return values

    @classmethod
    def from_dict(cls, values: Any) -> Release:
        """Build a release from JSON values, strictly.

        Raises
        ------
        ReleaseFormatError
            If the version is unknown, a field is missing, unknown or of the wrong type, or the numbers do not
            fit together.
        """
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise ReleaseFormatError("this is not a dpsurvey release", expected=f'"format": "{FORMAT}"')
        schema: Any = values.get("schema")
        if not is_integer(schema) or schema != SCHEMA_VERSION:
            raise ReleaseFormatError(
                "unknown schema version",
                expected=str(SCHEMA_VERSION),
                got=str(schema) if is_integer(schema) and abs(schema) < 10**6 else type(schema).__name__,
                hint="a newer dpsurvey may have written it",
            )
        names = {item.name for item in fields(cls)}
        missing, extra = sorted(names - set(values)), sorted(set(values) - names - {"format", "schema"})
        if missing or extra:
            raise ReleaseFormatError(
                "the fields do not match the schema", expected=f"also {missing}" if missing else "no further fields",
                got=f"unknown {[name[:80] for name in extra[:10]]}" if extra else "fields missing",
            )  # fmt: skip
        tuples = {"variables", "counts", "filters", "coarse"}
        for name in tuples:
            if not isinstance(values[name], list):
                raise ReleaseFormatError(f"{name} is not a list")
        arguments: dict[str, Any] = {n: tuple(values[n]) if n in tuples else values[n] for n in names}
        return cls(**arguments)

    def spec(self) -> dict[str, Any]:
        """Return the public facts by which a ledger knows the same request again, as JSON values.

        They are fixed before anything is computed from rows: no count, and no hash of data, is among them. What
        it costs and the data set's label stand beside them in the ledger.
        """
        return {
            "variables": list(self.variables),
            "n": self.n,
            "statistic": self.statistic,
            "mechanism": self.mechanism,
            "coarse": list(self.coarse),
            "filters": list(self.filters),
            "rounding": self.rounding,
            "key_seed": self.key_seed,
            "secure": self.secure,
        }

    def save(
        self, path: str | os.PathLike[str], *, ledger: Ledger | str | os.PathLike[str] | None = None
    ) -> Path:
        """Write the release as JSON, whole or not at all, and note in its ledger where it is.

        With that note the ledger keeps the same release from being made, and paid for, again by mistake.

        Parameters
        ----------
        path : path-like
        ledger : Ledger or path, optional
            The ledger that paid for it. By default the one it was made with in this process, if any; a release
            that was loaded from a file is just written.

        Returns
        -------
        pathlib.Path

        Raises
        ------
        MissingFileError
            If the file cannot be written.
        LedgerError
            If `ledger` did not pay for this release, before anything is written; or if the file is saved but its
            ledger, being damaged, rolled back or gone, cannot note it.
        """
        book = payer(self) if ledger is None else as_ledger(ledger)
        if ledger is not None and book is not None:
            book.check_release(self)
        with atomic_write(path) as file:
            json.dump(self.to_dict(), file, indent=1, allow_nan=False)
            file.write("\n")
        if book is not None:
            try:
                book.complete(self, path)
            except DpsurveyError as error:
                raise LedgerError(
                    f"{Path(path).name} is saved, but its ledger cannot note it: {error.detail}",
                    expected=error.expected,
                    got=error.got,
                    hint=error.hint,
                ) from None
        return Path(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Release:
        """Read a release saved with :meth:`save`.

        Raises
        ------
        MissingFileError
            If there is no such file.
        ReleaseFormatError
            If it is not a release.
        """
        try:
            with Path(path).open("rb") as file:
                content = file.read(_LARGEST_FILE + 1)
        except OSError as error:
            raise MissingFileError(f"cannot open {str(path)!r}: {error.strerror}") from None
        if len(content) > _LARGEST_FILE:
            raise ReleaseFormatError(
                "the file is too large for a release", expected=f"< {_LARGEST_FILE} bytes"
            )
        try:
            values = parse_json(content)
        except ValueError:
            raise ReleaseFormatError(
                "the file is not JSON", expected="a file written by Release.save"
            ) from None
        return cls.from_dict(values)

    def statement(self) -> str:
        """Return a paragraph for a methods section, with this release's own numbers."""
        return methods_statement(self)

    def __repr__(self) -> str:
        safety = "secure noise" if self.secure else "INSECURE noise (simulation)"
        return (
            f"<Release: {self.p} variables, {self.m} noisy {self.counted}, n = {self.n}, "
            f"{self.mechanism}, epsilon = {written(self.epsilon)}, {safety}>"
        )
