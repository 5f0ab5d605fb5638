"""Median splits and pair counts against plain Python, for every dtype of the domain."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpsurvey.confidential.counts import median_split, pair_counts
from dpsurvey.confidential.domain import as_array
from dpsurvey.confidential.ties import TieKeys

KEYS = TieKeys()


def plain_split(values: list, ids: list, variable: str, keys: TieKeys = KEYS) -> list[bool]:
    """Sort all rows by (value, key, id); the last ceil(n/2) are high."""
    hashes = keys.hashes(variable, pd.Index(ids)).tolist()
    order = sorted(range(len(values)), key=lambda row: (values[row], hashes[row], ids[row]))
    high = [False] * len(values)
    for row in order[len(values) // 2 :]:
        high[row] = True
    return high


def split(values, ids=None, variable: str = "x", keys: TieKeys = KEYS) -> list[bool]:
    values = np.asarray(values)
    index = pd.RangeIndex(len(values)) if ids is None else pd.Index(ids)
    return median_split(values, index, variable, keys).tolist()


def levels(n: int, kinds: int, seed: int = 1) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, kinds, n)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 63, 64, 65, 200])
@pytest.mark.parametrize("kinds", [1, 2, 3, 10, 10**9])
def test_split_is_the_plain_one(n: int, kinds: int) -> None:
    values, ids = levels(n, kinds), np.random.default_rng(2).permutation(10 * n)[:n]
    high = split(values, ids)
    assert high == plain_split(values.tolist(), ids.tolist(), "x")
    assert sum(high) == (n + 1) // 2


@pytest.mark.parametrize("name", ["x", "y"])
def test_an_all_tied_column_is_split_at_random_but_always_the_same_way(name: str) -> None:
    """The split of ties is a function of the variable's name: names part (chance of equality below 1e-200)."""
    first = split(np.zeros(1000), variable=name)
    assert first == split(np.full(1000, -3.5), variable=name)
    assert sum(first) == 500
    assert first != split(np.zeros(1000), variable=name + "2")
    assert first != split(np.zeros(1000), variable=name, keys=TieKeys(seed=1))


