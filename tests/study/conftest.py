"""Small cells that are quick to run."""

import pytest

from dpsurvey.study.cells import Cell


@pytest.fixture
def small_cells():
    """Cells of every kind that cost milliseconds a run."""
    return [
        Cell("continuous", 2, 50, 1.0, "Bayes-NA"),
        Cell("continuous", 2, 50, 1.0, "MLE-NN"),
        Cell("discrete", 2, 50, 1.0, "Bayes-NA"),
        Cell("continuous", 5, 200, 5.0, "MLE-NN"),
    ]
