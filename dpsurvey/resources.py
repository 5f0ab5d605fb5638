"""Where the Stan programs, the R code and the example data lie: inside the wheel, or at the top of a clone."""

from __future__ import annotations

from pathlib import Path

from dpsurvey.errors import MissingFileError

_PACKAGE = Path(__file__).resolve().parent


def resource(*parts: str) -> Path:
    """Return the path of a file that travels with the package.

    Parameters
    ----------
    *parts : str
        Path below the project's top folder, for example ``"stan", "bayes_na.stan"``.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    MissingFileError
        If it is in neither place.

    Examples
    --------
    >>> resource("stan").is_dir()
    True
    """
    for base in (_PACKAGE / "_shared", _PACKAGE.parent):
        path = base.joinpath(*parts)
        if path.exists():
            return path
    raise MissingFileError(
        f"{'/'.join(parts)} is missing from this installation of dpsurvey",
        hint="install dpsurvey again; it travels inside the wheel",
    )
