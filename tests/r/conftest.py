"""R and the packages that the R package's checks need."""

import os
import shutil
import subprocess
import sys

import pytest

NEEDED = ("reticulate", "testthat", "knitr", "rmarkdown", "posterior", "jsonlite")


def _missing() -> str | None:
    rscript = shutil.which("Rscript")
    if rscript is None:
        return "R is not installed"
    probe = f"cat(setdiff(c({', '.join(map(repr, NEEDED))}), rownames(installed.packages())))"
    run = subprocess.run([rscript, "-e", probe], capture_output=True, text=True, check=True)
    if run.stdout.strip():
        return f"R packages are missing: {run.stdout.strip()}"
    return None if shutil.which("pandoc") else "pandoc is not installed"


@pytest.fixture(scope="session")
def r_environment():
    """The environment in which R finds this Python; skips without R, and fails in continuous integration."""
    missing = _missing()
    if missing:
        message = f"{missing}; `make r-deps` installs what the R tests need on Debian and Ubuntu"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return {**os.environ, "RETICULATE_PYTHON": sys.executable}


@pytest.fixture(scope="session")
def r_library(r_environment, root, tmp_path_factory):
    """A library with the R package installed, and the environment that finds it."""
    library = tmp_path_factory.mktemp("rlib")
    source = shutil.copytree(root / "r_bridge", tmp_path_factory.mktemp("source") / "r_bridge")
    run = subprocess.run(
        ["R", "CMD", "INSTALL", f"--library={library}", str(source)],
        capture_output=True,
        text=True,
        check=False,
        env=r_environment,
    )
    assert run.returncode == 0, run.stderr
    found = [str(library), r_environment.get("R_LIBS", "")]
    return {**r_environment, "R_LIBS": os.pathsep.join(filter(None, found))}
