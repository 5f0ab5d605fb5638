"""Asghar-dpc: cells, the root and its special cases, the noise and what it costs, and the errors measured for it."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import ndtr, ndtri

import dpsurvey as dps
from dpsurvey.baselines.asghar import asghar_dpc, cell_counts, normal_orthant, solve_cells
from dpsurvey.errors import ArgumentError, ArgumentTypeError, DomainError, NoLedgerWarning
from dpsurvey.privacy.ledger import Ledger

CUTS = {"x": 0.0, "y": 0.1, "z": -0.3}


@pytest.fixture
def df():
    rng = np.random.default_rng(3)
    factor = rng.standard_normal((3, 5))
    return pd.DataFrame(rng.standard_normal((200, 5)) @ factor.T, columns=["x", "y", "z"])


def test_cells_are_those_of_a_cross_table(df):
    cells = cell_counts(df, ["x", "y", "z"], [CUTS[name] for name in "xyz"])
    for row, (first, second) in zip(cells, itertools.combinations("xyz", 2), strict=True):
        a, b = df[first] > CUTS[first], df[second] > CUTS[second]
        assert row.tolist() == [(a & b).sum(), (a & ~b).sum(), (~a & b).sum(), (~a & ~b).sum()]


def test_substituting_a_row_moves_the_cells_of_a_pair_by_2():
    states = list(itertools.product([0, 1], repeat=3))
    largest = 0
    for before, after in itertools.product(states, repeat=2):
        tables = [pd.DataFrame([row, *states], columns=list("xyz")) for row in (before, after)]
        cells = [cell_counts(table, list("xyz"), [0.5] * 3) for table in tables]
        largest = max(largest, int(np.abs(cells[0] - cells[1]).sum()))
    assert largest == 2 * 3  # each of three pairs


def integrated_orthant(a, b, r):
    """Pr(Z1 < a, Z2 < b), as an integral over Z1."""
    root = np.sqrt(1 - r * r)

    def density(z):
        return np.exp(-z * z / 2) / np.sqrt(2 * np.pi) * ndtr((b - r * z) / root)

    step = b / r if r else 0.0  # where the second factor falls from 1 to 0, the quicker the nearer r is to 1
    breaks = sorted({-9.0, a, *(min(max(step + shift * root, -9.0), a) for shift in (-8.0, 0.0, 8.0))})
    return sum(quad(density, *ends, epsabs=1e-13, limit=200)[0] for ends in itertools.pairwise(breaks))


@pytest.mark.parametrize("r", [-0.9999, -0.7, 0.0, 0.3, 0.95, 0.9999])
def test_orthant_probability_against_an_integral(r):
    points = [
        (0.0, 0.0),
        (0.0, 1.2),
        (0.0, -1.2),
        (-0.7, 0.0),
        (1.5, -0.4),
        (-2.0, -1.0),
        (0.3, 0.3),
        (3.0, 2.0),
    ]
    expected = [integrated_orthant(a, b, r) for a, b in points]
    a, b = np.array(points).T
    np.testing.assert_allclose(normal_orthant(a, b, r), expected, atol=1e-11)
    np.testing.assert_allclose(normal_orthant(b, a, r), expected, atol=1e-11)


def test_at_the_medians_the_root_has_a_closed_form():
    n11 = np.arange(1, 50)
    cells = np.column_stack([n11, 50 - n11, 50 - n11, n11])
    estimates, special = solve_cells(cells)
    assert not special.any()
    np.testing.assert_allclose(estimates, np.sin(np.pi / 2 * (4 * n11 / 100 - 1)), atol=1e-12)


def test_the_root_has_the_share_of_the_table():
    rng = np.random.default_rng(8)
    cells = rng.integers(1, 400, size=(200, 4))
    estimates, _ = solve_cells(cells)
    inner = np.abs(estimates) < 0.9998
    assert inner.sum() > 150
    for (n11, n10, n01, n00), r in zip(cells[inner], estimates[inner], strict=True):
        total = n11 + n10 + n01 + n00
        found = integrated_orthant(ndtri((n11 + n10) / total), ndtri((n11 + n01) / total), r)
        assert found == pytest.approx(n11 / total, abs=1e-11)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([0, 0, 0, 0], 0.0),
        ([0, 3, 4, 5], -1.0),
        ([5, 3, 4, 0], -1.0),
        ([0, 0, 4, 5], -1.0),  # the negative cases come first
        ([5, 0, 4, 5], 1.0),
        ([5, 4, 0, 5], 1.0),
    ],
)
def test_special_cases_in_their_order(cells, expected):
    estimates, special = solve_cells(np.array([cells, [30, 20, 20, 30]]))
    assert estimates[0] == expected
    assert special.tolist() == [True, False]


def test_a_share_beyond_all_correlations_gives_the_end_of_the_bracket():
    estimates, _ = solve_cells(np.array([[1, 1_000_000, 1_000_000, 1]]))
    assert estimates[0] == pytest.approx(-0.9999, abs=1e-9)


def test_without_much_noise_it_is_the_root(df):
    with pytest.warns(dps.errors.LargeEpsilonWarning):
        estimate = asghar_dpc(df, 1e6, thresholds=CUTS, insecure_rng=np.random.default_rng(1))
    cells = cell_counts(df, ["x", "y", "z"], [CUTS[name] for name in "xyz"])
    np.testing.assert_allclose(estimate.R[np.triu_indices(3, 1)], solve_cells(cells)[0], atol=1e-12)
    assert estimate.info["special"] == [False] * 3
    assert not estimate.info["projected"]


def test_scale_and_true_epsilon_are_stated(df):
    info = asghar_dpc(df, 1.0, thresholds=CUTS, insecure_rng=np.random.default_rng(1)).info
    assert info["scale"] == 6.0  # 2 m / epsilon
    assert info["true_epsilon"] == 1.0
    assert info["neighbours"] == "substitute one row"
    assert info["thresholds"] == CUTS


def test_indefinite_matrices_are_projected(df):
    rng = np.random.default_rng(2)
    estimates = [asghar_dpc(df, 0.01, thresholds=CUTS, insecure_rng=rng) for _ in range(50)]
    projected = [estimate for estimate in estimates if estimate.info["projected"]]
    assert len(projected) > 5
    assert all(np.linalg.eigvalsh(estimate.R)[0] > -1e-10 for estimate in projected)
    assert all(estimate.info["frobenius_distance"] > 0 for estimate in projected)


def test_secure_noise_is_charged_to_the_ledger(df, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.json", dataset="simulated", budget=1.0)
    estimate = asghar_dpc(df, 0.4, thresholds=CUTS, ledger=ledger)
    assert estimate.private
    assert estimate.info["ledger"]["sequence"] == 1
    assert float(ledger.remaining) == 0.6


def test_secure_noise_without_a_ledger_warns(df):
    with pytest.warns(NoLedgerWarning) as caught:
        asghar_dpc(df, 1.0, thresholds=CUTS)
    assert caught[0].filename == __file__


def test_a_simulation_says_that_it_is_not_private(df):
    estimate = asghar_dpc(df, 1.0, thresholds=CUTS, insecure_rng=np.random.default_rng(1))
    assert not estimate.private
    assert not estimate.info["secure"]


def test_constant_columns_and_empty_halves_do_not_raise():
    df = pd.DataFrame({"x": np.ones(50), "y": np.arange(50)})
    for seed in range(20):
        estimate = asghar_dpc(
            df, 1.0, thresholds={"x": 1, "y": 100}, insecure_rng=np.random.default_rng(seed)
        )
        assert np.isfinite(estimate.R).all()


def test_what_it_cannot_take(df):
    rng = np.random.default_rng(1)
    with pytest.raises(ArgumentTypeError, match="not a mapping"):
        asghar_dpc(df, 1.0, thresholds=[0, 0, 0], insecure_rng=rng)
    with pytest.raises(ArgumentError, match="no threshold for 'y', 'z'"):
        asghar_dpc(df, 1.0, thresholds={"x": 0}, insecure_rng=rng)
    with pytest.raises(ArgumentError, match="threshold of 'x' is not a finite number"):
        asghar_dpc(df, 1.0, thresholds=CUTS | {"x": float("nan")}, insecure_rng=rng)
    with pytest.raises(DomainError, match="not numeric"):
        asghar_dpc(df.astype({"x": str}), 1.0, thresholds=CUTS, insecure_rng=rng)


# n, epsilon: mean absolute error over 1000 runs, measured apart from this code with continuous Laplace noise.
MEASURED = [(50, 0.01, 0.923), (100, 0.1, 0.558), (200, 1.0, 0.073), (500, 0.1, 0.127)]


@pytest.mark.parametrize(("n", "epsilon", "measured"), MEASURED)
def test_mean_absolute_error_is_the_one_measured(n, epsilon, measured):
    rng, runs = np.random.default_rng(n), 400
    errors = np.empty(runs)
    for run in range(runs):
        r = rng.uniform(-1, 1)  # LKJ(1) for two variables; thresholds at the medians
        df = pd.DataFrame(rng.multivariate_normal([0, 0], [[1, r], [r, 1]], n), columns=["x", "y"])
        estimate = asghar_dpc(df, epsilon, thresholds={"x": 0.0, "y": 0.0}, insecure_rng=rng)
        errors[run] = abs(estimate.R[0, 1] - r)
    spread = errors.std(ddof=1) * np.sqrt(1 / runs + 1 / 1000) + 0.0005  # and the rounding of three decimals
    print(
        f"n={n} epsilon={epsilon}: {errors.mean():.4f} +- {errors.std() / np.sqrt(runs):.4f}, measured {measured}"
    )
    assert errors.mean() == pytest.approx(measured, abs=3.5 * spread)
