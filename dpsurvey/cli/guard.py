"""What a command may say when something goes wrong: named errors in words, and never the value of a cell."""

from __future__ import annotations

import errno
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import cleandoc
from pathlib import Path
from traceback import extract_tb
from typing import Any, TypeVar

import typer

from dpsurvey.errors import DpsurveyError, DpsurveyWarning

Command = TypeVar("Command", bound=Callable[..., None])

_LISTS = ("For example:", "Exit codes:")
_PACKAGE = Path(__file__).resolve().parent.parent


def guarded(*, confidential: bool) -> Callable[[Command], Command]:
    """Decorate a command: named errors go to stderr in words, with exit code 1.

    Parameters
    ----------
    confidential : bool
        Whether the command reads rows. Then the text of an unexpected error, or of another library's warning,
        could quote a cell; only its type and its place in dpsurvey are shown. Other commands let unexpected
        errors through, with their traceback.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(*args: Any, **kwargs: Any) -> None:
            with _plain_warnings(confidential):
                try:
                    command(*args, **kwargs)
                except (typer.Exit, typer.Abort, typer.BadParameter):
                    raise
                except DpsurveyError as error:
                    _stop(str(error))
                except Exception as error:
                    if not confidential or getattr(error, "errno", None) == errno.EPIPE:
                        raise
                    _stop(_without_values(error))

        run.__doc__ = keep_lines(command.__doc__ or "")
        return run  # type: ignore[return-value]

    return decorate


def keep_lines(help_text: str) -> str:
    """Mark the paragraphs of a help text whose lines must stay as they are: examples and exit codes."""
    paragraphs = cleandoc(help_text).split("\n\n")
    return "\n\n".join(f"\b\n{text}" if text.startswith(_LISTS) else text for text in paragraphs)


def _stop(message: str) -> None:
    typer.echo(message, err=True)
    raise typer.Exit(1) from None


def _without_values(error: Exception) -> str:
    """Return where in dpsurvey an error of another kind arose, and its type; its message may quote a cell."""
    ours = [
        frame for frame in extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(_PACKAGE)
    ]
    frame = ours[-1]  # at least the command itself
    place = f"{Path(frame.filename).relative_to(_PACKAGE.parent)}, line {frame.lineno}, in {frame.name}"
    return (
        f"unexpected error: {type(error).__name__} at {place}\n"
        "  its message is withheld, since this command reads confidential rows and it may quote them\n"
        "  hint: report the line above; epsilon that was reserved in a ledger by then stays spent"
    )


@contextmanager
def _plain_warnings(confidential: bool) -> Iterator[None]:
    """Show warnings as one line on stderr; of another library's warning, only its type where rows are read."""

    def show(message: Warning | str, category: type[Warning], *_: Any) -> None:
        withheld = confidential and not issubclass(category, DpsurveyWarning)
        text = (
            f"{category.__name__} (its text is withheld, since it may quote a row)" if withheld else message
        )
        typer.echo(f"warning: {text}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", DpsurveyWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        yield
