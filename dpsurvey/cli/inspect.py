"""``dpsurvey inspect``: what files document, and what a release of some columns would run into."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pandas as pd
import typer

from dpsurvey.cli.guard import guarded
from dpsurvey.cli.output import Format, FormatOption, as_json, as_text, show_table
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

if TYPE_CHECKING:
    from dpsurvey.confidential.codebook import Codebook
    from dpsurvey.confidential.preflight import Preflight

CONFIDENTIAL = "confidential: exact counts of rows, for the data holder's eyes, outside the privacy guarantee"


@guarded(confidential=True)
def inspect(
    files: Files,
    on: On = None,
    columns: Columns = None,
    column: Column = None,
    where: Where = None,
    missing: Missing = None,
    complete: Complete = False,
    round_to: RoundTo = None,
    encoding: Encoding = None,
    member: Member = None,
    format: FormatOption = Format.text,
) -> None:
    r"""Show what survey files document; with options about rows, also what a release would run into.

    With files alone it prints the codebook: names, labels, units and formats. No row is looked at.

    With any option about rows (--on, --columns, --where, ...) it reads them and adds a preflight of the
    chosen columns: everything that would make a release refuse the table, and warnings of ties, codes,
    weights and ids. The preflight is CONFIDENTIAL. It costs no epsilon because it is for the data holder
    alone; choosing columns by what it shows is a choice outside the privacy guarantee. Problems that it finds
    do not change the exit code.

    For example:
      dpsurvey inspect DEMO_J.xpt
      dpsurvey inspect DEMO_J.xpt DR1TOT_J.xpt --on SEQN --columns "DR1TKCAL=Kcal,INDFMPIR=Income" \
          --where "RIDAGEYR >= 20"
      dpsurvey inspect DEMO_J.xpt --format csv > codebook.csv
    """
    from dpsurvey.confidential.codebook import codebook

    reading = Reading.parse(
        columns, column, missing, on=on, where=where, complete=complete, round_to=round_to,
        encoding=encoding, member=member,
    )  # fmt: skip
    if not reading.about_rows:
        book = codebook(*files, member=member, encoding=encoding)
        _show_documentation(book, format)
        return
    from dpsurvey.confidential.preflight import preflight

    table, book = reading.read(files)
    names = None if reading.columns is None else [str(name) for name in table.columns]
    _show_with_preflight(book, preflight(table, names), format)


def _show_documentation(book: Codebook, format: Format) -> None:
    variables = book.to_frame().reset_index()
    if format is Format.text:
        typer.echo(f"{len(variables)} variables of {', '.join(book.files)}\n")
        typer.echo(as_text(_without_empty(variables)))
    else:
        show_table(variables, format)


def _show_with_preflight(book: Codebook, report: Preflight, format: Format) -> None:
    """Text: codebook, then preflight. CSV: one row a variable, everything else on stderr. JSON: all of it."""
    variables = book.to_frame().reset_index()
    findings = [("problem", p) for p in report.problems] + [("warning", p) for p in report.warnings]
    if format is Format.text:
        _show_documentation(book, format)
        typer.echo(f"\n{book.confidential}\n\n{report}")
    elif format is Format.csv:
        typer.echo(CONFIDENTIAL, err=True)
        for kind, p in findings:
            typer.echo(f"{kind} [{p.code}] {p.column or 'table'}: {p.message}", err=True)
        show_table(variables.merge(report.table.reset_index(), on="variable", how="left"), format)
    else:
        answer: dict[str, Any] = {
            "variables": json.loads(as_json(variables)),
            "preflight": {
                "note": CONFIDENTIAL,
                "ok": report.ok,
                "rows": report.rows,
                "findings": [{"kind": kind, **p._asdict()} for kind, p in findings],
                "columns": json.loads(as_json(report.table.reset_index())),
            },
        }
        typer.echo(json.dumps(answer, ensure_ascii=False, indent=1))


def _without_empty(variables: pd.DataFrame) -> pd.DataFrame:
    """Leave out facts that no variable has, and the column where nothing was renamed."""
    said = variables.loc[:, (variables != "").any()]
    same = (said["column"] == said["variable"]).all()
    return said.drop(columns="column") if same else said
