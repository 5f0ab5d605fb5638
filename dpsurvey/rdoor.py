"""The door for R: functions of dpsurvey that take and return plain values (see rvalues).

The R package in r_bridge calls these through reticulate. Named errors and warnings come back as values, so
that R can raise its own with the same words.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from dpsurvey.copula.correlation import matrix_from_pairs
from dpsurvey.copula.posterior import CorrelationPosterior
from dpsurvey.errors import ArgumentTypeError, DpsurveyError, DpsurveyWarning
from dpsurvey.rvalues import (
    Value,
    as_dict,
    as_list,
    columns_or_none,
    frame_from_r,
    frame_to_r,
    labels_to_r,
    numbers,
    release_from_r,
    release_to_r,
    result_from_r,
    result_to_r,
    whole,
)


def door(function: Callable[..., Any]) -> Callable[..., Value]:
    """Make a function return ``value`` and ``warnings``, or ``error``, ``code`` and ``kind``."""

    @wraps(function)
    def opened(*args: Any, **kwargs: Any) -> Value:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DpsurveyWarning)
            try:
                answer: Value = {"value": function(*args, **kwargs)}
            except DpsurveyError as error:
                answer = {"error": str(error), "code": error.code, "kind": type(error).__name__}
        answer["warnings"] = [
            {"kind": item.category.__name__, "text": str(item.message)}
            for item in caught
            if issubclass(item.category, DpsurveyWarning)
        ]
        return answer

    return opened


@door
def versions() -> Value:
    """Return the versions of Python and of the libraries that matter."""
    import platform
    from importlib.metadata import version

    names = ("dpsurvey", "numpy", "pandas", "numba", "opendp")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


@door
def read_survey(paths: Any, options: Any) -> Value:
    """Read survey files; see :func:`dpsurvey.read_survey`. `options` are its keyword arguments."""
    from dpsurvey.confidential.files import read_survey as read

    chosen = as_dict(options)
    if isinstance(chosen.get("columns"), str):
        chosen["columns"] = [chosen["columns"]]
    if "round_to" in chosen:
        chosen["round_to"] = whole("round_to", chosen["round_to"])
    if "missing_codes" in chosen:
        chosen["missing_codes"] = {k: as_list(v) for k, v in as_dict(chosen["missing_codes"]).items()}
    frame, book = read(*as_list(paths), return_codebook=True, **chosen)
    declared = book.public()
    if frame.index.name is not None:
        frame = frame.reset_index()
    return {
        "columns": frame_to_r(frame),
        "labels": labels_to_r(declared["labels"]),
        "filters": declared["filters"],
        "round_to": declared["round_to"],
    }


@door
def preflight(table: Value, columns: Any) -> Value:
    """List the problems of a table; see :func:`dpsurvey.preflight`."""
    from dpsurvey.confidential.preflight import preflight as inspect

    report = inspect(frame_from_r(table), columns_or_none(columns))
    found = [("problem", p) for p in report.problems] + [("warning", p) for p in report.warnings]
    return {
        "ok": report.ok,
        "text": str(report),
        "kind": [kind for kind, _ in found],
        "column": [problem.column or "" for _, problem in found],
        "code": [problem.code for _, problem in found],
        "message": [problem.message for _, problem in found],
        "table": frame_to_r(report.table.reset_index(names="column")),
    }


@door
def create_ledger(
    path: str, dataset: str, budget: float, delta: float = 0.0, accounting: str = "pure"
) -> str:
    """Make a budget file and say how it stands; see :meth:`dpsurvey.Ledger.create`."""
    from dpsurvey.privacy.ledger import Ledger

    made = Ledger.create(path, dataset=dataset, budget=budget, delta=delta, accounting=accounting)
    return made.status()


@door
def release(table: Value, epsilon: float, options: Any) -> Value:
    """Spend epsilon and return a release; see :func:`dpsurvey.release`.

    `options`: ``columns, statistic, mechanism, coarse, delta, ledger, again`` and ``key_seed``, a text, since R
    has no 64-bit integers. The noise comes from the operating system: no seed of R or Python reaches it.
    """
    from dpsurvey.confidential.disclose import release as disclose
    from dpsurvey.confidential.ties import TieKeys

    chosen = as_dict(options)
    keys = TieKeys(int(chosen.pop("key_seed"))) if "key_seed" in chosen else None
    columns, coarse = (columns_or_none(chosen.pop(name, None)) for name in ("columns", "coarse"))
    rows = frame_from_r(table)
    return release_to_r(disclose(rows, epsilon, columns=columns, coarse=coarse, keys=keys, **chosen))


@door
def plan(options: Any) -> list[Value]:
    """Return the plan of a release as a table of one row; see :func:`dpsurvey.plan`."""
    from dpsurvey.copula.planning import plan as make_plan

    chosen = as_dict(options)
    for name in ("n", "p", "coarse"):
        if name in chosen:
            chosen[name] = whole(name, chosen[name])
    return frame_to_r(make_plan(**chosen).to_frame())


@door
def write_release(text: str, path: str) -> str:
    """Save a release as JSON."""
    return str(release_from_r(text).save(path))


@door
def read_release(path: str) -> Value:
    """Read a release, strictly."""
    from dpsurvey.privacy.release import Release

    return release_to_r(Release.load(path))


@door
def bayes_na(
    text: str,
    draws: float,
    chains: float,
    seed: float,
    engine: str,
    joint: bool,
    lkj: float,
    progress: bool,
) -> Value:
    """Draw from the posterior given a release; see :func:`dpsurvey.bayes_na`."""
    from dpsurvey.copula.bayes_na import bayes_na as fit

    posterior = fit(
        release_from_r(text),
        draws=whole("draws", draws),
        chains=whole("chains", chains),
        seed=whole("seed", seed),
        engine=engine,
        joint=joint,
        lkj=lkj,
        progress=progress,
    )
    return result_to_r(posterior)


@door
def mle_nn(text: str, adjust: str) -> Value:
    """Estimate from a release; see :func:`dpsurvey.mle_nn`."""
    from dpsurvey.copula.mle_nn import mle_nn as fit

    return result_to_r(fit(release_from_r(text), adjust=adjust))


@door
def erl(table: Value, columns: Any, settings: Any) -> Value:
    """Draw with the native sampler; see :func:`dpsurvey.erl`."""
    from dpsurvey.baselines.erl import erl as fit

    options = _settings(settings)
    return result_to_r(fit(frame_from_r(table), columns_or_none(columns), engine="native", **options))


@door
def erl_plan(table: Value, columns: Any, settings: Any) -> Value:
    """Return what a sampler in R needs: ranks (column after column, nan where missing), seeds, iterations.

    It refuses what :func:`dpsurvey.erl` refuses, before R starts to sample; and with the same seed R draws
    what Python draws through rpy2.
    """
    from dpsurvey.baselines.erl_plan import make_plan
    from dpsurvey.baselines.sbgcop import chain_seeds

    planned = make_plan(frame_from_r(table), columns_or_none(columns), **_settings(settings))
    ranked, sampling = planned.table, planned.sampling
    codes = np.where(ranked.codes < 0, np.nan, ranked.codes.astype(np.float64))
    return {
        "variables": list(ranked.names),
        "codes": codes.T.ravel().tolist(),
        "chain_seeds": [float(seed) for seed in chain_seeds(sampling.seed, sampling.chains)],
        "nsamp": float(sampling.nsamp),
        "S0": sampling.S0.ravel().tolist(),
        "n0": sampling.n0,
    }


@door
def erl_result(table: Value, columns: Any, settings: Any, engine: str, values: Any, versions: Any) -> Value:
    """Make the posterior of what R drew.

    Parameters
    ----------
    table, columns, settings
        As given to :func:`erl_plan`.
    engine : {"sbgcop", "r"}
    values : list of float
        Entries above the diagonal, row by row, for every draw of every chain.
    versions : dict
        Of R and sbgcop.
    """
    from dpsurvey.baselines.erl_plan import make_plan
    from dpsurvey.baselines.sbgcop import chain_seeds

    planned = make_plan(frame_from_r(table), columns_or_none(columns), **_settings(settings))
    sampling = planned.sampling
    pairs = numbers(values).reshape(sampling.chains, sampling.draws, -1)
    facts = {"chain_seeds": chain_seeds(sampling.seed, sampling.chains), "versions": as_dict(versions)}
    return result_to_r(planned.posterior(engine, matrix_from_pairs(pairs, planned.table.p), facts))


def _settings(settings: Any) -> dict[str, Any]:
    """Return keyword arguments of :func:`dpsurvey.erl` from R's: doubles for whole numbers, Inf for None."""
    chosen = as_dict(settings)
    for name in ("draws", "burn_in", "chains", "odens", "seed"):
        if chosen.get(name) is not None:
            chosen[name] = whole(name, chosen[name])
    S0, n0 = chosen.pop("S0", None), chosen.pop("n0", None)
    if S0 is not None:
        flat = numbers(S0)
        S0 = flat.reshape(round(flat.size**0.5), -1)
    if chosen.get("plugin_threshold") == float("inf"):
        chosen["plugin_threshold"] = None
    return chosen | {"prior": (S0, n0)}


