"""Asghar-dpc: correlations from noisy two-by-two tables, a rival of the paper's methods."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpsurvey.baselines.spending import spend
from dpsurvey.confidential.disclose import check_rng, reserve
from dpsurvey.confidential.domain import as_array, check_domain, select_columns
from dpsurvey.copula.correlation import matrix_from_pairs, project_indefinite
from dpsurvey.copula.estimate import CorrelationEstimate
from dpsurvey.errors import ArgumentError, ArgumentTypeError
from dpsurvey.privacy.budget import check_epsilon
from dpsurvey.privacy.ledger import Ledger
from dpsurvey.texts import shown_setting

_LARGEST_R = 0.9999  # of a root
_HALVINGS = 60


def asghar_dpc(
    df: pd.DataFrame,
    epsilon: float,
    *,
    thresholds: Mapping[str, float],
    columns: Sequence[str] | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    insecure_rng: np.random.Generator | None = None,
) -> CorrelationEstimate:
    """Estimate Gaussian-copula correlations from noisy counts of the four cells of each pair.

    Each variable is split at a public threshold. For each pair the four cell counts get Laplace noise of scale
    2m/epsilon and negative ones become 0; both margins come from the same noisy cells. R is the correlation at
    which a bivariate normal law with these margins has the noisy share above both thresholds. Special cases,
    in this order: an empty table gives 0; no rows above both thresholds, or none below both, -1; no rows above
    one and below the other, +1. A matrix that is not a correlation matrix is replaced by the nearest one. This
    is the form that the paper compares itself with.

    Noise is drawn from the Laplace law on the integers: cells are counts, and exact draws need no rounding. At
    scale 2 and above (m/epsilon >= 1) its variance is within 3% of that of the continuous law; below, it is
    smaller at the same privacy.

    Parameters
    ----------
    df : pandas.DataFrame, n rows
        One row a person, with a unique index; complete rows of real-valued columns.
    epsilon : float
        Total over the m = p(p-1)/2 pairs, each getting epsilon/m.
    thresholds : mapping of str to float
        Where to split each variable: "high" is above (ordered categories count from 0). They must be PUBLIC
        numbers, fixed without looking at the rows. The paper takes each law's theoretical median, rounded to
        two decimals; the median of the rows would leak and is outside the guarantee.
    columns : sequence of str, optional
        The variables; every column by default.
    ledger : Ledger or path, optional
        The budget file of the data set; epsilon is reserved in it before anything is computed.
    insecure_rng : numpy.random.Generator, optional
        For simulations ONLY: noise from this generator, and a result that says it is not private.

    Returns
    -------
    CorrelationEstimate
        ``method="Asghar-dpc"``. It follows from noisy cells alone, so ``private`` is True unless the noise was
        seeded. ``info`` holds ``epsilon`` as asked for, ``true_epsilon``, ``neighbours`` (the rule that it
        holds for), ``noise`` with its ``scale`` in counts, ``secure``, ``ledger``, ``thresholds``, ``special``
        (for each pair, whether a special case decided), ``projected`` and ``frobenius_distance``.

    Raises
    ------
    ArgumentError, ArgumentTypeError, UnknownNameError
        If an argument is not usable.
    DomainError
        If the table is not complete rows of real columns; messages hold no values.
    BudgetExceededError, LedgerError, MissingFileError
        If the ledger refuses.

    Warns
    -----
    NoLedgerWarning
        If nothing keeps count of what is spent.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> df = pd.DataFrame(rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 1000), columns=["x", "y"])
    >>> estimate = asghar_dpc(df, epsilon=1.0, thresholds={"x": 0, "y": 0}, insecure_rng=rng)  # a simulation
    >>> float(estimate.R[0, 1].round(2))
    0.57
    """
    names = select_columns(df, columns)
    check_rng(insecure_rng)
    check_domain(df, names)
    cuts = _checked_thresholds(thresholds, names)
    epsilon, n, m = check_epsilon(epsilon), len(df), len(names) * (len(names) - 1) // 2
    spending = spend(epsilon, sensitivity=2 * m)  # a substituted row leaves one cell of each pair for another
    spec = {"variables": list(names), "n": n, "statistic": "threshold cells", "mechanism": "geometric"}
    receipt = reserve(ledger, spending.charge, spec, simulated=insecure_rng is not None)
    cells = spending.noisy(cell_counts(df, names, cuts).ravel(), insecure_rng).reshape(m, 4)
    estimates, special = solve_cells(np.maximum(cells, 0))
    matrix = matrix_from_pairs(estimates, len(names))
    R, moved = project_indefinite(matrix)
    secure = insecure_rng is None
    info = {
        "epsilon": epsilon,
        **spending.info,
        "n": n,
        "secure": secure,
        "ledger": receipt,
        "thresholds": dict(zip(names, cuts, strict=True)),
        "special": special.tolist(),
        **moved,
    }
    return CorrelationEstimate(R, names, {}, method="Asghar-dpc", private=secure, info=info)


def cell_counts(df: pd.DataFrame, variables: Sequence[str], cuts: Sequence[float]) -> NDArray[np.int64]:
    """Return the cells n11, n10, n01, n00 of every pair, 1 for above the threshold. CONFIDENTIAL.

    Parameters
    ----------
    df : pandas.DataFrame, n rows
    variables : sequence of str, length p
    cuts : sequence of float, length p

    Returns
    -------
    numpy.ndarray of int64, shape (p(p-1)/2, 4)
        In the order of ``numpy.triu_indices(p, 1)``.

    Examples
    --------
    >>> df = pd.DataFrame({"x": [1, 2, 3, 4], "y": [1, 2, 1, 2]})
    >>> cell_counts(df, ["x", "y"], [2.5, 1.5])
    array([[1, 1, 1, 1]])
    """
    above = np.array([as_array(df[name]) > cut for name, cut in zip(variables, cuts, strict=True)])
    both = above.astype(np.int64) @ above.T.astype(np.int64)
    highs = np.diagonal(both)
    j, k = np.triu_indices(len(above), 1)
    n11 = both[j, k]
    return np.column_stack([n11, highs[j] - n11, highs[k] - n11, len(df) - highs[j] - highs[k] + n11])


def solve_cells(cells: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the correlation of each noisy table, and whether a special case decided it.

    Parameters
    ----------
    cells : numpy.ndarray of int, shape (m, 4)
        n11, n10, n01, n00, none negative.

    Returns
    -------
    estimates : numpy.ndarray of float64, shape (m,)
    special : numpy.ndarray of bool, shape (m,)

    Examples
    --------
    >>> solve_cells(np.array([[30, 20, 20, 30], [0, 5, 5, 5], [5, 0, 5, 5], [0, 0, 0, 0]]))[0].round(6)
    array([ 0.309017, -1.      ,  1.      ,  0.      ])
    """
    n11, n10, n01, n00 = cells.T
    negative, positive = (n11 == 0) | (n00 == 0), (n10 == 0) | (n01 == 0)
    empty = cells.sum(axis=1) == 0
    estimates = np.select([empty, negative, positive], [0.0, -1.0, 1.0], default=np.nan)
    special = empty | negative | positive
    if not special.all():
        estimates[~special] = _roots(cells[~special])
    return estimates, special


