"""No value leaves: canaries in every cell and id, and every place that raises an error where rows are in reach.

The places are found in the source, and which of them the cases reach is traced, so that an error added later
without a case fails the test.
"""

from __future__ import annotations

import ast
import logging
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import dpsurvey as dps
from dpsurvey.confidential.codebook import Codebook
from dpsurvey.confidential.sniff import SAS_MAGIC

CELL, ID = 8675309.25, 424242000
CANARY = re.compile(r"8[,.]?67[,.]?5[,.]?3|4[,.]?24[,.]?24[,.]?2|canary", re.IGNORECASE)
Cases = dict[str, Callable[[], Any]]

# Packages that read rows, less what reads none (downloads) or needs R (its own tests look at its messages).
SEARCHED = ("confidential", "baselines", "cli")
ELSEWHERE = {
    "confidential/download.py", "baselines/sbgcop.py", "baselines/rbridge.py",
    "cli/__init__.py", "cli/doctor.py", "cli/fit.py", "cli/ledger.py", "cli/output.py", "cli/plan.py", "cli/plot.py",
    "cli/regress.py", "cli/study.py",
}  # fmt: skip
# The text of a line that raises, and why no case of this file can reach it.
UNREACHED = {
    "could not be saved as": "epsilon is spent by then: tests/test_cli.py makes the folder vanish meanwhile",
    '"no variables"': "takes a sas7bdat file with a shifted page: tests/confidential/test_fuzz.py finds some",
    "the number of rows it declares": "takes a whole sas7bdat file: tests/confidential/test_files.py has it",
}


def table(n: int = 8) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    values = CELL + np.round(rng.normal(size=(n, 3)), 2)
    return pd.DataFrame(values, columns=["x", "y", "z"], index=pd.Index(ID + np.arange(n), name="SEQN"))


def simulated(df: Any = None, epsilon: Any = 1.0, **options: Any) -> dps.Release:
    options = {"insecure_rng": np.random.default_rng(1)} | options
    return dps.release(table() if df is None else df, epsilon, **options)


def table_cases() -> Cases:
    good, x = table(), table()["x"]
    text = [f"canary{i}" for i in range(8)]
    gaps, infinite = good.copy(), good.copy()
    gaps.iloc[1, 1], infinite.iloc[2, 0] = np.nan, np.inf
    bad = {
        "text": good.assign(x=text),
        "category": good.assign(x=pd.Categorical(text)),
        "ordered words": good.assign(x=pd.Categorical(text, ordered=True), y=text),
        "complex": good.assign(x=x * 1j),
        "dates": good.assign(x=pd.to_datetime(x, unit="s")),
        "missing": gaps,
        "infinite": infinite,
        "constant": good.assign(x=CELL, y=CELL),
        "twins": good.assign(y=x),
        "all missing": good.assign(x=np.nan),
        "repeated ids": good.set_axis([ID] * 8),
        "repeated words as ids": good.set_axis(["canary"] * 8),
        "fractions as ids": good.set_axis(ID + np.arange(8) + 0.5),
        "missing ids": good.set_axis([np.nan, *(ID + np.arange(7.0))]),
        "two ids": good.set_axis(pd.MultiIndex.from_product([[ID], range(8)])),
        "three rows": good.iloc[:3],
        "two rows": good.iloc[:2],
        "one column": good[["x"]],
        "one name twice": pd.concat([good, good], axis=1),
        "cells as names": good.set_axis(good.iloc[0].tolist(), axis=1),
        "two-level names": pd.concat({"a": good}, axis=1),
        "an array": good.to_numpy(),
        "a column": x,
    }
    doors: dict[str, Callable[[Any], Any]] = {
        "release": simulated,
        "li_kendall": lambda df: dps.li_kendall(df, 1.0, insecure_rng=np.random.default_rng(1)),
        "asghar_dpc": lambda df: dps.asghar_dpc(
            df, 1.0, thresholds=dict.fromkeys("xyz", 0.0), insecure_rng=np.random.default_rng(1)
        ),
        "erl": lambda df: dps.erl(df, draws=20, chains=2, burn_in=1, seed=1),
        "ols_benchmark": lambda df: dps.ols_benchmark(df, "x", on=["y", "z"]),
        "preflight": lambda df: shown(dps.preflight(df)).raise_if_bad(),
        "preflight of names": lambda df: dps.preflight(df, ["x", "q"]).raise_if_bad(),
        "complete": lambda df: dps.nhanes.complete(df),
        "accessor": lambda df: df.dpcopula.release(1.0, insecure_rng=np.random.default_rng(1)),
    }
    return {
        f"{door} of {kind}": (lambda call=call, df=df: call(df))
        for door, call in doors.items()
        for kind, df in bad.items()
        # Names are schema, shown to the holder; only tables have the accessor.
        if not (door.startswith("preflight") and kind == "cells as names")
        if not (door == "accessor" and kind in ("an array", "a column"))
    }


