"""Moves of many latent values at once, which the rank likelihood of a large column needs in order to mix.

A single latent value is held between its neighbours, about 1/n away, so cutpoints and the shape of a column
crawl for tens of thousands of sweeps. Here the latent axis is cut into cells, and the values of each cell
slide along it together, by a map that keeps their order and the ends of the cell: generalised Gibbs moves in
the sense of Liu and Sabatti (2000), Biometrika 87, 353-369. A cell of m values takes steps near 1/sqrt(m).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.jit import njit

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_WIDEST = 8.0  # cells of the coarsest grid, in marginal standard deviations
_FEWEST_ROWS = 8.0  # rows expected in the fullest cell of the finest grid
_DENSITY = 0.4  # of the standard normal at 0
_REFINE = 2.0  # ratio of the widths of successive grids
_STEP = 3.0  # step of a cell, in units of 1 / sqrt(rows expected)


@njit
def slide_column(
    rng: np.random.Generator,
    z: Array,
    mean: Array,
    sd: float,
    marginal_sd: float,
    rows: Index,
    levels: int,
) -> None:
    """Slide the observed latents of one column, on grids from coarse to fine.

    Each grid has a random origin, so that no place is always near an end of a cell. Cells much finer than a
    level of the column would move nothing that the sweep does not.

    Parameters
    ----------
    rng : numpy.random.Generator
    z : ndarray, shape (n,)
        Latents of the column; changed in place.
    mean : ndarray, shape (n,)
        Their conditional means given the other columns.
    sd, marginal_sd : float
        Their conditional and marginal standard deviations. The grids depend on the latter, never on `z`.
    rows : ndarray of int64
        Rows whose cell is observed.
    levels : int
        Number of levels of the column.
    """
    fewest = max(_FEWEST_ROWS, 0.25 * rows.size / levels)
    width = _WIDEST * marginal_sd * _REFINE ** -rng.random()
    x, m = z[rows], mean[rows]
    work = np.empty((3, rows.size))
    cell_of = np.empty(rows.size, np.int32)
    while _DENSITY * rows.size * width / marginal_sd >= fewest:
        _slide_cells(rng, x, m, sd, marginal_sd, width, cell_of, work)
        width /= _REFINE
    z[rows] = x


@njit
def _slide_cells(
    rng: np.random.Generator,
    x: Array,
    mean: Array,
    sd: float,
    marginal_sd: float,
    width: float,
    cell_of: NDArray[np.int32],
    work: Array,
) -> None:
    """Propose, and accept or refuse, one slide in every cell of one grid.

    Within a cell, u in (0, 1) goes to T_a(u) = e^a u / (1 + (e^a - 1) u): increasing, with T_-a its inverse
    and derivative e^a / (1 + (e^a - 1) u)^2. With a ~ N(0, step^2) the proposal is its own reverse, and the
    Metropolis ratio is the ratio of conditional densities times the derivatives.
    """
    origin = width * rng.random()
    lowest = highest = x[0]
    for value in x:
        lowest, highest = min(lowest, value), max(highest, value)
    first = math.floor((lowest - origin) / width)
    cells = math.floor((highest - origin) / width) - first + 1
    if cells > 8 * x.size + 64:  # latents far outside the grid's scale; a slide never changes `cells`
        return
    left = origin + first * width
    shift = np.empty(cells)
    for cell in range(cells):
        centre = (left + (cell + 0.5) * width) / marginal_sd
        expected = 1.0 + _DENSITY * x.size * width / marginal_sd * math.exp(-0.5 * centre * centre)
        shift[cell] = _STEP * rng.standard_normal() / math.sqrt(expected)
    log_ratio = _propose(x, mean, sd, width, left, shift, cell_of, work)
    for cell in range(cells):
        log_ratio[cell] += rng.standard_exponential()  # log u <= log ratio, with -log u exponential
    for i in range(x.size):
        if log_ratio[cell_of[i]] >= 0.0:
            x[i] = work[0, i]


@njit
def _propose(
    x: Array,
    mean: Array,
    sd: float,
    width: float,
    left: float,
    shift: Array,
    cell_of: NDArray[np.int32],
    work: Array,
) -> Array:
    """Write every row's cell and proposed value; return the log Metropolis ratio of each cell.

    Split into loops over plain arrays, which the compiler turns into vector instructions.
    """
    cells = shift.size
    proposal, denominator, energy = work[0], work[1], work[2]
    per_width, half_precision, last = 1.0 / width, 0.5 / (sd * sd), np.int32(cells - 1)
    gain = np.expm1(shift)
    for i in range(x.size):
        cell_of[i] = min(max(np.int32((x[i] - left) * per_width), np.int32(0)), last)
    for i in range(x.size):
        old, e = x[i], gain[cell_of[i]]
        u = (old - left) * per_width - cell_of[i]
        below = 1.0 + e * u
        new = old + width * e * u * (1.0 - u) / below
        denominator[i], proposal[i] = below, new
        energy[i] = half_precision * (new - old) * (new + old - 2.0 * mean[i])
    log_ratio, product = np.zeros(cells), np.ones(cells)
    for i in range(x.size):
        cell = cell_of[i]
        log_ratio[cell] += shift[cell] - energy[i]
        product[cell] *= denominator[i]  # one logarithm for many rows
        if product[cell] > 1e100 or product[cell] < 1e-100:
            log_ratio[cell] -= 2.0 * math.log(product[cell])
            product[cell] = 1.0
    for cell in range(cells):
        log_ratio[cell] -= 2.0 * math.log(product[cell])
    return log_ratio
