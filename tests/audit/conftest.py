"""What the audits share: a lower bound on epsilon from outputs alone, and a note of every figure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

LEVEL = 1e-6  # chance that an honest mechanism is accused: real noise cannot be seeded

Scores = NDArray[np.float64]


def _log_ratio(hits: NDArray[np.int64], other: NDArray[np.int64], runs: int, delta: float) -> Scores:
    """Return lower bounds on epsilon from how often events happened on a table and on its neighbour.

    Pr(E | D) <= exp(epsilon) Pr(E | D') + delta. The two Clopper-Pearson limits hold together but for LEVEL.
    """
    from scipy.special import betaincinv

    alpha = LEVEL / 2
    least = np.where(hits > 0, betaincinv(np.maximum(hits, 1), runs - hits + 1, alpha), 0.0)
    most = np.where(other < runs, betaincinv(other + 1, np.maximum(runs - other, 1), 1 - alpha), 1.0)
    return np.log(np.maximum(least - delta, 1e-300) / most)


def _events(scores: Scores, thresholds: Scores) -> NDArray[np.int64]:
    """Return how many scores are at or above each threshold."""
    return len(scores) - np.searchsorted(np.sort(scores), thresholds, side="left")


def lower_bound(here: Scores, there: Scores, delta: float = 0.0) -> float:
    """Return a lower bound on the epsilon of a mechanism from what it gave on two neighbouring tables.

    A third of the runs chooses the event, the others judge it. Events are: one of the scores is at least (or at
    most) a threshold, seen on the one table more often than on the other.

    Parameters
    ----------
    here, there : numpy.ndarray, shape (runs, scores)
        Numbers that a distinguisher computes from each output.
    delta : float
    """
    third, best = len(here) // 3, (-np.inf, 0, 1, 0.0, False)
    for column in range(here.shape[1]):
        for sign in (1, -1):
            one, two = sign * here[:third, column], sign * there[:third, column]
            thresholds = np.unique(
                np.quantile(np.concatenate((one, two)), np.linspace(0, 1, 200), method="nearest")
            )
            counts = _events(one, thresholds), _events(two, thresholds)
            for swapped in (False, True):
                bounds = _log_ratio(*(counts[::-1] if swapped else counts), third, delta)
                at = int(np.argmax(bounds))
                best = max(best, (float(bounds[at]), column, sign, float(thresholds[at]), swapped))
    _, column, sign, threshold, swapped = best
    judged = [_events(sign * scores[third:, column], np.array([threshold])) for scores in (here, there)]
    return float(_log_ratio(*(judged[::-1] if swapped else judged), len(here) - third, delta)[0])


def distinguisher_scores(
    outputs: NDArray[np.int64],
    here: NDArray[np.int64],
    there: NDArray[np.int64],
    sensitivities: NDArray[np.int64],
) -> Scores:
    """Return what an informed attacker would compute: projections and distances, in units of the sensitivities.

    The differences of distances in L1, L2 and the largest of them are the log-likelihood ratios of geometric,
    Gaussian and L-infinity noise but for a factor.
    """
    from_here, from_there = ((outputs - t) / sensitivities for t in (here, there))
    difference = (there - here) / sensitivities
    return np.column_stack([
        from_here @ difference,
        np.abs(from_there).sum(1) - np.abs(from_here).sum(1),
        np.abs(from_there).max(1) - np.abs(from_here).max(1),
    ])  # fmt: skip


@pytest.fixture(scope="session")
def epsilon_bound() -> Callable[..., float]:
    """Return the black-box audit of two samples of scores."""
    return lower_bound


@pytest.fixture(scope="session")
def scores() -> Callable[..., Scores]:
    """Return the distinguisher's scores of outputs."""
    return distinguisher_scores


@pytest.fixture(scope="session")
def level() -> float:
    """Return the level of every test of real noise."""
    return LEVEL


@pytest.fixture
def note(record_property: Callable[[str, object], None]) -> Callable[..., None]:
    """Return a function that keeps figures for the report (report.py), whatever the outcome of the test."""

    def keep(**figures: object) -> None:
        for name, value in figures.items():
            record_property(name, value)

    return keep
