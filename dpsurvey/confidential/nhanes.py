"""The conventions of NHANES: survey cycles, file addresses, missing codes, complete rows.

Dietary recalls: ``DR1DRSTZ`` (and ``DR2DRSTZ``) is 1 for a reliable recall that met the minimum criteria, 2
for one that did not, 4 where breast milk was reported, 5 where none was done. ``DRDINT`` is the number
of recall days and ``DRABF`` is 1 for breast-fed infants, whose intake is incomplete. An analysis of two
reliable days that leaves infants out declares ``where="DR1DRSTZ == 1 and DRDINT == 2 and DRABF == 2"``.

Ages at screening (``RIDAGEYR``) are top-coded at 80 and the income-to-poverty ratio (``INDFMPIR``) at 5: rows
tied at the top, not missing. Sample weights (``WTDRD1``, ``WTDR2D``, ``WTMEC2YR``) and design variables
(``SDMVSTRA``, ``SDMVPSU``) describe the sampling; dpsurvey does not use them.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import pandas as pd

from dpsurvey.confidential.complete import complete, rows_lost
from dpsurvey.confidential.near import check_known
from dpsurvey.confidential.nhanes_codes import MISSING_CODES
from dpsurvey.errors import ArgumentError, ArgumentTypeError

__all__ = [
    "BASE_URL",
    "CYCLES",
    "MISSING_CODES",
    "Cycle",
    "complete",
    "cycles",
    "download",
    "file_url",
    "missing_codes",
    "rows_lost",
]

BASE_URL = "https://wwwn.cdc.gov/Nchs/Data/Nhanes/Public"


@dataclass(frozen=True, slots=True)
class Cycle:
    """One survey cycle.

    Attributes
    ----------
    letter : str
        "B" for 2001-2002 and so on; "A" for 1999-2000, whose files carry no letter; "P" for the files of
        2017 to March 2020, whose names begin with P_.
    years : str
    start : int
        First year, which is part of the address.
    """

    letter: str
    years: str
    start: int

    def file_name(self, component: str) -> str:
        """Return the name of a component's file, without ".xpt".

        Examples
        --------
        >>> Cycle("J", "2017-2018", 2017).file_name("DEMO")
        'DEMO_J'
        """
        if self.letter == "P":
            return f"P_{component}"
        return component if self.letter == "A" else f"{component}_{self.letter}"


CYCLES = (
    Cycle("A", "1999-2000", 1999),
    Cycle("B", "2001-2002", 2001),
    Cycle("C", "2003-2004", 2003),
    Cycle("D", "2005-2006", 2005),
    Cycle("E", "2007-2008", 2007),
    Cycle("F", "2009-2010", 2009),
    Cycle("G", "2011-2012", 2011),
    Cycle("H", "2013-2014", 2013),
    Cycle("I", "2015-2016", 2015),
    Cycle("J", "2017-2018", 2017),
    Cycle("P", "2017-March 2020", 2017),
    Cycle("L", "August 2021-August 2023", 2021),
)


def cycles() -> pd.DataFrame:
    """Return the survey cycles: letter, years, and how the file of the component DEMO is called.

    Examples
    --------
    >>> from dpsurvey import nhanes
    >>> nhanes.cycles().loc["P"].tolist()
    ['2017-March 2020', 'P_DEMO.xpt']
    """
    rows = [(cycle.letter, cycle.years, f"{cycle.file_name('DEMO')}.xpt") for cycle in CYCLES]
    return pd.DataFrame(rows, columns=["letter", "years", "demo_file"]).set_index("letter")


def file_url(name: str, cycle: str) -> str:
    """Return the current address of a component's file.

    Parameters
    ----------
    name : str
        The component without the cycle: "DEMO", "DR1TOT".
    cycle : str
        Letter ("J") or years ("2017-2018"), see :func:`cycles`.

    Returns
    -------
    str

    Raises
    ------
    ArgumentError, ArgumentTypeError, UnknownNameError

    Examples
    --------
    >>> from dpsurvey import nhanes
    >>> nhanes.file_url("DEMO", "J")
    'https://wwwn.cdc.gov/Nchs/Data/Nhanes/Public/2017/DataFiles/DEMO_J.xpt'
    """
    found = _cycle(cycle)
    return f"{BASE_URL}/{found.start}/DataFiles/{found.file_name(_component(name, found))}.xpt"


def download(
    name: str,
    *,
    cycle: str,
    sha256: str | None = None,
    cache_dir: str | PathLike[str] | None = None,
) -> Path:
    """Return the path of a component's file, downloading it the first time.

    Parameters
    ----------
    name : str
        The component without the cycle: "DEMO", "DR1TOT".
    cycle : str
        Letter ("J") or years ("2017-2018").
    sha256 : str, optional
        Checksum that the file must have. By default it is recorded at the first download (in a file of the
        same name ending in .sha256) and verified from then on.
    cache_dir : path-like, optional
        Folder for the files; by default a folder of dpsurvey in the user's cache.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    DownloadError
        If the file cannot be reached (with the address, and the place to put it by hand), if what comes is
        a web page or incomplete, or if a checksum differs.
    ArgumentError, ArgumentTypeError, UnknownNameError, MissingFileError

    Examples
    --------
    >>> from dpsurvey import nhanes
    >>> nhanes.download("DEMO", cycle="J")  # doctest: +SKIP
    PosixPath('/home/ana/.cache/dpsurvey/nhanes/DEMO_J.xpt')
    """
    from dpsurvey.confidential.download import fetch  # loads the network libraries

    found = _cycle(cycle)
    if cache_dir is None:
        import platformdirs

        folder = Path(platformdirs.user_cache_dir("dpsurvey", appauthor=False)) / "nhanes"
    else:
        folder = Path(cache_dir)
    return fetch(file_url(name, cycle), folder / f"{found.file_name(_component(name, found))}.xpt", sha256)


def missing_codes(*names: str) -> dict[str, tuple[int, ...]]:
    """Return the codes for "refused" and "don't know" of some variables, for `read_survey`.

    Parameters
    ----------
    *names : str
        Variables of NHANES. Codes are looked up variable by variable, since they differ: 77 is a code of
        DMDMARTL and an age in RIDAGEYR. Check them against the codebook of the cycle at hand.

    Returns
    -------
    dict
        Variable -> its codes.

    Raises
    ------
    UnknownNameError
        If a variable is not in the table; give its codes yourself.

    Examples
    --------
    >>> from dpsurvey import nhanes
    >>> nhanes.missing_codes("SMD650", "PAD680")
    {'SMD650': (777, 999), 'PAD680': (7777, 9999)}
    """
    check_known(
        names,
        MISSING_CODES,
        what="variable",
        where="the table of missing codes",
        hint="give the codes yourself: missing_codes={'NAME': [7, 9]}",
    )
    return {name: MISSING_CODES[name] for name in names}


def _cycle(cycle: str) -> Cycle:
    if not isinstance(cycle, str):
        raise ArgumentTypeError("cycle must be a letter or years", expected="str", got=type(cycle).__name__)
    by_name = {name: found for found in CYCLES for name in (found.letter, found.years)}
    key = cycle.strip().rstrip("_")
    key = key.upper() if len(key) == 1 else key
    check_known(
        [key], by_name, what="cycle", where="the table of cycles", hint="dpsurvey.nhanes.cycles() lists them"
    )
    return by_name[key]


def _component(name: str, cycle: Cycle) -> str:
    """Return a component's bare name; a name that already carries the cycle is taken as it is."""
    if not isinstance(name, str):
        raise ArgumentTypeError("a component is given by its name", expected="str", got=type(name).__name__)
    bare = name.strip().upper().removesuffix(".XPT")
    if not bare.replace("_", "").isalnum() or not bare.isascii():
        raise ArgumentError("that is no name of a component", expected='such as "DEMO"', got=repr(name))
    if cycle.letter == "P":
        return bare.removeprefix("P_")
    return bare if cycle.letter == "A" else bare.removesuffix(f"_{cycle.letter}")
