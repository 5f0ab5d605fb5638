"""``dpsurvey ledger``: the budget of a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsurvey.cli.guard import guarded
from dpsurvey.cli.output import Format, FormatOption, show_table
from dpsurvey.errors import DpsurveyError

ledger = typer.Typer(
    name="ledger",
    no_args_is_help=True,
    rich_markup_mode=None,
    short_help="Make, show and verify the budget of a data set.",
    help="Make, show and verify the budget of a data set: the total epsilon that may ever be spent on it.",
)

LedgerFile = Annotated[Path, typer.Argument(metavar="FILE", help="The ledger.", show_default=False)]


@ledger.command()
@guarded(confidential=False)
def create(
    path: LedgerFile,
    dataset: Annotated[
        str,
        typer.Option("--dataset", metavar="TEXT", help="A public label of the data set; releases carry it."),
    ],
    budget: Annotated[float, typer.Option("--budget", help="Total epsilon that may ever be spent.")],
    delta: Annotated[
        float, typer.Option("--delta", help="Total delta, such as 1e-6; with 0, Gaussian noise is refused.")
    ] = 0.0,
    accounting: Annotated[
        str,
        typer.Option(
            "--accounting",
            metavar="NAME",
            help="How spending adds up: pure (epsilon and delta), or zcdp (rho, converted at delta).",
        ),
    ] = "pure",
) -> None:
    """Make the ledger of a data set: once, before its first release.

    An existing ledger is never overwritten: what was spent must not be forgotten. Use one ledger for all
    releases from the same people. How spending adds up is fixed here for good.

    For example:
      dpsurvey ledger create diet.ledger.json --dataset "NHANES 2017-18 diet" --budget 3
      dpsurvey ledger create diet.ledger.json --dataset "NHANES 2017-18 diet" --budget 3 --delta 1e-6 --accounting zcdp
    """
    from dpsurvey.privacy.ledger import Ledger

    made = Ledger.create(path, dataset=dataset, budget=budget, delta=delta, accounting=accounting)
    typer.echo(made.status())


@ledger.command()
@guarded(confidential=False)
def show(path: LedgerFile, format: FormatOption = Format.text) -> None:
    """Show what was spent, on what, and what remains. The ledger is checked from first to last line.

    For example:
      dpsurvey ledger show diet.ledger.json
    """
    from dpsurvey.privacy.ledger import Ledger

    book = Ledger.open(path)
    entries = book.summary()
    typer.echo(book.status(), err=format is not Format.text)
    if len(entries) or format is not Format.text:
        show_table(entries, format)


@ledger.command()
@guarded(confidential=False)
def verify(
    path: LedgerFile,
    releases: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RELEASE]...", help="Saved releases that it paid for.", show_default=False),
    ] = None,
) -> None:
    """Check a ledger from first to last line, and against the releases it paid for.

    Accidental damage shows in the ledger itself. Whether it was rewritten on purpose, or an old copy was put back,
    shows only against releases, so name as many as there are, the newest above all; or compare the head with one
    that was written down.

    For example:
      dpsurvey ledger verify diet.ledger.json diet.release.json fat.release.json
    """
    from dpsurvey.privacy.ledger import Ledger
    from dpsurvey.privacy.release import Release

    book = Ledger.open(path)
    book.verify()
    typer.echo(f"{book.status()}\nhead {book.head}")
    unfit = 0
    for file in releases or []:
        try:
            book.check_release(Release.load(file))
            typer.echo(f"{file}: fits")
        except DpsurveyError as error:
            unfit += 1
            typer.echo(f"{file}: DOES NOT FIT\n{error}", err=True)
    if unfit:
        raise typer.Exit(1)