def shown(result: Any) -> Any:
    """Print all that a notebook or a terminal would show of a result, except what is the holder's own table."""
    print(repr(result), result._repr_html_() if hasattr(result, "_repr_html_") else "")
    return result


def argument_cases(folder: Path) -> Cases:
    """Cells and columns given by mistake for every option, and options that are out of range."""
    good, x = table(), table()["x"]
    rng = np.random.default_rng(1)
    book = dps.Ledger.create(folder / "book.json", dataset="diet", budget=1.0)
    thresholds = dict.fromkeys("xyz", 0.0)
    mistakes = {"a column": x, "cells": x.tolist(), "a table": good, "an array": x.to_numpy(), "None": None}
    cases: Cases = {}
    options: dict[str, tuple[Callable[..., Any], dict[str, Any], tuple[str, ...]]] = {
        "release": (simulated, {}, ("epsilon", "columns", "statistic", "mechanism", "coarse", "delta", "keys", "ledger",
                                    "codebook", "insecure_rng")),
        "li_kendall": (dps.li_kendall, {"df": good, "epsilon": 1.0, "insecure_rng": rng},
                       ("epsilon", "columns", "sensitivity", "ledger", "insecure_rng")),
        "asghar_dpc": (dps.asghar_dpc, {"df": good, "epsilon": 1.0, "thresholds": thresholds, "insecure_rng": rng},
                       ("epsilon", "columns", "thresholds", "ledger", "insecure_rng")),
        "erl": (dps.erl, {"df": good, "draws": 20, "chains": 2, "burn_in": 1, "seed": 1},
                ("columns", "engine", "draws", "chains", "burn_in", "prior", "plugin_threshold", "odens", "seed")),
        "ols_benchmark": (dps.ols_benchmark, {"df": good, "y": "x", "on": ["y"]}, ("y", "on", "prob")),
        "preflight": (dps.preflight, {"df": good}, ("columns",)),
        "complete": (dps.nhanes.complete, {"df": good}, ("columns",)),
        "rows_lost": (dps.nhanes.rows_lost, {"df": good}, ("columns",)),
        "TieKeys": (dps.TieKeys, {}, ("seed",)),
    }  # fmt: skip
    for door, (call, given, names) in options.items():
        for name in names:
            for kind, mistake in mistakes.items():
                cases[f"{door}: {name} is {kind}"] = lambda c=call, g=given, n=name, m=mistake: c(
                    **(g | {n: m})
                )
    S0, text = np.eye(3), f"canary{CELL}"  # a name, since a traceback shows the line that calls
    return cases | {
        "unknown name": lambda: simulated(columns=["x", "Y"]),
        "name twice": lambda: simulated(columns=["x", "x"]),
        "name that is none": lambda: simulated(good.set_axis([1, 2, 3], axis=1)),
        "unknown coarse": lambda: simulated(coarse=["w"], statistic="concordance", mechanism="linf"),
        "tiny epsilon": lambda: simulated(epsilon=1e-300),
        "tiny epsilon of a rival": lambda: dps.li_kendall(good, 1e-300, insecure_rng=rng),
        "delta with a ledger of pure epsilon": lambda: simulated(
            mechanism="gaussian", delta=1e-6, ledger=book, insecure_rng=None),
        "more than the budget": lambda: simulated(epsilon=2.0, ledger=book, insecure_rng=None),
        "no ledger there": lambda: simulated(ledger=folder / "nowhere.json", insecure_rng=None),
        "a rule that is none": lambda: Codebook(()).with_filter(CELL),  # type: ignore[arg-type]
        "key seed out of range": lambda: dps.TieKeys(seed=-1),
        "keys of fractions": lambda: dps.TieKeys().hashes("x", pd.Index(good["x"])),
        "no draws": lambda: dps.erl(good, draws=0),
        "threshold below 0": lambda: dps.erl(good, plugin_threshold=-1.0),
        "n0 of text": lambda: dps.erl(good, prior=(S0, text)),  # type: ignore[arg-type]
        "n0 too small": lambda: dps.erl(good, prior=(S0, 1.0)),
        "S0 of text": lambda: dps.erl(good, prior=([[text]], None)),
        "S0 of another shape": lambda: dps.erl(good, prior=(np.eye(2), None)),
        "S0 indefinite": lambda: dps.erl(good, prior=(-S0, None)),
        "a threshold is missing": lambda: dps.asghar_dpc(good, 1.0, thresholds={"x": 0.0}),
        "a threshold is a column": lambda: dps.asghar_dpc(good, 1.0, thresholds=thresholds | {"x": x}),
        "collinear predictors": lambda: dps.ols_benchmark(good.assign(z=good["y"]), "x", on=["y", "z"]),
        "names that are not unique": lambda: dps.nhanes.complete(pd.concat([good, good], axis=1)),
        "cycle": lambda: dps.nhanes.download("DEMO", cycle=x),  # type: ignore[arg-type]
        "component": lambda: dps.nhanes.download(x, cycle="J"),  # type: ignore[arg-type]
        "component of blanks": lambda: dps.nhanes.download("a b/c", cycle="J"),
    }  # fmt: skip


