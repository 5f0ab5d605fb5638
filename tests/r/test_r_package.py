"""The R package: built and checked whole, its README run as printed, its draws those of Python."""

import json
import os
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

import dpsurvey as dps


def run(*command, env, cwd=None):
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env, cwd=cwd)


def test_build_and_check_without_errors_or_warnings(root, r_environment, tmp_path):
    """``R CMD check`` runs the examples, the testthat tests and the vignette against this very Python."""
    source = shutil.copytree(root / "r_bridge", tmp_path / "r_bridge")
    built = run("R", "CMD", "build", str(source), env=r_environment, cwd=tmp_path)
    assert built.returncode == 0, built.stdout + built.stderr
    (archive,) = tmp_path.glob("dpsurvey_*.tar.gz")
    # The build has just made the vignette; the check runs its code once more, and need not make it again.
    options = ("--no-manual", "--no-build-vignettes")
    checked = run("R", "CMD", "check", *options, archive.name, env=r_environment, cwd=tmp_path)
    log = checked.stdout + checked.stderr
    status = re.search(r"^Status: (.*)$", log, re.MULTILINE)
    assert status is not None, log[-6000:]
    assert "ERROR" not in status[1], log[-6000:]
    assert "WARNING" not in status[1], log[-6000:]
    told = (tmp_path / "dpsurvey.Rcheck" / "tests" / "testthat.Rout").read_text()
    passed = re.search(r"FAIL 0 \| WARN 0 \| SKIP (\d+) \| PASS (\d+)", told)
    assert passed is not None, told[-3000:]
    assert int(passed[1]) <= 2, told[-3000:]  # sbgcop absent; the system's Python absent or too good
    assert int(passed[2]) > 100
    vignette = tmp_path / "dpsurvey.Rcheck" / "dpsurvey" / "doc" / "dpsurvey.html"
    text = vignette.read_text()
    assert "nothing below was run" not in text
    assert "NOT PRIVATE" in text


def r_blocks(path):
    return re.findall(r"^```r\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)


def test_readme_examples_run_as_printed(root, r_library, tmp_path):
    blocks = {path: r_blocks(path) for path in (root / "README.md", root / "r_bridge" / "README.md")}
    assert blocks[root / "r_bridge" / "README.md"]
    for path, found in blocks.items():
        for number, code in enumerate(found):
            script = tmp_path / f"{path.parent.name}_{number}.R"
            script.write_text(code)
            done = run("Rscript", str(script), env=r_library, cwd=tmp_path)
            assert done.returncode == 0, f"{path.name} block {number}:\n{done.stdout}{done.stderr}"
            assert "Bayes-NA" in done.stdout or "dp_" not in code


def test_r_and_python_draw_the_same_numbers(r_library, r_session, golden, tmp_path):
    """One seed, one engine: the draws of R's dp_erl() are those of erl() through rpy2."""
    data = golden / "sbgcop" / "c.csv"
    code = """
    arguments <- commandArgs(TRUE)
    data <- read.csv(arguments[1])
    fit <- dpsurvey::dp_erl(data, engine = "r", draws = 150, burn_in = 30, chains = 2, odens = 2, seed = 11)
    jsonlite::write_json(fit$values, arguments[2], digits = NA)
    """
    (tmp_path / "draw.R").write_text(code)
    out = tmp_path / "draws.json"
    done = run("Rscript", str(tmp_path / "draw.R"), str(data), str(out), env=r_library)
    assert done.returncode == 0, done.stderr
    posterior = dps.erl(
        pd.read_csv(data), engine="r", draws=150, burn_in=30, chains=2, odens=2, seed=11, progress=False
    )
    upper = np.triu_indices(4, 1)
    here = posterior.draws[:, :, upper[0], upper[1]].ravel()
    np.testing.assert_allclose(json.loads(out.read_text()), here, atol=1e-12)


def test_a_release_of_R_is_a_release_of_python(r_library, tmp_path):
    code = """
    data <- data.frame(id = 1:60, "a b" = sin(1:60), "c*d" = cos(1:60), check.names = FALSE)
    attr(data[["a b"]], "label") <- "Sine"
    release <- dpsurvey::dp_release(data, 2, id = "id", mechanism = "rgm")
    dpsurvey::dp_write_release(release, commandArgs(TRUE)[1])
    """
    (tmp_path / "release.R").write_text(code)
    file = tmp_path / "r.release.json"
    done = run("Rscript", str(tmp_path / "release.R"), str(file), env=r_library)
    assert done.returncode == 0, done.stderr
    release = dps.Release.load(file)
    assert release.variables == ("a b", "c*d")
    assert release.labels == {"a b": "Sine"}
    assert (release.n, release.epsilon, release.mechanism, release.secure) == (60, 2.0, "rgm", True)


@pytest.fixture
def r_session():
    from dpsurvey.baselines.rbridge import open_r
    from dpsurvey.errors import MissingDependencyError

    try:
        return open_r()
    except MissingDependencyError as error:
        if os.environ.get("CI"):
            pytest.fail(f"continuous integration lacks rpy2: {error.detail}")
        pytest.skip(f"rpy2 is not to be had here: {error.detail}")
