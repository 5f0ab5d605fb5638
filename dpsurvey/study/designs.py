"""The simulation designs of the paper: who the rows are, before anything is counted or noised.

Correlations are LKJ(1) throughout, drawn as a Wishart(p + 1, I) matrix scaled to unit diagonal; at p = 2 that is
the uniform law on (-1, 1). Gamma and exponential laws are given by shape and rate. Methods that use medians or
ranks alone do not see the marginals at all, since these are monotone in the latent normals, unless they are
discrete.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsurvey.errors import UnknownNameError

Array = NDArray[np.float64]
_FAMILIES: dict[str, Callable[..., Array]] = {}


def _family(function: Callable[..., Array]) -> Callable[..., Array]:
    _FAMILIES[function.__name__.removeprefix("_")] = function
    return function


@_family
def _normal(z: Array, mean: float, sd: float) -> Array:
    return mean + sd * z


@_family
def _exponential(z: Array, rate: float) -> Array:
    from scipy.special import log_ndtr

    return np.asarray(-log_ndtr(-z) / rate)


@_family
def _gamma(z: Array, shape: float, rate: float) -> Array:
    from scipy.special import gammaincinv, ndtr

    return np.asarray(gammaincinv(shape, ndtr(z)) / rate)


@_family
def _beta(z: Array, a: float, b: float) -> Array:
    from scipy.special import betaincinv, ndtr

    return np.asarray(betaincinv(a, b, ndtr(z)))


@_family
def _student(z: Array, df: float) -> Array:
    from scipy.special import ndtr, stdtrit

    return np.asarray(stdtrit(df, ndtr(z)))


@_family
def _levels(z: Array, *probabilities: float) -> Array:
    """Return levels 0, 1, 2, ... with the given probabilities."""
    from scipy.special import ndtri

    cuts = ndtri(np.cumsum(probabilities[:-1]))
    return np.searchsorted(cuts, z, side="right").astype(np.float64)


@dataclass(frozen=True, slots=True)
class Marginal:
    """A marginal law, as the monotone function of a standard normal that gives it.

    Parameters
    ----------
    family : {"normal", "exponential", "gamma", "beta", "student", "levels"}
    parameters : tuple of float

    Examples
    --------
    >>> Marginal("exponential", (2.0,)).median.round(4)
    np.float64(0.3466)
    """

    family: str
    parameters: tuple[float, ...]

    def of(self, z: Array) -> Array:
        """Return F^-1(Phi(z)), elementwise."""
        return _FAMILIES[self.family](np.asarray(z, dtype=np.float64), *self.parameters)

    @property
    def median(self) -> np.float64:
        """The theoretical median."""
        return np.float64(self.of(np.zeros(1))[0])

    @property
    def discrete(self) -> bool:
        """Whether it has ties."""
        return self.family == "levels"


@dataclass(frozen=True, slots=True)
class Design:
    """How the rows of one simulated survey are drawn.

    Parameters
    ----------
    name : str
    marginals : tuple of Marginal, length p
    """

    name: str
    marginals: tuple[Marginal, ...]

    @property
    def p(self) -> int:
        """Number of variables."""
        return len(self.marginals)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables: x1, x2, ..."""
        return tuple(f"x{j + 1}" for j in range(self.p))

    @property
    def discrete(self) -> bool:
        """Whether any marginal has ties, so that the latent normals do not tell the ranks."""
        return any(marginal.discrete for marginal in self.marginals)

    @property
    def medians(self) -> dict[str, float]:
        """Theoretical median of every variable."""
        return {
            name: float(marginal.median)
            for name, marginal in zip(self.variables, self.marginals, strict=True)
        }

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw a correlation matrix, then n rows of latent normals that have it.

        Parameters
        ----------
        n : int
        rng : numpy.random.Generator

        Returns
        -------
        R : numpy.ndarray, shape (p, p)
        latent : numpy.ndarray, shape (n, p)
        """
        R = draw_correlation(self.p, rng)
        return R, rng.standard_normal((n, self.p)) @ np.linalg.cholesky(R).T

    def table(self, latent: Array) -> pd.DataFrame:
        """Return the survey's table: each latent column on its marginal scale.

        Examples
        --------
        >>> find_design("discrete", 2).table(np.array([[-3.0, -3.0], [0.0, 0.0], [3.0, 3.0]]))
            x1   x2
        0  0.0  0.0
        1  2.0  2.0
        2  4.0  4.0
        """
        columns: dict[str, Any] = {
            name: marginal.of(latent[:, j])
            for j, (name, marginal) in enumerate(zip(self.variables, self.marginals, strict=True))
        }
        return pd.DataFrame(columns)


def draw_correlation(p: int, rng: np.random.Generator) -> Array:
    """Draw a correlation matrix from LKJ(1): a Wishart(p + 1, I) matrix scaled to unit diagonal (paper, section 5).

    Parameters
    ----------
    p : int
    rng : numpy.random.Generator

    Returns
    -------
    numpy.ndarray, shape (p, p)
        Symmetric with unit diagonal.

    Examples
    --------
    >>> draw_correlation(2, np.random.default_rng(1)).diagonal()
    array([1., 1.])
    """
    sample = rng.standard_normal((p + 1, p))
    scatter = sample.T @ sample
    scale = 1.0 / np.sqrt(scatter.diagonal())
    R = scatter * scale * scale[:, None]
    R = (R + R.T) / 2.0
    np.fill_diagonal(R, 1.0)
    return np.asarray(R)


def _marginal(family: str, *parameters: float) -> Marginal:
    return Marginal(family, parameters)


_STANDARD = _marginal("normal", 0.0, 1.0)
_DESIGNS = (
    Design("continuous", (_marginal("gamma", 2.0, 1.0), _STANDARD)),
    Design("continuous", (_STANDARD,) * 3),  # joint3: the marginals do not matter
    Design(
        "continuous",
        (
            _STANDARD,
            _marginal("exponential", 1.0),
            _marginal("gamma", 2.0, 1.0),
            _marginal("beta", 2.0, 5.0),
            _marginal("student", 5.0),
        ),
    ),
    Design(
        "continuous",
        (
            _STANDARD,
            _marginal("normal", 1.0, 2.0),
            _marginal("student", 3.0),
            _marginal("student", 10.0),
            _marginal("gamma", 1.0, 2.0),
            _marginal("gamma", 5.0, 2.0),
            _marginal("beta", 2.0, 5.0),
            _marginal("beta", 5.0, 2.0),
            _marginal("exponential", 1.0),
            _marginal("exponential", 2.0),
        ),
    ),
    # Supplement S.2 is known only in part: two variables of few levels, about 30% of rows tied at the median.
    # These five levels are reconstructed; each has probability .30 at its median level.
    Design(
        "discrete",
        (_marginal("levels", 0.15, 0.2, 0.3, 0.2, 0.15), _marginal("levels", 0.1, 0.25, 0.3, 0.2, 0.15)),
    ),
)


def find_design(name: str, p: int) -> Design:
    """Return the design of that name with p variables.

    Raises
    ------
    UnknownNameError
        If there is none.

    Examples
    --------
    >>> find_design("continuous", 5).variables
    ('x1', 'x2', 'x3', 'x4', 'x5')
    """
    for design in _DESIGNS:
        if (design.name, design.p) == (name, p):
            return design
    known = ", ".join(f"{design.name} with p = {design.p}" for design in _DESIGNS)
    raise UnknownNameError("no such design", expected=known, got=f"{name!r} with p = {p}")
