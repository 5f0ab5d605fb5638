"""Figures of the studies, in the paper's layout: a row of panels for each n, a column for each epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsurvey.errors import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 2.1, 1.75  # inches of a panel
# Okabe and Ito's palette, as in the other figures; markers tell the same.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000")
_STYLES = {
    "Bayes-NA": ("#0072B2", "o"),
    "MLE-NN": ("#D55E00", "s"),
    "Li-Kendall": ("#009E73", "^"),
    "Asghar-dpc": ("#CC79A7", "D"),
    "MLE-NN TGM": ("#009E73", "^"),
    "MLE-NN RGM": ("#CC79A7", "D"),
    "Composite": ("#0072B2", "o"),
    "Joint": ("#D55E00", "s"),
}


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure that needs no display, `width` by `height` inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependencyError(
            "figures need matplotlib", hint='install it with: pip install "dpsurvey[study]"'
        ) from None
    return Figure(figsize=(width, height), layout="constrained")


def binned_figure(
    table: pd.DataFrame,
    value: str,
    ylabel: str,
    *,
    names: dict[str, str] | None = None,
    line: float | None = None,
) -> Figure:
    """Draw averages by bins of the true correlation: a block of panels for each p, n down, epsilon across.

    Parameters
    ----------
    table : pandas.DataFrame
        From :func:`dpsurvey.study.tables.by_bins`.
    value : str
        Column to draw; bars are two Monte Carlo standard errors, from ``value + "_se"``.
    ylabel : str
    names : dict, optional
        Method -> what to call it.
    line : float, optional
        Height of a line across every panel.

    Returns
    -------
    matplotlib.figure.Figure
    """
    table = table[(table["bin_high"] - table["bin_low"]) < 1.0]
    blocks = [part for _, part in table.groupby("p")]
    rows = [part["n"].nunique() for part in blocks]
    columns = max(part["epsilon"].nunique() for part in blocks)
    figure = new_figure(_WIDTH * columns + 0.6, _HEIGHT * sum(rows) + 0.5 + 0.3 * len(blocks))
    parts = figure.subfigures(len(blocks), 1, height_ratios=rows, squeeze=False)[:, 0]
    for part, block in zip(parts, blocks, strict=True):
        _draw_block(part, block, value, ylabel, names or {}, line)
    methods = list(dict.fromkeys(table["method"]))
    if len(methods) > 1:
        figure.legend(
            handles=[_handle(method, (names or {}).get(method, method)) for method in methods],
            loc="outside upper center", ncols=len(methods), frameon=False,
        )  # fmt: skip
    return figure


def _draw_block(
    part: Any, block: pd.DataFrame, value: str, ylabel: str, names: dict[str, str], line: float | None
) -> None:
    sizes, budgets = sorted(block["n"].unique()), sorted(block["epsilon"].unique())
    panels = part.subplots(len(sizes), len(budgets), sharex=True, sharey=True, squeeze=False)
    part.suptitle(f"p = {block['p'].iloc[0]}", fontsize="medium")
    part.supxlabel("true correlation", fontsize="small")
    part.supylabel(ylabel, fontsize="small")
    for (row, column), ax in np.ndenumerate(panels):
        here = block[(block["n"] == sizes[row]) & (block["epsilon"] == budgets[column])]
        _draw_lines(ax, here, value)
        if line is not None:
            ax.axhline(line, color="#888888", linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
        ax.set_title(f"n = {sizes[row]}, ε = {budgets[column]:g}", fontsize="small")
        ax.set_xlim(-1.0, 1.0)
        ax.set_xticks([-1.0, -0.5, 0.0, 0.5, 1.0])
        _tidy(ax)


def _draw_lines(ax: Axes, here: pd.DataFrame, value: str) -> None:
    for method, rows in here.groupby("method", sort=False):
        colour, marker = _STYLES[str(method)]
        ax.errorbar(
            (rows["bin_low"] + rows["bin_high"]) / 2.0, rows[value], yerr=2.0 * rows[f"{value}_se"].fillna(0.0),
            color=colour, marker=marker, markersize=3.0, linewidth=1.0, elinewidth=0.7,
        )  # fmt: skip


def _handle(method: str, name: str) -> Any:
    from matplotlib.lines import Line2D

    colour, marker = _STYLES[method]
    return Line2D([], [], color=colour, marker=marker, markersize=5, label=name)


def _tidy(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize="x-small")


def table1_figure(table: pd.DataFrame) -> Figure:
    """Draw Table 1: interval length above, coverage below, p across; crosses are the paper's numbers."""
    groups = sorted(table["p"].unique())
    figure = new_figure(3.2 * len(groups), 5.4)
    panels = figure.subplots(2, len(groups), squeeze=False)
    colours = dict(zip(sorted(table["n"].unique()), _COLOURS, strict=False))
    for column, p in enumerate(groups):
        part = table[table["p"] == p]
        for n, rows in part.groupby("n"):
            for row, value in enumerate(("length", "coverage")):
                ax = panels[row, column]
                ax.errorbar(
                    rows["epsilon"], rows[value], yerr=2.0 * rows[f"{value}_se"].fillna(0.0),
                    color=colours[n], marker="o", markersize=3.0, linewidth=1.0, label=f"n = {n}",
                )  # fmt: skip
                ax.plot(rows["epsilon"], rows[f"paper_{value}"], "x", color=colours[n], markersize=6)
        panels[0, column].set_title(f"p = {p}", fontsize="medium")
        panels[1, column].axhline(95.0, color="#888888", linewidth=0.8, linestyle=(0, (4, 3)))
    for row, label in enumerate(("length of 95% intervals", "coverage, %")):
        panels[row, 0].set_ylabel(label)
    for ax in panels.ravel():
        ax.set_xscale("log")
        ax.set_xlabel("ε", fontsize="small")
        _tidy(ax)
    panels[0, 0].legend(frameon=False, fontsize="x-small", title="× the paper", title_fontsize="x-small")
    return figure


