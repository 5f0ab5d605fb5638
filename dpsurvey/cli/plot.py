"""``dpsurvey plot``: figures of saved results."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from dpsurvey.cli.guard import guarded
from dpsurvey.cli.output import FIGURES, LabelsOption, ProbOption, check_replaceable
from dpsurvey.errors import ArgumentError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpsurvey.copula.result_file import Result

_RESOLUTION = 200  # dots per inch


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
    from dpsurvey.atomic import atomic_write
    from dpsurvey.copula.result_file import load_result
    from dpsurvey.plots import plot_forest, plot_heatmap

    suffix = output.suffix.lower()
    if suffix not in FIGURES:
        raise ArgumentError(
            "the name of the figure does not say its kind",
            expected=f"a name ending in {', '.join(FIGURES)}",
            got=output.name,
        )
    check_replaceable(output)
    results: list[Result] = [load_result(path) for path in paths]
    if kind is Kind.heatmap:
        if len(results) > 1:
            raise ArgumentError(
                "a heat map shows one result", expected="one file", got=f"{len(results)} files"
            )
        axes = plot_heatmap(results[0], prob=prob, labels=labels)
    else:
        axes = plot_forest(*results, prob=prob, labels=labels)
    with atomic_write(output, "wb") as file:
        cast("Figure", axes.figure).savefig(file, format=suffix.removeprefix("."), dpi=_RESOLUTION)
    typer.echo(f"saved to {output}", err=True)
