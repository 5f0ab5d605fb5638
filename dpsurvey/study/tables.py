"""From runs to tables: averages with Monte Carlo errors, whose unit is the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from dpsurvey.copula.planning import expected
from dpsurvey.study.cells import Cell
from dpsurvey.study.paper import TABLE1
from dpsurvey.study.regressions import quantities

NOMINAL = 95.0
EDGES = np.linspace(-1.0, 1.0, 11)  # bins of the true correlation
LENGTH_TOLERANCE = 0.02  # relative, beside three standard errors
COVERAGE_TOLERANCE = 0.5  # points, beside three standard errors
PLAN_TOLERANCE = 0.07  # relative
NO_NOISE = 1e4  # epsilon at which noise is far below one row's share
COUNTS = {  # method -> what is counted, and the noise
    "Bayes-NA": ("quadrant", "geometric"),
    "Bayes-NA linf": ("quadrant", "linf"),
    "Bayes-NA concordance": ("concordance", "linf"),
    "Regression linf": ("quadrant", "linf"),
    "Regression concordance": ("concordance", "linf"),
}
KINDS = {"beta": "coefficients", "partial": "partial correlations", "R": "R squared"}
Results = Mapping[Cell, pd.DataFrame]
Value = Callable[[pd.DataFrame], "pd.Series[float]"]


def absolute_error(frame: pd.DataFrame) -> pd.Series[float]:
    """Return |estimate - truth|."""
    return (frame["estimate"] - frame["truth"]).abs()


def covered(frame: pd.DataFrame) -> pd.Series[float]:
    """Return 100 where the interval holds the truth, else 0."""
    return 100.0 * ((frame["lower"] <= frame["truth"]) & (frame["truth"] <= frame["upper"])).astype(float)


def length(frame: pd.DataFrame) -> pd.Series[float]:
    """Return the length of the interval."""
    return frame["upper"] - frame["lower"]


def average(frame: pd.DataFrame, value: Value) -> tuple[float, float]:
    """Return the average over all rows and its standard error, runs being independent and pairs of a run not.

    Parameters
    ----------
    frame : pandas.DataFrame
        With a column ``run``.
    value : callable
        From the frame to one number a row.

    Returns
    -------
    mean, standard_error : float
        The error is NaN for a single run.

    Examples
    --------
    >>> frame = pd.DataFrame({"run": [0, 0, 1, 1], "truth": 0.0, "estimate": [0.1, 0.1, 0.3, 0.3]})
    >>> tuple(round(x, 3) for x in average(frame, absolute_error))
    (0.2, 0.1)
    """
    values, code = value(frame).to_numpy(), frame["run"].to_numpy()
    _, code = np.unique(code, return_inverse=True)
    sums, sizes = np.bincount(code, values), np.bincount(code)
    mean = float(values.mean())
    runs = len(sums)
    if runs < 2:
        return mean, float("nan")
    spread = np.sum((sums - mean * sizes) ** 2) * runs / (runs - 1)
    return mean, float(np.sqrt(spread) / len(values))


def by_bins(results: Results, value: Value, name: str) -> pd.DataFrame:
    """Return averages by bins of the true correlation, and over all of them (the bin from -1 to 1).

    Parameters
    ----------
    results : mapping of Cell to pandas.DataFrame
    value : callable
        As for :func:`average`.
    name : str
        Of the column of averages; its errors go to ``name + "_se"``.

    Returns
    -------
    pandas.DataFrame
        Columns ``p, n, epsilon, method, bin_low, bin_high, runs, pairs``, `name` and its error.
    """
    rows = []
    for cell, frame in results.items():
        bins = np.clip(np.digitize(frame["truth"], EDGES) - 1, 0, len(EDGES) - 2)
        parts = [(EDGES[0], EDGES[-1], frame)]
        parts += [(EDGES[b], EDGES[b + 1], frame[bins == b]) for b in range(len(EDGES) - 1)]
        for low, high, part in parts:
            if part.empty:
                continue
            mean, error = average(part, value)
            rows.append(
                {
                    "p": cell.p, "n": cell.n, "epsilon": cell.epsilon, "method": cell.method,
                    "bin_low": round(float(low), 1), "bin_high": round(float(high), 1),
                    "runs": part["run"].nunique(), "pairs": len(part), name: mean, f"{name}_se": error,
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


def overall(binned: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of :func:`by_bins` that are over all correlations."""
    whole = (binned["bin_low"] == EDGES[0]) & (binned["bin_high"] == EDGES[-1])
    return pd.DataFrame(binned[whole])


