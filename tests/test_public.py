"""The public face: every name resolves and is explained, importing is light, the wall holds, types are kept."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import dpsurvey as dps

ROOT = Path(__file__).resolve().parent.parent
NAMES = re.findall(r" as (\w+)$", (ROOT / "dpsurvey" / "__init__.pyi").read_text(), re.MULTILINE)
HEAVY = {
    "arviz_base", "arviz_stats", "cmdstanpy", "filelock", "matplotlib", "numba", "opendp", "pyreadstat", "rpy2",
    "scipy", "statsmodels", "tqdm", "typer", "xarray",
}  # fmt: skip


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_list_of_names_is_the_packages_own() -> None:
    assert NAMES
    assert sorted(NAMES) == sorted(dps.__all__)
    assert set(NAMES) <= set(dir(dps))


@pytest.mark.parametrize("name", NAMES)
def test_every_name_resolves_and_is_explained(name: str) -> None:
    thing = getattr(dps, name)
    text = inspect.getdoc(thing)
    assert text
    assert len(text.splitlines()[0]) < 120
    if inspect.ismodule(thing):
        return
    assert thing.__name__ == name
    assert "Examples\n--------\n>>>" in text
    if inspect.isfunction(thing):
        documented = re.findall(r"^\*{0,2}(\w+(?:, \w+)*)(?: :|$)", text, re.MULTILINE)
        named = {part for line in documented for part in line.split(", ")}
        assert set(inspect.signature(thing).parameters) <= named


@pytest.mark.parametrize("name", NAMES)
def test_what_follows_the_first_arguments_is_keyword_only(name: str) -> None:
    """At most three arguments can be given by position, so that defaults may improve later."""
    thing = getattr(dps, name)
    if not inspect.isfunction(thing):
        return
    kinds = [parameter.kind for parameter in inspect.signature(thing).parameters.values()]
    assert kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD) <= 3


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        dps.no_such_name  # noqa: B018  the access is the test


def test_importing_adds_less_than_three_tenths_of_a_second_to_pandas() -> None:
    code = "import time, pandas; t = time.perf_counter(); import dpsurvey; print(time.perf_counter() - t)"
    assert min(float(run(code)) for _ in range(3)) < 0.3


def test_importing_loads_no_heavy_library() -> None:
    code = (
        "import sys, pandas; before = set(sys.modules); import dpsurvey; print(*(set(sys.modules) - before))"
    )
    loaded = {module.partition(".")[0] for module in run(code).split()}
    assert "dpsurvey" in loaded
    assert not loaded & HEAVY


def test_importing_registers_the_accessor_and_changes_nothing_else() -> None:
    code = """
import warnings, logging, numpy as np, pandas as pd
before = (dict(np.geterr()), list(warnings.filters), list(logging.getLogger().handlers), dir(pd.DataFrame))
import dpsurvey
after = (dict(np.geterr()), list(warnings.filters), list(logging.getLogger().handlers), dir(pd.DataFrame))
assert before[:3] == after[:3]
print(*(set(after[3]) - set(before[3])))
"""
    assert run(code).split() == ["dpcopula"]
    assert "dpcopula" in pd.DataFrame._accessors


def test_the_public_side_works_without_the_confidential_side() -> None:
    """A reader of a release needs no code that touches rows."""
    code = """
import sys
import dpsurvey.privacy.release, dpsurvey.privacy.ledger, dpsurvey.copula.bayes_na, dpsurvey.copula.mle_nn
print(*(name for name in sys.modules if name.startswith("dpsurvey.confidential.")))
"""
    loaded = set(run(code).split())
    assert not loaded - {f"dpsurvey.confidential.{name}" for name in EAGER}


# `dpsurvey.nhanes` is a module and so loads with the package, with what it needs; none of it reads rows by itself.
EAGER = {"nhanes", "nhanes_codes", "complete", "near", "table", "variables", "download"}


def test_the_wall_stands() -> None:
    tool = Path(sys.executable).with_name("lint-imports")
    if not tool.exists():
        pytest.skip("import-linter is not installed (dependency group dev)")
    done = subprocess.run([str(tool), "--no-cache"], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


CONSUMER = """
from decimal import Decimal
from pathlib import Path
from typing import assert_type

import numpy as np
import pandas as pd

import dpsurvey as dps


def analyse(df: pd.DataFrame, ledger: Path) -> pd.DataFrame:
    book = dps.Ledger.create(ledger, dataset="diet", budget=2.0)
    assert_type(book.remaining, Decimal)
    release = dps.release(df, 1.0, columns=["x", "y"], mechanism="rgm", keys=dps.TieKeys(seed=1), ledger=book)
    assert_type(release, dps.Release)
    assert_type(release.counts, tuple[int, ...])
    assert_type(release.save("r.json"), Path)
    assert_type(dps.Release.load("r.json").statement(), str)
    posterior = dps.bayes_na(release, draws=100, seed=1)
    assert_type(posterior, dps.CorrelationPosterior)
    estimate = dps.mle_nn(release)
    assert_type(estimate, dps.CorrelationEstimate)
    try:
        dps.release(df, 1.0, insecure_rng=np.random.default_rng(1))
    except dps.errors.DpsurveyError as error:
        assert_type(error.code, str)
    return posterior.summary()
"""
MISUSE = """
import dpsurvey as dps

dps.bayes_na("release.json")
dps.Release.load("r.json").epsilon.save()
"""


def test_types_reach_those_who_use_the_package(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed (dependency group dev)")
    (tmp_path / "consumer.py").write_text(CONSUMER)
    (tmp_path / "misuse.py").write_text(MISUSE)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--follow-imports=silent"]
    done = subprocess.run(
        [*command, "--cache-dir", str(tmp_path / "cache"), "consumer.py", "misuse.py"],
        capture_output=True, text=True, cwd=tmp_path, env={"MYPYPATH": str(ROOT), "PATH": ""}, check=False,
    )  # fmt: skip
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [line.partition(":")[0] for line in errors] == ["misuse.py"] * 2, done.stdout + done.stderr
    assert "[arg-type]" in errors[0]
    assert "[attr-defined]" in errors[1]
