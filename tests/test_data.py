"""The shipped survey files: what the manifest says, what they hold, and the program that built them."""

from __future__ import annotations

import hashlib
import json
import runpy

import numpy as np
import pandas as pd
import pyreadstat
import pytest

import dpsurvey as dps

DIET = ["DR1TKCAL", "DR1TSUGR", "DR1TFIBE", "DR1TSFAT", "INDFMPIR", "BMXBMI", "LBDHDD"]


@pytest.fixture(scope="module")
def manifest(root):
    return json.loads((root / "data" / "manifest.json").read_text())


def test_manifest_lists_every_file_as_it_is(root, manifest):
    on_disk = {path.relative_to(root / "data").as_posix() for path in (root / "data").rglob("*.xpt")}
    assert {entry["file"] for entry in manifest} == on_disk
    for entry in manifest:
        content = (root / "data" / entry["file"]).read_bytes()
        assert entry["size"] == len(content)
        assert entry["sha256"] == hashlib.sha256(content).hexdigest()
        assert "public domain" in entry["licence"]
        assert entry["origin"]
        survey = dps.read_survey(root / "data" / entry["file"])
        assert (entry["rows"], entry["columns"]) == (len(survey), list(survey.columns))


def test_rebuilt_files_are_called_rebuilt(manifest):
    for entry in manifest:
        rebuilt = entry["file"].startswith("nhanes_2017/")
        assert ("not an original CDC file" in entry["origin"]) == rebuilt


def test_example_files_merge_into_the_documented_table(capsys):
    survey, book = dps.read_survey(*dps.example_files(), on="SEQN", return_codebook=True)
    assert survey.shape == (8366, 9)
    assert survey.index.dtype == np.int64
    assert set(survey.dtypes) == {np.dtype("float64")}
    assert all(book.labels[name] for name in survey)
    assert len(dps.nhanes.complete(survey, DIET)) == 5349
    adults = dps.read_survey(*dps.example_files(), on="SEQN", columns=DIET, where="RIDAGEYR >= 20")
    complete = dps.nhanes.complete(adults)
    assert complete.shape == (3934, 7)
    assert "3,934 of 5,265 rows are complete" in capsys.readouterr().out
    rank = complete.corr(method="spearman")
    assert rank.loc["LBDHDD", "BMXBMI"] == pytest.approx(-0.32, abs=0.005)
    assert rank.where(rank < 1).max().max() == pytest.approx(0.81, abs=0.005)


def test_zeros_are_zeros():
    survey = dps.read_survey(*dps.example_files(), on="SEQN")
    size = survey.abs().to_numpy()
    assert not ((size > 0) & (size < 1e-3)).any()
    assert (survey == 0).sum().to_dict() == {
        "RIDAGEYR": 0, "RIAGENDR": 0, "INDFMPIR": 80, "DR1TKCAL": 1, "DR1TSUGR": 2,
        "DR1TFIBE": 14, "DR1TSFAT": 5, "BMXBMI": 0, "LBDHDD": 0,
    }  # fmt: skip


def test_example_values_agree_with_other_copies_of_the_same_survey(shared):
    ours = dps.read_survey(*dps.example_files(), on="SEQN")
    theirs = dps.read_survey(
        shared / "nhanes" / "DEMO_J_rebuilt.xpt", shared / "nhanes" / "DR1TOT_J_subset_rebuilt.xpt", on="SEQN"
    ).reindex(ours.index)
    common = ["RIDAGEYR", "RIAGENDR", "INDFMPIR", "DR1TKCAL", "DR1TSUGR", "DR1TFIBE", "DR1TSFAT"]
    in_both = theirs["DR1TKCAL"].notna()
    assert in_both.sum() > 7000
    pd.testing.assert_frame_equal(ours.loc[in_both, common], theirs.loc[in_both, common])


def test_the_program_that_built_the_files(root, tmp_path, monkeypatch):
    """On a collection of three people laid out like the real one."""
    built = runpy.run_path(str(root / "data" / "build.py"))
    names = [
        "RIDAGEYR",
        "RIAGENDR",
        "INDFMPIR",
        "DR1TKCAL",
        "DR1TSUGR",
        "DR1TFIBE",
        "DR1TSFAT",
        "BMXBMI",
        "LBDHDD",
    ]
    metadata = pd.DataFrame(
        {"VariableNameLong": [f"Long{n}" for n in names], "Variable": names, "SASLabel": "A label "}
    )
    values = pd.DataFrame({f"Long{n}": [1.0, 5.397605346934028e-79, None] for n in names})
    values["LongRIAGENDR"] = ["Male", "Female", "Female"]
    values.insert(0, "SEQN", [1.0, 2.0, 3.0])
    values.to_csv(tmp_path / "NHANES_data_2017-2018.tsv", sep="\t", index=False)
    metadata.to_csv(tmp_path / "NHANES_metadata_2017-2018.tsv", sep="\t", index=False)
    table, labels = built["read_collection"](tmp_path)
    assert table["INDFMPIR"].tolist()[:2] == [1.0, 0.0]
    assert table["RIAGENDR"].tolist() == [1.0, 2.0, 2.0]
    assert labels["BMXBMI"] == "A label"
    monkeypatch.setitem(built["write_components"].__globals__, "HERE", tmp_path)
    built["write_components"](table, labels)
    frame, meta = pyreadstat.read_xport(str(tmp_path / "nhanes_2017" / "DEMO_J.xpt"))
    assert frame.columns.tolist() == ["SEQN", "RIDAGEYR", "RIAGENDR", "INDFMPIR"]
    assert meta.table_name == "DEMO_J"
    entry = built["describe"](tmp_path / "nhanes_2017" / "DEMO_J.xpt", {"origin": "here"})
    assert entry["rows"] == 3
    assert entry["file"] == "nhanes_2017/DEMO_J.xpt"
