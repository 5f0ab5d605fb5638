"""From rows to a release: the only door in the wall."""

from __future__ import annotations

import importlib.metadata
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dpsurvey.confidential.codebook import Codebook
from dpsurvey.confidential.counts import pair_counts
from dpsurvey.confidential.domain import check_domain, select_columns
from dpsurvey.confidential.ties import TieKeys
from dpsurvey.confidential.variables import ATTRIBUTE
from dpsurvey.errors import ArgumentTypeError, NoLedgerWarning
from dpsurvey.privacy.budget import check_epsilon
from dpsurvey.privacy.ledger import Ledger, as_ledger
from dpsurvey.privacy.mechanisms import build_mechanism
from dpsurvey.privacy.release import Release
from dpsurvey.privacy.statistics import NEIGHBOURS, make_statistic


def release(
    df: pd.DataFrame,
    epsilon: float,
    *,
    columns: Sequence[str] | None = None,
    statistic: str = "quadrant",
    mechanism: str = "geometric",
    keys: TieKeys | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    codebook: Codebook | None = None,
    insecure_rng: np.random.Generator | None = None,
) -> Release:
    """Spend epsilon once and return noisy median-quadrant counts of all pairs of columns.

    Everything is checked first; then epsilon is reserved in the ledger on disk; then the counts are computed
    and noise from the operating system's randomness is added. The result is epsilon-differentially private for
    substituting one row of the table by another, with n public (paper, sections 3.1 and 3.2).

    Parameters
    ----------
    df : pandas.DataFrame, n rows
        One row a person, indexed by a unique id (or by pandas's default positions); real-valued columns
        (numbers, booleans, ordered categories) without missing or infinite cells. On such tables the
        function never fails for a reason that depends on values: constant, tied and collinear columns pass.
        Positions must be ones that substituting a row leaves fixed (see :class:`dpsurvey.TieKeys`), and the
        order of categories one that was declared, not taken from the rows.
    epsilon : float
        Privacy loss of the whole release, split evenly over the p(p-1)/2 pairs.
    columns : sequence of str, optional
        The p >= 2 variables to use; all columns by default.
    statistic : {"quadrant"}
        What is counted.
    mechanism : {"geometric", "rgm"}
        How noise is added.
    keys : TieKeys, optional
        Tie-breaking keys; ``TieKeys()`` by default. Use the same ones in all releases of a data set.
    ledger : Ledger or path, optional
        The budget file of the data set, made once with ``Ledger.create``.
    codebook : Codebook, optional
        From ``read_survey(..., return_codebook=True)``: its labels, declared filters and rounding go into the
        release, with filters declared after reading where pandas kept them in ``df.attrs``. Without it all of
        them are taken from there.
    insecure_rng : numpy.random.Generator, optional
        For simulations ONLY: noise from this generator, and a release marked insecure.

    Returns
    -------
    Release

    Raises
    ------
    ArgumentError, ArgumentTypeError, UnknownNameError
        If an argument is not usable.
    DomainError
        If the table is outside the domain; all problems are listed, without values.
    ReleaseFormatError
        If the declared labels, filters or rounding do not fit a release.
    BudgetExceededError, LedgerError, MissingFileError
        If the ledger refuses.

    Warns
    -----
    NoLedgerWarning
        If nothing keeps count of what is spent.

    Examples
    --------
    >>> import numpy as np, pandas as pd, dpsurvey as dps
    >>> rng = np.random.default_rng(1)
    >>> df = pd.DataFrame(rng.normal(size=(500, 3)), columns=["Kcal", "Grain", "Sugar"])
    >>> dps.release(df, epsilon=1.0, insecure_rng=rng)  # a simulation: the generator is seeded
    <Release: 3 variables, 3 noisy quadrant counts, n = 500, geometric, epsilon = 1, INSECURE noise (simulation)>
    """
    names = select_columns(df, columns)
    check_domain(df, names)
    keys = _checked_keys(keys)
    check_rng(insecure_rng)
    total = check_epsilon(epsilon)
    law = make_statistic(statistic, len(df), len(names))
    noise = build_mechanism(mechanism, law, total)
    draft = Release(  # whole but for the counts, so that nothing is left to be refused once epsilon is spent
        variables=names,
        n=len(df),
        counts=(law.lower,) * law.m,
        statistic=statistic,
        mechanism=mechanism,
        parameters=noise.parameters,
        epsilon=total,
        delta=0.0,
        neighbours=NEIGHBOURS,
        key_seed=keys.seed,
        key_fingerprint=keys.fingerprint,
        secure=insecure_rng is None,
        versions=_versions(),
        **_declared(codebook, df, names),
    )
    spec = {"variables": list(names), "n": len(df), "statistic": statistic, "mechanism": mechanism}
    receipt = reserve(ledger, total, spec, simulated=insecure_rng is not None)
    # From here on epsilon counts as spent.
    counts = pair_counts(df, names, keys)
    noisy = noise.release(counts) if insecure_rng is None else noise.simulate(counts, insecure_rng)
    return replace(draft, counts=tuple(int(count) for count in noisy), ledger=receipt)