@pytest.mark.parametrize("n", [6, 7])
@pytest.mark.parametrize("collided", [lambda ids: np.zeros(len(ids)), lambda ids: np.arange(len(ids)) // 3])
def test_where_keys_collide_the_id_decides(n: int, collided, monkeypatch) -> None:
    def hashes(self: TieKeys, variable: str, ids: pd.Index) -> NDArray[np.uint64]:
        return np.asarray(collided(ids), dtype=np.uint64)

    monkeypatch.setattr(TieKeys, "hashes", hashes)
    ids = [50, 10, 40, 20, 30, 60, 5][:n]
    high = median_split(np.ones(n), pd.Index(ids), "x", KEYS)
    keys = collided(ids).tolist()
    order = sorted(range(n), key=lambda row: (keys[row], ids[row]))
    assert np.flatnonzero(high).tolist() == sorted(order[n // 2 :])
    assert int(high.sum()) == (n + 1) // 2
    text = median_split(np.ones(n), pd.Index([f"{one:03}" for one in ids]), "x", KEYS)
    assert text.tolist() == high.tolist()


DTYPES = [
    "float64", "float32", "float16", "longdouble", "int64", "int32", "int8", "uint64", "uint8", "bool", ">f8", ">i4",
    "Int64", "Int8", "UInt64", "Float64", "Float32", "boolean", "Sparse[float64]", "Sparse[int64]",
]  # fmt: skip
ARROW = ["int64[pyarrow]", "uint16[pyarrow]", "double[pyarrow]", "float[pyarrow]", "bool[pyarrow]"]


def column_of(dtype: str, n: int) -> tuple[pd.Series, list[int]]:
    """A column and the numbers that it holds."""
    values = levels(n, 2 if "bool" in dtype else 5)
    if dtype == "ordered":
        names = ["never", "a", "some", "Z", "always"]
        return pd.Series(pd.Categorical.from_codes(values, names, ordered=True)), values.tolist()
    return pd.Series(values.astype(bool) if "bool" in dtype else values).astype(dtype), values.tolist()


@pytest.mark.parametrize("n", [20, 21])
@pytest.mark.parametrize("dtype", [*DTYPES, *ARROW, "ordered"])
def test_exactly_half_is_high_whatever_the_dtype(dtype: str, n: int) -> None:
    if dtype in ARROW:
        pytest.importorskip("pyarrow", reason="Arrow columns need pyarrow")
    column, values = column_of(dtype, n)
    high = median_split(as_array(column), column.index, "x", KEYS).tolist()
    assert sum(high) == (n + 1) // 2
    assert high == plain_split(values, list(range(n)), "x")


def test_zero_and_minus_zero_are_tied() -> None:
    zeros = np.array([0.0, -0.0] * 10)
    assert split(zeros) == split(np.abs(zeros))


@pytest.mark.parametrize("dtype", ["int64", "uint64", "Int64", "UInt64"])
def test_integers_beyond_53_bits_are_told_apart(dtype: str) -> None:
    """As floats all of these are one number."""
    steps = np.random.default_rng(1).permutation(11)
    column = pd.Series(2**53 + steps).astype(dtype)
    high = median_split(as_array(column), column.index, "x", KEYS)
    assert np.array_equal(high, steps >= 5)


def test_extreme_values_are_ordered() -> None:
    values = np.array([-np.finfo(float).max, -5e-324, 0.0, 5e-324, 1.0, np.finfo(float).max])
    assert split(values) == [False] * 3 + [True] * 3
    whole = np.array([-(2**63), -1, 0, 2**63 - 1])
    assert split(whole) == [False, False, True, True]


def test_the_input_is_left_as_it_was() -> None:
    values = np.array([3.0, 1.0, 2.0, 2.0])
    values.setflags(write=False)
    assert sum(split(values)) == 2
    assert values.tolist() == [3.0, 1.0, 2.0, 2.0]


tables = st.integers(4, 40).flatmap(
    lambda n: st.tuples(
        st.lists(st.lists(st.integers(-3, 3), min_size=n, max_size=n), min_size=2, max_size=4),
        st.lists(st.integers(-(2**63), 2**63 - 1), min_size=n, max_size=n, unique=True),
        st.permutations(range(n)),
    )
)


@settings(max_examples=100, deadline=None)
@given(tables)
def test_counts_are_the_plain_ones_and_move_with_rows_and_columns(table) -> None:
    columns, ids, order = table
    names = [f"v{i}" for i in range(len(columns))]
    df = pd.DataFrame(dict(zip(names, columns, strict=True)), index=pd.Index(ids))
    counts = pair_counts(df, names, KEYS)
    high = [plain_split(column, ids, name) for name, column in zip(names, columns, strict=True)]
    pairs = [(j, k) for j in range(len(names)) for k in range(j + 1, len(names))]
    assert counts.dtype == np.int64
    assert counts.tolist() == [sum(a and b for a, b in zip(high[j], high[k], strict=True)) for j, k in pairs]
    n, half = len(ids), (len(ids) + 1) // 2
    assert (counts >= 2 * half - n).all()
    assert (counts <= half).all()
    shuffled = df.iloc[list(order)]
    assert pair_counts(shuffled, names, KEYS).tolist() == counts.tolist()
    for name in names:  # permuting rows with their ids permutes their bits
        bits = median_split(as_array(df[name]), df.index, name, KEYS)
        assert (
            median_split(as_array(shuffled[name]), shuffled.index, name, KEYS).tolist()
            == bits[list(order)].tolist()
        )
    backwards = pair_counts(df, names[::-1], KEYS)
    by_pair = {frozenset((names[j], names[k])): count for (j, k), count in zip(pairs, counts, strict=True)}
    assert backwards.tolist() == [by_pair[frozenset((names[::-1][j], names[::-1][k]))] for j, k in pairs]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 12), min_size=4, max_size=60),
    st.lists(st.integers(1, 10**6), min_size=13, max_size=13),
    st.integers(-(10**6), 10**6),
)
def test_any_increasing_transformation_leaves_the_counts_alone(values, steps, start) -> None:
    image = np.cumsum(steps) + start  # image[v] increases with v: any increasing map of 0..12
    rest = levels(len(values), 4)
    df = pd.DataFrame({"x": values, "y": rest})
    counts = pair_counts(df, ["x", "y"], KEYS)
    for mapped in (image[values], np.exp(image[values] / 1e6), image[values].astype(float) ** 3):
        assert pair_counts(df.assign(x=mapped), ["x", "y"], KEYS).tolist() == counts.tolist()


@pytest.mark.parametrize("n", [4, 7, 8, 9, 63, 64, 65, 127, 128, 129, 1000])
def test_packing_loses_no_row(n: int) -> None:
    values = np.random.default_rng(1).normal(size=n)
    df = pd.DataFrame({"x": values, "y": values, "z": -values})
    half = (n + 1) // 2
    assert pair_counts(df, ["x", "y", "z"], KEYS).tolist() == [half, 2 * half - n, 2 * half - n]


def test_sixty_variables_come_in_row_major_order() -> None:
    df = pd.DataFrame(np.random.default_rng(1).normal(size=(50, 60)), columns=[f"v{i}" for i in range(60)])
    counts = pair_counts(df, list(df.columns), KEYS)
    rows, columns = np.triu_indices(60, 1)
    assert len(counts) == 1770
    for at in (0, 58, 59, 1000, 1769):
        assert counts[at] == pair_counts(df, [f"v{rows[at]}", f"v{columns[at]}"], KEYS)[0]