@door
def summary(result: Value, prob: float) -> list[Value]:
    """Return the summary table of a posterior or an estimate."""
    rebuilt = result_from_r(result)
    if isinstance(rebuilt, CorrelationPosterior):
        return frame_to_r(rebuilt.summary(prob))
    return frame_to_r(rebuilt.summary())


@door
def regress(result: Value, y: str, on: Any, prob: float) -> Value:
    """Regress one variable on others for every draw; see :func:`dpsurvey.regress`."""
    posterior = result_from_r(result)
    if not isinstance(posterior, CorrelationPosterior):
        raise ArgumentTypeError(
            "a point estimate has no draws to regress with",
            expected="a posterior: dp_bayes_na() or dp_erl()",
            got=posterior.method,
        )
    regression = posterior.regress(y, on=as_list(on), prob=prob)
    return {
        "response": y,
        "terms": as_list(on),
        "coefficients": regression.coefficients.reshape(-1).tolist(),
        "r_squared": regression.r_squared.reshape(-1).tolist(),
        "summary": frame_to_r(regression.summary()),
        "private": regression.private,
        "prob": prob,
        "text": repr(regression),
    }


@door
def compare(results: Sequence[Value], prob: float, names: Any) -> Value:
    """Set results side by side; see :func:`dpsurvey.compare`."""
    from dpsurvey.copula.compare import compare as side_by_side

    rebuilt = [result_from_r(result) for result in results]
    comparison = side_by_side(*rebuilt, prob=prob, names=columns_or_none(names))
    return {
        "names": list(comparison.names),
        "reference": comparison.reference,
        "private": comparison.private,
        "prob": prob,
        "frame": frame_to_r(comparison.frame),
        "summary": frame_to_r(comparison.summary()),
        "text": repr(comparison),
    }