def _checked_keys(keys: TieKeys | None) -> TieKeys:
    if keys is not None and not isinstance(keys, TieKeys):
        raise ArgumentTypeError("keys is not TieKeys", expected="TieKeys(seed=...)", got=type(keys).__name__)
    return TieKeys() if keys is None else keys


def check_rng(rng: np.random.Generator | None) -> None:
    """Refuse what is not a generator for simulations.

    Raises
    ------
    ArgumentTypeError
    """
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise ArgumentTypeError(
            "insecure_rng is not a generator",
            expected="numpy.random.default_rng(seed), for simulations, or None for secure noise",
            got=type(rng).__name__,
        )


def _declared(codebook: Codebook | None, df: pd.DataFrame, names: tuple[str, ...]) -> dict[str, Any]:
    """Return labels, filters and rounding, as declared by whoever read the files; none of it comes from rows."""
    if codebook is not None and not isinstance(codebook, Codebook):
        raise ArgumentTypeError("codebook is not a Codebook", got=type(codebook).__name__)
    kept: Any = df.attrs.get(ATTRIBUTE)  # a convenience: whatever else is there was not declared to us
    attrs: Mapping[str, Any] = kept if isinstance(kept, Mapping) else {}
    facts = attrs if codebook is None else codebook.public()
    labels = facts.get("labels") or {}
    # A codebook does not know what was declared after reading, such as complete rows; attrs may.
    filters = dict.fromkeys((*(facts.get("filters") or ()), *(attrs.get("filters") or ())))
    return {
        "labels": {name: labels[name] for name in names if labels.get(name)},
        "filters": tuple(filters),
        "rounding": facts.get("round_to"),
    }


def reserve(
    ledger: Ledger | str | os.PathLike[str] | None, epsilon: float, spec: dict[str, Any], *, simulated: bool
) -> dict[str, str | int] | None:
    """Reserve epsilon in a ledger and return the receipt; without one, warn (at the caller's caller) unless simulated.

    Parameters
    ----------
    ledger : Ledger or path or None
    epsilon : float
    spec : dict
        Public facts of what it is spent on.
    simulated : bool
        Whether the noise is seeded, so that nothing real is spent.

    Raises
    ------
    BudgetExceededError, LedgerError, MissingFileError
    """
    if ledger is None:
        if not simulated:
            warnings.warn(
                "no ledger: nothing keeps count of the privacy spent on this data set; make one with "
                "dpsurvey.Ledger.create(path, dataset=..., budget=...) and pass ledger=path",
                NoLedgerWarning,
                stacklevel=3,
            )
        return None
    receipt = as_ledger(ledger).reserve(epsilon, spec)
    return {"dataset": receipt.dataset, "sequence": receipt.sequence, "head": receipt.head}


def _versions() -> dict[str, str]:
    from dpsurvey import __version__

    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "dpsurvey": __version__,  # also where the package runs from a clone
        "numpy": np.__version__,
        "opendp": importlib.metadata.version("opendp"),
    }
