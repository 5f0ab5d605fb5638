"""Kendall's numerator: against brute force and scipy, ties and all, and its exact sensitivity."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

from dpsurvey.baselines.kendall import concordance_scores, inversions


def brute_force(x, y):
    return sum(
        int(np.sign(x[i] - x[j]) * np.sign(y[i] - y[j])) for i, j in itertools.combinations(range(len(x)), 2)
    )


@pytest.mark.parametrize("n", [2, 3, 7, 64, 65])
@pytest.mark.parametrize("levels", [1, 2, 5, 1000])
def test_scores_equal_brute_force(n, levels):
    values = np.random.default_rng([n, levels]).integers(levels, size=(n, 3))
    df = pd.DataFrame(values, columns=list("abc"))
    expected = [brute_force(values[:, j], values[:, k]) for j, k in ((0, 1), (0, 2), (1, 2))]
    assert concordance_scores(df, ["a", "b", "c"]).tolist() == expected


def test_scores_agree_with_scipy_on_many_rows():
    rng = np.random.default_rng(4)
    x = rng.standard_normal(20_001).round(2)
    df = pd.DataFrame({"x": x, "y": (x + rng.standard_normal(len(x))).round(1)})
    pairs = len(x) * (len(x) - 1) // 2
    untied = [pairs - sum(c * (c - 1) // 2 for c in df[name].value_counts()) for name in "xy"]
    tau_b = kendalltau(df["x"], df["y"]).statistic
    assert concordance_scores(df, ["x", "y"])[0] == round(tau_b * np.sqrt(float(untied[0]) * untied[1]))


def test_any_column_of_the_domain_will_do():
    df = pd.DataFrame(
        {
            "large": [2**60, 2**60 + 1, 2**60 + 2, 2**60 + 3],  # equal as floats
            "category": pd.Categorical(["lo", "hi", "lo", "hi"], categories=["lo", "hi"], ordered=True),
            "nullable": pd.array([4, 3, 2, 1], dtype="Int64"),
        }
    )
    assert concordance_scores(df, list(df)).tolist() == [2, -6, -2]


def test_inversions_leave_their_argument_alone():
    values = np.array([3, 1, 2])
    assert inversions(values) == 2
    assert values.tolist() == [3, 1, 2]
    assert inversions(np.array([], dtype=np.int64)) == 0


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_substituting_a_row_moves_the_score_by_exactly_2_n_minus_1(n):
    """Over all tables in {0, 1, 2}^(n x 2), so that tau moves by at most 4/n."""
    rows = np.array(list(itertools.product(range(3), repeat=2)))
    sign = np.sign(rows[:, None, :] - rows[None, :, :]).prod(axis=2)
    scores = np.zeros((9,) * n, dtype=int)
    for i, j in itertools.combinations(range(n), 2):
        shape = [9 if axis in (i, j) else 1 for axis in range(n)]
        scores += sign.reshape(shape)
    largest = max(int(np.ptp(scores, axis=axis).max()) for axis in range(n))
    assert largest == 2 * (n - 1)
    table = np.unravel_index(int(scores.argmax()), scores.shape)  # the array is that of the function
    df = pd.DataFrame(rows[list(table)], columns=["x", "y"])
    assert concordance_scores(df, ["x", "y"])[0] == scores.max()
