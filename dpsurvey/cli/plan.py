"""``dpsurvey plan``: how long intervals will be, before any data are touched."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsurvey.cli.guard import guarded
from dpsurvey.cli.output import Format, FormatOption, check_figure, save_figure, show_table


@guarded(confidential=False)
def plan(
    p: Annotated[int, typer.Option("--p", help="Number of variables.")],
    n: Annotated[int | None, typer.Option("--n", help="Number of rows.")] = None,
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="Privacy loss of the release.")] = None,
    length: Annotated[
        float | None, typer.Option("--length", help="Wanted mean length of 95% intervals.")
    ] = None,
    statistic: Annotated[
        str, typer.Option("--statistic", metavar="NAME", help="concordance, quadrant, or auto.")
    ] = "auto",
    mechanism: Annotated[
        str, typer.Option("--mechanism", metavar="NAME", help="linf, geometric, rgm, gaussian, or auto.")
    ] = "auto",
    delta: Annotated[float, typer.Option("--delta", help="For gaussian noise, such as 1e-6.")] = 0.0,
    coarse: Annotated[int, typer.Option("--coarse", help="How many columns have few levels.")] = 0,
    compare: Annotated[
        bool, typer.Option("--compare", help="Also list every statistic and mechanism.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Also draw lengths against epsilon: .png, .pdf or .svg."
        ),
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """Say how long 95% intervals will be, by public numbers alone: no data are looked at and nothing is spent.

    Give two of --n, --epsilon and --length; the third is found.

    For example:
      dpsurvey plan --n 5820 --p 7 --epsilon 1
      dpsurvey plan --n 5820 --p 7 --length 0.1
      dpsurvey plan --p 5 --epsilon 1 --length 0.2
      dpsurvey plan --n 500 --p 5 --epsilon 1 --compare --format csv
      dpsurvey plan --n 5820 --p 7 --epsilon 1 -o plan.png
    """
    if output is not None:
        check_figure(output)
    from dpsurvey.copula.planning import plan as make_plan
    from dpsurvey.copula.planning import plan_table

    found = make_plan(
        n,
        p,
        epsilon=epsilon,
        length=length,
        statistic=statistic,
        mechanism=mechanism,
        delta=delta,
        coarse=coarse,
    )
    if compare:
        typer.echo(f"{found!r}\n", err=format is not Format.text)
        show_table(plan_table(found.n, p, epsilon=found.epsilon, delta=delta, coarse=coarse), format)
    elif format is Format.text:
        typer.echo(repr(found))
    else:
        show_table(found.to_frame(), format)
    if output is not None:
        from dpsurvey.plots import plot_plan

        save_figure(plot_plan(found.n, p, delta=delta, coarse=coarse), output)
