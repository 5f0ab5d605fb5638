"""What a correlation matrix is, and the nearest one."""

import itertools
import json

import numpy as np
import pytest
from scipy import stats

from dpsurvey.copula.correlation import (
    as_correlation,
    matrix_from_pairs,
    nearest_correlation,
    pair_values,
    prior_interval_length,
)
from dpsurvey.errors import ArgumentError, ArgumentTypeError

CASES = [
    "higham3",
    "npsd3",
    "rank1sign",
    "npsd4",
    "tridiag4",
    "helppage6",
    "extremes5",
    "alreadyPD",
    "random7",
]


@pytest.fixture(scope="module")
def nearpd(golden) -> dict:
    return json.loads((golden / "nearpd.json").read_text())["cases"]


def random_correlation(rng: np.random.Generator, p: int) -> np.ndarray:
    """An LKJ(1) matrix: Wishart(p + 1, I) scaled to unit diagonal."""
    factor = rng.normal(size=(p, p + 1))
    wishart = factor @ factor.T
    scale = 1 / np.sqrt(np.diag(wishart))
    R = wishart * scale[:, None] * scale
    np.fill_diagonal(R, 1.0)
    return (R + R.T) / 2


def indefinite(rng: np.random.Generator, p: int, size: float = 0.6) -> np.ndarray:
    noise = np.triu(rng.normal(scale=size, size=(p, p)), 1)
    return np.clip(random_correlation(rng, p) + noise + noise.T, -1, 1)


def test_the_golden_file_has_the_cases(nearpd: dict) -> None:
    assert sorted(nearpd) == sorted(CASES)


@pytest.mark.parametrize("case", CASES)
def test_nearest_matches_R_nearPD_run_to_convergence(nearpd: dict, case: str) -> None:
    """Matrix::nearPD(corr=TRUE, eig.tol=0, conv.tol=1e-12, do2eigen=FALSE) is the plain Higham projection."""
    R = nearest_correlation(nearpd[case]["input"])
    np.testing.assert_allclose(R, nearpd[case]["precise_eigtol0"]["mat"], atol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_nearest_matches_the_defaults_of_R_nearPD_up_to_its_final_push(nearpd: dict, case: str) -> None:
    """By default nearPD stops at 1e-7 and then lifts the eigenvalues to 1e-8 of the largest."""
    R = nearest_correlation(nearpd[case]["input"])
    np.testing.assert_allclose(R, nearpd[case]["default"]["mat"], atol=1e-7)


def test_higham_2002_printed_example() -> None:
    """Higham (2002), section 4: the 3 x 3 example, distance 0.5278."""
    A = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]], dtype=float)
    R = nearest_correlation(A)
    np.testing.assert_allclose(pair_values(R), [0.7607, 0.1573, 0.7607], atol=5e-5)
    assert np.linalg.norm(A - R) == pytest.approx(0.5278, abs=5e-5)


@pytest.mark.parametrize("p", [3, 5, 10])
def test_result_is_a_correlation_matrix_exactly(p: int) -> None:
    rng = np.random.default_rng(p)
    for _ in range(20):
        R = nearest_correlation(indefinite(rng, p))
        assert np.array_equal(R, R.T)
        assert (np.diag(R) == 1.0).all()
        assert np.abs(R).max() <= 1.0
        assert np.linalg.eigvalsh(R)[0] >= -1e-14
        as_correlation(R, tol=1e-12)


@pytest.mark.parametrize("p", [3, 5, 8])
def test_no_correlation_matrix_is_nearer(p: int) -> None:
    """X is the projection of A onto a convex set: <A - X, C - X> <= 0 for every C in the set."""
    rng = np.random.default_rng(10 + p)
    for _ in range(5):
        A = indefinite(rng, p)
        X = nearest_correlation(A)
        candidates = [random_correlation(rng, p) for _ in range(500)]
        signs = itertools.product([-1.0, 1.0], repeat=p - 1)
        candidates += [np.outer((1.0, *s), (1.0, *s)) for s in signs]  # extreme points of the set
        candidates += [(1 - t) * X + t * C for C in candidates[:100] for t in (1e-3, 1e-1)]  # close by
        best = np.linalg.norm(A - X)
        for C in candidates:
            assert np.sum((A - X) * (C - X)) <= 1e-7
            assert np.linalg.norm(A - C) >= best - 1e-9


