"""``dpsurvey doctor``: what is installed and what works."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from dpsurvey.cli.guard import guarded
from dpsurvey.cli.output import Format, FormatOption, show_table

if TYPE_CHECKING:
    from dpsurvey.checks import Check


@guarded(confidential=False)
def doctor(
    format: FormatOption = Format.text,
    install_cmdstan: Annotated[
        bool,
        typer.Option("--install-cmdstan", help="First download CmdStan and build it (some minutes)."),
    ] = False,
) -> None:
    """Show what is installed, what works, what is missing and how to get it.

    It draws secure noise, reads an example file, fits a simulated release and draws a figure; it looks for R,
    its packages and CmdStan from outside. Nothing is spent and nobody's rows are read. The exit code is 0 when
    the core works, whatever optional parts are missing, and 1 when it does not.

    For example:
      dpsurvey doctor
      dpsurvey doctor --install-cmdstan
    """
    from tqdm.auto import tqdm

    if install_cmdstan:
        from dpsurvey.copula.cmdstan import install_cmdstan as install

        install(progress=sys.stderr.isatty())
    from dpsurvey.doctor import examine, to_frame, works

    checks: list[Check] = []
    with tqdm(examine(), desc="checking", unit="check", leave=False, disable=not sys.stderr.isatty()) as bar:
        checks.extend(bar)
    if format is Format.text:
        for check in checks:
            typer.echo(_line(check))
    else:
        show_table(to_frame(checks), format)
    failed = [check.component for check in checks if check.needed and check.status in ("missing", "broken")]
    if not works(checks):
        typer.echo(f"the core does not work: {', '.join(failed)}", err=True)
        raise typer.Exit(1)
    if format is Format.text:
        typer.echo("\nthe core works")


def _line(check: Check) -> str:
    """Return what to print of a check, with its remedy on a line of its own."""
    name = check.component if check.needed else f"{check.component} (optional)"
    line = f"{check.status:8} {name:24} {check.found}"
    return f"{line}\n{'':9}get it: {check.remedy}" if check.remedy else line
