"""The diet illustration: the script runs on the real files, and the notebook is whole."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location

import numpy as np
import pandas as pd
import pytest

import dpsurvey as dps

pytest.importorskip("matplotlib", reason="the example draws a picture: pip install 'dpsurvey[plot]'")


@pytest.fixture(scope="module")
def example(root):
    """The script as a module."""
    spec = spec_from_file_location("nhanes_diet", root / "examples" / "nhanes_diet.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def ran(root, shared, tmp_path_factory):
    """The folder in which the script ran with few draws and releases, and what it printed."""
    folder = tmp_path_factory.mktemp("diet")
    command = [sys.executable, root / "examples" / "nhanes_diet.py", shared / "nhanes"]
    done = subprocess.run(
        [*command, "--draws", "250", "--releases", "3"],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    return folder, done.stdout


def test_the_script_tells_the_story(ran):
    _, text = ran
    assert "5,820 of 6,491 rows are complete." in text
    assert "Spent 4.0 of a budget of 4.0." in text
    assert "Regression of Kcal on Income, Grain, Dairy, Veg, PF, Sugar (Bayes-NA posterior" in text
    assert "Regression of Kcal on Income, Grain, Dairy, Veg, PF, Sugar (ERL posterior" in text
    assert "Comparison of ε = 1, ε = 3, ERL\n  !!! NOT PRIVATE" in text


def test_the_script_leaves_releases_and_a_picture(ran):
    folder, _ = ran
    for epsilon in (1, 3):
        release = dps.Release.load(folder / "out" / f"diet.epsilon{epsilon}.release.json")
        assert (release.n, release.p, release.epsilon, release.secure) == (5820, 7, epsilon, True)
        assert (release.statistic, release.mechanism) == ("quadrant", "geometric")
        assert release.variables == ("Kcal", "Income", "Grain", "Dairy", "Veg", "PF", "Sugar")
    from matplotlib.image import imread

    height, width, _ = imread(folder / "out" / "nhanes_diet.png").shape
    assert width > height > 1000


def test_repeated_releases_stand_to_the_rows_as_they_should(ran):
    """Three releases at each epsilon: all that holds for any noise that may be expected."""
    folder, _ = ran
    table = pd.read_csv(folder / "out" / "nhanes_diet.csv")
    assert table.groupby("epsilon").size().to_dict() == {1.0: 63, 3.0: 63}
    assert table.groupby("epsilon")["contains"].mean().between(0.75, 1.0).all()
    length = (table["upper"] - table["lower"]).groupby(table["epsilon"]).mean()
    assert abs(length[1.0] - 0.146) < 0.01
    assert abs(length[3.0] - 0.085) < 0.005
    assert (table["erl"] - table["sbgcop"]).abs().max() < 0.005
    kcal = table[(table["epsilon"] == 3) & (table["var1"] == "Kcal")]
    means = kcal.groupby("var2")["estimate"].mean().sort_values(ascending=False)
    assert list(means.index[:2]) == ["Grain", "Sugar"]
    report = (folder / "out" / "nhanes_diet.md").read_text()
    assert "**NOT PRIVATE**" in report
    assert "--releases 3 --draws 250`" in report


def test_the_published_report_follows_from_the_published_intervals(root, example):
    """The table in docs/results: 20 releases at each epsilon, near the shares that were foreseen."""
    results = root / "docs" / "results"
    table, report = pd.read_csv(results / "nhanes_diet.csv"), (results / "nhanes_diet.md").read_text()
    assert table.groupby(["epsilon", "release"]).size().eq(21).all()
    shares = example.share_with_error(table, table["contains"])
    for epsilon, row in shares.iterrows():
        assert table.loc[table["epsilon"] == epsilon, "release"].nunique() == 20
        assert f"| {epsilon:g} | {100 * row['share']:.1f}% ± {100 * row['error']:.1f} |" in report
        assert abs(row["share"] - example.FORESEEN[epsilon]) < 4 * row["error"]
        worst = example.pair_table(table, epsilon).iloc[:2]
        assert set(worst["var1"] + "-" + worst["var2"]) == {"Dairy-PF", "Veg-PF"}
    assert example.first_two(table, 3.0).to_dict() == {"Grain, then Sugar": 20}


def test_share_with_error_takes_releases_as_the_units(example):
    table = pd.DataFrame({"epsilon": 1.0, "release": [1, 1, 2, 2, 3, 3]})
    inside = pd.Series([True, True, True, False, True, True])
    found = example.share_with_error(table, inside).loc[1.0]
    assert found["share"] == pytest.approx(5 / 6)
    assert found["error"] == pytest.approx(np.std([1, 0.5, 1], ddof=1) / np.sqrt(3))


def test_exact_counts_say_the_correlation_of_a_normal_table(example):
    normal = np.random.default_rng(1).multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 20_000)
    found = example.without_noise(pd.DataFrame(normal, columns=["x", "y"]))
    assert (
        abs(found.loc["x", "y"] - 0.6) < 4 * 0.0081
    )  # standard errors, 2 pi sqrt((1 - r^2) q (1/2 - q) / n), q = t/n = .352
    assert found.loc["x", "x"] == 1.0


def test_missing_files_are_named_with_their_sources(root, tmp_path):
    (tmp_path / "DEMO_J.xpt").write_bytes(b"")
    done = subprocess.run(
        [sys.executable, root / "examples" / "nhanes_diet.py", tmp_path],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "no DR1TOT_J.xpt, no fped_dr1tot_1718.sas7bdat" in done.stderr
    assert dps.nhanes.file_url("DR1TOT", "J") in done.stderr
    assert dps.nhanes.file_url("DEMO", "J") not in done.stderr
    assert "ars.usda.gov" in done.stderr


def test_the_files_may_have_either_name(example, tmp_path):
    for name in ("DEMO_J.XPT", "DR1TOT_J_subset_rebuilt.xpt", "fped_dr1tot_1718.sas7bdat"):
        (tmp_path / name).write_bytes(b"")
    assert [path.suffix for path in example.survey_files(tmp_path)] == [".XPT", ".xpt", ".sas7bdat"]


@pytest.fixture(scope="module")
def notebook(root):
    """The notebook's file, and its content."""
    file = root / "examples" / "nhanes_diet.ipynb"
    return file, json.loads(file.read_text(encoding="utf-8"))


def test_the_notebook_is_executed_without_errors(notebook):
    file, content = notebook
    code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert outputs
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    assert [output for output in outputs if "image/png" in output.get("data", {})]
    told = json.dumps(outputs, ensure_ascii=False)
    assert "NOT PRIVATE" in told
    assert "Spent 4.0 of a budget of 4.0." in told
    assert "5,820 of 6,491 rows are complete." in told
    assert file.stat().st_size < 500_000


def test_the_notebook_holds_no_paths_of_a_machine(notebook):
    _, content = notebook
    for cell in content["cells"]:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("image/png", None)
    absolute = r"(?<![\w.:/<])/(?:home|root|tmp|usr|work|opt|var|mnt|Users|builds?)/|[A-Z]:\\\\|site-packages"
    assert re.findall(absolute, json.dumps(content)) == []


def test_the_notebook_and_the_script_analyse_the_same_table(notebook, example):
    _, content = notebook
    code = "\n".join("".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "code")
    for source, name in example.VARIABLES.items():
        assert f'"{source}": "{name}"' in code
    assert 'where="DRDINT == 2 and DRABF == 2"' in code
    assert 'statistic="quadrant", mechanism="geometric"' in code
    assert f"for epsilon in ({', '.join(f'{epsilon:g}' for epsilon in example.EPSILONS)})" in code
