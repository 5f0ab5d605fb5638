"""Running a study by name, and writing what it reports."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from dpsurvey.atomic import atomic_write
from dpsurvey.study.paper import SEED
from dpsurvey.study.run import run_cells
from dpsurvey.study.studies import STUDIES


def run_study(
    name: str, *, runs: int, jobs: int | None, output: Path, seed: int = SEED, progress: bool = True
) -> None:
    """Run a study and write its three files.

    Parameters
    ----------
    name : str
        A name in :data:`dpsurvey.study.studies.STUDIES`.
    runs : int
    jobs : int or None
        None leaves it to ``joblib.parallel_config``.
    output : Path
    seed : int
    progress : bool
    """
    chosen = STUDIES[name]
    output.mkdir(parents=True, exist_ok=True)
    results = run_cells(
        chosen.cells, runs=runs, folder=output / "cells", jobs=jobs, seed=seed, progress=progress, title=name
    )
    report = chosen.report(results)
    with atomic_write(output / f"{name}.csv") as file:
        report.table.to_csv(file, index=False, float_format="%.6g", lineterminator="\n")
    with atomic_write(output / f"{name}.png", "wb") as file:
        report.figure.savefig(file, format="png", dpi=110)
    with atomic_write(output / f"{name}.md") as file:
        file.write(f"# {chosen.title}\n\n{_provenance(name, runs, jobs, seed)}\n\n{report.text}")


def _provenance(name: str, runs: int, jobs: int | None, seed: int) -> str:
    """Say what made the results."""
    seeded = "" if seed == SEED else f" --seed {seed}"
    parallel = "" if jobs is None else f" --jobs {jobs}"
    versions = [f"Python {platform.python_version()}"]
    for library in ("dpsurvey", "numpy", "scipy", "numba", "pandas"):
        try:
            versions.append(f"{library} {version(library)}")
        except PackageNotFoundError:
            versions.append(f"{library} (not installed)")
    return (
        f"Made by `dpsurvey study {name} --runs {runs}{parallel}{seeded}`, commit {_commit()}; {', '.join(versions)}. "
        f"Errors are one Monte Carlo standard error unless said otherwise."
    )


def _commit() -> str:
    """Return the commit of the clone this runs from."""
    here = Path(__file__).resolve().parent
    try:
        done = subprocess.run(
            ["git", "-C", str(here), "describe", "--always", "--abbrev=12", "--exclude=*"],
            capture_output=True, text=True, timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return "unknown (not run from a clone)"
    return done.stdout.strip()
