"""A Beta law seen through noise: the likelihood of a noisy discordant count, one integral for each correlation.

The share y of concordant pairs has a Beta law; the count that goes with it is ``upper (1 - y)``, and the law of the
noise has one kink, at the noisy count. Integrals run over ``x = logit(y)`` by Gauss and Legendre's rule on panels
that are narrow wherever a Beta law or the noise may be, the same for all correlations: the law of the noise is
evaluated once, and what differs between correlations is linear in two numbers, the parameters of the Beta law.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.jit import njit

if TYPE_CHECKING:
    from dpsurvey.privacy.mechanisms import NoiseLaw

_PER_SD, _WIDEST = 4.0, 2.5  # width of a panel in standard deviations of the Beta law, and at most
_NEAR = 2.0  # the same near the kink, in units of the noise's scale plus the distance
_GRID = 0.1  # step of the grid on which panels are laid out, in the log of the distance from the kink
_DEPTH = 36.0  # log units below the largest value that still count
_SLACK = 30.0  # by which a panel's value may rise from its middle to an end
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)

Array = NDArray[np.float64]


class Panels(NamedTuple):
    """Points of the rule, 16 a panel, and what all integrands share.

    Attributes
    ----------
    x, log_rest : numpy.ndarray, shape (panels, 17)
        logit(y) and -log(1 - y); first of each row the middle of the panel, at which no weight lies.
    log_noise : numpy.ndarray, shape (panels, 17)
        Log-probability of the noisy count.
    weights : numpy.ndarray, shape (panels, 17)
    """

    x: Array
    log_rest: Array
    log_noise: Array
    weights: Array


def lay_panels(
    noise: NoiseLaw, noisy: int, upper: float, end: float, deviation: Callable[[Array], Array]
) -> Panels:
    """Return the panels of a noisy count over -end < x < end.

    Parameters
    ----------
    noise : NoiseLaw
    noisy : int
    upper : float
        The count that goes with y = 0.
    end : float
    deviation : callable
        From x to the standard deviation in x of the Beta law centred there.
    """
    share = 1.0 - min(max(noisy / upper, 0.0), 1.0)
    kink = math.log(share) - math.log1p(-share) if 0.0 < share < 1.0 else math.copysign(end, share - 0.5)
    kink = min(max(kink, -end), end)
    scale = math.sqrt(noise.variance) / upper * (2.0 + 2.0 * math.cosh(kink))  # dx/dy = 1/(y(1-y))
    scale = min(max(scale, 1e-7), 1.0)
    below, above = (_edges(kink, far, scale, deviation) for far in (-end, end))
    edges = np.concatenate((below[:0:-1], above))
    half, middle = np.diff(edges)[:, None] / 2.0, (edges[1:] + edges[:-1])[:, None] / 2.0
    x = middle + half * np.concatenate(([0.0], _NODES))
    tail = np.exp(-np.abs(x))
    counts = upper * np.where(x > 0.0, tail, 1.0) / (1.0 + tail)
    return Panels(
        x, np.log1p(tail) + np.maximum(x, 0.0), noise.log_pmf(float(noisy), counts),
        half * np.concatenate(([0.0], _WEIGHTS)),
    )  # fmt: skip


def _edges(kink: float, far: float, scale: float, deviation: Callable[[Array], Array]) -> Array:
    """Return the edges of panels from the kink to one end: of equal size in units of the local width."""
    room = abs(far - kink)
    if room == 0.0:
        return np.array([kink])
    steps = 2 + math.ceil(math.log1p(room / scale) / _GRID)
    distance = scale * np.expm1(np.linspace(0.0, math.log1p(room / scale), steps))
    x = kink + math.copysign(1.0, far - kink) * distance
    width = np.minimum(np.minimum(_PER_SD * deviation(x), _WIDEST), _NEAR * (scale + distance))
    passed = np.concatenate(
        ([0.0], np.cumsum(np.diff(distance) * (1.0 / width[1:] + 1.0 / width[:-1]) / 2.0))
    )
    edges: Array = np.interp(np.linspace(0.0, passed[-1], math.ceil(passed[-1]) + 1), passed, x)
    edges[-1] = far
    return edges


@njit
def log_mixture(panels: Panels, a: Array, b: Array, log_constant: Array) -> Array:
    """Return log of the integral over x of the Beta(a, b) law times that of the noise, for each (a, b).

    Parameters
    ----------
    panels : Panels
    a, b, log_constant : numpy.ndarray, shape (N,)
        Parameters of the Beta laws and log B(a, b).

    Returns
    -------
    numpy.ndarray, shape (N,)
    """
    x, log_rest, log_noise, weights = panels
    middle, logs = np.empty(x.shape[0]), np.empty(a.shape[0])
    for i in range(a.shape[0]):
        size, best = a[i] + b[i], -np.inf
        for panel in range(x.shape[0]):
            middle[panel] = a[i] * x[panel, 0] - size * log_rest[panel, 0] + log_noise[panel, 0]
            best = max(best, middle[panel])
        total, threshold = 0.0, best - _DEPTH - _SLACK
        for panel in range(x.shape[0]):
            if middle[panel] > threshold:
                for node in range(1, x.shape[1]):
                    value = a[i] * x[panel, node] - size * log_rest[panel, node] + log_noise[panel, node]
                    if value > best:
                        total *= math.exp(best - value)
                        best = value
                    if value > best - _DEPTH:
                        total += weights[panel, node] * math.exp(value - best)
        logs[i] = best + math.log(total) - log_constant[i]
    return logs
