"""``dpsurvey study``: the paper's simulations, run and reported."""

from __future__ import annotations

from enum import StrEnum
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
    better = "better"
    regression = "regression"


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
    """Run one of the paper's simulation studies, and compare it with the paper.

    Writes NAME.csv (with Monte Carlo errors), NAME.png and NAME.md into DIR. Finished cells are kept in DIR/cells: a
    study that was stopped goes on from there, studies share cells, and more runs can be added later.

    For example:
      dpsurvey study table1 --runs 1000 --jobs 2 -o results
    """
    from dpsurvey.study.report import run_study

    run_study(name.value, runs=runs, jobs=jobs, output=output, seed=seed)
    typer.echo((output / f"{name.value}.md").read_text(encoding="utf-8"))
