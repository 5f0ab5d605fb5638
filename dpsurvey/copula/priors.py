"""Informative priors of single correlations: a Beta law on (R+1)/2, added to a pair's tabulated log-likelihood."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.likelihood import LikelihoodTable
from dpsurvey.errors import ArgumentError, ArgumentTypeError, UnknownNameError
from dpsurvey.privacy.release import Release

PairPriors = Mapping[tuple[str, str], tuple[float, float]]


def check_lkj(lkj: float) -> float:
    """Return eta of an LKJ prior as a float, or refuse it.

    Raises
    ------
    ArgumentTypeError, ArgumentError
        If it is not a finite number above 0.
    """
    return _positive(lkj, "lkj")


def pair_densities(release: Release, informative: PairPriors | None) -> dict[int, tuple[float, float]]:
    """Return the Beta parameters of each pair that has an informative prior, by its position.

    Parameters
    ----------
    release : Release
    informative : mapping of (str, str) to (float, float), or None
        Variables of a pair, in either order, to the parameters of the Beta law of (R+1)/2.

    Raises
    ------
    ArgumentTypeError, ArgumentError, UnknownNameError
        If it is not such a mapping, or names a pair twice or one that is not in the release.
    """
    places = {frozenset(pair): i for i, pair in enumerate(release.pairs)}
    found: dict[int, tuple[float, float]] = {}
    if informative is None:
        return found
    if not isinstance(informative, Mapping):
        raise ArgumentTypeError(
            "informative is not a mapping",
            expected="{('Kcal', 'Grain'): (8, 4)}: the Beta parameters of (R+1)/2",
            got=type(informative).__name__,
        )
    for pair, parameters in informative.items():
        place = places.get(frozenset(pair)) if isinstance(pair, tuple) and len(pair) == 2 else None
        if place is None:
            raise UnknownNameError(
                "the release has no such pair", expected="two of its variables", got=repr(pair)
            )
        if place in found:
            raise ArgumentError("a pair has two priors", expected="one", got=repr(pair))
        if not isinstance(parameters, tuple | list) or len(parameters) != 2:
            raise ArgumentTypeError("a prior is not two numbers", expected="(a, b)", got=repr(parameters))
        found[place] = _positive(parameters[0], "a"), _positive(parameters[1], "b")
    return found


def add_priors(table: LikelihoodTable, densities: Mapping[int, tuple[float, float]]) -> LikelihoodTable:
    """Return a table with the log prior densities of some pairs added, relative to the flat one.

    Parameters
    ----------
    table : LikelihoodTable
    densities : mapping of int to (float, float)
        From :func:`pair_densities`.
    """
    if not densities:
        return table
    jets = table.jets.copy()
    for place, (a, b) in densities.items():
        part = slice(table.offsets[place], table.offsets[place + 1])
        jets[part] += _log_beta_jets(table.nodes[part], a, b)
    return replace(table, jets=jets)


def _log_beta_jets(eta: NDArray[np.float64], a: float, b: float) -> NDArray[np.float64]:
    """Return (a-1) log((1+R)/2) + (b-1) log((1-R)/2) and two derivatives in eta.

    With ``w = (pi/4)(1+u)`` these are the logs of sin(w)^2 and cos(w)^2, u = tanh(eta/4).
    """
    below = 1.0 / (
        1.0 + np.exp(0.5 * eta)
    )  # (1-u)/2, and with the next line w and pi/2 - w without cancellation
    w, rest = 0.5 * math.pi / (1.0 + np.exp(-0.5 * eta)), 0.5 * math.pi * below
    u = np.tanh(0.25 * eta)
    first = 0.5 * math.pi * below * (1.0 - below) / 2.0  # dw/d eta
    second = -0.5 * u * first
    sine, cosine = np.sin(w), np.sin(rest)
    value = 2.0 * (a - 1.0) * np.log(sine) + 2.0 * (b - 1.0) * np.log(cosine)
    slope = 2.0 * (a - 1.0) * cosine / sine - 2.0 * (b - 1.0) * sine / cosine
    bend = -2.0 * (a - 1.0) / sine**2 - 2.0 * (b - 1.0) / cosine**2
    return np.stack([value, slope * first, bend * first**2 + slope * second], axis=1)


def _positive(value: float, name: str) -> float:
    given: object = value
    if isinstance(given, bool) or not isinstance(given, Real):
        raise ArgumentTypeError(
            f"{name} is not a number", expected="a number above 0", got=type(given).__name__
        )
    if not 0.0 < float(value) < math.inf:
        raise ArgumentError(f"{name} is not finite and above 0", expected="a number above 0", got=repr(value))
    return float(value)
