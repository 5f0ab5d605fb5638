"""The declared domain: what lies in it, what does not, all problems at once and never a value."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest

import dpsurvey as dps
from dpsurvey.confidential.domain import (
    as_array,
    check_domain,
    column_problem,
    dtype_name,
    infinite_count,
    missing_count,
    select_columns,
)
from dpsurvey.errors import ArgumentError, ArgumentTypeError, DomainError, UnknownNameError

CANARY = 8675309.25
NUMBERS = [3, 1, 2, 2]


def numeric_columns() -> dict[str, pd.Series]:
    plain = {
        dtype: pd.Series(NUMBERS, dtype=dtype)
        for dtype in (
            "float64", "float32", "float16", "longdouble", "int64", "int8", "uint64", ">f8", ">i2", "Int64", "UInt8",
            "Float64", "Float32", "Sparse[float64]", "Sparse[int64]",
        )
    }  # fmt: skip
    flags = {
        dtype: pd.Series([True, False, True, True], dtype=dtype)
        for dtype in ("bool", "boolean", "Sparse[bool]")
    }
    ordered = pd.Series(pd.Categorical(["b", "a", "a", "c"], categories=["c", "b", "a"], ordered=True))
    return {**plain, **flags, "ordered": ordered}


@pytest.mark.parametrize("dtype", numeric_columns())
def test_real_columns_are_in_the_domain_and_keep_their_order(dtype: str) -> None:
    column = numeric_columns()[dtype]
    assert column_problem(column) is None
    assert missing_count(column) == infinite_count(column) == 0
    array = as_array(column)
    assert array.dtype.kind in "fiu"
    expected = {"ordered": [1, 2, 2, 0]}.get(dtype, [1, 0, 1, 1] if "bool" in dtype else NUMBERS)
    assert array.tolist() == expected
    table = pd.DataFrame({"x": column, "y": column})
    check_domain(table, ("x", "y"))


def arrow_columns() -> dict[str, tuple[object, object]]:
    return {
        "int8[pyarrow]": (NUMBERS, NUMBERS), "uint64[pyarrow]": (NUMBERS, NUMBERS),
        "double[pyarrow]": (NUMBERS, NUMBERS), "float[pyarrow]": (NUMBERS, NUMBERS),
        "bool[pyarrow]": ([True, False, True, True], [1, 0, 1, 1]),
    }  # fmt: skip


@pytest.mark.parametrize("dtype", arrow_columns())
def test_arrow_columns_are_in_the_domain(dtype: str) -> None:
    pytest.importorskip("pyarrow", reason="Arrow columns need pyarrow")
    given, expected = arrow_columns()[dtype]
    column = pd.Series(given, dtype=dtype)
    assert column_problem(column) is None
    assert missing_count(column) == infinite_count(column) == 0
    assert as_array(column).tolist() == expected


def test_arrow_decimals_are_in_the_domain() -> None:
    pa = pytest.importorskip("pyarrow", reason="Arrow columns need pyarrow")
    values = [decimal.Decimal("1.50"), decimal.Decimal("-2.25")]
    column = pd.Series(values, dtype=pd.ArrowDtype(pa.decimal128(10, 2)))
    assert column_problem(column) is None
    assert as_array(column).tolist() == [1.5, -2.25]


BAD_TYPES = {
    "object": pd.Series([CANARY, "8675309.25", None, 2], dtype=object),
    "text": pd.Series(["8675309.25"] * 4, dtype="string"),
    "unordered": pd.Series(pd.Categorical(["8675309.25", "b", "b", "a"])),
    "unordered numbers": pd.Series(pd.Categorical([CANARY, 1, 2, 3])),
    "complex": pd.Series([CANARY * 1j, 1, 2, 3]),
    "datetime": pd.Series(pd.to_datetime(["1986-07-05"] * 4)),
    "zoned": pd.Series(pd.to_datetime(["1986-07-05"] * 4)).dt.tz_localize("UTC"),
    "timedelta": pd.Series(pd.to_timedelta([1, 2, 3, 4], unit="D")),
    "period": pd.Series(pd.period_range("1986-07", periods=4, freq="M")),
    "interval": pd.Series(pd.IntervalIndex.from_breaks([1, 2, 3, 4, CANARY])),
    "sparse text": pd.Series(pd.arrays.SparseArray(["8675309.25", "b", "b", "c"], fill_value="8675309.25")),
    "sparse complex": pd.Series(pd.arrays.SparseArray([CANARY, 1j, 2, 3], fill_value=CANARY)),
    "dates": pd.Series([datetime.date(1986, 7, 5)] * 4, dtype=object),
    "lists": pd.Series([[CANARY]] * 4),
}


@pytest.mark.parametrize("kind", BAD_TYPES)
def test_columns_that_are_no_real_numbers_are_refused_without_a_value(kind: str) -> None:
    problem = column_problem(BAD_TYPES[kind])
    assert problem is not None
    assert "8675309" not in problem
    assert "1986" not in problem
    with pytest.raises(DomainError) as caught:
        check_domain(pd.DataFrame({"x": BAD_TYPES[kind], "y": NUMBERS}), ("x", "y"))
    assert "column 'x'" in str(caught.value)
    assert "8675309" not in str(caught.value)


@pytest.mark.parametrize(
    "dtype", ["date32[pyarrow]", "timestamp[us][pyarrow]", "string[pyarrow]", "null[pyarrow]"]
)
def test_arrow_columns_that_are_no_real_numbers_are_refused(dtype: str) -> None:
    pytest.importorskip("pyarrow", reason="Arrow columns need pyarrow")
    assert column_problem(pd.Series([None] * 4, dtype=dtype)) is not None


def test_a_sparse_dtype_is_named_without_its_fill_value() -> None:
    assert dtype_name(pd.SparseDtype("float64", fill_value=CANARY)) == "Sparse[float64]"
    assert dtype_name(np.dtype("float64")) == "float64"
    assert dtype_name(pd.CategoricalDtype([CANARY])) == "category"


def missing_columns() -> dict[str, pd.Series]:
    unmarked = pd.arrays.FloatingArray(
        np.array([1.0, np.nan, 2.0, np.nan]), np.array([False, False, True, False])
    )
    return {
        "float64": pd.Series([1.0, np.nan, None, np.nan]),
        "Int64": pd.Series([1, None, pd.NA, None], dtype="Int64"),
        "boolean": pd.Series([True, None, None, None], dtype="boolean"),
        "Float64 that holds NaN and NA": pd.Series(unmarked),
        "ordered": pd.Series(pd.Categorical(["a", None, None, None], categories=["a"], ordered=True)),
        "Sparse": pd.Series(pd.arrays.SparseArray([1.0, np.nan, np.nan, np.nan])),
    }


@pytest.mark.parametrize("kind", missing_columns())
def test_missing_cells_of_every_kind_are_counted(kind: str) -> None:
    column = missing_columns()[kind]
    assert missing_count(column) == 3
    with pytest.raises(DomainError, match=r"column 'x': 3 missing cell\(s\)"):
        check_domain(pd.DataFrame({"x": column, "y": NUMBERS}), ("x", "y"))


def test_nan_that_arrow_does_not_call_missing_is_counted() -> None:
    """A median split with NaN in it has no half: it would fail, or be uneven, after epsilon was spent."""
    pa = pytest.importorskip("pyarrow", reason="Arrow columns need pyarrow")
    column = pd.Series(pd.arrays.ArrowExtensionArray(pa.array([1.0, float("nan"), None, 2.0])))
    assert missing_count(column) == 2
    assert infinite_count(column) == 0


@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "float16", "longdouble", "Float64", "Sparse[float64]"]
)
def test_infinite_cells_are_counted(dtype: str) -> None:
    column = pd.Series([1.0, np.inf, -np.inf, 2.0]).astype(dtype)
    assert infinite_count(column) == 2
    with pytest.raises(DomainError, match=r"column 'x': 2 infinite cell\(s\)"):
        check_domain(pd.DataFrame({"x": column, "y": NUMBERS}), ("x", "y"))


def test_large_long_doubles_are_finite() -> None:
    column = pd.Series(np.array([1, 2, 3, 4], dtype=np.longdouble) * np.longdouble("1e4000"))
    assert infinite_count(column) == missing_count(column) == 0


INDEXES = {
    "repeated": (pd.Index([424242, 424242, 424243, 424243]), "2 duplicate row id(s)"),
    "repeated text": (pd.Index(["p424242", "p424242", "p1", "p2"]), "1 duplicate row id(s)"),
    "missing": (pd.Index([424242.0, np.nan, 1.0, 2.0]), "missing row id(s)"),
    "missing text": (pd.Index(["p424242", None, "a", "b"], dtype=object), "missing row id(s)"),
    "fractions": (pd.Index([424242.5, 1.0, 2.0, 3.0]), "neither whole numbers nor text"),
    "objects": (pd.Index([424242, "a", 1.5, 2], dtype=object), "neither whole numbers nor text"),
    "dates": (pd.date_range("1986-07-05", periods=4), "neither whole numbers nor text"),
    "MultiIndex": (pd.MultiIndex.from_tuples([(424242, i) for i in range(4)]), "MultiIndex"),
}


@pytest.mark.parametrize("kind", INDEXES)
def test_ids_outside_the_domain_are_refused_by_count(kind: str) -> None:
    index, message = INDEXES[kind]
    with pytest.raises(DomainError) as caught:
        check_domain(pd.DataFrame({"x": NUMBERS, "y": NUMBERS}, index=index), ("x", "y"))
    assert message in str(caught.value)
    assert "424242" not in str(caught.value)
    assert "1986" not in str(caught.value)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_too_few_rows(n: int) -> None:
    with pytest.raises(DomainError, match=rf"{n} row\(s\), and at least 4"):
        check_domain(pd.DataFrame({"x": NUMBERS, "y": NUMBERS}).iloc[:n], ("x", "y"))


def test_all_problems_come_in_one_message() -> None:
    df = pd.DataFrame(
        {
            "text": ["a", "b", "c"],
            "gaps": [1.0, np.nan, 2.0],
            "endless": [1.0, np.inf, 2.0],
            "when": pd.date_range("2020", periods=3),
            "fine": [1, 2, 3],
        },
        index=[7, 7, 8],
    )
    with pytest.raises(DomainError) as caught:
        check_domain(df, tuple(df.columns))
    text = str(caught.value)
    for part in (
        "3 row(s)",
        "1 duplicate",
        "'text'",
        "'gaps'",
        "1 missing",
        "'endless'",
        "1 infinite",
        "'when'",
    ):
        assert part in text
    assert "fine" not in text
    assert "preflight" in text


def test_columns_that_are_not_released_do_not_matter() -> None:
    df = pd.DataFrame({"x": NUMBERS, "y": NUMBERS, "text": list("abcd"), "gaps": [1.0, None, None, None]})
    check_domain(df, ("x", "y"))


# --- names

TABLE = pd.DataFrame({"Kcal": NUMBERS, "Grain": NUMBERS, "Sugar": NUMBERS})


def test_names_default_to_all_columns_in_order() -> None:
    assert select_columns(TABLE, None) == ("Kcal", "Grain", "Sugar")
    for columns in (["Sugar", "Kcal"], ("Sugar", "Kcal"), pd.Index(["Sugar", "Kcal"]), np.array(["Sugar", "Kcal"]),
                    {"Sugar": 1, "Kcal": 2}, (name for name in ("Sugar", "Kcal"))):  # fmt: skip
        assert select_columns(TABLE, columns) == ("Sugar", "Kcal")


def test_odd_names_are_names() -> None:
    names = ["a b", "a * b", "a ~ b", "a vs b", "é", "", " ", "dpcopula"]
    df = pd.DataFrame(np.ones((4, len(names))), columns=pd.Index(names, dtype=object))
    assert select_columns(df, None) == tuple(names)


def test_unknown_names_come_with_near_ones() -> None:
    with pytest.raises(UnknownNameError) as caught:
        select_columns(TABLE, ["kcal", "Sugar", "Fat"])
    assert "2 columns not in the table: 'kcal' (did you mean 'Kcal'?), 'Fat'" in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ("Kcal", ArgumentTypeError, "list of names"),
        (["Kcal", "Kcal"], ArgumentError, "twice"),
        (["Kcal"], DomainError, "too few columns"),
        ([], DomainError, "too few columns"),
        (5, ArgumentTypeError, "list of names"),
        ([1, 2], DomainError, "not text"),
        ([["Kcal"], "Grain"], DomainError, "not text"),
        ([None, "Grain"], DomainError, "not text"),
        (["\udc80", "Grain"], DomainError, "not text"),
    ],
    ids=repr,
)
def test_names_that_cannot_be_used(columns, error, message: str) -> None:
    with pytest.raises(error, match=message):
        select_columns(TABLE, columns)


def test_tables_whose_names_cannot_be_used() -> None:
    twice = pd.DataFrame(np.ones((4, 3)), columns=["a", "b", "a"])
    for columns in (None, ["a", "b"]):
        with pytest.raises(DomainError, match="more than one column called 'a'"):
            select_columns(twice, columns)
    with pytest.raises(DomainError, match="not text"):
        select_columns(pd.DataFrame(np.ones((4, 3))), None)
    with pytest.raises(DomainError, match="MultiIndex"):
        select_columns(
            pd.DataFrame(np.ones((4, 2)), columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])), None
        )
    with pytest.raises(DomainError, match="too few columns"):
        select_columns(TABLE[["Kcal"]], None)


@pytest.mark.parametrize("kind", INDEXES)
def test_preflight_finds_the_same_ids_unusable(kind: str) -> None:
    report = dps.preflight(pd.DataFrame({"x": NUMBERS, "y": NUMBERS}, index=INDEXES[kind][0]))
    assert not report.ok
    assert "424242" not in repr(report)


@pytest.mark.parametrize(
    "columns", [pd.Series(["8675309.25", "y"]), pd.DataFrame({"8675309.25": [1.0]})], ids=["Series", "frame"]
)
def test_cells_passed_for_names_are_not_shown(columns) -> None:
    df = pd.DataFrame({"x": NUMBERS, "y": NUMBERS})
    for use in (lambda: select_columns(df, columns), lambda: dps.preflight(df, columns)):
        with pytest.raises(ArgumentTypeError) as caught:
            use()
        assert "8675309" not in str(caught.value)
