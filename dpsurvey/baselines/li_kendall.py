"""Li-Kendall: noisy Kendall correlations turned into Gaussian-copula correlations, a rival of the paper's methods."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsurvey.baselines.kendall import concordance_scores
from dpsurvey.baselines.spending import spend
from dpsurvey.confidential.disclose import check_rng, reserve
from dpsurvey.confidential.domain import check_domain, select_columns
from dpsurvey.copula.correlation import matrix_from_pairs
from dpsurvey.copula.estimate import CorrelationEstimate
from dpsurvey.errors import UnknownNameError
from dpsurvey.privacy.budget import check_epsilon
from dpsurvey.privacy.ledger import Ledger
from dpsurvey.texts import shown

SENSITIVITIES = ("4/n", "4/(n+1)")


def li_kendall(
    df: pd.DataFrame,
    epsilon: float,
    *,
    columns: Sequence[str] | None = None,
    sensitivity: str = "4/n",
    ledger: Ledger | str | os.PathLike[str] | None = None,
    insecure_rng: np.random.Generator | None = None,
) -> CorrelationEstimate:
    """Estimate Gaussian-copula correlations from Kendall's tau with Laplace noise.

    For each pair ``tau_tilde = tau + Lap(m s / epsilon)`` with s the sensitivity of tau, and
    ``R = sin(pi/2 tau_tilde)``, since under a Gaussian copula E[tau] = (2/pi) asin R. A matrix with a negative
    eigenvalue gets the absolute values of its eigenvalues and is scaled back to unit diagonal. As in its
    authors' public code, tau_tilde is not clipped: beyond +-1 the sine turns back.

    tau is tau-a, in which pairs of rows tied in either variable count as neither concordant nor discordant;
    tied columns are therefore drawn towards 0. The noise is added to the numerator of tau, an integer, from the
    Laplace law on the integers, so that draws are exact. The grid this leaves on the scale of tau is finer than
    the noise by a factor of 2 m (n-1) / epsilon, and by as much the law is that of the paper.

    Parameters
    ----------
    df : pandas.DataFrame, n rows
        One row a person, with a unique index; complete rows of real-valued columns.
    epsilon : float
        Total over the m = p(p-1)/2 pairs, each getting epsilon/m.
    columns : sequence of str, optional
        The variables; every column by default.
    sensitivity : {"4/n", "4/(n+1)"}
        Of one tau. "4/n" is exact for substituting one row. "4/(n+1)" is what the paper used: its noise is a
        little smaller and the true epsilon is (n+1)/n times the one asked for.
    ledger : Ledger or path, optional
        The budget file of the data set; the true epsilon is reserved in it before anything is computed.
    insecure_rng : numpy.random.Generator, optional
        For simulations ONLY: noise from this generator, and a result that says it is not private.

    Returns
    -------
    CorrelationEstimate
        ``method="Li-Kendall"``. It follows from noisy taus alone, so ``private`` is True unless the noise was
        seeded. ``info`` holds ``epsilon`` as asked for, ``true_epsilon``, ``neighbours`` (the rule that it
        holds for), ``sensitivity``, ``noise`` with its ``scale`` in units of concordant less discordant pairs,
        ``secure``, ``ledger``, ``noisy_tau`` (one a pair) and ``projected``.

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
    >>> estimate = li_kendall(df, epsilon=1.0, insecure_rng=rng)  # a simulation: the generator is seeded
    >>> float(estimate.R[0, 1].round(2))
    0.59
    """
    names = select_columns(df, columns)
    check_rng(insecure_rng)
    check_domain(df, names)
    if not isinstance(sensitivity, str) or sensitivity not in SENSITIVITIES:
        raise UnknownNameError(
            "no such sensitivity", expected=" or ".join(map(repr, SENSITIVITIES)), got=shown(sensitivity)
        )
    epsilon, n, m = check_epsilon(epsilon), len(df), len(names) * (len(names) - 1) // 2
    # A substituted row is in n - 1 pairs of rows, each of which may turn from discordant to concordant.
    spending = spend(
        epsilon, sensitivity=2 * (n - 1) * m, shrink=1.0 if sensitivity == "4/n" else n / (n + 1)
    )
    spec = {"variables": list(names), "n": n, "statistic": "kendall", "mechanism": "geometric"}
    receipt = reserve(ledger, spending.charge, spec, simulated=insecure_rng is not None)
    noisy_tau = spending.noisy(concordance_scores(df, names), insecure_rng) / (n * (n - 1) / 2)
    R, projected = reflect_eigenvalues(matrix_from_pairs(np.sin(0.5 * np.pi * noisy_tau), len(names)))
    secure = insecure_rng is None
    info = {
        "epsilon": epsilon,
        **spending.info,
        "sensitivity": sensitivity,
        "n": n,
        "secure": secure,
        "ledger": receipt,
        "noisy_tau": noisy_tau.tolist(),
        "projected": projected,
    }
    return CorrelationEstimate(R, names, {}, method="Li-Kendall", private=secure, info=info)


def reflect_eigenvalues(R: NDArray[np.float64]) -> tuple[NDArray[np.float64], bool]:
    """Replace eigenvalues by their absolute values and scale to unit diagonal; leave a semidefinite matrix as it is.

    Parameters
    ----------
    R : numpy.ndarray, shape (p, p)
        Symmetric with unit diagonal.

    Returns
    -------
    R : numpy.ndarray, shape (p, p)
    changed : bool

    Examples
    --------
    >>> R, changed = reflect_eigenvalues(np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]]))
    >>> changed, R[0].round(4)
    (True, array([ 1.    ,  0.2391, -0.2391]))
    """
    eigenvalues, vectors = np.linalg.eigh(R)
    if eigenvalues[0] >= -len(R) * np.finfo(float).eps:
        return R, False
    reflected = (vectors * np.abs(eigenvalues)) @ vectors.T
    scale = 1.0 / np.sqrt(np.diagonal(reflected))
    return reflected * scale[:, None] * scale, True