def file_cases(
    put: Callable[..., Path], transport: Callable[..., bytes], library: Callable[..., bytes]
) -> Cases:
    """Files whose cells and ids are canaries, each with something wrong."""
    ids, cells = [float(ID + i) for i in range(6)], [CELL + i for i in range(6)]
    columns = {"SEQN": ids, "X": cells, "S": [f"canary{i}".encode() for i in range(6)]}
    xpt = transport("T", columns)
    v8 = transport("T", columns, version=8)
    rows = "".join(f"{ID + i},{CELL + i},canary{i}\n" for i in range(6))
    good = put("good.csv", f"SEQN,X,S\n{rows}")
    made: dict[str, Path] = {}

    def file(name: str, content: bytes | str) -> Path:
        made[name] = put(name, content)
        return made[name]

    def csv(ids_and_cells: str) -> str:
        return f"SEQN,X\n{ids_and_cells}"

    file("no-suffix.dat", csv(f"{ID},{CELL}\n"))
    file("text.xpt", csv(f"{ID},{CELL}\n"))
    file("uneven.csv", csv(f"{ID},{CELL},1\n{ID},{CELL}\n"))
    file("quote.csv", csv(f'{ID},"{CELL}\n'))
    file("numbers.csv", f"{ID},{CELL}\n{ID},{CELL}\n")
    file("semicolons.csv", f"SEQN;X\n{ID};{CELL}\n")
    file("twice.csv", f"X,X\n{ID},{CELL}\n")
    file("latin.csv", f"SEQN,S\n{ID},canary\x81\n".encode("latin-1"))
    file("broken.parquet", b"PAR1" + f"canary {CELL}".encode() * 20)
    file("headless.xpt", xpt[:240])
    file("cut.xpt", xpt[: len(xpt) - 7])
    file("cut in headers.xpt", xpt[:700])
    file("cut in a header.xpt", xpt[:600])
    file("cut in variables.xpt", xpt[:880])
    file("sizes.xpt", xpt.replace(b"000000000000000001600000000140", b"000000000000000001600000000999"))
    file(
        "no number.xpt",
        xpt.replace(b"000000000000000001600000000140", b"0000000000000000016000000canary"[:30]),
    )
    file("no rows.xpt", xpt.replace(b"OBS     ", b"canary  "))
    file(
        "width.xpt",
        transport("T", columns, widths={"X": 8}).replace(
            b"\x00\x01\x00\x00\x00\x08", b"\x00\x01\x00\x00\x00\x63", 1
        ),
    )
    file("declared.xpt", transport("T", columns, version=8, declared=3))
    file("cut.v8.xpt", v8[:-80])
    file("blanks.xpt", transport("T", {"S": [b"canary", b"canary2 ", *[b"        "] * 20]}))
    file("two.xpt", library(("A", columns), ("B", columns)))
    file("odd text.xpt", transport("T", columns | {"S": [b"canary\x81"] * 6}))
    file("short.sas7bdat", SAS_MAGIC + b"canary")
    file(
        "cut.sas7bdat",
        SAS_MAGIC
        + bytes(5)
        + b"\x01"
        + bytes(158)
        + b"\x00\x04\x00\x00\x00\x10\x00\x00\x09\x00\x00\x00"
        + b"canary" * 50,
    )
    file(
        "damaged.sas7bdat",
        SAS_MAGIC
        + bytes(5)
        + b"\x01"
        + bytes(158)
        + b"\x00\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00"
        + b"canary" * 500,
    )
    file("repeated.csv", csv(f"{ID},{CELL}\n{ID},{CELL}\n"))
    file("gap.csv", csv(f"{ID},{CELL}\n.,{CELL}\n"))
    file("fraction.csv", csv(f"{ID}.5,{CELL}\n"))
    file("huge.csv", csv(f"{2**63 + ID},{CELL}\n"))
    file("true.csv", csv(f"True,{CELL}\n"))
    file("words.csv", csv(f"canary,{CELL}\n"))
    file("others.csv", csv(f"{ID + 900},{CELL}\n"))
    file("differing.csv", csv("".join(f"{ID + i},{CELL + 7}\n" for i in range(6))))
    pd.DataFrame({"SEQN": [f"canary{CELL}", ID], "X": [CELL, CELL]}, dtype=object).to_csv(
        put("mixed.csv", ""), index=False
    )
    made["mixed.csv"] = put("mixed.csv", csv(f"canary,{CELL}\n{ID},{CELL}\n"))

    cases: Cases = {}
    for name, path in made.items():
        cases[f"read {name}"] = lambda p=path: dps.read_survey(p)
        cases[f"read {name} by id"] = lambda p=path: dps.read_survey(p, on="SEQN")
        cases[f"merge {name}"] = lambda p=path: dps.read_survey(good, p, on="SEQN")
        cases[f"codebook {name}"] = lambda p=path: shown(dps.codebook(p))
    x = table()["x"]
    read = lambda **options: dps.read_survey(good, **options)  # noqa: E731
    for option in ("on", "columns", "missing_codes", "where", "round_to", "encoding", "member"):
        for kind, mistake in {"a column": x, "cells": x.tolist(), "a table": table(), "a cell": CELL}.items():
            cases[f"read with {option} {kind}"] = lambda o=option, m=mistake: read(**{o: m})
    rules = ("X >", "X.mean() > 1", "8 > 7", "S > 1", "X + 1", "X > 'a'", "SEQN > 1", "Q > 1")
    return cases | {f"rule {rule}": (lambda rule=rule: read(on="SEQN", where=rule)) for rule in rules} | {
        "no path": lambda: dps.read_survey(table()),
        "not a file": lambda: dps.read_survey(good.parent),
        "no such file": lambda: dps.read_survey(good.parent / "goood.csv"),
        "no file": lambda: dps.read_survey(),
        "closed file": lambda: not_opened(good),
        "no id named": lambda: dps.read_survey(good, good),
        "id alone": lambda: read(on="SEQN", columns=["SEQN"]),
        "no columns": lambda: read(columns=[]),
        "empty name": lambda: read(columns=[""]),
        "a name twice": lambda: read(columns=["X", "X"]),
        "codes of the id": lambda: read(on="SEQN", missing_codes={"SEQN": [1]}),
        "codes that are text": lambda: read(missing_codes={"X": "77"}),
        "codes that are cells": lambda: read(missing_codes={"X": [x]}),
        "codes of another type": lambda: read(missing_codes={"X": ["a"], "S": [1]}),
        "codes of text": lambda: read(missing_codes={"S": [1]}),
        "too many decimals": lambda: read(round_to=99),
        "no such encoding": lambda: read(encoding="canon"),
        "unknown column": lambda: read(columns=["x"]),
        "unknown member": lambda: dps.read_survey(made["two.xpt"], member="C"),
        "another encoding": lambda: dps.read_survey(made["odd text.xpt"], encoding="utf-8"),
        "no pyarrow": lambda: without("pyarrow", made["broken.parquet"]),
        "two columns of one name": lambda: dps.read_survey(twins(good.parent)),
        "ids of no kind": lambda: dps.read_survey(odd_ids(good.parent), on="SEQN"),
        "dates as ids": lambda: dps.read_survey(date_ids(good.parent), on="SEQN"),
        "ids beyond 64 bits": lambda: dps.read_survey(large_ids(good.parent), on="SEQN"),
        "ids of two kinds": lambda: dps.read_survey(good, made["words.csv"], on="SEQN"),
    }  # fmt: skip


