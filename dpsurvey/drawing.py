"""Parts of figures: axes of the right size, forests of intervals, legends, titles that tell the privacy."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from dpsurvey.copula import card
from dpsurvey.errors import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette, which people with any kind of colour vision can tell apart; markers tell the same.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
_MARKERS = ("o", "s", "D", "^", "v", "P", "X")
_ALARM = "#b00020"
_PANEL = 4.8  # inches of width for the intervals, whatever the labels take
_TEXT_WIDTH = 60  # characters that fit above a panel
_CHARACTER = 0.072  # inches of a tick label's character


class Series(NamedTuple):
    """One result of a forest: its name and, for every row, its estimate and interval (NaN: none)."""

    name: str
    table: pd.DataFrame


def new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure, `width` by `height` inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependencyError(
            "figures need matplotlib", hint='install it with: pip install "dpsurvey[plot]"'
        ) from None
    if "ipykernel" in sys.modules:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(width, height), layout="constrained")
    else:
        figure = Figure(figsize=(width, height), layout="constrained")
    axes: Axes = figure.add_subplot()
    return axes


def forest_axes(rows: Sequence[str], series: int) -> Axes:
    """Return axes with room for the labels beside the panel and for every interval."""
    longest = max(len(line) for row in rows for line in row.split("\n"))
    lines = max(1 + row.count("\n") for row in rows)
    row_height = max(0.14 + 0.075 * series, 0.19 * lines)
    return new_axes(_PANEL + 0.2 + _CHARACTER * longest, 1.6 + row_height * len(rows))


def heatmap_axes(names: Sequence[str]) -> Axes:
    """Return axes with room for the cells, for the names beside and (turned by 45 degrees) below them."""
    cells = max(2.6, 0.6 * (len(names) - 1))
    margin = _CHARACTER * max(map(len, names))
    return new_axes(max(cells + margin + 1.6, _PANEL + 0.4), cells + 0.7 * margin + 1.5)


def draw_forest(ax: Axes, rows: Sequence[str], series: Sequence[Series], xlabel: str) -> None:
    """Draw one row per label, first on top, with the series side by side inside it."""
    places = np.arange(len(rows), dtype=np.float64)
    for place in places[1::2]:
        ax.axhspan(place - 0.5, place + 0.5, color="#f2f2f2", linewidth=0, zorder=0)
    ax.axvline(0.0, color="#888888", linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    step = min(0.26, 0.72 / len(series))
    for order, (_, table) in enumerate(series):
        y = places + (order - (len(series) - 1) / 2) * step
        style = series_style(order)
        ax.hlines(y, table["lower"], table["upper"], color=style["color"], linewidth=1.6, zorder=2)
        ax.plot(
            table["estimate"], y, linestyle="none", markersize=4.2, markeredgecolor="white",
            markeredgewidth=0.4, zorder=3, **style,
        )  # fmt: skip
    ax.set_yticks(places, rows)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.set_xlabel(xlabel)


def series_style(order: int) -> dict[str, Any]:
    """Return the colour and marker of one series."""
    return {"color": _COLOURS[order % len(_COLOURS)], "marker": _MARKERS[order % len(_MARKERS)]}


def draw_legend(ax: Axes, series: Sequence[Series]) -> int:
    """Draw a legend above the axes, and return how many lines it takes."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [],
            [],
            markersize=5,
            linewidth=1.6 if one.table["lower"].notna().any() else 0.0,
            **series_style(order),
        )
        for order, one in enumerate(series)
    ]
    names = [plain(one.name) for one in series]
    columns = len(names) if sum(map(len, names)) + 6 * len(names) <= _TEXT_WIDTH else 1
    ax.legend(
        handles, names, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, frameon=False,
        borderaxespad=0.2, borderpad=0.2, handlelength=1.8,
    )  # fmt: skip
    return -(-len(names) // columns)


def draw_title(
    ax: Axes, heading: str, names: Sequence[str], notes: Sequence[card.PrivacyNote], *, legend_rows: int
) -> None:
    """Write the heading and the privacy of everything drawn, in red where it must not be missed."""
    privacy = card.joint_privacy(names, notes)
    lines = [line for text in (heading, privacy.text) for line in wrap(text, _TEXT_WIDTH)]
    ax.set_title(
        plain("\n".join(lines)),
        loc="left",
        pad=8.0 + 15.5 * legend_rows,
        fontsize="medium",
        color=_ALARM if privacy.alarm else "black",
    )


def plain(text: str) -> str:
    """Return the text such that matplotlib does not read dollar signs as mathematics."""
    return text.replace("$", r"\$")
