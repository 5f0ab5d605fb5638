"""Exact draws from one pair's likelihood cut to an interval, by inverting a precomputed cumulative table.

The log-likelihood is made linear in R within each cell of an adaptive grid, so a cell's mass and its inverse
cdf are closed forms. Cumulative masses run from -1 up to the mode and from +1 down to it, in logs: an interval
far out in a tail keeps its relative precision. Most intervals hold most of the mass, though: a draw from the whole
likelihood, which a guide finds at once, is mostly inside already.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.cells import cell_cdf, cell_quantile, linear_cells, log_cell_mass
from dpsurvey.copula.hermite import cell_of
from dpsurvey.copula.jit import njit
from dpsurvey.copula.likelihood import LikelihoodTable

GUIDES = 256  # quantiles of a pair whose cells are known
_TRIES = 3  # draws from the whole likelihood before its part is inverted, which takes as long as ten


class InversionTable(NamedTuple):
    """Cells of all pairs, one pair after the other.

    Attributes
    ----------
    points : numpy.ndarray, shape (N,)
        Ends of the cells in R, from -1 to 1.
    logs : numpy.ndarray, shape (N,)
        Log-likelihood there, the largest of each pair being 0.
    cumulative : numpy.ndarray, shape (N,)
        Log mass from -1 for points up to the mode, from +1 for points beyond it.
    at_mode : numpy.ndarray, shape (m, 2)
        Log mass on either side of the mode.
    mode : numpy.ndarray of int, shape (m,)
        Position of the mode among all points.
    offsets : numpy.ndarray of int, shape (m + 1,)
        Pair i has the points ``offsets[i]:offsets[i + 1]``.
    cdf : numpy.ndarray, shape (N,)
        Share of the pair's mass below each point.
    guide : numpy.ndarray of int, shape (m, GUIDES)
        Column g: the cell that holds the quantile at g / GUIDES, counted from the pair's first.
    """

    points: NDArray[np.float64]
    logs: NDArray[np.float64]
    cumulative: NDArray[np.float64]
    at_mode: NDArray[np.float64]
    mode: NDArray[np.int64]
    offsets: NDArray[np.int64]
    cdf: NDArray[np.float64]
    guide: NDArray[np.int64]


def build_inversion(table: LikelihoodTable) -> InversionTable:
    """Return the inversion table of every pair of a likelihood table."""
    grids = [linear_cells(*table.pair(i)) for i in range(table.m)]
    offsets = np.concatenate(([0], np.cumsum([len(points) for points, _ in grids]))).astype(np.int64)
    points, logs = (np.concatenate([grid[side] for grid in grids]) for side in (0, 1))
    sides, whole = _accumulate(points, logs, offsets), _guide(points, logs, offsets)
    return InversionTable(points, logs, *sides, offsets, *whole)


@njit
def _log_add(a: float, b: float) -> float:
    high, low = max(a, b), min(a, b)
    return high if low == -np.inf else high + math.log1p(math.exp(low - high))


@njit
def _accumulate(
    points: NDArray[np.float64], logs: NDArray[np.float64], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return cumulative log masses towards the mode from both ends, their ends, and the modes."""
    pairs = offsets.shape[0] - 1
    cumulative = np.empty(points.shape[0])
    at_mode = np.empty((pairs, 2))
    mode = np.empty(pairs, dtype=np.int64)
    for pair in range(pairs):
        start, stop = offsets[pair], offsets[pair + 1]
        top = start + np.argmax(logs[start:stop])
        mode[pair] = top
        running = -np.inf
        cumulative[start] = running
        for i in range(start + 1, top + 1):
            running = _log_add(running, log_cell_mass(points[i] - points[i - 1], logs[i - 1], logs[i]))
            cumulative[i] = running
        at_mode[pair, 0] = running
        running = -np.inf
        if top < stop - 1:
            cumulative[stop - 1] = running
        for i in range(stop - 2, top - 1, -1):
            running = _log_add(running, log_cell_mass(points[i + 1] - points[i], logs[i], logs[i + 1]))
            if i > top:
                cumulative[i] = running
        at_mode[pair, 1] = running
    return cumulative, at_mode, mode


