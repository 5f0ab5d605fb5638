"""Programs outside Python that dpsurvey can use: R and CmdStan, each asked in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from dpsurvey.checks import Check, attempt, installed

_TIMEOUT = 120.0  # seconds for a program to answer
_R_QUESTION = """
v <- function(p) if (nzchar(system.file(package = p))) as.character(utils::packageVersion(p)) else ""
cat(as.character(getRversion()), v("sbgcop"), v("reticulate"), v("dpsurvey"), sep = "\\n")
"""
_R_PACKAGES = {
    "sbgcop": 'in R: install.packages("sbgcop"); without it ERL runs by R code of ours, or natively',
    "reticulate": 'in R: install.packages("reticulate"); R users reach Python by it',
    "dpsurvey for R": "in a checkout: R CMD INSTALL r_bridge",
}


def in_r(program: str | None) -> Iterator[Check]:
    """Yield R and the R packages that matter here.

    Parameters
    ----------
    program : str or None
        Path of Rscript.
    """
    if program is None:
        remedy = "Debian, Ubuntu: apt-get install r-base-core r-base-dev"
        yield Check("R", False, "missing", "no Rscript on the PATH", remedy)
        return
    answers: list[str] = []

    def look() -> str:
        answers.extend(_ask(program, "-e", _R_QUESTION).split("\n"))
        return f"{answers[0]} ({program})"

    yield attempt("R", "run Rscript by hand and see what it says", look, needed=False)
    found = [*answers[1:], "", "", ""] if answers else []
    for (name, remedy), answer in zip(_R_PACKAGES.items(), found, strict=False):
        if answer:
            yield Check(name, False, "ok", answer)
        else:
            yield Check(name, False, "missing", "not installed", remedy)


def rpy2() -> Check:
    """Return whether rpy2 is installed and can start R."""
    remedy = 'pip install rpy2; with R older than 4.5: pip install rpy2 "rpy2-rinterface<3.6.6"'
    if not installed("rpy2"):
        return Check("rpy2", False, "missing", "not installed", remedy)
    code = "import rpy2.robjects as o; print(o.r('R.version.string')[0])"
    return attempt(
        "rpy2", remedy, lambda: f"{version('rpy2')}, {_ask(sys.executable, '-c', code)}", needed=False
    )


def cmdstan(variable: str | None, home: Path) -> Check:
    """Return which CmdStan there is: the one that CMDSTAN names, else the newest in ~/.cmdstan.

    Parameters
    ----------
    variable : str or None
        The environment variable CMDSTAN.
    home : pathlib.Path
        The user's folder.
    """
    remedy = (
        "dpsurvey doctor --install-cmdstan, or set CMDSTAN to its folder; "
        "without it the embedded sampler draws from the same posterior"
    )
    named = [Path(variable)] if variable else sorted((home / ".cmdstan").glob("cmdstan-*"), key=_version)
    if not named:
        return Check("CmdStan", False, "missing", "CMDSTAN is not set, and ~/.cmdstan holds none", remedy)

    def look() -> str:
        compiler = next((path for path in (named[-1] / "bin").glob("stanc*") if path.is_file()), None)
        if compiler is None:
            raise FileNotFoundError(f"{named[-1]} has no bin/stanc")
        return f"{named[-1]}, {_ask(str(compiler), '--version')}"

    return attempt("CmdStan", remedy, look, needed=False)


def _version(folder: Path) -> list[int]:
    return [int(part) for part in folder.name.removeprefix("cmdstan-").split(".") if part.isdigit()]


def _ask(*command: str) -> str:
    """Return what a program prints.

    Raises
    ------
    RuntimeError
        If it fails, with the last line that it said.
    OSError, subprocess.TimeoutExpired
        If it cannot be started, or does not answer.
    """
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().split("\n")[-1]
        raise RuntimeError(said or f"exit code {done.returncode}")
    return done.stdout.strip()
