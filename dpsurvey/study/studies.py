"""The studies by name: their cells, and what they report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from dpsurvey.study import figures, findings, tables
from dpsurvey.study.cells import Cell
from dpsurvey.study.joint_fit import QUANTITIES
from dpsurvey.study.mechanism_laws import MECHANISMS, laws

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Grid = tuple[tuple[int, ...], tuple[float, ...]]  # n, epsilon
GRIDS: dict[int, Grid] = {  # of section 5
    2: ((50, 100, 200, 500, 1000), (0.01, 0.1, 0.5, 1.0, 5.0)),
    5: ((200, 500, 1000), (0.1, 0.5, 1.0, 5.0)),
    10: ((200, 500, 1000), (0.1, 0.5, 1.0, 5.0)),
}
RIVALS = ("Bayes-NA", "MLE-NN", "Li-Kendall", "Asghar-dpc")
MLE_MECHANISMS = {"MLE-NN": "BTGM", "MLE-NN TGM": "TGM", "MLE-NN RGM": "RGM"}


class Report(NamedTuple):
    """What a study writes: a table, a figure, and a text in Markdown."""

    table: pd.DataFrame
    figure: Figure
    text: str


@dataclass(frozen=True, slots=True)
class Study:
    """A study: of the paper, or of what is better than it.

    Parameters
    ----------
    title : str
    cells : tuple of Cell
        What must be run; studies share cells.
    report : callable
        From the results of the cells to the report.
    """

    title: str
    cells: tuple[Cell, ...]
    report: Callable[[tables.Results], Report]


def grid(design: str, p: int, methods: tuple[str, ...], sizes: Grid | None = None) -> tuple[Cell, ...]:
    """Return the cells of methods over n and epsilon."""
    rows, budgets = sizes or GRIDS[p]
    return tuple(
        Cell(design, p, n, epsilon, method) for n in rows for epsilon in budgets for method in methods
    )


def _table1(results: tables.Results) -> Report:
    table = tables.table1(results)
    return Report(table, figures.table1_figure(table), findings.table1(table))


def _errors(results: tables.Results) -> Report:
    table = tables.by_bins(results, tables.absolute_error, "mae")
    text = findings.errors(tables.overall(table)) + findings.asghar_spike(results)
    return Report(table, figures.binned_figure(table, "mae", "mean absolute error"), text)


def _figS1(results: tables.Results) -> Report:
    table = laws(50, (0.25, 1.0), (1, 6, 13, 22))
    return Report(table, figures.pmf_figure(table, MECHANISMS), findings.mechanism_laws(table))


def _figS3(results: tables.Results) -> Report:
    table = tables.by_bins(results, tables.covered, "coverage")
    figure = figures.binned_figure(table, "coverage", "coverage of 95% intervals, %", line=tables.NOMINAL)
    return Report(table, figure, findings.coverage_by_bins(table))


def _figS4(results: tables.Results) -> Report:
    table = tables.by_bins(results, tables.absolute_error, "mae")
    figure = figures.binned_figure(table, "mae", "mean absolute error", names=MLE_MECHANISMS)
    return Report(table, figure, findings.mechanisms(tables.overall(table), MLE_MECHANISMS))


def _joint3(results: tables.Results) -> Report:
    table = tables.by_quantity(results, QUANTITIES)
    return Report(table, figures.joint_figure(table, QUANTITIES), findings.joint(table))


def _better(results: tables.Results) -> Report:
    table = tables.better(results)
    return Report(table, figures.better_figure(table), findings.better(table))


def _regression(results: tables.Results) -> Report:
    table = tables.regression(results)
    return Report(table, figures.regression_figure(table), findings.regression(table))


_BAYES = ("Bayes-NA",)
_BETTER = ("Bayes-NA", "Bayes-NA linf", "Bayes-NA concordance")
_REGRESSION = ((500, 5000), (1.0, 5.0, tables.NO_NOISE))
STUDIES: dict[str, Study] = {
    "table1": Study(
        "Table 1: coverage and length of Bayes-NA's 95% intervals",
        tuple(cell for p in GRIDS for cell in grid("continuous", p, _BAYES)),
        _table1,
    ),
    "fig1": Study(
        "Figure 1: mean absolute error by true correlation, p = 2", grid("continuous", 2, RIVALS), _errors
    ),
    "fig2": Study(
        "Figure 2: mean absolute error by true correlation, p = 5 and 10",
        grid("continuous", 5, RIVALS) + grid("continuous", 10, RIVALS),
        _errors,
    ),
    "figS1": Study("Figure S1: the laws of the mechanisms on one count", (), _figS1),
    "figS2": Study(
        "Figure S2: discrete marginals, p = 2 (levels reconstructed)",
        grid("discrete", 2, RIVALS, ((50, 100, 200, 500, 1000), (0.01, 0.1, 1.0))),
        _errors,
    ),
    "figS3": Study(
        "Figure S3: coverage of Bayes-NA by true correlation",
        tuple(cell for p in GRIDS for cell in grid("continuous", p, _BAYES)),
        _figS3,
    ),
    "figS4": Study(
        "Figure S4: mechanisms in MLE-NN, p = 2", grid("continuous", 2, tuple(MLE_MECHANISMS)), _figS4
    ),
    "better": Study(
        "Table 1 with better noise and a better statistic",
        tuple(cell for p in GRIDS for cell in grid("continuous", p, _BETTER)),
        _better,
    ),
    "regression": Study(
        "Regression: product likelihood and calibrated joint posterior",
        tuple(
            cell
            for p in (3, 5)
            for cell in grid("continuous", p, ("Regression linf", "Regression concordance"), _REGRESSION)
        ),
        _regression,
    ),
    "joint3": Study(
        "Composite against full joint likelihood, p = 3",
        grid("continuous", 3, ("Composite", "Joint"), ((50, 100), (0.5, 1.0, 5.0, 100.0))),
        _joint3,
    ),
}
