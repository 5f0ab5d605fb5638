"""``dpsurvey release``: spend epsilon once, and write what may leave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsurvey.cli.guard import guarded
from dpsurvey.cli.output import check_new
from dpsurvey.cli.reading import (
    Column,
    Columns,
    Complete,
    Encoding,
    Files,
    Member,
    Missing,
    On,
    Reading,
    RoundTo,
    Where,
)
from dpsurvey.errors import ArgumentError, DpsurveyError, LedgerError, MissingFileError

if TYPE_CHECKING:
    from dpsurvey.privacy.release import Release


@guarded(confidential=True)
def release(
    files: Files,
    epsilon: Annotated[
        float, typer.Option("--epsilon", help="Privacy loss of the whole release, over all pairs of columns.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The release to write (JSON); must not exist."),
    ],
    on: On = None,
    columns: Columns = None,
    column: Column = None,
    where: Where = None,
    missing: Missing = None,
    complete: Complete = False,
    round_to: RoundTo = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            "--ledger", metavar="FILE", help="The data set's budget, made with `dpsurvey ledger create`."
        ),
    ] = None,
    statistic: Annotated[
        str,
        typer.Option("--statistic", metavar="NAME", help="What is counted: concordance, quadrant, or auto."),
    ] = "auto",
    mechanism: Annotated[
        str,
        typer.Option(
            "--mechanism", metavar="NAME", help="How noise is added: linf, geometric, rgm, gaussian, or auto."
        ),
    ] = "auto",
    coarse: Annotated[
        str | None,
        typer.Option("--coarse", metavar="NAMES", help="Columns with few levels, separated by commas."),
    ] = None,
    delta: Annotated[float, typer.Option("--delta", help="For gaussian noise, such as 1e-6.")] = 0.0,
    again: Annotated[
        bool, typer.Option("--again", help="Spend epsilon again on a release that was made and saved before.")
    ] = False,
    encoding: Encoding = None,
    member: Member = None,
) -> None:
    r"""Spend epsilon once and write noisy counts of all pairs of columns: the file that may leave.

    Files are merged one-to-one on the id. Everything is checked before anything is spent: that the output can
    be written and does not exist (what it holds could never be made again), the columns, the rows, the ledger.
    Then epsilon is reserved in the ledger, and the counts are computed and released with secure noise. The ledger
    notes where the release is saved; the same request is refused while that file is there, unless --again is given.

    By default the statistic and mechanism with the shortest expected intervals are taken, by public numbers alone
    (see `dpsurvey plan`); the paper's own are --statistic quadrant --mechanism geometric.

    The privacy statement goes to stdout. What complete rows cost is CONFIDENTIAL and goes to stderr.

    For example:
      dpsurvey release DEMO_J.xpt DR1TOT_J.xpt --on SEQN --columns "DR1TKCAL=Kcal,INDFMPIR=Income" \
          --where "RIDAGEYR >= 20" --complete --epsilon 1 --ledger diet.ledger.json -o diet.release.json
      dpsurvey release diet.csv --on id --column "Fat, total=Fat" --column Kcal --epsilon 0.5 \
          --ledger diet.ledger.json -o fat.release.json
    """
    from dpsurvey.confidential.disclose import release as disclose
    from dpsurvey.privacy.ledger import Ledger

    reading = Reading.parse(
        columns, column, missing, on=on, where=where, complete=complete, round_to=round_to,
        encoding=encoding, member=member,
    )  # fmt: skip
    check_new(output)
    if reading.columns is None:
        _refuse_roles(files, reading)
    table, _ = reading.read(files)
    few = None if coarse is None else [name.strip() for name in coarse.split(",") if name.strip()]
    made = disclose(
        table, epsilon, statistic=statistic, mechanism=mechanism, coarse=few, delta=delta, ledger=ledger,
        again=again,
    )  # fmt: skip
    _save(made, output)
    typer.echo(f"{made!r}\nsaved to {output}\n\n{made.statement()}")
    if ledger is not None:
        typer.echo(f"\n{Ledger.open(ledger).status()}")


def _refuse_roles(files: list[Path], reading: Reading) -> None:
    """Refuse ids, weights, design variables and nominal codes that nobody named; their names alone tell.

    Raises
    ------
    ArgumentError
    """
    import pandas as pd

    from dpsurvey.confidential.codebook import codebook
    from dpsurvey.confidential.findings import role_warnings

    book = codebook(*files, member=reading.member, encoding=reading.encoding)
    names = dict.fromkeys(variable.name for variable in book.variables if variable.name != reading.on)
    no_rows: pd.Series[float] = pd.Series(dtype=float)  # so that the answer cannot depend on values
    found = [p for name in names for p in role_warnings(name, no_rows)]
    if found:
        raise ArgumentError(
            f"no columns were named, and {len(found)} of the files' are hardly meant as variables",
            expected="the variables, named with --columns",
            got="; ".join(f"{p.column!r}: {p.message.split(';')[0].split(',')[0]}" for p in found),
            hint="columns that are named are taken as they are, also these; an id belongs into --on",
        )


def _save(made: Release, output: Path) -> None:
    """Write the release; where that fails after all, print it, since epsilon has been spent on it."""
    try:
        check_new(output)
        made.save(output)
    except LedgerError:  # the release is saved, and the ledger cannot note it
        raise
    except (DpsurveyError, OSError) as error:
        typer.echo(json.dumps(made.to_dict(), allow_nan=False))
        raise MissingFileError(
            f"the release could not be saved as {output.name!r}, and epsilon is spent",
            got=error.detail if isinstance(error, DpsurveyError) else error.strerror,
            hint="the release was printed on stdout instead: keep that line as a .json file",
        ) from None
