"""Averages, their Monte Carlo errors, and the comparison with the printed table."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpsurvey.study import tables
from dpsurvey.study.cells import Cell
from dpsurvey.study.paper import TABLE1


def runs_of(truth, estimate, half):
    """A frame of one pair a run with intervals estimate +- half."""
    return pd.DataFrame(
        {
            "run": np.arange(len(truth)), "quantity": 0, "truth": truth, "estimate": estimate,
            "lower": estimate - half, "upper": estimate + half,
        }
    )  # fmt: skip


def test_error_counts_runs_not_pairs():
    """Pairs of a run that say the same thing say it once: the error is that of the run means."""
    rng = np.random.default_rng(1)
    by_run = rng.normal(size=200)
    frame = pd.DataFrame(
        {"run": np.repeat(np.arange(200), 45), "truth": 0.0, "estimate": np.repeat(by_run, 45)}
    )
    mean, error = tables.average(frame, lambda part: part["estimate"])
    assert mean == pytest.approx(by_run.mean())
    assert error == pytest.approx(by_run.std(ddof=1) / np.sqrt(200))


def test_better_lengths_are_set_against_the_papers_method_run_by_run():
    cell = Cell("continuous", 2, 1000, 1.0, "Bayes-NA")
    rng = np.random.default_rng(2)
    half = rng.uniform(0.05, 0.1, 400)
    truth, estimate = np.zeros(400), np.where(np.arange(400) < 380, 0.0, 1.0)
    results = {
        cell: runs_of(truth, estimate, half),
        replace(cell, method="Bayes-NA concordance"): runs_of(truth, estimate, 0.6 * half),
        replace(cell, method="Bayes-NA linf"): runs_of(truth, estimate, 1.001 * half),
    }
    table = tables.better(results).set_index(["statistic", "mechanism"])
    assert table["coverage"].tolist() == [95.0] * 3
    assert table.loc[("concordance", "linf"), "share"] == pytest.approx(0.6)
    assert table.loc[("concordance", "linf"), "gain"] == pytest.approx(0.8 * half.mean())
    assert table["not_longer"].tolist() == [True, True, False]  # by little, but in every run
    assert table.loc[("quadrant", "geometric"), "gain_se"] == 0.0


def test_regression_quantities_are_averaged_by_kind():
    cell = Cell("continuous", 3, 500, tables.NO_NOISE, "Regression linf")
    half = np.tile([0.1, 0.1, 0.2, 0.2, 0.3, 0.05, 0.05, 0.1, 0.1, 0.15], 6)
    frame = runs_of(np.zeros(60), np.zeros(60), half).assign(
        run=np.repeat(np.arange(6), 10), quantity=np.tile(np.arange(10), 6)
    )
    table = tables.regression({cell: frame}).set_index(["likelihood", "quantity"])
    assert table["epsilon"].unique().tolist() == [np.inf]
    assert table.loc[("product", "partial correlations"), "length"] == pytest.approx(0.4)
    assert table.loc[("joint", "R squared"), "length"] == pytest.approx(0.3)
    assert len(table) == 6


def test_coverage_error_is_the_binomial_one_at_two_variables():
    truth = np.zeros(1000)
    estimate = np.where(np.arange(1000) < 940, 0.0, 1.0)
    share, error = tables.average(runs_of(truth, estimate, 0.5), tables.covered)
    assert share == pytest.approx(94.0)
    assert error == pytest.approx(100 * np.sqrt(0.94 * 0.06 / 999))


def test_bins_hold_every_pair_once():
    truth = np.concatenate((np.linspace(-1, 1, 501), [-1.0, 1.0]))
    results = {Cell("continuous", 2, 50, 1.0, "MLE-NN"): runs_of(truth, truth + 0.1, 0.2)}
    binned = tables.by_bins(results, tables.absolute_error, "mae")
    whole = tables.overall(binned)
    assert len(whole) == 1
    assert len(binned) == 11
    assert binned["pairs"].sum() == 2 * len(truth)
    assert whole["mae"].item() == pytest.approx(0.1)


def test_table1_judges_lengths_and_coverage():
    cell = Cell("continuous", 2, 200, 1.0, "Bayes-NA")  # printed: 94.9%, .342
    truth = np.zeros(1000)
    estimate = np.where(np.arange(1000) < 950, 0.0, 1.0)
    good = tables.table1({cell: runs_of(truth, estimate, 0.171 * 1.019)})
    assert good["length_holds"].all()
    assert good["coverage_holds"].all()
    assert good["paper_length"].item() == 0.342
    long = tables.table1({cell: runs_of(truth, estimate, 0.171 * 1.021)})
    assert not long["length_holds"].any()
    low = tables.table1({cell: runs_of(truth, np.where(np.arange(1000) < 915, 0.0, 1.0), 0.171)})
    assert not low["coverage_holds"].any()


def test_printed_table_is_complete_and_plausible():
    """49 cells; lengths shrink as n or epsilon grows, which a slip of the pen would break."""
    assert len(TABLE1) == 49
    for (p, n, epsilon), (coverage, length) in TABLE1.items():
        assert 92.0 < coverage < 97.0
        for (other_p, other_n, other_epsilon), (_, other) in TABLE1.items():
            if other_p == p and other_n >= n and other_epsilon >= epsilon:
                assert other <= length
