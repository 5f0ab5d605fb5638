"""Genuine survey files that travel with the package."""

from __future__ import annotations

from pathlib import Path

from dpsurvey.resources import resource

_COMPONENTS = ("DEMO_J", "DR1TOT_J", "BMX_J", "HDL_J")


def example_files() -> list[Path]:
    """Return the paths of four components of NHANES 2017-2018, to be merged on SEQN.

    They hold real public values of 8366 people (age, sex and income; energy, sugars, fibre and saturated
    fat of one recall day; body mass index; HDL cholesterol) and were rebuilt as transport files from a
    published collection: they are not the original files. They carry no weights, no design variables and
    no recall status, so analyses of them are unweighted and unfiltered for the quality of recalls.

    Returns
    -------
    list of pathlib.Path

    Raises
    ------
    MissingFileError
        If the installation is damaged.

    Examples
    --------
    >>> import dpsurvey as dps
    >>> [path.name for path in dps.example_files()]
    ['DEMO_J.xpt', 'DR1TOT_J.xpt', 'BMX_J.xpt', 'HDL_J.xpt']
    """
    return [resource("data", "nhanes_2017", f"{name}.xpt") for name in _COMPONENTS]