def table1(results: Results) -> pd.DataFrame:
    """Return the paper's Table 1 from our runs, beside the printed one.

    Returns
    -------
    pandas.DataFrame
        Coverage in percent. ``length_holds``: within 2% plus three standard errors of the printed length;
        ``coverage_holds``: within 3.5 standard errors of 95% or of the printed coverage.
    """
    rows = []
    for cell, frame in results.items():
        (share, share_se), (mean, mean_se), (mae, mae_se) = (
            average(frame, value) for value in (covered, length, absolute_error)
        )
        paper_share, paper_length = TABLE1[cell.p, cell.n, cell.epsilon]
        off = min(abs(share - NOMINAL), abs(share - paper_share))
        rows.append(
            {
                "p": cell.p, "n": cell.n, "epsilon": cell.epsilon, "runs": frame["run"].nunique(),
                "coverage": share, "coverage_se": share_se, "paper_coverage": paper_share,
                "length": mean, "length_se": mean_se, "paper_length": paper_length,
                "length_ratio": mean / paper_length, "mae": mae, "mae_se": mae_se,
                "length_holds": abs(mean - paper_length) <= LENGTH_TOLERANCE * paper_length + 3.0 * mean_se,
                "coverage_holds": off <= 3.5 * share_se,
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def better(results: Results) -> pd.DataFrame:
    """Return coverage and length of the paper's method and of better ones, beside the printed and the planned lengths.

    Returns
    -------
    pandas.DataFrame
        Coverage in percent. ``gain``: how much shorter intervals are than the paper's method's in the same runs, on
        average, with its error. ``coverage_holds``: within 3 standard errors and half a point of 95%; ``not_longer``:
        the gain is not below 0 by more than 3 standard errors; ``plan_holds``: the planned length is within 7%.
    """
    rows = []
    for cell, frame in results.items():
        statistic, mechanism = COUNTS[cell.method]
        (share, share_se), (mean, mean_se), (mae, mae_se) = (
            average(frame, value) for value in (covered, length, absolute_error)
        )
        theirs = length(results[replace(cell, method="Bayes-NA")]).to_numpy()
        gain, gain_se = average(frame.assign(gain=theirs - length(frame)), lambda part: part["gain"])
        planned, _ = expected(cell.n, cell.p, cell.epsilon, statistic, mechanism)
        rows.append(
            {
                "p": cell.p, "n": cell.n, "epsilon": cell.epsilon, "statistic": statistic, "mechanism": mechanism,
                "runs": frame["run"].nunique(), "coverage": share, "coverage_se": share_se,
                "length": mean, "length_se": mean_se, "paper_length": TABLE1[cell.p, cell.n, cell.epsilon][1],
                "gain": gain, "gain_se": gain_se, "share": mean / theirs.mean(), "mae": mae, "mae_se": mae_se,
                "planned": planned, "planned_ratio": planned / mean,
                "coverage_holds": abs(share - NOMINAL) <= 3.0 * share_se + COVERAGE_TOLERANCE,
                "not_longer": gain >= -3.0 * gain_se,
                "plan_holds": abs(planned / mean - 1.0) <= PLAN_TOLERANCE,
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def regression(results: Results) -> pd.DataFrame:
    """Return coverage and length of regression quantities, averaged over coefficients and partial correlations.

    Returns
    -------
    pandas.DataFrame
        One row for each cell, likelihood and kind of quantity; epsilon is infinite where there is no noise to speak of.
    """
    rows = []
    for cell, frame in results.items():
        names = quantities(cell.p)
        kind = frame["quantity"].map(lambda i, names=names: (names[i][0], names[i][1].rstrip("23456789")))
        for (likelihood, quantity), part in frame.groupby(kind, sort=False):
            row: dict[str, object] = {
                "p": cell.p, "n": cell.n, "epsilon": np.inf if cell.epsilon >= NO_NOISE else cell.epsilon,
                "statistic": COUNTS[cell.method][0], "likelihood": likelihood, "quantity": KINDS[quantity],
                "runs": part["run"].nunique(),
            }  # fmt: skip
            for label, value in (("coverage", covered), ("length", length)):
                row[label], row[f"{label}_se"] = average(part, value)
            rows.append(row)
    return pd.DataFrame(rows)


def by_quantity(results: Results, names: tuple[str, ...]) -> pd.DataFrame:
    """Return coverage, length and error of every quantity by itself.

    Parameters
    ----------
    results : mapping of Cell to pandas.DataFrame
    names : tuple of str
        Of the quantities.

    Returns
    -------
    pandas.DataFrame
    """
    rows = []
    for cell, frame in results.items():
        for quantity, part in frame.groupby("quantity"):
            row: dict[str, object] = {
                "n": cell.n, "epsilon": cell.epsilon, "likelihood": cell.method,
                "quantity": names[int(str(quantity))], "runs": part["run"].nunique(),
            }  # fmt: skip
            for label, value in (("coverage", covered), ("length", length), ("mae", absolute_error)):
                row[label], row[f"{label}_se"] = average(part, value)
            rows.append(row)
    return pd.DataFrame(rows)
