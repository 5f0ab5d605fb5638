"""Tables become ranks, or are refused by name and count, never by value."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, rankdata

from dpsurvey.baselines.ranks import rank_table
from dpsurvey.errors import ArgumentError, DomainError, UnknownNameError

SECRET = 987654.321


def test_kinds_of_column_become_dense_ranks():
    frame = pd.DataFrame(
        {
            "float": [0.5, np.nan, -1.0, 0.5],
            "int": pd.array([2**60, 2**60 + 1, None, 0], dtype="Int64"),
            "bool": [True, False, True, True],
            "flag": pd.array([True, None, False, False], dtype="boolean"),
            "level": pd.Categorical(["mid", "low", "high", None], ["low", "mid", "high"], ordered=True),
        }
    )
    codes = rank_table(frame).codes
    assert codes.T.tolist() == [[1, -1, 0, 1], [1, 2, -1, 0], [1, 0, 1, 1], [1, -1, 0, 0], [1, 0, 2, -1]]


def test_unused_categories_are_no_levels():
    kept = pd.Categorical(["b", "d", "b", "d"], list("abcd"), ordered=True)
    table = rank_table(pd.DataFrame({"c": kept, "x": [1.0, 2.0, 3.0, 4.0]}))
    assert table.levels.tolist() == [2, 4]
    assert table.codes[:, 0].tolist() == [0, 1, 0, 1]


def test_normal_scores_take_the_largest_rank_of_a_tie():
    x = np.array([3.0, 1.0, np.nan, 3.0, 2.0])
    scores = rank_table(pd.DataFrame({"x": x, "y": [1, 2, 3, 4, 6]})).normal_scores()
    seen = ~np.isnan(x)
    np.testing.assert_allclose(scores[0, seen], norm.ppf(rankdata(x[seen], "max") / 5))
    assert np.isnan(scores[0, ~seen]).all()


def test_plug_in_counts_missing_as_one_value_as_R_does():
    x = np.arange(101.0)
    frame = pd.DataFrame({"full": x % 100, "gap": np.where(x == 0, np.nan, x), "more": x})
    table = rank_table(frame)
    assert table.plug_in(100).tolist() == [False, True, True]
    assert table.plug_in(101).tolist() == [False, False, False]
    assert table.plug_in(None).tolist() == [False, False, False]


def good(**extra):
    return pd.DataFrame({"a": [0.1, SECRET, 0.3, 0.2], "b": [4.0, SECRET, 2.0, 3.0], **extra})


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        (good(c=[SECRET] * 4), "column 'c' is constant"),
        (good(c=[SECRET, None, SECRET, None]), "column 'c' is constant"),
        (good(c=[np.nan] * 4), "column 'c' has no observed cell"),
        (good(c=[1.0, 400.0, 3.0, 2.0]), "columns 'a' and 'c' order the rows identically or in reverse"),
        (good(c=[9.0, -400.0, 3.0, 4.0]), "columns 'a' and 'c' order the rows identically or in reverse"),
        (good(c=[SECRET, np.inf, -np.inf, 1.0]), "column 'c': 2 infinite cell(s)"),
        (good(c=["987654.321", "x", "y", "z"]), "column 'c': dtype"),
        (good(c=pd.Categorical(["987654.321", "x", "y", "z"])), "has no order"),
        (good(c=[1j, 2j, 3j, 4j]), "has no order"),
        (good(c=pd.date_range("2020-01-01", periods=4)), "date or duration"),
        (good().iloc[:2], "2 row(s), and at least 3"),
    ],
)
def test_refused_without_a_value(frame, told):
    with pytest.raises(DomainError) as error:
        rank_table(frame)
    assert told in str(error.value)
    assert "987654" not in str(error.value)


def test_all_problems_come_at_once():
    with pytest.raises(DomainError) as error:
        rank_table(good(c=[1.0] * 4, d=[np.nan] * 4))
    assert "'c' is constant" in str(error.value)
    assert "'d' has no observed cell" in str(error.value)


def test_columns_are_chosen_and_checked():
    frame = good(c=[1.0, 2.0, 4.0, 3.0])
    assert rank_table(frame, ["c", "a"]).names == ("c", "a")
    with pytest.raises(UnknownNameError):
        rank_table(frame, ["a", "nope"])
    with pytest.raises(ArgumentError):
        rank_table(frame, ["a", "a"])
    with pytest.raises(DomainError, match="too few columns"):
        rank_table(frame, ["a"])


def test_columns_whose_missing_cells_differ_are_no_twins():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, np.nan], "b": [1.0, 2.0, 3.0, 4.0]})
    assert rank_table(frame).p == 2


def test_the_repr_shows_sizes_only():
    assert repr(rank_table(good())) == "RankTable(n=4, p=2)"
