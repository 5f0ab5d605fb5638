"""Figures: forests of intervals, correlation heat maps, plans. They need matplotlib (the extra ``plot``).

Figures are made without pyplot, so they need no display and change no global state; inside a Jupyter kernel
they belong to pyplot, so that they are shown. ``ax.figure.savefig("figure.png")`` writes one to a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsurvey.copula import card
from dpsurvey.copula.compare import Result, name_results, pair_intervals
from dpsurvey.copula.diagnostics import check_prob
from dpsurvey.copula.planning import candidates, expected, plan
from dpsurvey.copula.posterior import CorrelationPosterior
from dpsurvey.drawing import (
    Series,
    draw_forest,
    draw_legend,
    draw_title,
    forest_axes,
    heatmap_axes,
    new_axes,
    plain,
    series_style,
)
from dpsurvey.errors import ArgumentError, ArgumentTypeError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SCALE = "latent standard normal scale"
_LONG_LABEL = 38  # characters of a pair's name beyond which it takes two lines


class Regression(Protocol):
    """What :func:`plot_regression` draws: a RegressionPosterior or an OlsBenchmark."""

    y: str

    @property
    def method(self) -> str:
        """Name of the method."""

    @property
    def private(self) -> bool:
        """Whether it follows from a private release alone."""

    def intervals(self, prob: float | None = None) -> pd.DataFrame:
        """Return the columns term, estimate, lower and upper."""


def plot_forest(
    *results: Result,
    prob: float = 0.95,
    names: Sequence[str] | None = None,
    labels: bool = False,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw the intervals of one or more results side by side, pair by pair (as in the paper's Figure 3).

    Parameters
    ----------
    *results : CorrelationPosterior or CorrelationEstimate
        About the same variables. An estimate has a marker and no interval.
    prob : float, default 0.95
        Posterior probability of the intervals.
    names : sequence of str, optional
        What to call the results; by default their methods, with epsilon where there is one.
    labels : bool, default False
        Whether to show the first result's labels in place of variable names.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure whose height fits the number of pairs.

    Returns
    -------
    matplotlib.axes.Axes
        Its title says so if any result is not private.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If there is no result, something is not a result, variables differ, or an option does not fit.
    MissingDependencyError
        If matplotlib is not installed.

    Examples
    --------
    >>> from dpsurvey import CorrelationEstimate
    >>> estimate = CorrelationEstimate([[1, 0.5], [0.5, 1]], ("x", "y"), {}, method="ERL", private=False)
    >>> plot_forest(estimate).get_title(loc="left")
    'Correlations\nNOT PRIVATE: ERL saw the confidential rows'
    """
    check_prob(prob)
    _require_one(results, "plot_forest")
    called = name_results(results, names)
    tables = [pair_intervals(result, prob, like=results[0]) for result in results]
    shown = results[0].labels if labels else {}
    rows = [_pair_label(shown.get(a, a), shown.get(b, b)) for a, b in results[0].pairs]
    series = [Series(name, table) for name, table in zip(called, tables, strict=True)]
    notes = [card.privacy_note(result.private, result.release) for result in results]
    ax = forest_axes(rows, len(series)) if ax is None else ax
    draw_forest(ax, rows, series, f"correlation ({_SCALE})")
    draw_title(ax, "Correlations" + _level(series, prob), called, notes, legend_rows=draw_legend(ax, series))
    return ax


