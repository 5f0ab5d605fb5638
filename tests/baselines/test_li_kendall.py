"""Li-Kendall: the transformation, the noise and what it costs, and the errors measured for it."""

import numpy as np
import pandas as pd
import pytest

import dpsurvey as dps
from dpsurvey.baselines.li_kendall import li_kendall, reflect_eigenvalues
from dpsurvey.errors import (
    ArgumentError,
    ArgumentTypeError,
    BudgetExceededError,
    DomainError,
    NoLedgerWarning,
    UnknownNameError,
)
from dpsurvey.privacy.ledger import Ledger


@pytest.fixture
def df():
    rng = np.random.default_rng(3)
    factor = rng.standard_normal((3, 5))
    return pd.DataFrame(rng.standard_normal((200, 5)) @ factor.T, columns=["x", "y", "z"])


def test_without_much_noise_it_is_the_sine_of_tau(df):
    with pytest.warns(dps.errors.LargeEpsilonWarning):
        estimate = li_kendall(df, 1e9, insecure_rng=np.random.default_rng(1))
    tau = df.corr("kendall").to_numpy()  # tau-b, which is tau-a here: no ties
    np.testing.assert_allclose(estimate.R, np.sin(np.pi / 2 * tau), atol=1e-12)
    assert not estimate.info["projected"]


def test_ties_draw_tau_a_towards_0():
    df = pd.DataFrame({"x": [0, 0, 1, 1], "y": [0, 0, 1, 1]})
    with pytest.warns(dps.errors.LargeEpsilonWarning):
        estimate = li_kendall(df, 1e9, insecure_rng=np.random.default_rng(1))
    assert estimate.R[0, 1] == pytest.approx(np.sin(np.pi / 2 * 4 / 6))


@pytest.mark.parametrize(("sensitivity", "s"), [("4/n", 4 / 200), ("4/(n+1)", 4 / 201)])
def test_noise_has_the_scale_of_the_definition(df, sensitivity, s):
    rng, runs = np.random.default_rng(5), 400
    noisy = [
        li_kendall(df, 3.0, sensitivity=sensitivity, insecure_rng=rng).info["noisy_tau"] for _ in range(runs)
    ]
    errors = np.array(noisy) - df.corr("kendall").to_numpy()[np.triu_indices(3, 1)]
    scale = 3 * s / 3.0  # m s / epsilon
    assert errors.mean() == pytest.approx(0.0, abs=4 * scale * np.sqrt(2 / errors.size))
    # A Laplace draw has mean absolute value and standard deviation of it equal to its scale.
    assert np.abs(errors).mean() == pytest.approx(scale, abs=4 * scale / np.sqrt(errors.size))


def test_true_epsilon_is_stated(df):
    rng = np.random.default_rng(5)
    exact, papers = (
        li_kendall(df, 1.0, sensitivity=sensitivity, insecure_rng=rng).info
        for sensitivity in ("4/n", "4/(n+1)")
    )
    assert exact["neighbours"] == papers["neighbours"] == "substitute one row"
    assert 1 - 1e-12 < exact["true_epsilon"] <= 1.0
    assert papers["true_epsilon"] == pytest.approx(201 / 200)
    assert papers["epsilon"] == exact["epsilon"] == 1.0


def test_tau_is_not_clipped(df):
    estimate = li_kendall(df[["x", "y"]], 0.001, insecure_rng=np.random.default_rng(1))
    (tau,) = estimate.info["noisy_tau"]
    assert abs(tau) > 1
    assert estimate.R[0, 1] == pytest.approx(np.sin(np.pi / 2 * tau))


def test_indefinite_matrices_are_mended(df):
    rng = np.random.default_rng(2)
    estimates = [li_kendall(df, 0.01, insecure_rng=rng) for _ in range(50)]
    mended = [estimate for estimate in estimates if estimate.info["projected"]]
    assert len(mended) > 10
    for estimate in mended:
        assert np.linalg.eigvalsh(estimate.R)[0] > -1e-12
        raw = np.eye(3)
        raw[np.triu_indices(3, 1)] = np.sin(np.pi / 2 * np.array(estimate.info["noisy_tau"]))
        raw = np.triu(raw, 1) + np.triu(raw, 1).T + np.eye(3)
        # |A| is the square root of A squared: another way to the same matrix.
        values, vectors = np.linalg.eigh(raw @ raw)
        root = vectors @ np.diag(np.sqrt(values)) @ vectors.T
        np.testing.assert_allclose(
            estimate.R, root / np.sqrt(np.outer(np.diag(root), np.diag(root))), atol=1e-9
        )


