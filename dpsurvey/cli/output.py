"""What commands write: tables on stdout, and files that replace nothing of value."""

from __future__ import annotations

from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from dpsurvey.atomic import atomic_write
from dpsurvey.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DECIMALS = 3
_WHOLE = frozenset({"ess_bulk", "ess_tail"})  # numbers whose decimals say nothing

# How files begin that a command writes, and so may replace.
_SIGNATURES = {".npz": b"PK\x03\x04", ".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}
_FIGURES = (".png", ".pdf", ".svg")
_RESOLUTION = 200  # dots per inch


class Format(StrEnum):
    """How a table is written."""

    text = "text"
    csv = "csv"
    json = "json"


FormatOption = Annotated[Format, typer.Option("--format", help="How to write the table.")]
ProbOption = Annotated[float, typer.Option("--prob", help="Posterior probability of the intervals.")]
LabelsOption = Annotated[bool, typer.Option("--labels", help="Show labels in place of names.")]


def show_table(frame: pd.DataFrame, format: Format) -> None:
    """Write a table to stdout: aligned text, CSV, or JSON with one record a row; the last two in full precision."""
    if format is Format.csv:
        typer.echo(frame.to_csv(index=False), nl=False)
    elif format is Format.json:
        typer.echo(as_json(frame))
    else:
        typer.echo(as_text(frame))


def as_json(frame: pd.DataFrame) -> str:
    """Return a table as a JSON list of records; missing values are null.

    Examples
    --------
    >>> import pandas as pd
    >>> as_json(pd.DataFrame({"name": ["a"], "value": [float("nan")]}))
    '[{"name":"a","value":null}]'
    """
    return frame.to_json(orient="records", double_precision=15, force_ascii=False)


def as_text(frame: pd.DataFrame) -> str:
    """Return a table as aligned text without an index: numbers to the right, everything else to the left.

    Examples
    --------
    >>> import pandas as pd
    >>> print(as_text(pd.DataFrame({"name": ["a", "long"], "value": [0.5, -12.25]})))
    name    value
    a       0.500
    long  -12.250
    """
    columns = []
    for name in frame.columns:
        cells = [str(name), *(_cell(value, name) for value in frame[name])]
        width = max(map(len, cells))
        right = frame[name].dtype.kind in "iuf"
        columns.append([cell.rjust(width) if right else cell.ljust(width) for cell in cells])
    return "\n".join("  ".join(row).rstrip() for row in zip(*columns, strict=True))


def _cell(value: Any, column: str) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:.{0 if column in _WHOLE else _DECIMALS}f}"
    return str(value)


def check_new(path: Path) -> None:
    """Refuse to write where a file is already, or where none can be written.

    For what cannot be made again: a release holds epsilon that was spent on it.

    Raises
    ------
    ArgumentError
        If there is something at `path`.
    MissingFileError
        If the folder does not exist or cannot be written.
    """
    if path.exists() or path.is_symlink():
        raise ArgumentError(
            f"{path.name!r} exists already and is not overwritten",
            expected="a new file",
            got=str(path),
            hint="choose another name with -o",
        )
    check_writable(path)


def check_replaceable(path: Path) -> None:
    """Refuse to write over anything but an earlier file of the same kind.

    Raises
    ------
    ArgumentError
        If there is something else at `path`.
    MissingFileError
        If the folder does not exist or cannot be written.
    """
    if path.exists():
        start = _SIGNATURES.get(path.suffix.lower())
        if start is None or not path.is_file() or not _begins(path, start):
            raise ArgumentError(
                f"{path.name!r} exists already and is no file of the kind to be written",
                expected="a new file, or an earlier one of the same kind",
                got=str(path),
                hint="choose another name with -o",
            )
    check_writable(path)


def check_figure(path: Path) -> None:
    """Refuse to draw to a file whose name does not say which kind of figure it is, or that cannot be replaced.

    Raises
    ------
    ArgumentError, MissingFileError
    """
    if path.suffix.lower() not in _FIGURES:
        raise ArgumentError(
            "the name of the figure does not say its kind",
            expected=f"a name ending in {', '.join(_FIGURES)}",
            got=path.name,
        )
    check_replaceable(path)


def save_figure(axes: Axes, path: Path) -> None:
    """Write the figure of some axes, checked by :func:`check_figure`, and say so on stderr."""
    with atomic_write(path, "wb") as file:
        kind = path.suffix.lower().removeprefix(".")
        cast("Figure", axes.figure).savefig(file, format=kind, dpi=_RESOLUTION)
    typer.echo(f"saved to {path}", err=True)


def check_writable(path: Path) -> None:
    """Begin to write `path` and think better of it; what is there stays as it is.

    Raises
    ------
    MissingFileError
        If the folder does not exist or cannot be written.
    """
    with suppress(_OnlyTrying), atomic_write(path):
        raise _OnlyTrying


class _OnlyTrying(Exception):
    """Makes an atomic write end without a file."""


def _begins(path: Path, start: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(start)) == start
