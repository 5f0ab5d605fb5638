"""Ranges and sensitivities of the statistics."""

from __future__ import annotations

import math

import pytest

from dpsurvey.errors import UnknownNameError
from dpsurvey.privacy.statistics import QuadrantCounts, make_statistic


@pytest.mark.parametrize(
    ("n", "lower", "upper"), [(4, 0, 2), (5, 1, 3), (6, 0, 3), (7, 1, 4), (5820, 0, 2910)]
)
def test_range_of_a_quadrant_count(n: int, lower: int, upper: int) -> None:
    counts = QuadrantCounts(n, 2)
    assert (counts.lower, counts.upper, counts.high) == (lower, upper, math.ceil(n / 2))


@pytest.mark.parametrize("p", [2, 3, 7, 24, 60])
def test_sensitivities_of_all_pairs_together(p: int) -> None:
    counts = QuadrantCounts(100, p)
    pairs = sum(1 for j in range(p) for _ in range(j))
    assert (counts.m, counts.sensitivity, counts.l1_sensitivity) == (pairs, 1, pairs)
    assert counts.l2_sensitivity == pytest.approx(math.sqrt(pairs))


def test_by_name() -> None:
    assert make_statistic("quadrant", 10, 3) == QuadrantCounts(10, 3)


@pytest.mark.parametrize("name", ["Quadrant", "", "concord", None, ["quadrant"], 1])
def test_an_unknown_name_is_refused(name) -> None:
    with pytest.raises(UnknownNameError, match="'quadrant'"):
        make_statistic(name, 10, 3)
