"""The door that R calls: named errors and warnings come back as values."""

import numpy as np
import pandas as pd
import pytest

from dpsurvey import rdoor


def column(name, values, kind="double", levels=()):
    return {"name": name, "kind": kind, "values": list(values), "levels": list(levels)}


@pytest.fixture
def table():
    rng = np.random.default_rng(1)
    a = rng.standard_normal(300)
    columns = [column("a", a), column("b", 0.8 * a + 0.6 * rng.standard_normal(300)), column("c", a**2)]
    return {
        "columns": columns,
        "id": None,
        "labels": {"names": "a", "texts": "First"},
        "filters": [],
        "round_to": None,
    }


def test_from_table_to_regression(table, tmp_path):
    path = str(tmp_path / "ledger.json")
    assert "budget 2.0, spent 0, remaining 2.0" in rdoor.create_ledger(path, "test", 2.0)["value"]
    released = rdoor.release(table, 1.5, {"ledger": path, "key_seed": "5"})
    assert released["warnings"] == []
    value = released["value"]
    assert value["variables"] == ["a", "b", "c"]
    assert value["secure"] is True
    file = rdoor.write_release(value["json"], str(tmp_path / "r.json"))["value"]
    assert rdoor.read_release(file)["value"]["json"] == value["json"]
    posterior = rdoor.bayes_na(value["json"], 100.0, 2.0, 3.0, "gibbs", True, 1.0, False)["value"]
    assert len(posterior["values"]) == 2 * 100 * 3
    assert posterior["labels"] == {"names": ["a"], "texts": ["First"]}
    summary = {part["name"]: part["values"] for part in rdoor.summary(posterior, 0.95)["value"]}
    assert summary["var1"] == ["a", "a", "b"]
    fit = rdoor.regress(posterior, "a", "b", 0.9)["value"]
    assert fit["terms"] == ["b"]
    assert len(fit["coefficients"]) == 200
    repeated = rdoor.release(table, 1.5, {"ledger": path, "key_seed": "5"})
    assert repeated["kind"] == "ReleaseExists"
    assert file in repeated["error"]
    overspent = rdoor.release(table, 1.5, {"ledger": path, "key_seed": "5", "again": True})
    assert overspent["kind"] == "BudgetExceededError"
    assert overspent["code"] == "DPS301"


def test_estimates_and_comparisons(table):
    released = rdoor.release(table, 5.0, {})
    assert released["warnings"][0]["kind"] == "NoLedgerWarning"
    text = released["value"]["json"]
    estimate = rdoor.mle_nn(text, "btgm")["value"]
    assert estimate["kind"] == "estimate"
    refused = rdoor.regress(estimate, "a", ["b"], 0.95)
    assert refused["kind"] == "ArgumentTypeError"
    erl = rdoor.erl(table, None, {"draws": 100.0, "chains": 2.0, "seed": 1.0, "progress": False})["value"]
    assert erl["private"] is False
    both = rdoor.compare([estimate, erl], 0.95, ["ours", "rows"])["value"]
    assert both["reference"] == "rows"
    assert both["private"] is False
    assert "NOT PRIVATE" in both["text"]


def test_a_plan_and_what_R_makes_of_it(table):
    settings = {"draws": 4.0, "burn_in": 1.0, "chains": 2.0, "odens": 1.0, "seed": 7.0}
    settings |= {"S0": np.eye(2).ravel().tolist(), "n0": 5.0, "plugin_threshold": 100.0}
    plan = rdoor.erl_plan(table, ["a", "b"], settings)["value"]
    codes = np.reshape(plan["codes"], (2, 300))
    a = pd.Series(table["columns"][0]["values"])
    np.testing.assert_array_equal(codes[0], a.rank() - 1)
    assert plan["nsamp"] == 5.0
    drawn = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    made = rdoor.erl_result(table, ["a", "b"], settings, "r", drawn, {"R": "4.2.2"})["value"]
    assert made["values"] == drawn
    assert made["engine"] == "r"
    assert made["labels"] == {"names": ["a"], "texts": ["First"]}
    assert '"R": "4.2.2"' in made["info"]


def test_refusals_name_columns_and_settings(table):
    constant = {**table, "columns": [table["columns"][0], column("k", [1.0] * 300)]}
    assert "'k' is constant" in rdoor.erl_plan(constant, None, {"seed": 1.0})["error"]
    assert rdoor.erl(table, None, {"draws": 1.5})["kind"] == "ArgumentError"
    assert rdoor.erl(table, "a", {})["kind"] == "DomainError"
    assert rdoor.release(table, 1.0, {"columns": ["a", "z"]})["kind"] == "UnknownNameError"
    report = rdoor.preflight({**table, "columns": [column("t", [1.0] * 300, "text", ["x"])]}, None)["value"]
    assert report["ok"] is False
    assert "dtype" in report["code"]


def test_files_are_read(tmp_path):
    file = tmp_path / "a.csv"
    pd.DataFrame({"SEQN": [3, 1, 2, 4], "x": [0.5, 9.0, np.nan, 2.0]}).to_csv(file, index=False)
    options = {"on": "SEQN", "columns": {"x": "X"}, "missing_codes": {"x": 9.0}, "round_to": 0.0}
    value = rdoor.read_survey(str(file), options)["value"]
    parts = {part["name"]: part["values"] for part in value["columns"]}
    assert list(parts) == ["SEQN", "X"]
    assert np.isnan(parts["X"]).tolist() == [False, True, True, False]
    assert value["round_to"] == 0
    assert rdoor.read_survey(str(tmp_path / "no.csv"), {})["kind"] == "MissingFileError"


def test_versions():
    assert {"python", "dpsurvey", "numpy", "pandas"} <= set(rdoor.versions()["value"])
