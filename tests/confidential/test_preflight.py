"""All problems at once, the same ones that a release refuses, and no value shown."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

import dpsurvey as dps
from dpsurvey.confidential.domain import check_domain, select_columns
from dpsurvey.confidential.findings import tied_at_median
from dpsurvey.errors import ArgumentTypeError, DomainError, DpsurveyError

CANARY = 8675309


def codes(found) -> set[tuple[str | None, str]]:
    return {(problem.column, problem.code) for problem in found}


def accepted(table: pd.DataFrame, columns: list[str] | None = None) -> bool:
    """Whether a release would take the table."""
    try:
        check_domain(table, select_columns(table, columns))
    except DpsurveyError:
        return False
    return True


GOOD = {
    "float64": np.array([1.0, 2.0, 3.0, 4.5]),
    "float32": np.array([1, 2, 3, 4], dtype="float32"),
    "int64": np.array([1, 2, 3, 4]),
    "uint8": np.array([1, 2, 3, 4], dtype="uint8"),
    "bool": np.array([True, False, True, False]),
    "Int64": pd.array([1, 2, 3, 4], dtype="Int64"),
    "Float64": pd.array([1.0, 2.0, 3.0, 4.0], dtype="Float64"),
    "boolean": pd.array([True, False, True, False], dtype="boolean"),
    "ordered": pd.Categorical(["lo", "hi", "lo", "hi"], categories=["lo", "hi"], ordered=True),
}
BAD = {
    "object": (np.array(["a", "b", "c", "d"], dtype=object), "dtype"),
    "mixed": (np.array([1, "b", 2.0, None], dtype=object), "dtype"),
    "lists": (pd.Series([[1], [2], [3], [4]]), "dtype"),
    "unordered": (pd.Categorical(["lo", "hi", "lo", "hi"]), "dtype"),
    "datetime": (pd.date_range("2020-01-01", periods=4), "dtype"),
    "timedelta": (pd.to_timedelta([1, 2, 3, 4], unit="D"), "dtype"),
    "complex": (np.array([1j, 2, 3, 4]), "dtype"),
    "times": (pd.Series([datetime.time(1)] * 4), "dtype"),
    "nan": (np.array([1.0, np.nan, 3.0, 4.0]), "missing"),
    "NA": (pd.array([1, None, 3, 4], dtype="Int64"), "missing"),
    "inf": (np.array([1.0, np.inf, -np.inf, 4.0]), "infinite"),
    "Float64 inf": (pd.array([1.0, np.inf, 3.0, 4.0], dtype="Float64"), "infinite"),
    "all missing": (np.full(4, np.nan), "all_missing"),
    "ordered with missing": (
        pd.Categorical(["lo", None, "lo", "hi"], categories=["lo", "hi"], ordered=True),
        "missing",
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_columns_of_the_domain_pass(name):
    table = pd.DataFrame({"x": [4.0, 3.0, 2.0, 1.0], "y": GOOD[name]})
    report = dps.preflight(table)
    assert report.ok
    assert report.problems == ()
    report.raise_if_bad()
    assert accepted(table)


@pytest.mark.parametrize("name", BAD)
def test_columns_outside_the_domain_are_problems(name):
    values, code = BAD[name]
    table = pd.DataFrame({"x": [4.0, 3.0, 2.0, 1.0], "y": values})
    report = dps.preflight(table)
    assert ("y", code) in codes(report.problems)
    assert {problem.column for problem in report.problems} == {"y"}
    assert not report.ok
    assert not accepted(table)
    with pytest.raises(DomainError, match="'y'"):
        report.raise_if_bad()


def test_arrow_columns():
    pyarrow = pytest.importorskip("pyarrow", reason="Arrow columns need pyarrow, an optional extra")
    number = pd.ArrowDtype(pyarrow.float64())
    table = pd.DataFrame({"x": pd.array([1.0, 2.0, 3.0, 4.0], dtype=number), "y": [1, 2, 3, 4]})
    assert dps.preflight(table).ok
    table["x"] = pd.array([1.0, None, 3.0, 4.0], dtype=number)
    assert codes(dps.preflight(table).problems) == {("x", "missing")}
    table["x"] = pd.array(["a", "b", "c", "d"], dtype=pd.ArrowDtype(pyarrow.string()))
    assert codes(dps.preflight(table).problems) == {("x", "dtype")}


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (pd.DataFrame({"x": [1, 2, 3, 4]}), {(None, "too_few_columns")}),
        (pd.DataFrame({"x": [1, 2], "y": [1, 2]}), {(None, "too_few_rows")}),
        (pd.DataFrame({"x": [1.0] * 4, "y": [1.0] * 4}, index=[1, 1, 2, 3]), {(None, "duplicate_ids")}),
        (
            pd.DataFrame({"x": [1.0] * 4, "y": [1.0] * 4}, index=[1.0, None, 2.0, 3.0]),
            {(None, "missing_ids")},
        ),
        (
            pd.DataFrame(
                {"x": [1.0] * 4, "y": [1.0] * 4}, index=pd.MultiIndex.from_product([[1, 2], [3, 4]])
            ),
            {(None, "multiindex_rows")},
        ),
        (
            pd.DataFrame(np.zeros((4, 2)), columns=pd.MultiIndex.from_product([["a"], ["b", "c"]])),
            {(None, "multiindex_columns")},
        ),
        (pd.DataFrame(np.zeros((4, 3)), columns=["x", "x", "y"]), {("x", "duplicate_name")}),
        (pd.DataFrame(np.zeros((4, 2)), columns=["x", 5]), {("5", "name_not_text")}),
        (pd.DataFrame(), {(None, "too_few_rows"), (None, "too_few_columns")}),
    ],
)
def test_tables_outside_the_domain(table, expected):
    report = dps.preflight(table)
    assert codes(report.problems) == expected
    assert not accepted(table)


def test_columns_asked_for():
    table = pd.DataFrame({"Kcal": [1.0, 2, 3, 4], "Income": [1.0, 2, 3, 4], "S": list("abcd")})
    assert dps.preflight(table, ["Kcal", "Income"]).ok
    report = dps.preflight(table, ["kcal", "Income", "Income"])
    assert codes(report.problems) == {("kcal", "unknown_column"), ("Income", "asked_twice")}
    assert "did you mean 'Kcal'" in str(report)
    assert not accepted(table, ["kcal", "Income", "Income"])
    assert codes(dps.preflight(table, ["Income", "Income"]).problems) == {
        ("Income", "asked_twice"),
        (None, "too_few_columns"),
    }


def test_all_problems_come_at_once():
    table = pd.DataFrame(
        {"a": [1.0, None, 3.0], "b": list("xyz"), "c": [1.0, np.inf, 2.0], "d": [np.nan] * 3}, index=[7, 7, 8]
    )
    assert codes(dps.preflight(table).problems) == {
        (None, "too_few_rows"),
        (None, "duplicate_ids"),
        ("a", "missing"),
        ("b", "dtype"),
        ("c", "infinite"),
        ("d", "all_missing"),
    }


def test_what_is_hardly_meant_is_warned_of_unless_named():
    n = 12
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "SEQN": rng.permutation(n) + CANARY,
            "WTMEC2YR": rng.random(n),
            "SDMVPSU": rng.random(n),
            "RIDRETH3": rng.random(n),
            "row": np.arange(n) + 5,
            "household_id": rng.random(n),
            "WEIGHT": rng.random(n),
            "BMXBMI": rng.random(n),
        }
    )
    report = dps.preflight(table)
    assert report.ok
    assert codes(report.warnings) == {
        ("SEQN", "id"),
        ("WTMEC2YR", "weight"),
        ("SDMVPSU", "design"),
        ("RIDRETH3", "nominal"),
        ("row", "id"),
        ("household_id", "id"),
    }
    assert dps.preflight(table, list(table)).warnings == ()
    assert accepted(table)


def test_what_is_accepted_and_means_little_is_warned_of():
    table = pd.DataFrame(
        {
            "constant": [3.0] * 10,
            "tied": [0.0] * 6 + [1.0, 2.0, 3.0, 4.0],
            "SMD650": [777.0, 999.0, *range(1, 9)],
            "zeros": [5.397605346934028e-79, *range(2, 20, 2)],
            "fine": np.arange(10.0)[::-1] ** 2,
        }
    )
    report = dps.preflight(table)
    assert report.ok
    assert codes(report.warnings) == {
        ("constant", "constant"),
        ("tied", "ties"),
        ("SMD650", "missing_codes"),
        ("zeros", "tiny"),
    }
    assert report.table["tied_at_median"].to_dict() == {
        "constant": 1.0, "tied": 0.6, "SMD650": 0.0, "zeros": 0.0, "fine": 0.0,
    }  # fmt: skip
    assert report.table.loc["constant", "distinct"] == 1


def test_share_tied_at_the_median_is_of_the_value_where_the_halves_meet():
    rng = np.random.default_rng(3)
    for n in (2, 3, 4, 7, 50, 51):
        for _ in range(50):
            values = rng.integers(0, 4, n)
            ordered = np.sort(values)
            meet = ordered[n // 2 - 1] == ordered[n // 2]
            expected = (values == ordered[n // 2]).mean() if meet else 0.0
            assert tied_at_median(pd.Series(values)) == expected
    assert tied_at_median(pd.Series([1.0])) == 0.0


def test_nothing_shows_a_value():
    table = pd.DataFrame(
        {"a": [float(CANARY), np.nan, np.inf, 1.0], "b": [f"secret{CANARY}"] * 4, "c": [CANARY] * 4},
        index=[CANARY, CANARY, 1, 2],
    )
    report = dps.preflight(table)
    for text in (repr(report), str(report), report._repr_html_(), repr(report.table)):
        assert str(CANARY) not in text
        assert "secret" not in text
    with pytest.raises(DomainError) as caught:
        report.raise_if_bad()
    assert str(CANARY) not in str(caught.value)


def test_the_report_says_that_it_is_confidential():
    report = dps.preflight(pd.DataFrame({"<b>": [1.0, 2, 3, 4], "y": list("abcd")}))
    assert "Confidential" in repr(report)
    assert "Confidential" in report._repr_html_()
    assert "&lt;b&gt;" in report._repr_html_()
    assert "guarantee" in dps.preflight.__doc__
    assert "reveals" in dps.preflight.__doc__


def test_arguments_are_checked():
    with pytest.raises(ArgumentTypeError):
        dps.preflight([1, 2])
    with pytest.raises(ArgumentTypeError, match="list"):
        dps.preflight(pd.DataFrame({"x": [1]}), "x")


def test_the_example_table_is_ready_after_complete(capsys):
    survey = dps.read_survey(*dps.example_files(), on="SEQN", where="RIDAGEYR >= 20")
    report = dps.preflight(survey)
    assert ("RIAGENDR", "nominal") in codes(report.warnings)
    assert ("INDFMPIR", "missing") in codes(report.problems)
    assert dps.preflight(dps.nhanes.complete(survey, ["DR1TKCAL", "BMXBMI", "INDFMPIR"])).ok
    assert "confidential" in capsys.readouterr().out
