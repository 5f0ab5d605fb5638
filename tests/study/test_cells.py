"""Random streams: reproducible, independent of everything but seed, setting and run."""

import itertools

import numpy as np

from dpsurvey.study.cells import Cell, streams
from dpsurvey.study.studies import STUDIES


def test_a_stream_is_a_function_of_seed_setting_and_run():
    cell = Cell("continuous", 5, 200, 0.5, "Bayes-NA")
    again = Cell("continuous", 5, 200, 0.5, "MLE-NN")  # another method meets the same rows and noise
    for name in ("rows", "noise"):
        first, second = (getattr(streams(c, 7, 1), name).random(5) for c in (cell, again))
        np.testing.assert_array_equal(first, second)


def test_all_streams_of_a_study_differ():
    settings = [
        Cell("continuous", 5, n, epsilon, "Bayes-NA")
        for n, epsilon in itertools.product((200, 500), (0.1, 1.0))
    ]
    firsts = [
        generator.integers(2**63)
        for cell in settings
        for run in range(20)
        for seed in (0, 1)
        for generator in streams(cell, run, seed)
    ]
    assert len(set(firsts)) == len(firsts) == 4 * 20 * 2 * 7


def test_streams_are_uncorrelated_between_runs():
    cell = Cell("continuous", 2, 50, 1.0, "Bayes-NA")
    draws = np.array([streams(cell, run, 1).rows.standard_normal(200) for run in range(200)])
    correlations = np.corrcoef(draws)[np.triu_indices(200, 1)]
    assert abs(correlations.mean()) < 4 / np.sqrt(200 * len(correlations))
    assert np.abs(correlations).max() < 6 / np.sqrt(200)


def test_cells_of_all_studies_have_names_of_their_own():
    cells = {cell for study in STUDIES.values() for cell in study.cells}
    assert len({cell.name for cell in cells}) == len(cells)
    assert sum(cell.method == "Bayes-NA" and cell.design == "continuous" for cell in cells) == 49
