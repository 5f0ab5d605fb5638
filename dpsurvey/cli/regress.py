"""``dpsurvey regress``: a regression from saved posterior draws."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dpsurvey.cli.guard import guarded
from dpsurvey.cli.output import Format, FormatOption, LabelsOption, ProbOption, show_table


@guarded(confidential=False)
def regress(
    path: Annotated[
        Path,
        typer.Argument(metavar="RESULT", help="A posterior saved by `dpsurvey fit`.", show_default=False),
    ],
    y: Annotated[str, typer.Option("--y", metavar="NAME", help="The outcome.")],
    on: Annotated[
        list[str], typer.Option("--on", metavar="LIST", help="The predictors: Grain,Sugar. Repeatable.")
    ],
    prob: ProbOption = 0.95,
    labels: LabelsOption = False,
    format: FormatOption = Format.text,
) -> None:
    """Regress one variable on others, for every posterior draw: coefficients, partial correlations, R squared.

    It uses the saved draws alone and costs no epsilon. Coefficients are standardised, on the latent standard
    normal scale.

    For example:
      dpsurvey regress diet.npz --y Kcal --on Grain,Sugar
    """
    from dpsurvey.copula.posterior import CorrelationPosterior
    from dpsurvey.copula.result_file import load_result
    from dpsurvey.errors import ArgumentError

    posterior = load_result(path)
    if not isinstance(posterior, CorrelationPosterior):
        raise ArgumentError(
            f"{path.name!r} holds a point estimate, which has no draws to regress with",
            expected="a posterior",
            got=posterior.method,
            hint="dpsurvey fit RELEASE --estimator bayes-na -o posterior.npz",
        )
    regression = posterior.regress(y, on=split_names(on, posterior.variables), prob=prob)
    if format is Format.text:
        typer.echo(regression)  # its own table, without the sampler's diagnostics
    else:
        typer.echo(regression, err=True)
        show_table(regression.summary(labels=labels), format)


def split_names(items: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the names in comma-separated lists; a known name that holds a comma is taken whole.

    Examples
    --------
    >>> split_names(["Grain, Sugar", "Fat, total"], ["Grain", "Sugar", "Fat, total"])
    ['Grain', 'Sugar', 'Fat, total']
    """
    names: list[str] = []
    for item in items:
        names += [item] if item in known else [part.strip() for part in item.split(",")]
    return names
