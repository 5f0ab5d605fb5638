"""The law of one count's noise under the L-infinity mechanism, the secret radius summed out.

``Pr(z) = sum over K >= |z| of Pr(K) / (2K+1)`` for a wide count and ``sum over K >= unit |z| of
Pr(K) / (2 floor(K/unit)+1)`` for a narrow one. Sums are over all K where those are few, else integrals over cells
within which the decay is a sixteenth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FEW = 2**17  # radii that are summed one by one
_CELLS = 16  # cells per unit of decay where they are not
_STEEP = 40.0  # decay over a cell that is not integrated
_LEGENDRE = np.polynomial.legendre.leggauss(6)

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class MarginalNoise:
    """Symmetric law of the noise of one count, tabulated in its absolute value.

    Parameters
    ----------
    distance, log_pmf : numpy.ndarray, shape (N,)
        Increasing absolute values from 0, and the log-probability of each.
    variance : float
    every_integer : bool
        Whether the values are 0, 1, 2, ...
    rate : float
    power : int
        Beyond the last value the law goes on like ``(2z+1)^power exp(-rate z)``.
    """

    distance: Array
    log_pmf: Array
    variance: float
    every_integer: bool
    rate: float
    power: int

    def at(self, distance: Array) -> Array:
        """Return the log-law at absolute values, also between the integers (a smooth interpolation)."""
        distance = np.asarray(distance, dtype=float)
        last = self.distance[-1]
        inside = np.minimum(distance, last)
        if self.every_integer and bool(np.all(inside == np.floor(inside))):
            value = self.log_pmf[inside.astype(np.int64)]
        else:
            value = np.asarray(_spline(self)(inside))
        far = np.maximum(distance, last)
        growth = self.power * (np.log(2.0 * far + 1.0) - math.log(2.0 * last + 1.0))
        return np.asarray(value + growth - self.rate * (far - last))


@lru_cache(maxsize=32)
def _spline(law: MarginalNoise) -> Any:
    from scipy.interpolate import CubicSpline

    return CubicSpline(law.distance, law.log_pmf)


@lru_cache(maxsize=16)
def marginal_noise(
    budget: float, unit: int, wide: int, narrow: int
) -> tuple[MarginalNoise | None, MarginalNoise | None]:
    """Return the noise laws of a wide and of a narrow count; None where there is no such count.

    Parameters
    ----------
    budget : float
        Epsilon of the whole vector.
    unit : int
        Sensitivity of the wide counts; that of narrow ones is 1.
    wide, narrow : int
        Numbers of counts.
    """
    rate, m = budget / unit, wide + narrow
    edges = _edges(rate, unit, m)
    radius, log_weight = _nodes(edges, rate, m)
    log_wide = np.log(2.0 * radius + 1.0)
    if edges[1] - edges[0] <= unit:
        whole = np.broadcast_to(np.floor(edges[:-1, None] / unit), radius.shape)
    else:
        whole = (radius + 0.5) / unit - 0.5  # the average over a unit
    log_narrow = np.log(2.0 * whole + 1.0)
    log_weight = log_weight + wide * log_wide + narrow * log_narrow - rate * radius
    log_total = np.logaddexp.reduce(log_weight, axis=None)
    probability = np.exp(log_weight - log_total)

    def law(log_points: Array, reach: Array, scale: int) -> MarginalNoise:
        per_cell = np.logaddexp.reduce(log_weight - log_points, axis=1)
        # Beyond the last edge terms fall in a ratio that changes little: a geometric series.
        log_ratio = (m - 1) * math.log1p(1.0 / (edges[-1] + 0.5)) - rate
        cells = edges[-1] - edges[-2]
        rest = per_cell[-1] + cells * log_ratio - math.log(-math.expm1(cells * log_ratio))
        per_cell[-1] = np.logaddexp(per_cell[-1], rest)
        tails = np.logaddexp.accumulate(per_cell[::-1])[::-1] - log_total
        here = edges[:-1] % scale == 0.0
        distance = edges[:-1][here] / scale
        return MarginalNoise(
            distance=distance,
            log_pmf=np.ascontiguousarray(tails[here]),
            variance=float(np.sum(probability * reach * (reach + 1.0)) / 3.0),
            every_integer=bool(distance[1] == 1.0 and distance[-1] == len(distance) - 1),
            rate=rate * scale,
            power=m - 1,
        )

    return law(log_wide, radius, 1) if wide else None, law(log_narrow, whole, unit) if narrow else None


def _edges(rate: float, unit: int, m: int) -> Array:
    """Return integers that cut the radii into cells, the multiples of the unit among them unless cells are larger."""
    reach = (2.0 * m + 80.0) / rate  # from there on weights fall at least like exp(-rate K / 2)
    end = math.ceil(reach) + unit
    if end <= _FEW:
        return np.arange(end + 1, dtype=float)
    cell = 1.0 / (_CELLS * rate)
    if cell >= unit:
        cell = math.floor(cell / unit) * unit
        return np.asarray(np.arange(math.ceil(end / cell) + 1) * cell, dtype=float)
    parts = math.ceil(min(unit, reach) / cell)  # where reach < unit the rest of each unit is one long cell
    within = np.unique(np.floor(min(unit, reach) * np.arange(parts) / parts))
    return np.asarray((np.arange(math.ceil(end / unit) + 1)[:, None] * unit + within).ravel(), dtype=float)


def _nodes(edges: Array, rate: float, m: int) -> tuple[Array, Array]:
    """Return radii in each cell a..b-1 and log weights with which they stand for its integers, shape (cells, nodes).

    By the midpoint rule the sum over a..b-1 is the integral from a - 1/2 to b - 1/2, done by Gauss and Legendre.
    A long cell over which nothing is left stands at its first integer, with a geometric series for the others.
    """
    start, width = edges[:-1, None], np.diff(edges)[:, None]
    if np.all(width == 1.0):
        return start, np.zeros((len(edges) - 1, 1))
    nodes, weights = _LEGENDRE
    radius = start + (width - 1.0) / 2.0 + width / 2.0 * nodes
    log_weight = np.log(width / 2.0 * weights)
    log_ratio = np.minimum(m * np.log1p(1.0 / (start + 0.5)) - rate, -rate / 2.0)
    series = -np.log(-np.expm1(log_ratio))
    first = (width == 1.0) | (width * rate > _STEEP)
    log_first = np.where(width == 1.0, 0.0, series) - math.log(len(nodes))
    return np.where(first, start, radius), np.where(first, log_first, log_weight)
