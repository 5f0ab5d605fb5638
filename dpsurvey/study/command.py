"""``dpsurvey study``: the paper's simulations, run and reported."""

from __future__ import annotations

import platform
import subprocess
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import typer

from dpsurvey.cli.guard import guarded
from dpsurvey.study.paper import SEED


class Name(StrEnum):
    """The studies."""

    table1 = "table1"
    fig1 = "fig1"
    fig2 = "fig2"
    figS1 = "figS1"
    figS2 = "figS2"
    figS3 = "figS3"
    figS4 = "figS4"
    joint3 = "joint3"


@guarded(confidential=False)
def study(
    name: Annotated[
        Name, typer.Argument(metavar="NAME", help=f"One of {', '.join(Name)}.", show_default=False)
    ],
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs of every cell.")] = 1000,
    jobs: Annotated[int, typer.Option("--jobs", help="Processes; -1 for all cores.")] = 1,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for results and finished cells.")
    ] = Path("study"),
    seed: Annotated[int, typer.Option("--seed", min=0, help="Root of all random streams.")] = SEED,
) -> None:
    r"""Run one of the paper's simulation studies, and compare it with the paper.

    Writes NAME.csv (with Monte Carlo errors), NAME.png and NAME.md into DIR. Finished cells are kept in DIR/cells: a
    study that was stopped goes on from there, studies share cells, and more runs can be added later.

    \b
    Example:
      dpsurvey study table1 --runs 1000 --jobs 2 -o results
    """
    run_study(name.value, runs=runs, jobs=jobs, output=output, seed=seed)
    typer.echo((output / f"{name.value}.md").read_text(encoding="utf-8"))


def run_study(
    name: str, *, runs: int, jobs: int | None, output: Path, seed: int, progress: bool = True
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
    from dpsurvey.atomic import atomic_write
    from dpsurvey.study.run import run_cells
    from dpsurvey.study.studies import STUDIES

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
