"""``dpsurvey ledger``: the budget of a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsurvey.cli.guard import guarded
from dpsurvey.cli.output import Format, FormatOption, show_table

ledger = typer.Typer(
    name="ledger",
    no_args_is_help=True,
    rich_markup_mode=None,
    short_help="Make and show the budget of a data set.",
    help="Make and show the budget of a data set: the total epsilon that may ever be spent on it.",
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
) -> None:
    """Make the ledger of a data set: once, before its first release.

    An existing ledger is never overwritten: what was spent must not be forgotten. Use one ledger for all
    releases from the same people.

    For example:
      dpsurvey ledger create diet.ledger.json --dataset "NHANES 2017-18 diet" --budget 3
    """
    from dpsurvey.privacy.ledger import Ledger

    Ledger.create(path, dataset=dataset, budget=budget)
    typer.echo(state_of(path))


@ledger.command()
@guarded(confidential=False)
def show(path: LedgerFile, format: FormatOption = Format.text) -> None:
    """Show what was spent, on what, and what remains. The ledger is checked from first to last line.

    For example:
      dpsurvey ledger show diet.ledger.json
    """
    from dpsurvey.privacy.ledger import Ledger

    entries = Ledger.open(path).summary()
    typer.echo(state_of(path), err=format is not Format.text)
    if len(entries) or format is not Format.text:
        show_table(entries, format)


def state_of(path: Path) -> str:
    """Return in one line how a ledger stands."""
    from dpsurvey.privacy.ledger import Ledger

    book = Ledger.open(path)
    return (
        f"ledger {path.name}: {book.dataset!r}, budget {book.budget}, spent {book.spent}, "
        f"remaining {book.remaining}"
    )