def test_dykstra_correction_matters() -> None:
    """Plain alternating projections end in the set, but farther away."""
    A = indefinite(np.random.default_rng(4), 6)
    plain = A.copy()
    for _ in range(2000):
        w, V = np.linalg.eigh(plain)
        plain = (V * np.maximum(w, 0)) @ V.T
        np.fill_diagonal(plain, 1.0)
    assert np.linalg.norm(A - nearest_correlation(A)) < np.linalg.norm(A - plain) - 1e-3


def test_a_correlation_matrix_comes_back_unchanged() -> None:
    rng = np.random.default_rng(5)
    for p in (2, 3, 7):
        R = random_correlation(rng, p)
        assert np.array_equal(nearest_correlation(R), R)
    singular = np.ones((3, 3))
    assert np.array_equal(nearest_correlation(singular), singular)
    once = nearest_correlation(indefinite(rng, 6))
    np.testing.assert_allclose(nearest_correlation(once), once, atol=1e-13)


def test_the_input_is_left_alone() -> None:
    A = np.array([[2.0, 1, 0], [1, 2, 1], [0, 1, 2]])
    before = A.copy()
    nearest_correlation(A)
    assert np.array_equal(A, before)


def test_the_diagonal_of_the_input_does_not_matter() -> None:
    A = indefinite(np.random.default_rng(6), 5)
    other = A + np.diag([3.0, -2.0, 0.0, 1.0, -5.0])
    assert np.array_equal(nearest_correlation(A), nearest_correlation(other))


@pytest.mark.parametrize("floor", [1e-6, 1e-3, 0.1, 0.9])
def test_eigenvalue_floor_is_reached_and_still_nearest(floor: float) -> None:
    rng = np.random.default_rng(7)
    for _ in range(5):
        A = indefinite(rng, 5)
        X = nearest_correlation(A, floor)
        assert np.linalg.eigvalsh(X)[0] >= floor - 1e-8
        for _ in range(200):
            C = (1 - floor) * random_correlation(rng, 5) + floor * np.eye(5)  # eigenvalues of floor or more
            assert np.sum((A - X) * (C - X)) <= 1e-6


def test_values_beyond_one_are_brought_back() -> None:
    np.testing.assert_allclose(nearest_correlation([[1, 1.7], [1.7, 1]]), np.ones((2, 2)), atol=1e-12)
    np.testing.assert_allclose(nearest_correlation([[1, -9], [-9, 1]]), [[1, -1], [-1, 1]], atol=1e-12)


def test_a_run_cut_short_is_a_correlation_matrix_all_the_same() -> None:
    A = indefinite(np.random.default_rng(8), 8)
    short = nearest_correlation(A, max_iter=1)
    as_correlation(short, tol=1e-12)
    assert np.linalg.norm(A - short) > np.linalg.norm(A - nearest_correlation(A))


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ([[1, 0.5], [0.4, 1]], {}, ArgumentError, "not symmetric"),
        ([[1, np.nan], [np.nan, 1]], {}, ArgumentError, "2 NaN or infinite"),
        ([[1.0]], {}, ArgumentError, "two or more"),
        (np.zeros((2, 3, 3)), {}, ArgumentError, "one matrix"),
        ([["a", "b"], ["c", "d"]], {}, ArgumentTypeError, "real numbers"),
        (np.eye(2), {"eigenvalue_floor": 1.0}, ArgumentError, "eigenvalue_floor"),
        (np.eye(2), {"eigenvalue_floor": -0.1}, ArgumentError, "eigenvalue_floor"),
        (np.eye(2), {"eigenvalue_floor": float("nan")}, ArgumentError, "eigenvalue_floor"),
        (np.eye(2), {"tol": 0.0}, ArgumentError, "tol"),
        (np.eye(2), {"max_iter": 0}, ArgumentError, "max_iter"),
    ],
)
def test_bad_arguments_of_the_projection_are_named(arguments, options, error, message) -> None:
    with pytest.raises(error, match=message):
        nearest_correlation(arguments, **options)