def better_figure(table: pd.DataFrame) -> Figure:
    """Draw lengths as shares of the paper's method's, a row for each better one, and coverage below; p across."""
    groups = sorted(table["p"].unique())
    methods = list(dict.fromkeys(zip(table["statistic"], table["mechanism"], strict=True)))[1:]
    figure = new_figure(3.2 * len(groups), 2.4 * (len(methods) + 1) + 0.4)
    panels = figure.subplots(len(methods) + 1, len(groups), sharey="row", squeeze=False)
    colours = dict(zip(sorted(table["n"].unique()), _COLOURS, strict=False))
    for (p, n, statistic, mechanism), rows in table.groupby(["p", "n", "statistic", "mechanism"]):
        if (statistic, mechanism) not in methods:
            continue
        row, column = methods.index((statistic, mechanism)), groups.index(p)
        style: dict[str, Any] = {
            "color": colours[n], "marker": "os"[row], "markersize": 3.0, "linewidth": 1.0, "label": f"n = {n}"
        }  # fmt: skip
        error = 2.0 * (rows["gain_se"] * rows["share"] / rows["length"]).fillna(0.0)
        panels[row, column].errorbar(rows["epsilon"], rows["share"], yerr=error, **style)
        error = 2.0 * rows["coverage_se"].fillna(0.0)
        panels[-1, column].errorbar(rows["epsilon"], rows["coverage"], yerr=error, **style)
    for column, p in enumerate(groups):
        panels[0, column].set_title(f"p = {p}", fontsize="medium")
        panels[-1, column].set_xlabel("ε", fontsize="small")
        for ax, line in zip(panels[:, column], [1.0] * len(methods) + [95.0], strict=True):
            ax.axhline(line, color="#888888", linewidth=0.8, linestyle=(0, (4, 3)))
    for row, (statistic, mechanism) in enumerate(methods):
        panels[row, 0].set_ylabel(f"{statistic}, {mechanism}:\nlength / the paper's method", fontsize="small")
        panels[row, 0].set_ylim(0.0, 1.1)
    panels[-1, 0].set_ylabel("coverage, %", fontsize="small")
    for ax in panels.ravel():
        ax.set_xscale("log")
        _tidy(ax)
    panels[0, 0].legend(frameon=False, fontsize="x-small")
    return figure


