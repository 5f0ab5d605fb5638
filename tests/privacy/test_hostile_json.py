"""Files made to do harm: a named error within about a second and bounded memory, whichever door they come to.

All are opened in one process of their own, whose memory is limited; it reports the time and the error of each.
"""

from __future__ import annotations

import io
import json
import math
import pickle
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsurvey as dps
from dpsurvey.strict_json import parse_json

SECONDS = 5.0  # of processor time, on a busy machine; none takes more than about one on a quiet one
MEMORY = 900  # MB beyond what an idle process takes, of address space; files of 100 MB are among the cases
OPENER = """
import json, resource, sys, time, traceback, warnings
import dpsurvey as dps
from dpsurvey.copula.result_file import load_result
from dpsurvey.errors import DpsurveyError

doors = {"release": dps.Release.load, "ledger": dps.Ledger.open, "posterior": dps.CorrelationPosterior.load,
         "estimate": dps.CorrelationEstimate.load, "result": load_result}
warnings.simplefilter("ignore")
for door, path, good in json.loads(sys.argv[2]):
    if good:  # once each beforehand, so that what is loaded on first use counts for no case
        doors[door](path)
idle = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = idle + int(sys.argv[1]) * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for door, path, good in json.loads(sys.argv[2]):
    start = time.process_time()
    try:
        doors[door](path)
        answer = {"error": None}
    except DpsurveyError as error:
        answer = {"error": type(error).__name__, "text": str(error), "trace": len(traceback.format_exc())}
    except BaseException as error:
        answer = {"error": f"unnamed {type(error).__name__}", "text": traceback.format_exc()[-800:]}
    print(json.dumps(answer | {"seconds": time.process_time() - start}), flush=True)
"""


def frame() -> pd.DataFrame:
    values = np.random.default_rng(1).normal(size=(60, 3))
    return pd.DataFrame(values, columns=["Kcal", "Grain", "Sugar"])


def release() -> dps.Release:
    return dps.release(frame(), 1.0, insecure_rng=np.random.default_rng(1))


def twice(text: str, name: str) -> str:
    """Return a JSON object with one of its names a second time, at the end and with another value."""
    return f'{text.rstrip()[:-1]}, "{name}": 0}}'