@pytest.mark.parametrize(
    ("R", "error", "message"),
    [
        ([[1, 0.5], [0.4, 1]], ArgumentError, "not symmetric"),
        ([[2, 0.5], [0.5, 1]], ArgumentError, "unit diagonal"),
        ([[1, 1.5], [1.5, 1]], ArgumentError, "beyond 1"),
        ([[1, 0.5], [0.5, np.inf]], ArgumentError, "1 NaN or infinite"),
        (np.eye(3)[:2], ArgumentError, "square"),
        (np.eye(1), ArgumentError, "two or more"),
        ([1, 2], ArgumentError, "square"),
        ([[1, -0.9, -0.9], [-0.9, 1, -0.9], [-0.9, -0.9, 1]], ArgumentError, "smallest eigenvalue of -0.8"),
        ("text", ArgumentTypeError, "real numbers"),
        (np.eye(2, dtype=bool), ArgumentTypeError, "real numbers"),
        ([[1, 1j], [1j, 1]], ArgumentTypeError, "real numbers"),
        ([[1, 0.5], [0.5]], ArgumentTypeError, "real numbers"),
    ],
)
def test_what_is_not_a_correlation_matrix_is_named(R, error, message) -> None:
    with pytest.raises(error, match=message) as caught:
        as_correlation(R, name="my matrix")
    assert "my matrix" in str(caught.value)


def test_as_correlation_cleans_rounding_and_copies() -> None:
    rough = np.array([[1 + 1e-10, 0.3 + 1e-11, 0], [0.3, 1, 1 + 1e-10], [0, 1, 1]])
    rough[1, 0] = 0.3
    rough[0, 2] = rough[2, 0] = 0.3
    clean = as_correlation(rough)
    assert np.array_equal(clean, clean.T)
    assert (np.diag(clean) == 1).all()
    assert np.abs(clean).max() == 1.0
    assert not np.shares_memory(clean, rough)


def test_as_correlation_takes_stacks_and_singular_matrices() -> None:
    rng = np.random.default_rng(9)
    stack = np.stack([random_correlation(rng, 4) for _ in range(6)]).reshape(2, 3, 4, 4)
    assert np.array_equal(as_correlation(stack), stack)
    assert np.array_equal(as_correlation(np.ones((3, 3))), np.ones((3, 3)))
    stack[1, 2, 0, 1] = stack[1, 2, 1, 0] = -0.9999
    stack[1, 2, 0, 2] = stack[1, 2, 2, 0] = 0.9
    stack[1, 2, 1, 2] = stack[1, 2, 2, 1] = 0.9
    with pytest.raises(ArgumentError, match="semidefinite"):
        as_correlation(stack)


def test_pairs_and_matrices_are_each_others_inverse() -> None:
    rng = np.random.default_rng(11)
    stack = np.stack([random_correlation(rng, 5) for _ in range(3)])
    values = pair_values(stack)
    assert values.shape == (3, 10)
    assert np.array_equal(values[0], stack[0][np.triu_indices(5, 1)])
    assert np.array_equal(matrix_from_pairs(values, 5), stack)
    assert (np.diagonal(matrix_from_pairs(values, 5, diagonal=0.0), axis1=1, axis2=2) == 0).all()


def test_prior_length_is_that_of_LKJ_draws() -> None:
    rng = np.random.default_rng(12)
    for p in (2, 3, 6):
        values = [pair_values(random_correlation(rng, p)) for _ in range(20_000)]
        lower, upper = np.quantile(values, [0.025, 0.975])
        assert upper - lower == pytest.approx(prior_interval_length(p), rel=0.01)
        assert prior_interval_length(p, 0.5) == pytest.approx(
            2 * (2 * stats.beta(p / 2, p / 2).ppf(0.75) - 1)
        )
