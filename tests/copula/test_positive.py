"""Cholesky factors, margins and shrinking."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dpsurvey.copula.positive import factorise, feasible_margin, pull_inside


def test_factor_of_some_variables_in_any_order(lkj: Callable[..., np.ndarray]) -> None:
    R, members = lkj(6, np.random.default_rng(1)), np.array([4, 0, 5])
    factor = np.zeros((3, 3))
    assert factorise(R, members, factor)
    np.testing.assert_allclose(factor, np.linalg.cholesky(R[np.ix_(members, members)]), atol=1e-14)


@pytest.mark.parametrize("bad", [1.0, 1.0 + 1e-12, np.nan])
def test_singular_indefinite_and_undefined_are_refused(bad: float) -> None:
    assert not factorise(np.array([[1.0, bad], [bad, 1.0]]), np.arange(2), np.zeros((2, 2)))


def test_margin_grows_towards_singular_and_stays_small() -> None:
    margins = [feasible_margin(x) for x in (1.0, 1e-4, 1e-9, 1e-14, 0.0, -1e-16)]
    assert margins == sorted(margins)
    assert 0 < margins[0] < 1e-14
    assert margins[-1] == 1e-3


def test_pulling_inside_changes_only_what_must(lkj: Callable[..., np.ndarray]) -> None:
    inside = lkj(4, np.random.default_rng(1))
    R, factor = inside.copy(), np.zeros((4, 4))
    pull_inside(R, np.arange(4), factor)
    np.testing.assert_array_equal(R, inside)
    np.testing.assert_allclose(factor @ factor.T, inside, atol=1e-14)
    for excess in (0.0, 1e-15, 1e-9, 0.3):
        R = np.full((3, 3), 1.0)
        R[0, 1] = R[1, 0] = 1.0 + excess
        pull_inside(R, np.arange(3), np.zeros((3, 3)))
        assert factorise(R, np.arange(3), np.zeros((3, 3)))
        assert np.diag(R).tolist() == [1.0] * 3
        assert 1 - R[0, 2] < 2 * excess + 1e-14