def _roots(cells: NDArray[np.int64]) -> NDArray[np.float64]:
    """Bisect for the correlation at which the orthant probability is the share of n11; no cell is 0."""
    from scipy.special import ndtri

    share = cells / cells.sum(axis=1, keepdims=True)
    a, b = ndtri(share[:, 0] + share[:, 1]), ndtri(share[:, 0] + share[:, 2])
    low, high = np.full(len(cells), -_LARGEST_R), np.full(len(cells), _LARGEST_R)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        below = normal_orthant(a, b, middle) < share[:, 0]
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(0.5 * (low + high))


def normal_orthant(a: ArrayLike, b: ArrayLike, r: ArrayLike) -> NDArray[np.float64]:
    """Return Pr(Z1 < a, Z2 < b) of standard normals with correlation r, by Owen's T function.

    Parameters
    ----------
    a, b : array-like
        Finite.
    r : array-like
        Strictly between -1 and 1.

    Returns
    -------
    numpy.ndarray of float64

    References
    ----------
    Owen, D. B. (1956). Tables for computing bivariate normal probabilities. Annals of Mathematical Statistics
    27, 1075-1090.

    Examples
    --------
    >>> normal_orthant(0.0, 0.0, 0.5).round(12)
    np.float64(0.333333333333)
    """
    from scipy.special import ndtr, owens_t

    a, b, r = (np.asarray(value, dtype=float) for value in (a, b, r))
    root = np.sqrt((1.0 - r) * (1.0 + r))
    with np.errstate(divide="ignore", invalid="ignore"):  # a slope at 0 is infinite, or at a = b = 0 a limit
        slope_a = np.where((a == 0.0) & (b == 0.0), (1.0 - r) / root, (b - r * a) / (a * root))
        slope_b = np.where((a == 0.0) & (b == 0.0), (1.0 - r) / root, (a - r * b) / (b * root))
    opposite = (a * b < 0.0) | ((a * b == 0.0) & (a + b < 0.0))
    halves = 0.5 * (ndtr(a) + ndtr(b)) - np.where(opposite, 0.5, 0.0)
    return np.asarray(halves - owens_t(a, slope_a) - owens_t(b, slope_b))


def _checked_thresholds(thresholds: Mapping[str, float], names: tuple[str, ...]) -> tuple[float, ...]:
    given: Any = thresholds
    if not isinstance(given, Mapping):
        raise ArgumentTypeError(
            "thresholds is not a mapping", expected="{variable: number}", got=type(given).__name__
        )
    missing = [name for name in names if name not in given]
    if missing:
        raise ArgumentError(
            f"no threshold for {', '.join(map(repr, missing))}",
            expected="a public number for every variable, fixed without looking at the rows",
        )
    for name in names:
        value = given[name]
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float | np.number)
            or not math.isfinite(value)
        ):
            raise ArgumentError(f"the threshold of {name!r} is not a finite number", got=shown_setting(value))
    return tuple(float(given[name]) for name in names)
