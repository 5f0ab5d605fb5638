"""``dpsurvey plot``: figures of saved results."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsurvey.cli.guard import guarded
from dpsurvey.cli.output import LabelsOption, ProbOption, check_figure, save_figure
from dpsurvey.errors import ArgumentError

if TYPE_CHECKING:
    from dpsurvey.copula.result_file import Result


class Kind(StrEnum):
    """What to draw."""

    forest = "forest"
    heatmap = "heatmap"


@guarded(confidential=False)
def plot(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="RESULT", help="Results saved by `dpsurvey fit`.", show_default=False),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The figure to write: .png, .pdf or .svg.")
    ],
    kind: Annotated[
        Kind, typer.Option("--kind", help="Intervals of one or more results, or one correlation matrix.")
    ] = Kind.forest,
    prob: ProbOption = 0.95,
    labels: LabelsOption = False,
) -> None:
    """Draw saved results: their intervals side by side, or one correlation matrix.

    The title says how private what is drawn is. An earlier figure of the same name is replaced.

    For example:
      dpsurvey plot diet.npz diet.mle.npz -o intervals.png
      dpsurvey plot diet.npz -o matrix.pdf --kind heatmap
    """
    from dpsurvey.copula.result_file import load_result
    from dpsurvey.plots import plot_forest, plot_heatmap

    check_figure(output)
    results: list[Result] = [load_result(path) for path in paths]
    if kind is Kind.heatmap:
        if len(results) > 1:
            raise ArgumentError(
                "a heat map shows one result", expected="one file", got=f"{len(results)} files"
            )
        axes = plot_heatmap(results[0], prob=prob, labels=labels)
    else:
        axes = plot_forest(*results, prob=prob, labels=labels)
    save_figure(axes, output)
