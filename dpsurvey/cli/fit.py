"""``dpsurvey fit``: from a release to correlations."""

from __future__ import annotations

import sys
import warnings
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsurvey.cli.guard import guarded
from dpsurvey.cli.output import (
    Format,
    FormatOption,
    LabelsOption,
    ProbOption,
    check_replaceable,
    show_table,
)
from dpsurvey.errors import WideIntervalWarning

if TYPE_CHECKING:
    import pandas as pd

    from dpsurvey.copula.result_file import Result


class Estimator(StrEnum):
    """What makes correlations of a release."""

    bayes_na = "bayes-na"
    mle_nn = "mle-nn"


@guarded(confidential=False)
def fit(
    path: Annotated[Path, typer.Argument(metavar="RELEASE", help="A release (JSON).", show_default=False)],
    estimator: Annotated[
        Estimator, typer.Option("--estimator", help="A posterior with intervals, or a point estimate.")
    ] = Estimator.bayes_na,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to save the result (.npz).")
    ] = None,
    draws: Annotated[int, typer.Option("--draws", help="Kept draws of each chain (bayes-na).")] = 1000,
    chains: Annotated[int, typer.Option("--chains", help="Chains (bayes-na).")] = 4,
    seed: Annotated[int | None, typer.Option("--seed", help="For reproducible draws (bayes-na).")] = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="NAME",
            help="What draws (bayes-na): gibbs, embedded; stan or stan-direct, with CmdStan; latent-radius, "
            "a check for linf noise.",
        ),
    ] = "gibbs",
    prob: ProbOption = 0.95,
    labels: LabelsOption = False,
    format: FormatOption = Format.text,
) -> None:
    """Infer correlations from a release, print them, and save the result.

    bayes-na draws from the noise-aware posterior: intervals count the privacy noise in. mle-nn is a point
    estimate. Both take the release alone: no rows are needed and no epsilon is spent, however often it is run.
    All is on the latent standard normal scale. An earlier result of the same name is replaced.

    For example:
      dpsurvey fit diet.release.json -o diet.npz --seed 1
      dpsurvey fit diet.release.json --estimator mle-nn -o diet.mle.npz
      dpsurvey fit diet.release.json --format csv > correlations.csv
    """
    from dpsurvey.copula.diagnostics import check_prob
    from dpsurvey.privacy.release import Release

    check_prob(prob)
    if output is not None:
        check_replaceable(output)
    release = Release.load(path)
    result: Result
    if estimator is Estimator.bayes_na:
        from dpsurvey.copula.bayes_na import bayes_na

        result = bayes_na(
            release, draws=draws, chains=chains, seed=seed, engine=engine, progress=sys.stderr.isatty()
        )
    else:
        from dpsurvey.copula.mle_nn import mle_nn

        result = mle_nn(release)
    if output is not None:
        result.save(output)
    typer.echo(f"{result!r}\n", err=format is not Format.text)
    show_table(_summary(result, prob, labels=labels), format)
    if output is not None:
        typer.echo(f"saved to {output}", err=True)


def _summary(result: Result, prob: float, *, labels: bool) -> pd.DataFrame:
    """Return the table of a result; the advice about wide intervals stands in its repr already."""
    from dpsurvey.copula.posterior import CorrelationPosterior

    if not isinstance(result, CorrelationPosterior):
        return result.summary(labels=labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WideIntervalWarning)
        return result.summary(prob, labels=labels)
