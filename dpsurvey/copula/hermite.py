"""Piecewise quintic Hermite interpolation on an adaptive grid: value and two exact derivatives at each node."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.jit import njit
from dpsurvey.copula.tilting import noise_jet

_FIRST_CELLS = 40  # before refinement
_NARROWEST = 1e-9  # a cell is not split below this width in eta
_GAIN = 2.0**-6  # of halving a cell: the error of a quintic goes with the sixth power of the width


@njit
def quintic(
    s: float, width: float, left: NDArray[np.float64], right: NDArray[np.float64]
) -> tuple[float, float]:
    """Return value and derivative of the quintic that matches value, slope and curvature at both ends.

    Parameters
    ----------
    s : float
        Position in the cell, 0 to 1.
    width : float
        Width of the cell.
    left, right : numpy.ndarray, shape (3,)
        Value, first and second derivative at the ends.

    Returns
    -------
    value, slope : float
    """
    a1, b1 = left[1] * width, right[1] * width
    a2, b2 = 0.5 * left[2] * width * width, 0.5 * right[2] * width * width
    rise = right[0] - left[0]
    c3 = 10.0 * rise - 6.0 * a1 - 4.0 * b1 - 3.0 * a2 + b2
    c4 = -15.0 * rise + 8.0 * a1 + 7.0 * b1 + 3.0 * a2 - 2.0 * b2
    c5 = 6.0 * rise - 3.0 * a1 - 3.0 * b1 - a2 + b2
    value = left[0] + s * (a1 + s * (a2 + s * (c3 + s * (c4 + s * c5))))
    slope = a1 + s * (2.0 * a2 + s * (3.0 * c3 + s * (4.0 * c4 + s * 5.0 * c5)))
    return value, slope / width


@njit
def cell_of(points: NDArray[np.float64], start: int, stop: int, x: float) -> int:
    """Return i with points[i] <= x <= points[i + 1], start <= i < stop - 1, for increasing points.

    The first and the last point are not looked at: x below or above them is in the first or last cell.
    """
    low, high = start, stop - 1
    while high - low > 1:
        middle = (low + high) // 2
        if points[middle] <= x:
            low = middle
        else:
            high = middle
    return low


@njit
def interpolate(eta: float, nodes: NDArray[np.float64], jets: NDArray[np.float64]) -> tuple[float, float]:
    """Return value and derivative at eta, held constant outside the nodes.

    Parameters
    ----------
    eta : float
    nodes : numpy.ndarray, shape (K,)
        Increasing.
    jets : numpy.ndarray, shape (K, 3)
        Value and two derivatives at the nodes.
    """
    last = nodes.shape[0] - 1
    if eta <= nodes[0]:
        return jets[0, 0], 0.0
    if eta >= nodes[last]:
        return jets[last, 0], 0.0
    cell = cell_of(nodes, 0, last + 1, eta)
    width = nodes[cell + 1] - nodes[cell]
    return quintic((eta - nodes[cell]) / width, width, jets[cell], jets[cell + 1])


@njit
def adaptive_nodes(
    weights: NDArray[np.float64],
    noise: NDArray[np.float64],
    largest: float,
    absolute: float,
    relative: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Tabulate the log-likelihood of one noisy count (:func:`noise_jet`) over abs(eta) <= largest.

    A cell is halved until the quintic agrees with the exact value at its middle, and so does its slope times
    the width. The middle then becomes a node too, so that the error left is a sixty-fourth of what was measured.

    Parameters
    ----------
    weights, noise : numpy.ndarray, shape (K + 1,)
        Log weights of the true count at eta = 0, and log-probability of the noisy count given it.
    largest : float
        End of the grid.
    absolute, relative : float
        Tolerances, the second times the distance below the largest value seen.

    Returns
    -------
    nodes : numpy.ndarray, shape (N,)
    jets : numpy.ndarray, shape (N, 3)
    """
    starts = np.linspace(-largest, largest, _FIRST_CELLS + 1)
    first = np.empty((_FIRST_CELLS + 1, 3))
    for i in range(_FIRST_CELLS + 1):
        first[i] = noise_jet(weights, noise, starts[i])
    best = first[:, 0].max()
    nodes, jets = [starts[0]], [first[0]]
    for i in range(_FIRST_CELLS):
        pending = [(starts[i + 1], first[i + 1])]
        while len(pending) > 0:
            right, right_jet = pending[-1]
            left, left_jet = nodes[-1], jets[-1]
            width = right - left
            middle = left + 0.5 * width
            exact = noise_jet(weights, noise, middle)
            value, slope = quintic(0.5, width, left_jet, right_jet)
            best = max(best, exact[0])
            error = _GAIN * max(abs(value - exact[0]), width * abs(slope - exact[1]))
            if error > absolute + relative * (best - exact[0]) and width > _NARROWEST:
                pending.append((middle, exact))
            else:
                nodes.append(middle)
                jets.append(exact)
                nodes.append(right)
                jets.append(right_jet)
                pending.pop()
    table = np.empty((len(jets), 3))
    for i in range(len(jets)):
        table[i] = jets[i]
    return np.array(nodes), table
