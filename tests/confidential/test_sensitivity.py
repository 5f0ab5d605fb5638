"""One substituted row moves every count by at most 1: all small data sets, in full, and four designs that fail.

Each variable takes the values 0, 1, 2, so that ties are everywhere. A split depends on one column alone, so all
9^n tables of two variables are covered by the 3^n splits of each column: counts of all tables are one matrix, and
substituting row i by any row is a block of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from dpsurvey.confidential.counts import median_split
from dpsurvey.confidential.ties import TieKeys

LEVELS = 3
KEYS = [TieKeys(), TieKeys(seed=1), TieKeys(seed=2**64 - 1)]


def columns(n: int) -> NDArray[np.int64]:
    """All columns of n values, shape (3^n, n)."""
    return np.array(list(itertools.product(range(LEVELS), repeat=n)))


def splits(n: int, ids: pd.Index, variable: str, keys: TieKeys) -> NDArray[np.uint16]:
    """High groups of all columns, as bit patterns, shape (3^n,)."""
    bits = np.array([median_split(column, ids, variable, keys) for column in columns(n)])
    return (bits << np.arange(n)).sum(axis=1).astype(np.uint16)


def counts(first: NDArray[np.uint16], second: NDArray[np.uint16]) -> NDArray[np.int64]:
    """Quadrant counts of all tables of two variables, shape (3^n, 3^n)."""
    return np.bitwise_count(first[:, None] & second[None, :]).astype(np.int64)


def by_row(table: NDArray[np.int64], n: int, row: int) -> NDArray[np.int64]:
    """Arrange all tables by what they hold apart from `row`: shape (others, rows that can be at `row`)."""
    before, after = LEVELS**row, LEVELS ** (n - 1 - row)
    shaped = table.reshape((before, LEVELS, after) * table.ndim)
    inner = tuple(range(1, 3 * table.ndim, 3))
    moved = np.moveaxis(shaped, inner, range(2 * table.ndim, 3 * table.ndim))
    return moved.reshape(-1, LEVELS**table.ndim)


def largest_change(*tables_and_row: NDArray[np.int64]) -> int:
    """Largest difference between tables that agree apart from one row."""
    together = np.concatenate(tables_and_row, axis=1)
    return int((together.max(axis=1) - together.min(axis=1)).max())


@pytest.mark.parametrize("keys", KEYS, ids=str)
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7])
def test_keys_by_position_give_exactly_one(n: int, keys: TieKeys) -> None:
    ids = pd.RangeIndex(n)
    table = counts(splits(n, ids, "x", keys), splits(n, ids, "y", keys))
    changes = [largest_change(by_row(table, n, row)) for row in range(n)]
    assert max(changes) == 1
    assert table.min() >= 2 * ((n + 1) // 2) - n
    assert table.max() <= (n + 1) // 2


@pytest.mark.parametrize(("n", "keys"), [(n, KEYS[n % 3]) for n in (2, 3, 4, 5, 6)], ids=str)
def test_keys_by_id_give_exactly_one_also_where_the_new_row_has_another_id(n: int, keys: TieKeys) -> None:
    """Every row may be substituted by a row with a smaller or a larger id; where rows stand does not matter."""
    own = list(range(100, 100 + n))
    worst = 0
    for row in range(n):
        versions = [own, *([*own[:row], new, *own[row + 1 :]] for new in (7, 55_555))]
        tables = []
        for version in versions:
            ids = pd.Index(version)
            tables.append(by_row(counts(splits(n, ids, "x", keys), splits(n, ids, "y", keys)), n, row))
        worst = max(worst, largest_change(*tables))
    assert worst == 1


def test_three_variables_move_by_one_each_and_by_three_together() -> None:
    """L-infinity sensitivity 1, L1 sensitivity m = 3, every vector of {-1, 0, 1}^3 attained."""
    n, base = 4, 32
    high = [splits(n, pd.RangeIndex(n), name, TieKeys()) for name in "xyz"]
    ab, ac, bc = counts(high[0], high[1]), counts(high[0], high[2]), counts(high[1], high[2])
    code = (ab[:, :, None] * base + ac[:, None, :]) * base + bc[None, :, :]  # three counts in one number
    moved = np.zeros(2 * base**3, dtype=bool)
    for row in range(n):
        block = by_row(code, n, row)
        for other in range(block.shape[1]):
            moved[(block - block[:, [other]]).ravel() + base**3] = True
    vectors = {
        (i * base + j) * base + k: (i, j, k) for i, j, k in itertools.product(range(-n, n + 1), repeat=3)
    }
    seen = {vectors[change] for change in np.flatnonzero(moved) - base**3}
    assert seen == set(itertools.product((-1, 0, 1), repeat=3))
    assert max(sum(map(abs, change)) for change in seen) == 3


# --- four designs that look right and are not


def high_by_position(values: NDArray[np.int64], variable: str) -> NDArray[np.bool_]:
    """Split with keys that sit at positions of the table as it is ordered now."""
    return median_split(values, pd.RangeIndex(len(values)), variable, TieKeys())


def alternating_variable(n: int) -> str:
    """A name whose keys put every other position of an all-tied column into the high half."""
    for number in itertools.count():
        high = high_by_position(np.zeros(n, dtype=int), f"v{number}")
        if (high[1:] != high[:-1]).all():
            return f"v{number}"
    raise AssertionError


def test_keys_that_follow_a_sort_of_the_file_by_its_data_fail() -> None:
    """Rows are sorted by a third column before keys are laid out: one row that moves to the end shifts all."""
    n = 8
    tied, other = alternating_variable(n), np.arange(n) % 2  # every second row is high in y
    keys = TieKeys()

    def count(sorted_by: NDArray[np.int64]) -> int:
        order = np.argsort(sorted_by, kind="stable")
        y = pd.Index(np.arange(100, 100 + n))[order]  # ids for y alone: the fault is in x's keys
        x_high = high_by_position(np.zeros(n, dtype=int), tied)
        return int((x_high & median_split(other[order], y, "y", keys)).sum())

    before = np.arange(n)
    after = before.copy()
    after[0] = n  # one substituted row, other values of which stay
    assert abs(count(before) - count(after)) == 4


def test_keys_at_positions_of_a_table_sorted_by_id_fail_where_the_new_row_has_another_id() -> None:
    n = 8
    tied = alternating_variable(n)

    def count(rows: dict[int, int]) -> int:
        y = np.array([rows[one] for one in sorted(rows)])
        return int((high_by_position(np.zeros(n, dtype=int), tied) & high_by_position(y, "y")).sum())

    before = {100 + i: i % 2 for i in range(n)}
    after = {one: value for one, value in before.items() if one != 100} | {999: before[100]}
    assert abs(count(before) - count(after)) == 4
    by_id = [
        median_split(np.zeros(n, dtype=int), pd.Index(list(rows)), tied, TieKeys())
        & median_split(np.array(list(rows.values())), pd.Index(list(rows)), "y", TieKeys())
        for rows in (before, after)
    ]
    assert abs(int(by_id[0].sum()) - int(by_id[1].sum())) <= 1  # the same rows, keyed as they should be


RULES: dict[str, Callable[[NDArray[np.int64]], NDArray[np.bool_]]] = {
    "above the median": lambda values: values > np.median(values),
    "at or above the median": lambda values: values >= np.median(values),
}


@pytest.mark.parametrize(
    ("rule", "n", "change"),
    [
        ("above the median", 5, 2),
        ("above the median", 6, 3),
        ("at or above the median", 5, 4),
        ("at or above the median", 6, 5),
    ],
)
def test_splits_without_tie_breaking_move_by_up_to_all_rows_but_one(rule: str, n: int, change: int) -> None:
    bits = np.array([RULES[rule](column) for column in columns(n)])
    high = (bits << np.arange(n)).sum(axis=1).astype(np.uint16)
    table = counts(high, high)
    assert max(largest_change(by_row(table, n, row)) for row in range(n)) == change


@pytest.mark.parametrize("n", [5, 7])
def test_adding_or_removing_a_row_moves_a_count_by_two_where_n_is_odd(n: int) -> None:
    keys = TieKeys()
    whole = counts(splits(n, pd.RangeIndex(n), "x", keys), splits(n, pd.RangeIndex(n), "y", keys))
    worst = 0
    for row in range(n):
        ids = pd.Index([i for i in range(n) if i != row])
        fewer = counts(splits(n - 1, ids, "x", keys), splits(n - 1, ids, "y", keys))
        with_row = by_row(whole, n, row)
        worst = max(worst, int(np.abs(with_row - fewer.reshape(-1, 1)).max()))
    assert worst == 2
