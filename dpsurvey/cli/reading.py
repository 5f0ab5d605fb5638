"""How commands read confidential rows: the options that they share, and the table that comes of them."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import pandas as pd

    from dpsurvey.confidential.codebook import Codebook

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE", help="Survey files: .xpt, .sas7bdat, .csv or .parquet.", show_default=False
    ),
]
On = Annotated[
    str | None,
    typer.Option(
        "--on", metavar="ID", help="The id of a person, such as SEQN; needed to merge several files."
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="LIST",
        help='Columns to keep, with new names where wanted: "DR1TKCAL=Kcal,INDFMPIR".',
    ),
]
Column = Annotated[
    list[str] | None,
    typer.Option(
        "--column", metavar="OLD[=NEW]", help="One column to keep; for names that hold a comma. Repeatable."
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="RULE",
        help='Declared subpopulation, one row at a time: "RIDAGEYR >= 20". It is published with a release.',
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        metavar="COLUMN[=CODES]",
        help='Codes that mean "refused" or "unknown": "DIQ010=7,9"; without codes, those of the NHANES variable. '
        "Repeatable.",
    ),
]
Complete = Annotated[
    bool,
    typer.Option(
        "--complete", help="Keep the rows that miss none of the columns; print what each column costs."
    ),
]
RoundTo = Annotated[
    int | None,
    typer.Option("--round-to", metavar="DECIMALS", help="Round numbers first, against float noise."),
]
Encoding = Annotated[
    str | None, typer.Option("--encoding", help="Encoding of text and labels, where the file's own is wrong.")
]
Member = Annotated[
    str | None,
    typer.Option("--member", metavar="NAME", help="The data set to read in a transport file with several."),
]


@dataclass(frozen=True, slots=True)
class Reading:
    """What the options say about the rows to read, checked as far as words go.

    Attributes
    ----------
    on, where, encoding, member : str or None
    columns : dict or None
        Column of the files -> its name in the table; None keeps all.
    missing : dict
        Column of the files -> its missing codes.
    complete : bool
    round_to : int or None
    """

    on: str | None
    columns: dict[str, str] | None
    where: str | None
    missing: dict[str, tuple[float | str, ...]]
    complete: bool
    round_to: int | None
    encoding: str | None
    member: str | None

    @classmethod
    def parse(
        cls, columns: str | None, column: list[str] | None, missing: list[str] | None, **options: Any
    ) -> Reading:
        """Return the reading that the options of the command line ask for.

        Raises
        ------
        typer.BadParameter
            If a list of columns cannot be understood.
        UnknownNameError
            If the missing codes of a variable are asked for and not known.
        """
        return cls(
            columns=parse_columns(columns, column or []), missing=parse_missing(missing or []), **options
        )

    @property
    def about_rows(self) -> bool:
        """Whether any option says something about rows."""
        chosen = (self.on, self.columns, self.where, self.round_to)
        return self.complete or bool(self.missing) or any(option is not None for option in chosen)

    def read(self, files: list[Path]) -> tuple[pd.DataFrame, Codebook]:
        """Read the files; what complete rows cost is printed on stderr, apart from public output."""
        from dpsurvey.confidential.complete import complete
        from dpsurvey.confidential.files import read_survey

        table, book = read_survey(
            *files,
            on=self.on,
            columns=self.columns,
            missing_codes=self.missing,
            where=self.where,
            round_to=self.round_to,
            encoding=self.encoding,
            member=self.member,
            return_codebook=True,
        )
        if self.complete:
            with redirect_stdout(sys.stderr):
                table = complete(table)
        return table, book


def parse_columns(listed: str | None, single: list[str]) -> dict[str, str] | None:
    """Return column -> name from ``"OLD=NEW,OTHER"`` and from single columns; None where there are none.

    Raises
    ------
    typer.BadParameter
        If a name is empty or a column is named twice.

    Examples
    --------
    >>> parse_columns("DR1TKCAL=Kcal, INDFMPIR", ["Fat, total=Fat"])
    {'DR1TKCAL': 'Kcal', 'INDFMPIR': 'INDFMPIR', 'Fat, total': 'Fat'}
    """
    if listed is None and not single:
        return None
    renames: dict[str, str] = {}
    for item in [*([] if listed is None else listed.split(",")), *single]:
        old, equals, new = (part.strip() for part in item.rpartition("="))
        old = old if equals else new
        if not old or not new:
            raise typer.BadParameter(f"{item!r} names no column", param_hint="--columns or --column")
        if old in renames:
            raise typer.BadParameter(f"{old!r} is named twice", param_hint="--columns or --column")
        renames[old] = new
    return renames


def parse_missing(items: list[str]) -> dict[str, tuple[float | str, ...]]:
    """Return column -> codes from ``"DIQ010=7,9"``, or from the name of an NHANES variable.

    Raises
    ------
    typer.BadParameter
        If there is a column without its codes.
    UnknownNameError
        If the codes of a variable are not known.

    Examples
    --------
    >>> parse_missing(["DIQ010=7,9", "SMD650", "STATE=ZZ"])
    {'DIQ010': (7.0, 9.0), 'SMD650': (777, 999), 'STATE': ('ZZ',)}
    """
    from dpsurvey.confidential.nhanes import missing_codes

    codes: dict[str, tuple[float | str, ...]] = {}
    for item in items:
        name, equals, listed = item.rpartition("=")
        if not equals:
            codes.update(missing_codes(item.strip()))
            continue
        parts = [part.strip() for part in listed.split(",")]
        if not name.strip() or not all(parts):
            raise typer.BadParameter(f"{item!r} is no column with codes", param_hint="--missing")
        codes[name.strip()] = _numbers(parts) or tuple(parts)
    return codes


def _numbers(parts: list[str]) -> tuple[float, ...] | None:
    """Return the codes as numbers, or None where one is none."""
    try:
        return tuple(float(part) for part in parts)
    except ValueError:
        return None
