"""Named errors: what was expected, what came, and how to mend it.

Every error of dpsurvey is a :class:`DpsurveyError` and also the built-in error a caller would expect
(``ValueError``, ``TypeError`` or ``OSError``), and carries a stable ``code``. Messages on the confidential
side name columns, counts of problems and types; they never hold the value of a cell or of an id.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar


class DpsurveyError(Exception):
    """Base of all errors raised on purpose by dpsurvey.

    Parameters
    ----------
    detail : str
        What went wrong, in one sentence.
    expected, got : str, optional
        What the call needed and what it received.
    hint : str, optional
        How to mend it.

    Attributes
    ----------
    code : str
        Stable identifier of the kind of error.
    title : str
        Short name of the kind of error.
    """

    code: ClassVar[str] = "DPS000"
    title: ClassVar[str] = "dpsurvey error"

    def __init__(
        self, detail: str, *, expected: str | None = None, got: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.expected = expected
        self.got = got
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"[{self.code}] {self.title}: {self.detail}"]
        for name in ("expected", "got", "hint"):
            value = getattr(self, name)
            if value is not None:
                lines.append(f"  {name}: {value}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:  # keyword-only arguments survive a trip to a worker process
        return (_rebuild, (type(self), self.detail, self.expected, self.got, self.hint))


def _rebuild(
    kind: type[DpsurveyError], detail: str, expected: str | None, got: str | None, hint: str | None
) -> DpsurveyError:
    return kind(detail, expected=expected, got=got, hint=hint)


class ArgumentError(DpsurveyError, ValueError):
    """An argument has a value that the function cannot take."""

    code = "DPS101"
    title = "bad argument"


class ArgumentTypeError(DpsurveyError, TypeError):
    """An argument has the wrong type."""

    code = "DPS102"
    title = "argument of the wrong type"


class UnknownNameError(DpsurveyError, ValueError):
    """A variable, column, file member, statistic or mechanism of that name does not exist."""

    code = "DPS103"
    title = "unknown name"


class DomainError(DpsurveyError, ValueError):
    """A table lies outside the domain on which a release is defined: complete rows, real columns, unique ids."""

    code = "DPS201"
    title = "table outside the declared domain"


class FileFormatError(DpsurveyError, ValueError):
    """A file is not what its name says, is damaged, or holds something that cannot be read faithfully."""

    code = "DPS202"
    title = "file cannot be read faithfully"


class MissingFileError(DpsurveyError, OSError):
    """A file is not there, or cannot be opened or written."""

    code = "DPS203"
    title = "file not available"


class MergeError(DpsurveyError, ValueError):
    """Files cannot be merged one-to-one on the id."""

    code = "DPS204"
    title = "files do not merge one-to-one"


class DownloadError(DpsurveyError, OSError):
    """A file could not be downloaded, or what came is not the file that was asked for."""

    code = "DPS205"
    title = "download failed"


class BudgetExceededError(DpsurveyError, ValueError):
    """A release would spend more than what remains of the budget."""

    code = "DPS301"
    title = "privacy budget exceeded"


class LedgerError(DpsurveyError, ValueError):
    """A ledger is damaged, or does not belong to the release that asks for it."""

    code = "DPS302"
    title = "ledger cannot be used"


class ReleaseFormatError(DpsurveyError, ValueError):
    """A saved release or posterior does not follow its schema."""

    code = "DPS303"
    title = "saved file does not follow its schema"


class ReleaseExists(DpsurveyError, ValueError):
    """The same release was made and saved before: reading it costs nothing, making it again would.

    Attributes
    ----------
    path : pathlib.Path
        The saved file.
    """

    code = "DPS304"
    title = "release exists already"

    @property
    def path(self) -> Path:
        """The saved file, as the error names it."""
        return Path(self.got or "")


class MissingDependencyError(DpsurveyError, OSError):
    """An optional library or program is not installed."""

    code = "DPS401"
    title = "optional dependency not installed"


class EngineError(DpsurveyError, RuntimeError):
    """An outside engine, R for one, refused to run or stopped with an error of its own."""

    code = "DPS402"
    title = "engine failed"


class DpsurveyWarning(UserWarning):
    """Base of all warnings given by dpsurvey."""


class LargeEpsilonWarning(DpsurveyWarning):
    """Epsilon is so large that the guarantee means little."""


class NoLedgerWarning(DpsurveyWarning):
    """A release was made without a ledger, so nothing keeps count of what has been spent."""


class WideIntervalWarning(DpsurveyWarning):
    """Most intervals of a private result cover 0: too little budget for its n and p, or weak correlations."""


class SlowMixingWarning(DpsurveyWarning):
    """A Markov chain moves so slowly that its effective sample size does not support the intervals."""


class ConvergenceWarning(DpsurveyWarning):
    """Markov chains have not come to agree (R-hat): they may not have reached the posterior yet."""


class DivergenceWarning(DpsurveyWarning):
    """Trajectories of Stan's sampler diverged, so that part of the posterior may have been missed."""


class LowEnergyWarning(DpsurveyWarning):
    """Stan's sampler hardly moves between energies (E-BFMI) and may have missed the tails."""