@njit
def _guide(
    points: NDArray[np.float64], logs: NDArray[np.float64], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the cdf at all points, and the cells of quantiles."""
    pairs = offsets.shape[0] - 1
    cdf = np.empty(points.shape[0])
    guide = np.empty((pairs, GUIDES), dtype=np.int64)
    for pair in range(pairs):
        start, stop = offsets[pair], offsets[pair + 1]
        cdf[start] = 0.0
        for i in range(start + 1, stop):
            log_mass = log_cell_mass(points[i] - points[i - 1], logs[i - 1], logs[i])
            cdf[i] = cdf[i - 1] + math.exp(log_mass)
        cdf[start:stop] /= cdf[stop - 1]
        cell = start
        for g in range(GUIDES):
            while cdf[cell + 1] <= g / GUIDES:
                cell += 1
            guide[pair, g] = cell - start
    return cdf, guide


@njit
def pair_position(j: int, k: int, p: int) -> int:
    """Return the position of the pair of variables j < k of p in the order of ``numpy.triu_indices(p, 1)``."""
    return j * (2 * p - j - 1) // 2 + k - j - 1


@njit
def log_density(table: InversionTable, pair: int, r: float) -> float:
    """Return the log-likelihood of one pair at r in [-1, 1], on the same linear cells that draws use."""
    cell = cell_of(table.points, table.offsets[pair], table.offsets[pair + 1], r)
    left, right = table.points[cell], table.points[cell + 1]
    share = (r - left) / (right - left)
    return float(table.logs[cell] + share * (table.logs[cell + 1] - table.logs[cell]))


@njit
def _log_mass_outside(table: InversionTable, pair: int, cell: int, r: float) -> float:
    """Return the log mass between r and the end (-1 or +1) on r's side of the mode."""
    left, right = table.points[cell], table.points[cell + 1]
    slope = table.logs[cell + 1] - table.logs[cell]
    s = (r - left) / (right - left)
    log_mass = log_cell_mass(right - left, table.logs[cell], table.logs[cell + 1])
    if cell < table.mode[pair]:
        part = cell_cdf(slope, s)
        return (
            _log_add(table.cumulative[cell], log_mass + math.log(part))
            if part > 0.0
            else table.cumulative[cell]
        )
    part = cell_cdf(-slope, 1.0 - s)
    outer = table.cumulative[cell + 1]
    return _log_add(outer, log_mass + math.log(part)) if part > 0.0 else outer


@njit
def _within_cell(table: InversionTable, cell: int, low: float, high: float, v: float) -> float:
    """Return the v-quantile of the density cut to low..high, both in one cell."""
    left, right = table.points[cell], table.points[cell + 1]
    slope = (table.logs[cell + 1] - table.logs[cell]) / (right - left) * (high - low)
    return low + (high - low) * cell_quantile(slope, v)


@njit
def _find_left(table: InversionTable, start: int, top: int, target: float) -> float:
    """Return r below the mode where the log mass from -1 reaches target."""
    cell = cell_of(table.cumulative, start, top + 1, target)
    return _cross(table, cell, table.cumulative[cell], target, False)


@njit
def _find_right(table: InversionTable, top: int, last: int, target: float) -> float:
    """Return r above the mode where the log mass from +1 reaches target."""
    low, high = top, last
    while high - low > 1:
        middle = (low + high) // 2
        if table.cumulative[middle] >= target:
            low = middle
        else:
            high = middle
    return _cross(table, low, table.cumulative[high], target, True)


@njit
def _cross(table: InversionTable, cell: int, outer: float, target: float, from_right: bool) -> float:
    """Return r in a cell where the mass from the outer end, `outer` at the cell's own, reaches target (logs)."""
    left, right = float(table.points[cell]), float(table.points[cell + 1])
    slope = table.logs[cell + 1] - table.logs[cell]
    v = math.exp(target - log_cell_mass(right - left, table.logs[cell], table.logs[cell + 1]))
    if outer > -np.inf:
        v *= -math.expm1(outer - target)
    v = min(max(v, 0.0), 1.0)
    s = 1.0 - cell_quantile(-slope, v) if from_right else cell_quantile(slope, v)
    return left + (right - left) * s


@njit
def draw_between(table: InversionTable, pair: int, low: float, high: float, v: float) -> float:
    """Return the quantile at v of one pair's likelihood, as a density in R, cut to low..high.

    Parameters
    ----------
    table : InversionTable
    pair : int
    low, high : float
        ``-1 <= low < high <= 1``.
    v : float
        Uniform on [0, 1).

    Returns
    -------
    float
        Within low..high.
    """
    start, stop, top = table.offsets[pair], table.offsets[pair + 1], table.mode[pair]
    cell_low, cell_high = cell_of(table.points, start, stop, low), cell_of(table.points, start, stop, high)
    if cell_low == cell_high:
        return _within_cell(table, cell_low, low, high, v)
    outside_low, outside_high = (
        _log_mass_outside(table, pair, cell_low, low),
        _log_mass_outside(table, pair, cell_high, high),
    )
    if cell_high < top:  # all below the mode
        share = math.exp(outside_low - outside_high)
        r = _find_left(table, start, top, outside_high + math.log(share + v * (1.0 - share)))
    elif cell_low >= top:  # all above it
        share = math.exp(outside_high - outside_low)
        r = _find_right(table, top, stop - 1, outside_low + math.log(1.0 - v + v * share))
    else:
        scale = max(table.at_mode[pair, 0], table.at_mode[pair, 1])
        mass_low, mass_high = math.exp(outside_low - scale), math.exp(outside_high - scale)
        below = math.exp(table.at_mode[pair, 0] - scale) - mass_low
        above = math.exp(table.at_mode[pair, 1] - scale) - mass_high
        target = v * (below + above)
        if target < below:
            r = _find_left(table, start, top, scale + math.log(mass_low + target))
        else:
            r = _find_right(table, top, stop - 1, scale + math.log(mass_high + (below + above - target)))
    return min(max(r, low), high)


@njit
def draw_whole(table: InversionTable, pair: int, v: float) -> float:
    """Return the quantile at v in [0, 1) of one pair's likelihood, as a density in R on -1..1."""
    cell = table.offsets[pair] + table.guide[pair, int(v * GUIDES)]
    while table.cdf[cell + 1] <= v:
        cell += 1
    below, left = table.cdf[cell], table.points[cell]
    share = (v - below) / (table.cdf[cell + 1] - below)
    slope = table.logs[cell + 1] - table.logs[cell]
    return float(left + (table.points[cell + 1] - left) * cell_quantile(slope, share))


@njit
def draw_again(table: InversionTable, pair: int, low: float, high: float, rng: np.random.Generator) -> float:
    """Draw from one pair's likelihood cut to low..high, after a draw from the whole fell outside.

    A draw from the whole is one from the part if it falls there, so a few more are tried first. The first is left
    to the caller: a compiled call that hands over the table takes longer than the draw.
    """
    for _ in range(_TRIES):
        r = draw_whole(table, pair, rng.random())
        if low <= r <= high:
            return r
    return draw_between(table, pair, low, high, rng.random())
