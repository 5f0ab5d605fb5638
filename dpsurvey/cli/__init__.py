"""The command line: ``dpsurvey``, also ``python -m dpsurvey``.

Commands import what they need when they run, so that ``--help`` is quick.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dpsurvey.cli.doctor import doctor
from dpsurvey.cli.fit import fit
from dpsurvey.cli.guard import keep_lines
from dpsurvey.cli.inspect import inspect
from dpsurvey.cli.ledger import ledger
from dpsurvey.cli.plan import plan
from dpsurvey.cli.plot import plot
from dpsurvey.cli.regress import regress
from dpsurvey.cli.release import release
from dpsurvey.cli.study import study

# Plain help, so that examples keep their lines; no pretty tracebacks, since they show the values of variables.
app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

_COMMANDS = (
    (inspect, "Show what survey files document, and preflight columns."),
    (plan, "Say how long intervals will be, before any data are touched."),
    (release, "Spend epsilon once: rows in, the file that may leave out."),
    (fit, "Infer correlations from a release."),
    (regress, "Regress one variable on others, from a fitted posterior."),
    (plot, "Draw intervals or a correlation matrix."),
    (study, "Run the paper's simulations and compare."),
    (doctor, "Show what is installed, what works and what is missing."),
)
for _command, _short in _COMMANDS:
    app.command(short_help=_short)(_command)
app.add_typer(ledger)


def _print_version(wanted: bool) -> None:
    if wanted:
        from dpsurvey import __version__

        typer.echo(f"dpsurvey {__version__}")
        raise typer.Exit


def dpsurvey(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    r"""Private correlations from confidential survey rows.

    Where the rows are: `inspect` the files, make a `ledger` for the data set, and `release` noisy counts; only
    the release leaves. Anywhere else, and at no further cost: `fit` it, then `regress` and `plot` the result.

    For example:
      dpsurvey ledger create diet.ledger.json --dataset "NHANES 2017-18 diet" --budget 3
      dpsurvey release DEMO_J.xpt DR1TOT_J.xpt --on SEQN --columns "DR1TKCAL=Kcal,INDFMPIR=Income" \
          --where "RIDAGEYR >= 20" --complete --epsilon 1 --ledger diet.ledger.json -o diet.release.json
      dpsurvey fit diet.release.json -o diet.npz
      dpsurvey plot diet.npz -o diet.png

    Exit codes: 0 done; 1 refused or failed, with the reason on stderr; 2 wrong usage; 130 interrupted.
    Tables and statements go to stdout; progress, warnings and confidential remarks to stderr.
    """


app.callback(help=keep_lines(dpsurvey.__doc__ or ""))(dpsurvey)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):  # labels may hold signs that a plain terminal cannot show
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
    app(prog_name="dpsurvey")