def test_a_semidefinite_matrix_stays_as_it_is():
    R = np.ones((3, 3))
    mended, changed = reflect_eigenvalues(R)
    assert mended is R
    assert not changed


def test_secure_noise_is_charged_to_the_ledger(df, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.json", dataset="simulated", budget=2.0)
    estimate = li_kendall(df, 0.5, ledger=ledger)
    assert estimate.private
    assert estimate.info["secure"]
    assert estimate.info["ledger"]["sequence"] == 1
    assert float(ledger.remaining) == 1.5
    papers = li_kendall(df, 1.0, sensitivity="4/(n+1)", ledger=ledger)
    assert float(ledger.spent) == 0.5 + papers.info["true_epsilon"] > 1.5
    with pytest.raises(BudgetExceededError):
        li_kendall(df, 1.0, ledger=ledger)
    assert (
        li_kendall(df, 0.1, ledger=ledger).info["noisy_tau"]
        != li_kendall(df, 0.1, ledger=ledger).info["noisy_tau"]
    )


def test_secure_noise_without_a_ledger_warns(df):
    with pytest.warns(NoLedgerWarning, match=r"Ledger.create") as caught:
        li_kendall(df, 1.0)
    assert caught[0].filename == __file__


def test_a_simulation_says_that_it_is_not_private(df):
    estimate = li_kendall(df, 1.0, insecure_rng=np.random.default_rng(1))
    assert not estimate.private
    assert not estimate.info["secure"]
    again = li_kendall(df, 1.0, insecure_rng=np.random.default_rng(1))
    assert np.array_equal(estimate.R, again.R)


def test_the_summary_has_the_noisy_tau_of_each_pair(df):
    table = li_kendall(df, 1.0, columns=["z", "x", "y"], insecure_rng=np.random.default_rng(1)).summary()
    assert table[["var1", "var2"]].to_numpy().tolist() == [["z", "x"], ["z", "y"], ["x", "y"]]
    assert {"estimate", "noisy_tau"} <= set(table)


def test_what_it_cannot_take(df):
    rng = np.random.default_rng(1)
    with pytest.raises(ArgumentTypeError, match="not a table"):
        li_kendall(df.to_numpy(), 1.0, insecure_rng=rng)
    with pytest.raises(ArgumentTypeError, match="not a generator"):
        li_kendall(df, 1.0, insecure_rng=1)
    with pytest.raises(UnknownNameError, match="no such sensitivity"):
        li_kendall(df, 1.0, sensitivity="2/n", insecure_rng=rng)
    with pytest.raises(DomainError, match="1 missing cell"):
        li_kendall(df.assign(x=df["x"].where(df.index > 0)), 1.0, insecure_rng=rng)
    with pytest.raises(ArgumentError, match="above 0"):
        li_kendall(df, 0.0, insecure_rng=rng)
    with pytest.raises(ArgumentError, match="64-bit"):
        li_kendall(df, 1e-14, insecure_rng=rng)


# n, epsilon: mean absolute error over 1000 runs, measured apart from this code with continuous Laplace noise.
MEASURED = [(50, 0.01, 0.769), (100, 0.1, 0.410), (200, 1.0, 0.048), (500, 0.1, 0.099)]


@pytest.mark.parametrize(("n", "epsilon", "measured"), MEASURED)
def test_mean_absolute_error_is_the_one_measured(n, epsilon, measured):
    rng, runs = np.random.default_rng(n), 400
    errors = np.empty(runs)
    for run in range(runs):
        r = rng.uniform(-1, 1)  # LKJ(1) for two variables; tau does not depend on the marginal laws
        rows = rng.multivariate_normal([0, 0], [[1, r], [r, 1]], n)
        df = pd.DataFrame(rows, columns=["x", "y"])
        errors[run] = abs(li_kendall(df, epsilon, insecure_rng=rng).R[0, 1] - r)
    spread = errors.std(ddof=1) * np.sqrt(1 / runs + 1 / 1000) + 0.0005  # and the rounding of three decimals
    print(
        f"n={n} epsilon={epsilon}: {errors.mean():.4f} +- {errors.std() / np.sqrt(runs):.4f}, measured {measured}"
    )
    assert errors.mean() == pytest.approx(measured, abs=3.5 * spread)
