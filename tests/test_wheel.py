"""The wheel alone, in an empty environment: what a user of `pip install dpsurvey` has."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest


def run(*command: str | Path, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=900, **options
    )


def python_blocks(markdown: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", markdown, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    built = run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, root)
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """The interpreter of a new environment that holds the wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("installed")
    assert run(sys.executable, "-m", "venv", folder).returncode == 0
    python = folder / "bin" / "python"
    done = run(python, "-m", "pip", "install", "--quiet", f"dpsurvey[plot] @ file://{wheel}")
    if done.returncode != 0 and "CI" not in os.environ and "No matching distribution" in done.stderr:
        pytest.skip("no package index can be reached to install the wheel's dependencies from")
    assert done.returncode == 0, done.stderr
    return python


def test_wheel_holds_programs_code_and_data(wheel: Path, root: Path):
    names = zipfile.ZipFile(wheel).namelist()
    shared = {
        "stan": root / "stan",
        "r_bridge/R": root / "r_bridge" / "R",
        "data/nhanes_2017": root / "data" / "nhanes_2017",
    }
    for name, folder in shared.items():
        wanted = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
        assert wanted
        assert wanted <= {Path(n).name for n in names if n.startswith(f"dpsurvey/_shared/{name}/")}
    assert "dpsurvey/py.typed" in names
    assert "dpsurvey/__init__.pyi" in names


def test_readme_runs_from_the_wheel(installed: Path, root: Path, tmp_path: Path):
    blocks = python_blocks((root / "README.md").read_text(encoding="utf-8"))
    assert blocks
    script = tmp_path / "quick_start.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = run(installed, "-W", "error", script, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    where = run(installed, "-c", "import dpsurvey; print(dpsurvey.__file__)", cwd=tmp_path, env=environment)
    assert str(root) not in where.stdout
    assert (tmp_path / "correlations.png").stat().st_size > 10_000


def test_command_line_from_the_wheel(installed: Path, tmp_path: Path):
    done = run(
        installed.parent / "dpsurvey",
        "doctor",
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
