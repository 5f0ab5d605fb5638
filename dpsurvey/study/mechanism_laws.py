"""The exact laws of four mechanisms on one count (Figure S1): no simulation."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsurvey.copula.mle_nn import posterior_mean_count
from dpsurvey.privacy.mechanisms import build_mechanism
from dpsurvey.privacy.statistics import QuadrantCounts

MECHANISMS = ("Geometric", "TGM", "BTGM", "RGM")
_REACH = 400  # counts beyond the range, where the geometric law has nothing left to speak of


def laws(n: int, epsilons: tuple[float, ...], true_counts: tuple[int, ...]) -> pd.DataFrame:
    """Return the law of what each mechanism releases for a pair's true count.

    Parameters
    ----------
    n : int
        Rows; counts run over 0..n/2.
    epsilons : tuple of float
        Privacy loss of the one count.
    true_counts : tuple of int

    Returns
    -------
    pandas.DataFrame
        Columns ``mechanism, epsilon, true_count, value, probability``; the geometric law is cut to within 15 counts
        of the range. Values of BTGM are real numbers.

    Examples
    --------
    >>> table = laws(50, (0.25,), (5,))
    >>> table.groupby("mechanism")["probability"].sum().round(2).to_dict()
    {'BTGM': 1.0, 'Geometric': 1.0, 'RGM': 1.0, 'TGM': 1.0}
    """
    statistic = QuadrantCounts(n, 2)
    lower, upper = statistic.lower, statistic.upper
    parts = []
    for epsilon in epsilons:
        geometric = build_mechanism("geometric", statistic, epsilon).marginal(0)
        ranged = build_mechanism("rgm", statistic, epsilon).marginal(0)
        noisy = np.arange(lower - _REACH, upper + _REACH + 1)
        inside = np.arange(lower, upper + 1)
        clamped = np.clip(noisy, lower, upper)
        averaged = posterior_mean_count(clamped, lower, upper, geometric)
        for true in true_counts:
            probability = np.exp(geometric.log_pmf(noisy, true))
            near = (noisy >= lower - 15) & (noisy <= upper + 15)
            outcomes = {
                "Geometric": (noisy[near], probability[near]),
                "TGM": (clamped, probability),
                "BTGM": (averaged, probability),
                "RGM": (inside, np.exp(ranged.log_pmf(inside, true))),
            }
            parts += [_law(name, epsilon, true, *outcomes[name]) for name in MECHANISMS]
    return pd.concat(parts, ignore_index=True)


def _law(name: str, epsilon: float, true: int, values: object, probability: object) -> pd.DataFrame:
    frame = pd.DataFrame({"value": values, "probability": probability}, dtype=float)
    summed = frame.groupby("value")[["probability"]].sum().reset_index()
    summed.insert(0, "mechanism", name)
    summed.insert(1, "epsilon", epsilon)
    summed.insert(2, "true_count", true)
    return summed