def not_opened(path: Path) -> None:
    with mock.patch.object(Path, "open", side_effect=PermissionError(13, "Permission denied")):
        dps.read_survey(path)


def without(module: str, path: Path) -> None:
    with mock.patch.dict(sys.modules, {module: None, f"{module}.parquet": None}):
        dps.read_survey(path)


def twins(folder: Path) -> Path:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    path = folder / "twins.parquet"
    parquet.write_table(pa.Table.from_arrays([pa.array([CELL]), pa.array([CELL])], names=["X", "X"]), path)
    return path


def odd_ids(folder: Path) -> Path:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    path = folder / "odd.parquet"
    ids = pa.array([[ID], [ID + 1]])
    parquet.write_table(pa.Table.from_arrays([ids, pa.array([CELL, CELL])], names=["SEQN", "X"]), path)
    return path


def date_ids(folder: Path) -> Path:
    path = folder / "dates.parquet"
    pd.DataFrame({"SEQN": pd.to_datetime([ID, ID + 1], unit="s"), "X": [CELL, CELL]}).to_parquet(path)
    return path


def large_ids(folder: Path) -> Path:
    path = folder / "large.parquet"
    pd.DataFrame({"SEQN": np.array([2**63 + ID], dtype="uint64"), "X": [CELL]}).to_parquet(path)
    return path


