"""Shared fixtures."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

ROOT = Path(__file__).resolve().parent.parent
SMALLEST_CELL = 20.0  # expected draws


def chi_square_p_value(draws: ArrayLike, support: NDArray[np.int64], log_pmf: NDArray[np.float64]) -> float:
    """Return the p-value of integer draws under a law on `support`, neighbouring rare values pooled."""
    from scipy.stats import chi2

    values = np.clip(np.asarray(draws), support[0], support[-1]) - support[0]
    seen = np.bincount(values, minlength=len(support))
    expected = np.exp(log_pmf) * values.size
    assert abs(expected.sum() / values.size - 1) < 1e-9, "the support leaves out some of the law"
    total = np.concatenate(([0.0], np.cumsum(expected)))
    edges = [0]
    while (end := int(np.searchsorted(total, total[edges[-1]] + SMALLEST_CELL))) <= len(support):
        if total[-1] - total[end] < SMALLEST_CELL:
            break
        edges.append(end)
    observed, wanted = np.add.reduceat(seen, edges), np.add.reduceat(expected, edges)
    if len(edges) == 1:
        return 1.0
    return float(chi2.sf(((observed - wanted) ** 2 / wanted).sum(), len(edges) - 1))


@pytest.fixture(scope="session")
def root() -> Path:
    """The top folder of the project."""
    return ROOT


@pytest.fixture(scope="session")
def golden() -> Path:
    """Reference values from outside the project; every file states its origin."""
    return ROOT / "tests" / "golden"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the large real files, which is not part of the project."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip(
            "the large real survey files (a folder `shared` beside the project) are not on this machine"
        )
    return folder


@pytest.fixture(scope="session")
def p_value() -> Callable[..., float]:
    """Return the chi-square test of integer draws against a law."""
    return chi_square_p_value