def hostile_texts(good: str, number: str, limit: int) -> dict[str, Callable[[], bytes]]:
    """Return texts that are no use in place of a good JSON object.

    Parameters
    ----------
    good : str
    number : str
        A name in it and its number, to be exchanged.
    limit : int
        Size up to which the reader parses: bombs are as large as that.
    """
    values = json.loads(good)

    def exchanged(by: str) -> Callable[[], bytes]:
        assert good.count(number) >= 1
        name = number.split(":")[0]
        return lambda: good.replace(number, f"{name}: {by}", 1).encode()

    return {
        "empty": lambda: b"",
        "zero bytes": lambda: bytes(1000),
        "half of it": lambda: good.encode()[: len(good) // 2],
        "two in one": lambda: (good + good).encode(),
        "not text": lambda: b"\x93NUMPY\x01\x00" + bytes(100),
        "a page": lambda: b"<!DOCTYPE html><html>404</html>",
        "null": lambda: b"null\n",
        "a list": lambda: b"[]\n",
        "a number": lambda: b"1e9999\n",
        "open lists": lambda: b"[" * 3_000_000,
        "open objects": lambda: b'{"a":' * 1_000_000 + b"\n",
        "closed lists": lambda: b"[" * 100_000 + b"]" * 100_000 + b"\n",
        "a bomb of empty lists": lambda: b"[" + b"[]," * (limit // 3 - 2) + b"[]]\n",
        "a bomb of empty objects": lambda: b"[" + b"{}," * (limit // 3 - 2) + b"{}]\n",
        "a bomb of names": lambda: json.dumps({str(i): i for i in range(limit // 20)}).encode() + b"\n",
        "NaN": exchanged("NaN"),
        "Infinity": exchanged("Infinity"),
        "-Infinity": exchanged("-Infinity"),
        "infinite by its exponent": exchanged("1e999"),
        "a number of 4,000 digits": exchanged("9" * 4000),
        "a number of a million digits": exchanged("9" * 1_000_000),
        "text for a number": exchanged('"1"'),
        "true for a number": exchanged("true"),
        "a list for a number": exchanged("[" * 900 + "]" * 900),
        "a name twice": lambda: twice(good, next(iter(values))).encode() + b"\n",
        "a name less": lambda: json.dumps(dict(list(values.items())[1:])).encode() + b"\n",
        "a name too many": lambda: json.dumps(values | {"x" * 100_000: 1}).encode() + b"\n",
        "a value too long": lambda: json.dumps(values | {next(iter(values)): "x" * limit}).encode() + b"\n",
        "100 MB of lists": lambda: b"[[]," * 25_000_000,
    }  # fmt: skip


def npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def archive(compression: int = zipfile.ZIP_STORED, **members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression, compresslevel=9) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def npy(shape: str, content: bytes = b"", dtype: str = "<f8") -> bytes:
    """Return an .npy array that says what shape it has, whatever content it has."""
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + content


class Bomb:
    """What a pickle could do: leave a mark where it was opened."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, ("the-pickle-was-opened", "w"))


def hostile_archives(good: bytes) -> dict[str, Callable[[], bytes]]:
    with np.load(io.BytesIO(good)) as whole:
        header, pairs = str(whole["header"]), whole["pairs"]
    texts = hostile_texts(header, '"schema_version": 1', 2**22)
    cases: dict[str, Callable[[], bytes]] = {
        f"header: {kind}": (lambda make=make: npz(header=np.array(make().decode("latin-1")), pairs=pairs))
        for kind, make in texts.items()
        if not kind.startswith(("100 MB", "not text"))
    }
    fields = json.loads(header)

    def changed(**changes: Any) -> Callable[[], bytes]:
        return lambda: npz(header=np.array(json.dumps(fields | changes)), pairs=pairs)

    cases |= {
        f"{name} = {str(value)[:20]}": changed(**{name: value})
        for name in fields
        for value in ({"a": 1}, 2.5, [[]], "x" * 100_000)
        if not (name in ("info", "labels", "release") and value == {"a": 1} and name == "info")
        and not (name in ("method", "engine") and isinstance(value, str))
    }
    return cases | {
        "cut": lambda: good[:-40],
        "pickled cells": lambda: npz(header=np.array(header), pairs=np.array([Bomb()], dtype=object)),
        "pickled header": lambda: npz(header=np.array([Bomb()], dtype=object), pairs=pairs),
        "a pickle": lambda: pickle.dumps(Bomb()),
        "a member that is a pickle": lambda: archive(header=pickle.dumps(Bomb()), pairs=pickle.dumps(Bomb())),
        "a terabyte in its header": lambda: archive(header=npy("()", dtype="<U1"), pairs=npy(f"({2**37},)")),
        "2**70 cells": lambda: archive(header=npy("()", dtype="<U1"), pairs=npy(f"({2**70},)")),
        "code in its header": lambda: archive(
            header=npy("__import__('os').abort()"), pairs=npy("__import__('os').abort()")
        ),
        "compressed": lambda: archive(
            zipfile.ZIP_DEFLATED, header=npy("()", dtype="<U1"), pairs=npy("(2, 5, 3)", bytes(240))
        ),
        "a bomb of 300 MB in 300 kB": lambda: archive(
            zipfile.ZIP_DEFLATED, header=npy("()", dtype="<U1"), pairs=npy("(37500000,)", bytes(300_000_000))
        ),
        "many members": lambda: archive(**{f"m{i}": b"x" for i in range(20_000)}),
        "100 MB of zeros": lambda: bytes(100_000_000),
    }  # fmt: skip


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory) -> dict[tuple[str, str], dict[str, Any]]:
    """Return what each door said of each hostile file."""
    folder = tmp_path_factory.mktemp("hostile")
    made = release()
    cases: dict[tuple[str, str], Callable[[], bytes]] = {}
    saved = made.save(folder / "release.good").read_text()
    cases |= {("release", kind): make for kind, make in hostile_texts(saved, '"epsilon": 1.0', 2**23).items()}
    book = dps.Ledger.create(folder / "ledger.good", dataset="diet", budget=3.0)
    dps.release(frame(), 1.0, ledger=book)
    line = book.path.read_text().split("\n")[0]
    number = line[line.index('"dpsurvey_ledger"') :].split(",")[0]
    cases |= {("ledger", kind): make for kind, make in hostile_texts(line + "\n", number, 2**20).items()}
    whole = book.path.read_bytes()
    cases |= {
        ("ledger", "its lines in the other order"): lambda: b"".join(whole.splitlines(keepends=True)[::-1]),
        ("ledger", "100 MB of lines"): lambda: whole + b"\n" * 100_000_000,
        ("ledger", "100 MB in a line"): lambda: whole + b"x" * 100_000_000 + b"\n",
        ("ledger", "a name twice below"): lambda: whole[:-2] + b', "sequence": 1}\n',
    }
    dps.bayes_na(made, draws=5, chains=2, seed=1, progress=False).save(folder / "posterior.good")
    dps.mle_nn(made).save(folder / "estimate.good")
    for door in ("posterior", "estimate"):
        good = (folder / f"{door}.good").read_bytes()
        cases |= {(door, kind): make for kind, make in hostile_archives(good).items()}
    cases |= {("result", kind): make for kind, make in hostile_archives(good).items() if "bomb" in kind}

    wanted = [
        (door, str(folder / f"{door}.good"), True) for door in ("release", "ledger", "posterior", "estimate")
    ]
    for at, ((door, _), make) in enumerate(cases.items()):
        path = folder / f"{at}.{door}"
        path.write_bytes(make())
        wanted.append((door, str(path), False))
    done = subprocess.run(
        [sys.executable, "-c", OPENER, str(MEMORY), json.dumps(wanted)], capture_output=True, text=True, cwd=folder
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert not (folder / "the-pickle-was-opened").exists()
    answers = [json.loads(answer) for answer in done.stdout.splitlines()]
    assert [answer["error"] for answer in answers[:4]] == [None] * 4  # the files that are changed are good
    for path in folder.iterdir():
        path.unlink()
    return dict(zip(cases, answers[4:], strict=True))


@pytest.mark.parametrize("door", ["release", "ledger", "posterior", "estimate", "result"])
def test_hostile_files_give_a_named_error_soon_and_in_little_memory(door: str, verdicts) -> None:
    named = {"ledger": "LedgerError"}.get(door, "ReleaseFormatError")
    seen = {kind: verdict for (at, kind), verdict in verdicts.items() if at == door}
    assert len(seen) >= 3
    unnamed = {kind: verdict for kind, verdict in seen.items() if verdict["error"] != named}
    assert not unnamed
    slow = {kind: verdict["seconds"] for kind, verdict in seen.items() if verdict["seconds"] > SECONDS}
    assert not slow
    long = {kind: len(verdict["text"]) for kind, verdict in seen.items() if len(verdict["text"]) > 2500}
    assert not long


def test_strict_json() -> None:
    assert parse_json('{"a": [1, 2.5, null, true, "x"], "b": {}}') == {
        "a": [1, 2.5, None, True, "x"],
        "b": {},
    }
    for bad in ("", "{", "NaN", "[Infinity]", '{"a": -Infinity}', '{"a": 1, "a": 1}', '[{"b": {"a": 1, "a": 2}}]',
                "[" * 100_000, b"\xff\xfe", "9" * 10_000):  # fmt: skip
        with pytest.raises(ValueError):
            parse_json(bad)
    assert math.isinf(parse_json("1e999"))  # a number that JSON allows; what reads it must check its range


def test_the_package_neither_writes_nor_reads_pickles(root: Path) -> None:
    import ast

    files = sorted((root / "dpsurvey").rglob("*.py"))
    assert len(files) > 50
    for path in files:
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            imported = []
            if isinstance(node, ast.Import):
                imported = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                imported = [node.module or ""]
            assert not {name.split(".")[0] for name in imported} & {
                "pickle", "_pickle", "cloudpickle", "dill", "shelve", "marshal", "jsonpickle",
            }, path  # fmt: skip
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                assert node.func.attr not in ("to_pickle", "read_pickle", "tofile"), path
                if node.func.attr == "load" and ast.unparse(node.func.value) in ("np", "numpy"):
                    given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
                    assert given.get("allow_pickle") == "False", path
                if node.func.attr == "save" and ast.unparse(node.func.value) in ("np", "numpy"):
                    given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
                    assert given.get("allow_pickle") == "False", path
            if isinstance(node, ast.Name):
                assert node.id not in ("eval", "exec"), path
