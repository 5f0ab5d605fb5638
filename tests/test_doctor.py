"""The doctor: what it finds here, and what it says where something is missing or broken."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from dpsurvey.checks import Check, attempt, library
from dpsurvey.doctor import compile_cache, examine, to_frame, works
from dpsurvey.outside import cmdstan, in_r, rpy2


@pytest.fixture(scope="module")
def checks():
    return list(examine())


def doctor(prelude="", environment=None, options=()):
    """Run ``dpsurvey doctor`` in a process of its own, after some Python."""
    code = f"import sys\n{prelude}\nfrom dpsurvey.cli import main\nsys.argv[0] = 'dpsurvey'\nmain()"
    return subprocess.run(
        [sys.executable, "-c", code, "doctor", *options],
        capture_output=True, text=True, timeout=600, check=False, env={**os.environ, **(environment or {})},
    )  # fmt: skip


def program(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_the_core_works_here(checks):
    assert works(checks)
    assert [check.component for check in checks if check.needed and check.status != "ok"] == []


def test_everything_the_core_needs_is_tried(checks):
    needed = {check.component for check in checks if check.needed}
    assert {
        "numpy",
        "pandas",
        "numba",
        "opendp",
        "pyreadstat",
        "statsmodels",
        "arviz-stats",
        "typer",
    } <= needed
    assert {"OpenDP noise", "survey files", "Bayes-NA (embedded)", "ArviZ", "ERL (embedded)"} <= needed


def test_optional_parts_are_listed_with_what_to_do(checks):
    by_name = {check.component: check for check in checks}
    assert {"matplotlib", "pyarrow", "R", "rpy2", "CmdStan", "compile cache"} <= set(by_name)
    assert not any(by_name[name].needed for name in ("matplotlib", "R", "rpy2", "CmdStan"))
    assert [check for check in checks if (check.status == "ok") == bool(check.remedy)] == []


def test_the_table_has_a_row_for_each_check(checks):
    table = to_frame(checks)
    assert table.columns.tolist() == ["component", "needed", "status", "found", "remedy"]
    assert len(table) == len(checks)


def test_the_command_reports_and_ends_with_0_without_loading_r():
    prelude = (
        "import atexit\n"
        "atexit.register(lambda: print('R in process:', 'rpy2.rinterface' in sys.modules, file=sys.stderr))"
    )
    done = doctor(prelude, options=("--format", "json"))
    assert done.returncode == 0, done.stderr
    rows = {row["component"]: row for row in json.loads(done.stdout)}
    assert rows["OpenDP noise"]["status"] == "ok"
    assert "R in process: False" in done.stderr


@pytest.mark.parametrize(
    ("module", "component", "broken"),
    [("opendp", "opendp", "OpenDP noise"), ("numba", "numba", "Bayes-NA (embedded)")],
)
def test_a_library_of_the_core_that_cannot_be_imported_is_exit_code_1(module, component, broken):
    done = doctor(f"sys.modules[{module!r}] = None", {"PATH": ""})
    assert done.returncode == 1
    assert f"broken   {component}" in done.stdout
    assert f"broken   {broken}" in done.stdout
    assert f"get it: pip install '{component}" in done.stdout
    assert "the core does not work: " in done.stderr
    assert "Traceback" not in done.stderr
    assert "missing  R (optional)" in done.stdout  # and it went on to the end


def test_installing_cmdstan_needs_cmdstanpy():
    done = doctor("sys.modules['cmdstanpy'] = None", options=("--install-cmdstan",))
    assert (done.returncode, done.stdout) == (1, "")
    assert "[DPS401]" in done.stderr
    assert "pip install 'dpsurvey[stan]'" in done.stderr


def test_libraries_missing_and_too_old():
    missing = library(Requirement("no-such-library"), "pip install it", needed=True)
    assert (missing.status, missing.remedy) == ("missing", "pip install it")
    old = library(Requirement("numpy>=1000"), "pip install it", needed=True)
    assert old.status == "broken"
    assert ">=1000 is needed" in old.found
    assert not works([missing])
    assert not works([old])
    assert works([Check("x", False, "missing", "")])


def test_an_attempt_keeps_the_first_line_of_an_error():
    def fail():
        raise OSError("first\nsecond")

    assert attempt("x", "do it", fail) == Check("x", True, "broken", "OSError: first", "do it")


def test_compile_cache(tmp_path):
    assert compile_cache(str(tmp_path)).status == "ok"
    for folder in (None, str(tmp_path / "none")):
        assert compile_cache(folder).status == "note"
        assert "NUMBA_CACHE_DIR" in compile_cache(folder).remedy


@pytest.mark.skipif(os.access("/proc/self", os.W_OK), reason="needs a folder that nobody can write")
def test_compile_cache_that_cannot_be_written():
    assert "cannot be written" in compile_cache("/proc/self").found


def test_r_missing_broken_and_present(tmp_path):
    (missing,) = in_r(None)
    assert (missing.component, missing.status) == ("R", "missing")
    (broken,) = in_r(program(tmp_path / "Rscript", "echo no R here >&2; exit 3"))
    assert (broken.status, broken.found) == ("broken", "RuntimeError: no R here")
    bare = list(in_r(program(tmp_path / "R2", "echo 4.2.2")))
    assert [check.status for check in bare] == ["ok", "missing", "missing", "missing"]
    full = list(in_r(program(tmp_path / "R3", "printf '4.5.0\\n0.980\\n1.45\\n0.1.0'")))
    assert [(check.component, check.found.split(" ")[0]) for check in full] == [
        ("R", "4.5.0"), ("sbgcop", "0.980"), ("reticulate", "1.45"), ("dpsurvey for R", "0.1.0"),
    ]  # fmt: skip


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_the_real_r_answers():
    r, *packages = in_r(shutil.which("Rscript"))
    assert (r.component, r.status) == ("R", "ok")
    assert len(packages) == 3


def test_rpy2_is_looked_at_from_outside():
    found = rpy2()
    assert found.status in ("ok", "missing", "broken")
    assert found.status != "ok" or "R version" in found.found


def test_cmdstan(tmp_path):
    assert cmdstan(None, tmp_path).status == "missing"
    empty = tmp_path / "empty"
    empty.mkdir()
    assert cmdstan(str(empty), tmp_path).found == f"FileNotFoundError: {empty} has no bin/stanc"
    for number in ("2.9.0", "2.35.0", "2.34.1"):
        program(tmp_path / ".cmdstan" / f"cmdstan-{number}" / "bin" / "stanc", f"echo stanc {number}")
    newest = cmdstan(None, tmp_path)
    assert (newest.status, newest.found.split(", ")[1]) == ("ok", "stanc 2.35.0")
    named = cmdstan(str(tmp_path / ".cmdstan" / "cmdstan-2.9.0"), tmp_path)
    assert named.found.endswith("stanc 2.9.0")
    program(tmp_path / "bad" / "bin" / "stanc", "exit 2")
    assert cmdstan(str(tmp_path / "bad"), tmp_path).found == "RuntimeError: exit code 2"