def cli_cases(put: Callable[..., Path]) -> Cases:
    from typer.testing import CliRunner

    from dpsurvey.cli import app

    rows = "".join(f"{ID + i},{CELL + i},{CELL - i * i},canary\n" for i in range(6))
    path = put("cli.csv", f"SEQN,X,Y,WTMEC2YR\n{rows}")
    repeated = put("repeated-cli.csv", f"SEQN,X,Y\n{ID},{CELL},1\n{ID},{CELL},2\n")

    def run(*arguments: Any) -> None:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        print(result.output)
        assert result.exit_code != 0 or arguments[0] == "inspect"

    def release(*arguments: Any, file: Path = path) -> None:
        run("release", file, "--epsilon", 1, "-o", path.parent / "out.json", *arguments)

    return {
        "cli: roles": lambda: release(),
        "cli: text column": lambda: release("--columns", "X,WTMEC2YR", "--on", "SEQN"),
        "cli: repeated ids": lambda: release("--columns", "X,Y", "--on", "SEQN", file=repeated),
        "cli: no name": lambda: release("--columns", "X,,Y"),
        "cli: a name twice": lambda: release("--columns", "X,X"),
        "cli: no codes": lambda: release("--columns", "X,Y", "--missing", "X="),
        "cli: codes of nobody": lambda: release("--columns", "X,Y", "--missing", "X"),
        "cli: rule": lambda: release("--columns", "X,Y", "--where", "WTMEC2YR > 1"),
        "cli: no ledger": lambda: release("--columns", "X,Y", "--ledger", path.parent / "none.json"),
        "cli: inspect": lambda: run("inspect", path, "--on", "SEQN", "--columns", "X,Y"),
        "cli: inspect a rule": lambda: run("inspect", path, "--where", "WTMEC2YR > 1"),
    }


