"""From rows to a release: the only door in the wall."""

from __future__ import annotations

import importlib.metadata
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsurvey.confidential.codebook import Codebook
from dpsurvey.confidential.counts import pair_counts
from dpsurvey.confidential.discordance import discordant_counts
from dpsurvey.confidential.domain import check_domain, coarse_columns, select_columns
from dpsurvey.confidential.ties import TieKeys
from dpsurvey.confidential.variables import ATTRIBUTE
from dpsurvey.copula.planning import check_names, choose
from dpsurvey.errors import ArgumentTypeError, NoLedgerWarning
from dpsurvey.privacy.budget import check_delta, check_epsilon
from dpsurvey.privacy.concordance import ConcordanceCounts
from dpsurvey.privacy.gaussian import DiscreteGaussian
from dpsurvey.privacy.ledger import Ledger, as_ledger
from dpsurvey.privacy.linf import LInfinity
from dpsurvey.privacy.mechanisms import build_mechanism
from dpsurvey.privacy.release import Release
from dpsurvey.privacy.statistics import (
    NEIGHBOURS,
    QuadrantCounts,
    Statistic,
    make_statistic,
)


def release(
    df: pd.DataFrame,
    epsilon: float,
    *,
    columns: Sequence[str] | None = None,
    statistic: str = "auto",
    mechanism: str = "auto",
    coarse: Sequence[str] | None = None,
    delta: float = 0.0,
    keys: TieKeys | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    again: bool = False,
    codebook: Codebook | None = None,
    insecure_rng: np.random.Generator | None = None,
) -> Release:
    """Spend epsilon once and return noisy counts of all pairs of columns.

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
        Privacy loss of the whole release, all p(p-1)/2 pairs together.
    columns : sequence of str, optional
        The p >= 2 variables to use; all columns by default.
    statistic : {"auto", "concordance", "quadrant"}
        What is counted for each pair: pairs of rows that the two variables order differently, or rows high in both
        after splits at the medians, as in the paper. "auto" takes what :func:`dpsurvey.plan` expects to give the
        shortest intervals, from n, p, epsilon and the declared types alone.
    mechanism : {"auto", "linf", "geometric", "rgm", "gaussian"}
        How noise is added: jointly with a law of the largest noise; independently, as in the paper; within the range
        of true counts; or Gaussian, which needs `delta`. "auto" takes the best of those with pure epsilon.
        The paper's own setting is ``statistic="quadrant", mechanism="geometric"``.
    coarse : sequence of str, optional
        Columns declared to have few levels, which concordance counts serve less well: pairs with one of them are
        quadrant counts in the same release. By default the columns of boolean or ordered category type.
    delta : float, default 0
        Above 0 for mechanism "gaussian" alone: an (epsilon, delta) guarantee, for which the ledger must have been
        made with a delta too.
    keys : TieKeys, optional
        Tie-breaking keys; ``TieKeys()`` by default. Use the same ones in all releases of a data set.
    ledger : Ledger or path, optional
        The budget file of the data set, made once with ``Ledger.create``. It remembers the public facts of the
        request, and from ``release.save(path)`` on the file and its checksum.
    again : bool, default False
        Spend epsilon on another draw although the same release was made and saved before and its file is still
        there unchanged. By default that is refused, at no cost. The refusal tells nothing about the rows: the
        ledger compares public facts of requests (:meth:`Release.spec`, epsilon and delta), never the data.
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
    ReleaseExists
        If the same release was saved before and `again` is False.

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
    <Release: 3 variables, 3 noisy concordance counts, n = 500, linf, epsilon = 1, INSECURE noise (simulation)>
    """
    names = select_columns(df, columns)
    check_domain(df, names)
    keys = _checked_keys(keys)
    check_rng(insecure_rng)
    total, delta = check_epsilon(epsilon), check_delta(delta)
    check_names(statistic, mechanism)
    few = coarse_columns(df, names, coarse, statistic)
    if coarse is None and statistic == ConcordanceCounts.name and mechanism not in ("auto", LInfinity.name):
        few = ()  # independent noise is for counts of one kind: only coarse columns that were named are refused
    free = mechanism == "auto"
    statistic, mechanism = choose(len(df), len(names), total, statistic, mechanism, delta, len(few))
    if statistic == QuadrantCounts.name:
        few = ()  # to these all columns are alike
    if free and mechanism != DiscreteGaussian.name:
        delta = 0.0  # not needed
    law = make_statistic(statistic, len(df), len(names), tuple(names.index(name) for name in few))
    noise = build_mechanism(mechanism, law, total, delta)
    draft = Release(  # whole but for the counts, so that nothing is left to be refused once epsilon is spent
        variables=names,
        n=len(df),
        counts=(law.lower,) * law.m,
        statistic=statistic,
        mechanism=mechanism,
        parameters=noise.parameters,
        epsilon=total,
        delta=delta,
        neighbours=NEIGHBOURS,
        key_seed=keys.seed,
        key_fingerprint=keys.fingerprint,
        secure=insecure_rng is None,
        versions=_versions(),
        coarse=few,
        **_declared(codebook, df, names),
    )
    receipt = reserve(
        ledger, total, draft.spec(), simulated=not draft.secure, delta=delta, rho=noise.parameters.get("rho"),
        again=again,
    )  # fmt: skip
    # From here on epsilon counts as spent.
    counts = _count(df, names, keys, law)
    noisy = noise.release(counts) if insecure_rng is None else noise.simulate(counts, insecure_rng)
    return replace(draft, counts=tuple(int(count) for count in noisy), ledger=receipt)


def _count(df: pd.DataFrame, names: tuple[str, ...], keys: TieKeys, law: Statistic) -> NDArray[np.int64]:
    """Return the true counts of all pairs. CONFIDENTIAL."""
    kinds = np.array(law.kinds)
    if np.all(kinds == QuadrantCounts.name):
        return pair_counts(df, names, keys)
    counts = discordant_counts(df, names, keys)
    if np.any(kinds == QuadrantCounts.name):
        counts = np.where(kinds == QuadrantCounts.name, pair_counts(df, names, keys), counts)
    return counts


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
    ledger: Ledger | str | os.PathLike[str] | None,
    epsilon: float,
    spec: dict[str, Any],
    *,
    simulated: bool,
    delta: float = 0.0,
    rho: float | None = None,
    again: bool = False,
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
    delta, rho, again
        As :meth:`Ledger.reserve` takes them.

    Raises
    ------
    ReleaseExists, BudgetExceededError, LedgerError, MissingFileError
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
    receipt = as_ledger(ledger).reserve(epsilon, spec, delta=delta, rho=rho, again=again)
    return {"dataset": receipt.dataset, "sequence": receipt.sequence, "head": receipt.head}


def _versions() -> dict[str, str]:
    from dpsurvey import __version__

    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "dpsurvey": __version__,  # also where the package runs from a clone
        "numpy": np.__version__,
        "opendp": _opendp_version(),
    }


@cache
def _opendp_version() -> str:
    return importlib.metadata.version("opendp")  # parses a file: a third of the time of a small release
