"""Summaries of Markov chain draws: centre, spread, intervals, effective sample size, R-hat."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsurvey.errors import ArgumentError
from dpsurvey.texts import shown_setting

SUMMARY_COLUMNS = ("mean", "sd", "lower", "upper", "ess_bulk", "ess_tail", "r_hat")
_TAIL = (0.05, 0.95)
_MINIMUM_DRAWS = 4


def check_prob(prob: float) -> float:
    """Return `prob` if it is a probability strictly between 0 and 1.

    Raises
    ------
    ArgumentError
        If it is not, with a hint where a percentage was meant.

    Examples
    --------
    >>> check_prob(0.95)
    0.95
    """
    number = isinstance(prob, int | float | np.floating) and not isinstance(prob, bool)
    if not number or not 0.0 < prob < 1.0:
        percentage = number and 1.0 < prob < 100.0
        raise ArgumentError(
            "prob is not a probability",
            expected="0 < prob < 1",
            got=shown_setting(prob),
            hint=f"for {prob:g}% intervals give prob={prob / 100:g}" if percentage else None,
        )
    return float(prob)


def equal_tailed(draws: NDArray[np.float64], prob: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return equal-tailed intervals over chains and draws.

    The quantile at q of N draws is taken at position (N+1) q, so that intervals from few draws are not too
    short: N independent draws then cover as they promise.

    Parameters
    ----------
    draws : ndarray, shape (chain, draw, k)
    prob : float
        Posterior probability of each interval.

    Returns
    -------
    lower, upper : ndarray, shape (k,)

    Examples
    --------
    >>> lower, upper = equal_tailed(np.arange(1.0, 40.0).reshape(1, 39, 1), 0.95)
    >>> lower, upper
    (array([1.]), array([39.]))
    """
    tail = (1.0 - check_prob(prob)) / 2.0
    pooled = draws.reshape(-1, draws.shape[-1])
    lower, upper = np.quantile(pooled, [tail, 1.0 - tail], axis=0, method="weibull")
    return lower, upper


def summarise(draws: NDArray[np.float64], prob: float) -> pd.DataFrame:
    """Return one row per quantity: mean, sd, interval, effective sample sizes and R-hat.

    ``ess_bulk``, ``ess_tail`` (the 5% and 95% quantiles) and ``r_hat`` are the rank-normalised split
    diagnostics of Vehtari et al. (2021), computed by arviz-stats. They are NaN where they do not exist: fewer
    than 4 draws a chain, constant draws, and R-hat of a single chain.

    Parameters
    ----------
    draws : ndarray, shape (chain, draw, k)
    prob : float
        Posterior probability of the equal-tailed interval.

    Returns
    -------
    pandas.DataFrame
        k rows with the columns ``mean, sd, lower, upper, ess_bulk, ess_tail, r_hat``.
    """
    lower, upper = equal_tailed(draws, prob)
    ess_bulk, ess_tail, r_hat = _convergence(draws)
    return pd.DataFrame(
        {
            "mean": draws.mean(axis=(0, 1)),
            "sd": standard_deviation(draws),
            "lower": lower,
            "upper": upper,
            "ess_bulk": ess_bulk,
            "ess_tail": ess_tail,
            "r_hat": r_hat,
        }
    )


def standard_deviation(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the posterior standard deviation over chains and draws (NaN for a single draw).

    Parameters
    ----------
    draws : ndarray, shape (chain, draw, ...)

    Returns
    -------
    ndarray, shape (...)
    """
    pooled = draws.reshape(-1, *draws.shape[2:])
    if len(pooled) == 1:
        return np.full(pooled.shape[1:], np.nan)
    deviation: NDArray[np.float64] = pooled.std(axis=0, ddof=1)
    return deviation


def _convergence(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ess_bulk, ess_tail and r_hat, shape (3, k)."""
    values = np.full((3, draws.shape[-1]), np.nan)
    varies = np.ptp(draws, axis=(0, 1)) > 0.0
    if draws.shape[1] < _MINIMUM_DRAWS or not varies.any():
        return values
    from arviz_stats.base import array_stats  # two seconds to import: only where it is used

    axes: dict[str, Any] = {"chain_axis": 0, "draw_axis": 1}
    moving = draws[..., varies]
    # A chain that stands still has no within-chain variance; its R-hat is then NaN or infinite, and says so.
    with np.errstate(divide="ignore", invalid="ignore"):
        values[0, varies] = array_stats.ess(moving, method="bulk", **axes)
        values[1, varies] = array_stats.ess(moving, method="tail", prob=_TAIL, **axes)
        if draws.shape[0] > 1:
            values[2, varies] = array_stats.rhat(moving, method="rank", **axes)
    return values
