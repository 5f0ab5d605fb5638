"""Joint moves: they leave the target alone, and reach what single draws cannot."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
import pytest
from scipy.stats import beta, ks_2samp, kstest

from dpsurvey.copula.inversion import InversionTable, build_inversion, draw_between
from dpsurvey.copula.joint_moves import move_groups
from dpsurvey.copula.likelihood import LikelihoodTable, tabulate
from dpsurvey.privacy.release import Release

LKJ = Callable[[int, np.random.Generator], np.ndarray]


@numba.njit
def move_each(table: InversionTable, starts: np.ndarray, moves: int, rng: np.random.Generator) -> np.ndarray:
    ends = starts.copy()
    for i in range(len(ends)):
        move_groups(table, ends[i], moves, rng)
    return ends


def flat_table(p: int) -> InversionTable:
    m = p * (p - 1) // 2
    nodes, jets = np.tile([-40.0, 40.0], m), np.zeros((2 * m, 3))
    return build_inversion(LikelihoodTable(nodes, jets, 2 * np.arange(m + 1)))


@pytest.mark.parametrize("moves", [1, 40])
@pytest.mark.parametrize("p", [2, 3, 4, 6])
def test_prior_is_left_alone(p: int, moves: int, lkj: LKJ) -> None:
    rng = np.random.default_rng(100 * p + moves)
    starts = np.array([lkj(p, rng) for _ in range(20_000)])
    ends = move_each(flat_table(p), starts, moves, rng)
    assert np.mean(ends[:, 0, 1] != starts[:, 0, 1]) > 0.1
    marginal = beta(p / 2, p / 2, loc=-1, scale=2)
    for j, k in zip(*np.triu_indices(p, 1), strict=True):
        assert kstest(ends[:, j, k], marginal.cdf).pvalue > 1e-4
    others = np.array([lkj(p, rng) for _ in range(20_000)])
    for functional in (lambda R: np.linalg.slogdet(R)[1], lambda R: np.linalg.eigvalsh(R)[:, 0]):
        assert ks_2samp(functional(ends), functional(others)).pvalue > 1e-4


def test_posterior_is_left_alone(model_release: Callable[..., Release], lkj: LKJ) -> None:
    rng = np.random.default_rng(5)
    inversion = build_inversion(tabulate(model_release(lkj(4, rng), 300, 3.0, rng)))
    exact = rejection(inversion, 4, 8000, rng)
    ends = move_each(inversion, exact, 40, rng)
    fresh = rejection(inversion, 4, 8000, rng)
    for j, k in zip(*np.triu_indices(4, 1), strict=True):
        assert ks_2samp(ends[:, j, k], fresh[:, j, k]).pvalue > 1e-4
    assert ks_2samp(np.linalg.slogdet(ends)[1], np.linalg.slogdet(fresh)[1]).pvalue > 1e-4


def rejection(inversion: InversionTable, p: int, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Return exact posterior draws: each pair from its own likelihood, kept where positive definite."""
    kept: list[np.ndarray] = []
    rows, columns = np.triu_indices(p, 1)
    while len(kept) < draws:
        R = np.eye(p)
        for pair, (j, k) in enumerate(zip(rows, columns, strict=True)):
            R[j, k] = R[k, j] = draw_between(inversion, pair, -1.0, 1.0, rng.random())
        if np.linalg.eigvalsh(R)[0] > 0:
            kept.append(R)
    return np.array(kept)


def test_correlations_of_near_copies_move_together() -> None:
    # x and y correlate 1 - 1e-10: one at a time, their correlations with z move in steps of 1e-5.
    start, rng, table = np.eye(3), np.random.default_rng(1), flat_table(3)
    start[0, 1] = start[1, 0] = 1 - 1e-10
    moved = []
    for _ in range(200):
        R = start.copy()
        move_groups(table, R, 1, rng)
        assert np.linalg.eigvalsh(R)[0] > 0
        if R[0, 1] == start[0, 1]:  # x and y fell into the same group
            assert abs(R[0, 2] - R[1, 2]) < 3e-5
            moved.append(R[0, 2])
    assert len(moved) > 30
    assert np.std(moved) > 0.2
