"""Every study from the command line, with two runs a cell."""

import pandas as pd
import pytest
from matplotlib.image import imread
from typer.testing import CliRunner

from dpsurvey.cli import app
from dpsurvey.study import studies
from dpsurvey.study.mechanism_laws import laws
from dpsurvey.study.studies import STUDIES

KEYS = {"figS1": [], "joint3": ["coverage_se", "length_se"], "table1": ["coverage_se", "length_se"],
        "better": ["coverage_se", "gain_se"], "regression": ["coverage_se", "length_se"]}  # fmt: skip


@pytest.fixture
def fewer_cells(monkeypatch):
    """Keep the two smallest epsilons of the smallest n: all parts of a report at a fraction of the time."""
    from dataclasses import replace

    for name, study in STUDIES.items():
        kept = [
            cell
            for cell in study.cells
            if cell.n <= (500 if name == "regression" else 200)
            and cell.epsilon in (0.5, 1.0)
            and not (cell.p == 2 and cell.n > 50)
        ]
        monkeypatch.setitem(studies.STUDIES, name, replace(study, cells=tuple(kept)))


@pytest.mark.parametrize("name", STUDIES)
def test_study_writes_table_figure_and_text(name, fewer_cells, tmp_path):
    result = CliRunner().invoke(app, ["study", name, "--runs", "2", "-o", str(tmp_path), "--seed", "1"])
    assert result.exit_code == 0, result.output
    table = pd.read_csv(tmp_path / f"{name}.csv")
    assert len(table) > 0
    for column in KEYS.get(name, ["coverage_se"] if name == "figS3" else ["mae_se"]):
        assert (table[column].dropna() >= 0).all()
    text = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert f"dpsurvey study {name} --runs 2" in text
    assert "commit" in text
    assert text in result.output
    assert imread(tmp_path / f"{name}.png").std() > 0.01
    before = (tmp_path / f"{name}.csv").read_bytes()
    again = CliRunner().invoke(app, ["study", name, "--runs", "2", "-o", str(tmp_path), "--seed", "1"])
    assert again.exit_code == 0
    assert (tmp_path / f"{name}.csv").read_bytes() == before


def test_unknown_study_is_wrong_usage():
    assert CliRunner().invoke(app, ["study", "table2"]).exit_code == 2


def test_other_seed_in_the_same_folder_is_refused_in_words(fewer_cells, tmp_path):
    arguments = ["study", "figS4", "--runs", "2", "-o", str(tmp_path)]
    assert CliRunner().invoke(app, [*arguments, "--seed", "1"]).exit_code == 0
    refused = CliRunner().invoke(app, [*arguments, "--seed", "2"])
    assert refused.exit_code == 1
    assert "other settings" in refused.output


def test_mechanism_laws_are_laws():
    table = laws(50, (0.25,), (5,))
    sums = table.groupby("mechanism")["probability"].sum()
    assert sums.drop("Geometric").to_numpy() == pytest.approx(1.0, abs=1e-9)
    assert sums["Geometric"] < 1.0
    btgm = table[table["mechanism"] == "BTGM"]["value"]
    assert 0.0 < btgm.min() < btgm.max() < 25.0