def good_cases(folder: Path) -> Cases:
    """Everything that works, shown in every way, with its progress lines, files and saved forms."""
    good = table(40)
    book = dps.Ledger.create(folder / "good.ledger.json", dataset="diet", budget=9.0)

    def everything(result: Any, name: str) -> None:
        shown(result)
        for method in ("summary", "statement", "to_frame", "to_dict"):
            if hasattr(result, method):
                print(getattr(result, method)())
        if hasattr(result, "save"):
            content = result.save(folder / name).read_bytes()
            print(content)
            assert not any(float(cell).hex().encode() in content for cell in good.to_numpy().ravel())
            assert not any(np.float64(cell).tobytes() in content for cell in good.to_numpy().ravel())

    settings = [("auto", "auto"), ("quadrant", "geometric"), ("quadrant", "rgm"), ("concordance", "linf")]
    cases: Cases = {
        f"release {statistic} {mechanism}": (
            lambda s=statistic, m=mechanism: everything(
                dps.release(good, 1.0, statistic=s, mechanism=m, ledger=book), f"{s}.{m}.json"
            )
        )
        for statistic, mechanism in settings
    }
    return cases | {
        "no ledger": lambda: everything(dps.release(good, 1.0), "free.json"),
        "a large epsilon": lambda: everything(simulated(good, 50.0), "large.json"),
        "erl": lambda: everything(dps.erl(good, draws=50, chains=2, seed=1), "erl.npz"),
        "erl full": lambda: everything(
            dps.erl(good, draws=50, burn_in=10, chains=2, seed=1, plugin_threshold=None), "erl2.npz"),
        "bayes_na": lambda: everything(dps.bayes_na(simulated(good), draws=50, chains=2, seed=1), "b.npz"),
        "mle_nn": lambda: everything(dps.mle_nn(simulated(good)), "m.npz"),
        "li_kendall": lambda: everything(dps.li_kendall(good, 1.0, ledger=book), "k.npz"),
        "asghar_dpc": lambda: everything(
            dps.asghar_dpc(good, 1.0, thresholds=dict.fromkeys("xyz", 0.5), ledger=book), "a.npz"),
        "ols_benchmark": lambda: everything(dps.ols_benchmark(good, "x", on=["y"]), ""),
        "preflight": lambda: everything(dps.preflight(good), ""),
        "complete": lambda: dps.nhanes.complete(good),
        "ledger": lambda: print(book.path.read_text(), book.summary(), repr(book)),
        "keys": lambda: print(dps.TieKeys()),
    }  # fmt: skip


