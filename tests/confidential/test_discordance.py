from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsurvey.confidential.counts import pair_counts
from dpsurvey.confidential.discordance import discordant_counts, strict_order
from dpsurvey.confidential.ties import TieKeys
from dpsurvey.privacy.concordance import ConcordanceCounts

KEYS = TieKeys()


def by_definition(df: pd.DataFrame) -> list[int]:
    """Count discordant pairs of rows one by one, in the order (value, key, id)."""
    places = {}
    for name in df.columns:
        keys = KEYS.hashes(name, df.index)
        rows = sorted(range(len(df)), key=lambda i, n=name, k=keys: (df[n].iloc[i], k[i], df.index[i]))
        places[name] = np.argsort(rows)
    return [
        sum(
            (places[j][a] < places[j][b]) != (places[k][a] < places[k][b])
            for a, b in itertools.combinations(range(len(df)), 2)
        )
        for j, k in itertools.combinations(df.columns, 2)
    ]


@pytest.mark.parametrize("n", [4, 15, 16, 17, 33, 97])
@pytest.mark.parametrize("levels", [2, 5, 10_000])
def test_counts_are_those_of_the_definition(n: int, levels: int) -> None:
    rng = np.random.default_rng(n + levels)
    df = pd.DataFrame(rng.integers(0, levels, (n, 3)), columns=list("abc"), index=rng.permutation(10 * n)[:n])
    assert discordant_counts(df, list(df.columns), KEYS).tolist() == by_definition(df)


def test_order_does_not_depend_on_the_order_of_rows_or_on_dtype() -> None:
    rng = np.random.default_rng(1)
    df = pd.DataFrame(rng.integers(0, 4, (60, 4)), columns=list("abcd"), index=[f"id{i}" for i in range(60)])
    expected = discordant_counts(df, list("abcd"), KEYS)
    shuffled = df.sample(frac=1.0, random_state=2).astype({"a": float, "b": "Int64", "c": "int8"})
    assert discordant_counts(shuffled, list("abcd"), KEYS).tolist() == expected.tolist()


def test_constant_and_collinear_columns_pass() -> None:
    df = pd.DataFrame({"a": [1.0] * 20, "b": range(20), "c": range(20)})
    counts = discordant_counts(df, ["a", "b", "c"], KEYS)
    assert counts[2] == 0
    assert 0 < counts[0] < 190
    assert counts[0] == counts[1]


def test_equal_keys_fall_back_on_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_key(self: TieKeys, variable: str, ids: pd.Index[Any]) -> Any:
        return np.zeros(len(ids), dtype=np.uint64)

    monkeypatch.setattr(TieKeys, "hashes", one_key)
    ids = pd.Index([30, 10, 20])
    assert strict_order(np.array([1.0, 1.0, 1.0]), ids, "x", KEYS).tolist() == [1, 2, 0]


@pytest.mark.parametrize(("n", "p"), [(4, 2), (5, 2), (4, 3)])
def test_sensitivities_hold_and_are_attained(n: int, p: int) -> None:
    """All tables of n rows in {0, 1, 2}^p up to the order of the other rows' ids; all substitutions of one row."""
    rows = list(itertools.product(range(3), repeat=p))
    law = ConcordanceCounts(n, p)
    largest = np.zeros(3)
    rng = np.random.default_rng(n * p)
    rests = list(itertools.combinations_with_replacement(range(len(rows)), n - 1))
    if len(rests) > 40:
        rests = [rests[i] for i in rng.permutation(len(rests))[:40]] + [
            (0,) * (n - 1),
            (len(rows) - 1,) * (n - 1),
        ]
    names = [f"v{j}" for j in range(p)]
    for rest in rests:
        position = int(rng.integers(n))
        counts = []
        for row in rows:
            table = [rows[r] for r in rest]
            table.insert(position, row)
            counts.append(discordant_counts(pd.DataFrame(table, columns=names), names, KEYS))
        change = np.abs(np.array(counts)[:, None] - np.array(counts)[None])
        found = (change.max(), change.sum(-1).max(), np.sqrt((change**2).sum(-1)).max())
        largest = np.maximum(largest, found)
    assert largest[0] == law.sensitivity
    assert largest[1] == law.l1_sensitivity
    assert largest[2] == pytest.approx(law.l2_sensitivity)


def test_sensitivities_of_five_variables() -> None:
    n, p = 6, 5
    law = ConcordanceCounts(n, p)
    df = pd.DataFrame(np.tile(np.arange(n)[:, None], p), columns=list("abcde"))
    moved = df.copy()
    moved.loc[0, ["a", "b"]] = n
    change = np.abs(
        discordant_counts(moved, list("abcde"), KEYS) - discordant_counts(df, list("abcde"), KEYS)
    )
    assert change.max() == law.sensitivity
    assert change.sum() == law.l1_sensitivity
    assert np.sqrt((change**2).sum()) == pytest.approx(law.l2_sensitivity)


def test_keys_that_follow_the_file_order_break_the_sensitivity() -> None:
    """Positions are no ids where the file is sorted by its data: one substitution then moves every key."""
    n = 8
    tied = pd.DataFrame({"a": np.zeros(n), "b": np.arange(float(n))})
    moved = pd.DataFrame({"a": np.zeros(n), "b": np.r_[np.arange(1.0, n), -1.0]}).sort_values(
        "b", ignore_index=True
    )
    before, after = (discordant_counts(df, ["a", "b"], KEYS)[0] for df in (tied, moved))
    by_id = moved.copy()
    by_id.index = pd.Index([n - 1, *range(n - 1)])
    assert before == after  # the same keys at the same positions, whoever stands there
    assert discordant_counts(by_id, ["a", "b"], KEYS)[0] != after


def test_tau_is_kendalls() -> None:
    from scipy.stats import kendalltau

    rng = np.random.default_rng(3)
    x = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 500)
    df = pd.DataFrame(x, columns=["x", "y"])
    d = int(discordant_counts(df, ["x", "y"], KEYS)[0])
    assert 1 - 4 * d / (500 * 499) == pytest.approx(float(kendalltau(x[:, 0], x[:, 1]).statistic), abs=1e-12)


def test_speed_is_of_the_order_n_log_n() -> None:
    rng = np.random.default_rng(4)
    df = pd.DataFrame(rng.normal(size=(20_000, 4)).round(1), columns=list("abcd"))
    discordant_counts(df.head(50), list("abcd"), KEYS)
    start = time.perf_counter()
    discordant_counts(df, list("abcd"), KEYS)
    assert time.perf_counter() - start < 5.0
    assert pair_counts(df, list("abcd"), KEYS).shape == (6,)
