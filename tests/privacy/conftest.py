"""Helpers for noise that cannot be seeded, and laws small enough to be checked in full."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

SMALLEST_CELL = 20.0  # expected draws


def chi_square_p_value(draws: ArrayLike, support: NDArray[np.int64], log_pmf: NDArray[np.float64]) -> float:
    """Return the p-value of integer draws under a law on `support`, neighbouring rare values pooled."""
    from scipy.stats import chi2

    values = np.clip(np.asarray(draws), support[0], support[-1]) - support[0]
    seen = np.bincount(values, minlength=len(support))
    expected = np.exp(log_pmf) * values.size
    assert abs(expected.sum() / values.size - 1) < 1e-9, "the support leaves out some of the law"
    cells, start = [], 0
    for end in range(1, len(support) + 1):
        if expected[start:end].sum() >= SMALLEST_CELL and expected[end:].sum() >= SMALLEST_CELL:
            cells.append((start, end))
            start = end
    cells.append((start, len(support)))
    observed = np.array([seen[a:b].sum() for a, b in cells])
    wanted = np.array([expected[a:b].sum() for a, b in cells])
    if len(cells) == 1:
        return 1.0
    return float(chi2.sf(((observed - wanted) ** 2 / wanted).sum(), len(cells) - 1))


@pytest.fixture(scope="session")
def p_value() -> Callable[..., float]:
    """Return the chi-square test of integer draws against a law."""
    return chi_square_p_value


@pytest.fixture(scope="session")
def reference(golden: Path) -> dict[str, Any]:
    """What the paper's reference code computes in R."""
    return json.loads((golden / "dpbayescopula.json").read_text())