# ---------------------------------------------------------------- what is said, and where it was raised


def exhibits(error: BaseException | None) -> Iterator[str]:
    """Yield all that an error, and those it came from, can show: text, repr, arguments, fields, traceback."""
    seen: set[int] = set()
    todo = [error]
    while todo:
        at = todo.pop()
        if at is None or id(at) in seen:
            continue
        seen.add(id(at))
        yield from (str(at), repr(at), repr(at.args), repr(getattr(at, "__dict__", {})))
        yield repr(getattr(at, "object", None))  # a UnicodeDecodeError holds the bytes
        yield repr(getattr(at, "__notes__", None))
        yield from traceback.format_exception(at)
        todo += [at.__cause__, at.__context__]


def raising_lines(package: Path) -> dict[tuple[str, int], str]:
    """Return the place and text of every statement that raises an error, in the modules near rows."""
    found = {}
    for folder in SEARCHED:
        for path in sorted((package / folder).rglob("*.py")):
            if path.relative_to(package).as_posix() in ELSEWHERE:
                continue
            source = path.read_text()
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Raise) and node.exc is not None:
                    found[str(path), node.lineno] = ast.get_source_segment(source, node) or ""
    return found


class Trace:
    """Which of some lines were run."""

    def __init__(self, lines: set[tuple[str, int]]) -> None:
        self.lines, self.files, self.reached = lines, {file for file, _ in lines}, set[tuple[str, int]]()

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        return self._line if frame.f_code.co_filename in self.files else None

    def _line(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line" and (place := (frame.f_code.co_filename, frame.f_lineno)) in self.lines:
            self.reached.add(place)
        return self._line


def test_no_value_leaves_by_any_error_path(tmp_path, put, transport, library, root, capsys, caplog) -> None:
    places = raising_lines(root / "dpsurvey")
    assert len(places) > 80
    cases = {
        **table_cases(), **argument_cases(tmp_path), **file_cases(put, transport, library), **cli_cases(put),
        **good_cases(tmp_path),
    }  # fmt: skip
    trace, leaks, unnamed = Trace(set(places)), {}, {}
    before = sys.gettrace()
    for name, action in cases.items():
        error: BaseException | None = None
        with warnings.catch_warnings(record=True) as told, caplog.at_level(logging.DEBUG):
            warnings.simplefilter("always")
            sys.settrace(trace)
            try:
                action()
            except Exception as caught:
                error = caught
            finally:
                sys.settrace(before)
        out = capsys.readouterr()
        said = [out.out, out.err, caplog.text, *(str(one.message) for one in told), *exhibits(error)]
        caplog.clear()
        found = [CANARY.search(text) for text in said]
        if any(found):
            leaks[name] = next(m.string[max(0, m.start() - 200) : m.end() + 100] for m in found if m)
        if error is not None and not isinstance(error, dps.errors.DpsurveyError):
            unnamed[name] = "".join(traceback.format_exception(error))[-600:]
    assert not leaks
    assert not unnamed
    missed = {f"{Path(file).name}:{line}": places[file, line] for file, line in set(places) - trace.reached}
    missed = {at: text for at, text in missed.items() if not any(known in text for known in UNREACHED)}
    assert not missed


def test_a_leak_would_be_found() -> None:
    """The search sees numbers however they are written, and looks behind chained errors."""
    for text in (
        CELL,
        f"{CELL:e}",
        f"{CELL:,}",
        f"{CELL:g}",
        ID + 3,
        f"{ID:,}",
        float(ID),
        "a canary",
        f"{ID:e}",
    ):
        assert CANARY.search(str(text)), text

    def hidden() -> None:
        try:
            raise ValueError(CELL)
        except ValueError:
            raise KeyError("other") from None

    with pytest.raises(KeyError) as caught:
        hidden()
    assert any(CANARY.search(text) for text in exhibits(caught.value))
