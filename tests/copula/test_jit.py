"""Compiled kernels: cached where a folder can be written, compiled anew where none can."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpsurvey.copula.jit import njit
from dpsurvey.copula.tilting import tilted_moments

PROGRAM = """
import numpy as np
import dpsurvey
from dpsurvey.copula import tilting
from dpsurvey.copula.quadrant import QuadrantLaw
print(dpsurvey.__file__)
print(float(QuadrantLaw(100).mean(1.0)))
print(tilting.tilted_moments.stats.cache_path)
"""


def run(package: Path, **environment: str) -> list[str]:
    """Return the lines that the program prints when `package` is the folder on the path."""
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "XDG", "PYTHON"))
    }
    result = subprocess.run(
        [sys.executable, "-B", "-c", PROGRAM],
        env={**clean, "PYTHONPATH": str(package), **environment},
        cwd=package,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout.splitlines()


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Path:
    """Return a folder with a copy of the package, without compiled files."""
    shutil.copytree(root / "dpsurvey", tmp_path / "dpsurvey", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_kernels_are_cached_beside_the_package(copy: Path) -> None:
    where, mean, cache = run(copy, HOME=str(copy))
    assert where.startswith(str(copy))
    assert Path(cache) == copy / "dpsurvey" / "copula" / "__pycache__"
    assert list(Path(cache).glob("tilting.*.nbi"))
    assert run(copy, HOME=str(copy)) == [where, mean, cache]  # and read back


def test_kernels_work_where_nothing_can_be_written(copy: Path) -> None:
    # Root writes through permission bits, so the folders are made impossible instead: each __pycache__ is a file,
    # and the home directory lies below one.
    for folder in {file.parent for file in (copy / "dpsurvey").rglob("*.py")}:
        (folder / "__pycache__").write_text("not a folder")
    where, mean, cache = run(copy, HOME="/dev/null/nowhere")
    assert where.startswith(str(copy))
    assert cache == "None"
    assert float(mean) == pytest.approx(tilted_moments(_weights(), 1.0)[1])
    assert not list(copy.rglob("*.nbi"))


def _weights() -> np.ndarray:
    from dpsurvey.copula.quadrant import QuadrantLaw

    return QuadrantLaw(100).log_weights


def test_other_errors_of_numba_are_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    def broken(**options: object) -> None:
        raise RuntimeError("something else")

    monkeypatch.setattr(numba, "njit", broken)
    with pytest.raises(RuntimeError, match="something else"):
        njit(_weights)


def test_division_by_zero_follows_numpy() -> None:
    @njit
    def ratio(a: float, b: float) -> float:
        return a / b

    assert ratio(1.0, 0.0) == np.inf
    assert ratio.targetoptions["nogil"]


def test_a_kernel_is_compiled_anew_when_one_it_calls_changes(copy: Path) -> None:
    # The callee lives in another file than the caller, whose own file does not change.
    package = copy / "dpsurvey" / "copula"
    (package / "one.py").write_text(
        "from dpsurvey.copula.jit import njit\n@njit\ndef inner(x):\n    return x + 1.0\n"
    )
    (package / "two.py").write_text(
        "from dpsurvey.copula.jit import njit\nfrom dpsurvey.copula.one import inner\n"
        "@njit\ndef outer(x):\n    return 2.0 * inner(x)\n"
    )
    program = "from dpsurvey.copula.two import outer; print(outer(1.0), sum(outer.stats.cache_hits.values()))"

    def call() -> str:
        result = subprocess.run(
            [sys.executable, "-B", "-c", program],
            env={**os.environ, "PYTHONPATH": str(copy)},
            cwd=copy,
            capture_output=True,
            text=True,
            check=True,
        )
        return result.stdout.strip()

    assert call() == "4.0 0"
    assert call() == "4.0 1"
    (package / "one.py").write_text((package / "one.py").read_text().replace("1.0", "11.0"))
    assert call() == "24.0 0"
    assert call() == "24.0 1"
