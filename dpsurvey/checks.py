"""One thing that was looked at: whether it is there, whether it works, and how to get it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from packaging.requirements import Requirement

_LONGEST = 200  # characters of an error
Status = Literal["ok", "missing", "broken", "note"]


@dataclass(frozen=True, slots=True)
class Check:
    """What was found about one thing.

    Attributes
    ----------
    component : str
    needed : bool
        Whether the core needs it: files to release to correlations, without R, Stan, figures or Parquet.
    status : {"ok", "missing", "broken", "note"}
    found : str
        The version, or what happened.
    remedy : str
        How to get or mend it; empty where it is ok.
    """

    component: str
    needed: bool
    status: Status
    found: str
    remedy: str = ""


def attempt(component: str, remedy: str, action: Callable[[], str], *, needed: bool = True) -> Check:
    """Return a check that is ok when `action` ends, with what it returns, and broken when it raises.

    Examples
    --------
    >>> attempt("zero", "use another number", lambda: str(1 / 0)).found
    'ZeroDivisionError: division by zero'
    """
    try:
        return Check(component, needed, "ok", action())
    except Exception as error:
        first_line = f"{type(error).__name__}: {error}".strip().split("\n")[0]
        return Check(component, needed, "broken", first_line[:_LONGEST], remedy)


def library(requirement: Requirement, remedy: str, *, needed: bool) -> Check:
    """Return whether a library is installed, in a version that fits, and can be imported.

    Examples
    --------
    >>> library(Requirement("numpy>=2"), "pip install numpy", needed=True).status
    'ok'
    >>> library(Requirement("numpy>=1000"), "pip install numpy", needed=True).status
    'broken'
    """
    name = requirement.name
    if not installed(name):
        return Check(name, needed, "missing", "not installed", remedy)
    found = version(name)
    if not requirement.specifier.contains(found, prereleases=True):
        return Check(name, needed, "broken", f"{found}, and {requirement.specifier} is needed", remedy)

    def load() -> str:
        import_module(name.replace("-", "_"))
        return found

    return attempt(name, remedy, load, needed=needed)


def installed(name: str) -> bool:
    """Return whether a distribution is installed, without importing it.

    Examples
    --------
    >>> installed("numpy"), installed("no-such-library")
    (True, False)
    """
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True