def regression_figure(table: pd.DataFrame) -> Figure:
    """Draw coverage of regression quantities: a column for each setting of p and n, a row for each quantity."""
    settings = list(dict.fromkeys(zip(table["p"], table["n"], strict=True)))
    kinds, budgets = list(dict.fromkeys(table["quantity"])), sorted(table["epsilon"].unique())
    figure = new_figure(2.5 * len(settings) + 0.4, 2.1 * len(kinds) + 0.7)
    panels = figure.subplots(len(kinds), len(settings), sharex=True, sharey=True, squeeze=False)
    names = {("product", "quadrant"): "o", ("product", "concordance"): "s",
             ("joint", "quadrant"): "o", ("joint", "concordance"): "s"}  # fmt: skip
    for (row, column), ax in np.ndenumerate(panels):
        p, n = settings[column]
        here = table[(table["p"] == p) & (table["n"] == n) & (table["quantity"] == kinds[row])]
        for shift, (likelihood, statistic) in enumerate(names):
            part = here[(here["likelihood"] == likelihood) & (here["statistic"] == statistic)]
            ax.errorbar(
                [budgets.index(epsilon) + 0.12 * shift - 0.18 for epsilon in part["epsilon"]], part["coverage"],
                yerr=2.0 * part["coverage_se"].fillna(0.0), linestyle="none", markersize=4.0, elinewidth=0.9,
                marker=names[likelihood, statistic], color=_COLOURS[likelihood == "joint"],
                label=f"{likelihood}, {statistic}",
            )  # fmt: skip
        ax.axhline(95.0, color="#888888", linewidth=0.8, linestyle=(0, (4, 3)))
        ax.set_title(f"p = {p}, n = {n}: {kinds[row]}", fontsize="small")
        ax.set_xticks(range(len(budgets)), ["no noise" if np.isinf(e) else f"ε = {e:g}" for e in budgets])
        _tidy(ax)
    figure.supylabel("coverage of 95% intervals, %", fontsize="small")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    return figure


def pmf_figure(table: pd.DataFrame, mechanisms: Sequence[str]) -> Figure:
    """Draw the laws of the mechanisms: a row for each true count, a column for each mechanism."""
    counts, budgets = sorted(table["true_count"].unique()), sorted(table["epsilon"].unique())
    figure = new_figure(2.4 * len(mechanisms) + 0.4, 1.8 * len(counts) + 0.6)
    panels = figure.subplots(len(counts), len(mechanisms), sharex=True, sharey="row", squeeze=False)
    for (row, column), ax in np.ndenumerate(panels):
        here = table[(table["true_count"] == counts[row]) & (table["mechanism"] == mechanisms[column])]
        for shift, (budget, colour) in enumerate(zip(budgets, ("#0072B2", "#D55E00"), strict=True)):
            bars = here[here["epsilon"] == budget]
            ax.vlines(
                bars["value"] + 0.3 * shift, 0.0, bars["probability"], color=colour, linewidth=1.6,
                label=f"ε = {budget:g}",
            )  # fmt: skip
        ax.axvline(counts[row], color="#888888", linewidth=0.6, linestyle=(0, (4, 3)))
        ax.set_title(f"{mechanisms[column]}, true count {counts[row]}", fontsize="small")
        ax.set_ylim(bottom=0.0)
        _tidy(ax)
    panels[0, 0].legend(frameon=False, fontsize="x-small")
    figure.supxlabel("released value", fontsize="small")
    figure.supylabel("probability", fontsize="small")
    return figure


def joint_figure(table: pd.DataFrame, quantities: Sequence[str]) -> Figure:
    """Draw coverage of every quantity under both likelihoods: n down, epsilon across."""
    sizes, budgets = sorted(table["n"].unique()), sorted(table["epsilon"].unique())
    figure = new_figure(2.5 * len(budgets) + 0.6, 2.1 * len(sizes) + 0.9)
    panels = figure.subplots(len(sizes), len(budgets), sharex=True, sharey=True, squeeze=False)
    places = {name: float(i) for i, name in enumerate(quantities)}
    methods = list(dict.fromkeys(table["likelihood"]))
    for (row, column), ax in np.ndenumerate(panels):
        here = table[(table["n"] == sizes[row]) & (table["epsilon"] == budgets[column])]
        for side, (method, rows) in enumerate(here.groupby("likelihood", sort=False)):
            colour, marker = _STYLES[str(method)]
            ax.errorbar(
                [places[name] + 0.24 * side - 0.12 for name in rows["quantity"]], rows["coverage"],
                yerr=2.0 * rows["coverage_se"].fillna(0.0), color=colour, marker=marker, linestyle="none",
                markersize=4.0, elinewidth=0.9,
            )  # fmt: skip
        ax.axhline(95.0, color="#888888", linewidth=0.8, linestyle=(0, (4, 3)))
        ax.set_title(f"n = {sizes[row]}, ε = {budgets[column]:g}", fontsize="small")
        ax.set_xticks(list(places.values()), list(places), rotation=60, ha="right", rotation_mode="anchor")
        _tidy(ax)
    figure.supylabel("coverage of 95% intervals, %", fontsize="small")
    figure.legend(
        handles=[_handle(method, f"{method} likelihood") for method in methods],
        loc="outside upper center", ncols=2, frameon=False,
    )  # fmt: skip
    return figure