def plot_regression(
    *regressions: Regression,
    prob: float = 0.95,
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw the coefficients of one or more regressions of the same outcome side by side.

    Parameters
    ----------
    *regressions : RegressionPosterior or OlsBenchmark
        With the same outcome and predictors.
    prob : float, default 0.95
        Probability of the intervals.
    names : sequence of str, optional
        What to call them; by default their methods, with epsilon where there is one.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Its title says so if any regression is not private.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If there is no regression, something is not one, outcomes or predictors differ, or an option does not
        fit.
    MissingDependencyError
        If matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsurvey import CorrelationPosterior
    >>> draws = np.broadcast_to([[1.0, 0.5], [0.5, 1.0]], (1, 4, 2, 2))
    >>> posterior = CorrelationPosterior(draws, ("x", "y"), {}, method="ERL", engine="native", private=False)
    >>> plot_regression(posterior.regress("y", on=["x"])).get_title(loc="left")
    'Regression of y, 95% intervals\nNOT PRIVATE: ERL saw the confidential rows'
    """
    check_prob(prob)
    _require_one(regressions, "plot_regression")
    tables = _matching_terms(regressions, prob)
    releases = [getattr(regression, "release", None) for regression in regressions]  # OLS has none
    if names is None:
        pairs = zip(regressions, releases, strict=True)
        called = card.distinct_names([card.result_name(item.method, release) for item, release in pairs])
    else:
        called = card.checked_names(names, len(regressions))
    rows = [plain(term) for term in tables[0]["term"]]
    series = [Series(name, table) for name, table in zip(called, tables, strict=True)]
    notes = [
        card.privacy_note(item.private, release) for item, release in zip(regressions, releases, strict=True)
    ]
    ax = forest_axes(rows, len(series)) if ax is None else ax
    draw_forest(ax, rows, series, f"regression coefficient ({_SCALE})")
    heading = f"Regression of {regressions[0].y}" + _level(series, prob)
    draw_title(ax, heading, called, notes, legend_rows=draw_legend(ax, series))
    return ax


def plot_heatmap(result: Result, *, prob: float = 0.95, labels: bool = False, ax: Axes | None = None) -> Axes:
    r"""Draw a correlation matrix as a heat map with its values.

    Parameters
    ----------
    result : CorrelationPosterior or CorrelationEstimate
        A posterior shows its mean; values whose interval covers 0 stand in parentheses.
    prob : float, default 0.95
        Posterior probability of these intervals.
    labels : bool, default False
        Whether to show labels in place of variable names.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure whose size fits the number of variables.

    Returns
    -------
    matplotlib.axes.Axes
        Its title says so if the result is not private.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If `result` is not a correlation result or `prob` not a probability.
    MissingDependencyError
        If matplotlib is not installed.

    Examples
    --------
    >>> from dpsurvey import CorrelationEstimate
    >>> estimate = CorrelationEstimate([[1, 0.5], [0.5, 1]], ("x", "y"), {}, method="ERL", private=False)
    >>> plot_heatmap(estimate).get_title(loc="left")
    'Correlations, ERL\nNOT PRIVATE: ERL saw the confidential rows'
    """
    check_prob(prob)
    (name,) = name_results([result], None)
    posterior = isinstance(result, CorrelationPosterior)
    R = result.mean() if isinstance(result, CorrelationPosterior) else result.R
    shown = [plain(result.labels.get(v, v) if labels else v) for v in result.variables]
    ax = heatmap_axes(shown) if ax is None else ax
    lower_triangle = np.tril(np.ones(R.shape, dtype=bool), -1)[1:, :-1]
    cells = np.ma.masked_array(R[1:, :-1], ~lower_triangle)
    image = ax.imshow(cells, cmap="RdBu_r", vmin=-1.0, vmax=1.0)
    _write_cells(ax, cells, _covers_zero(result, prob)[1:, :-1])
    ax.set_xticks(range(result.p - 1), shown[:-1], rotation=45, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(result.p - 1), shown[1:])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8)
    bar.outline.set_visible(False)
    bar.set_label(_SCALE, fontsize="small")
    if posterior:
        ax.set_xlabel(f"posterior means; in parentheses: {100 * prob:g}% interval covers 0", fontsize="small")
    notes = [card.privacy_note(result.private, result.release)]
    draw_title(ax, f"Correlations, {name}", [name], notes, legend_rows=0)
    return ax


def plot_plan(n: int, p: int, *, delta: float = 0.0, coarse: int = 0, ax: Axes | None = None) -> Axes:
    r"""Draw the expected length of 95% intervals against epsilon for every statistic and the mechanisms worth a choice.

    By public numbers alone: no data are looked at, so it costs no privacy.

    Parameters
    ----------
    n, p : int
        Rows and variables.
    delta : float, default 0
        Above 0 also for Gaussian noise.
    coarse : int, default 0
        How many columns are declared to have few levels.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If an argument is out of range.
    MissingDependencyError
        If matplotlib is not installed.

    Examples
    --------
    >>> plot_plan(500, 5).get_title(loc="left")
    'Expected length of 95% intervals, n = 500, p = 5\nno data were looked at'
    """
    without = plan(n, p, epsilon=1.0, delta=delta, coarse=coarse).prior_length  # which checks the arguments
    methods = candidates("auto", "auto", p, delta, coarse)
    epsilons = np.geomspace(0.05, 10.0, 12).tolist()
    curves = {
        method: [expected(n, p, epsilon, *method, delta, coarse, quick=True)[0] for epsilon in epsilons]
        for method in methods
    }
    ax = new_axes(6.4, 4.4) if ax is None else ax
    for order, (method, curve) in enumerate(sorted(curves.items(), key=lambda item: sum(item[1]))):
        name = "{} counts, {} noise".format(*method)
        ax.plot(epsilons, curve, label=name, markersize=4.5, markevery=2, **series_style(order))
    ax.axhline(without, color="#888888", linewidth=0.8, linestyle=(0, (4, 3)), label="no data")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("epsilon of the whole release")
    ax.set_ylabel(f"mean length ({_SCALE})")
    ax.legend(frameon=False, fontsize="small")
    ax.set_title(
        f"Expected length of 95% intervals, n = {n}, p = {p}\nno data were looked at",
        loc="left",
        fontsize="medium",
    )
    return ax


def _require_one(results: Sequence[object], function: str) -> None:
    if not results:
        raise ArgumentError(f"{function} has nothing to draw", expected="one or more results", got="none")


def _pair_label(first: str, second: str) -> str:
    """Return the name of a pair, in two lines where it is long."""
    joint = "\n~ " if len(first) + len(second) > _LONG_LABEL else " ~ "
    return plain(first + joint + second)


def _level(series: Sequence[Series], prob: float) -> str:
    """Return what to say about the intervals in a heading."""
    drawn = any(bool(one.table["lower"].notna().any()) for one in series)
    return f", {100 * prob:g}% intervals" if drawn else ""


def _matching_terms(regressions: Sequence[Regression], prob: float) -> list[pd.DataFrame]:
    """Return the coefficients of all regressions in the first one's order of terms."""
    for regression in regressions:
        if not hasattr(regression, "intervals"):
            raise ArgumentTypeError(
                "not a regression",
                expected="RegressionPosterior or OlsBenchmark",
                got=type(regression).__name__,
            )
    tables = [regression.intervals(prob).set_index("term", drop=False) for regression in regressions]
    for regression, table in zip(regressions, tables, strict=True):
        if regression.y != regressions[0].y or set(table.index) != set(tables[0].index):
            raise ArgumentError(
                "the regressions are not of the same outcome on the same predictors",
                expected=f"{regressions[0].y} on {', '.join(tables[0].index)}",
                got=f"{regression.y} on {', '.join(table.index)}",
            )
    return [table.loc[tables[0].index] for table in tables]


def _covers_zero(result: Result, prob: float) -> NDArray[np.bool_]:
    """Return which intervals cover 0, shape (p, p); none for a point estimate."""
    if not isinstance(result, CorrelationPosterior):
        return np.zeros(result.R.shape, dtype=bool)
    lower, upper = result.interval(prob)
    return np.asarray((lower <= 0.0) & (upper >= 0.0))


def _write_cells(ax: Axes, cells: np.ma.MaskedArray[Any, Any], covers_zero: NDArray[np.bool_]) -> None:
    """Write every unmasked value into its cell, white on dark colours."""
    for (row, column), value in np.ndenumerate(cells.filled(np.nan)):
        if np.isnan(value):
            continue
        text = f"{value:.2f}".replace("-", "−")
        ax.text(
            column,
            row,
            f"({text})" if covers_zero[row, column] else text,
            ha="center",
            va="center",
            fontsize=8.0,
            color="white" if abs(value) > 0.5 else "black",
        )
