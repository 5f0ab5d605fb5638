"""What makes a release valid: the types of its fields, and that its numbers fit together."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dpsurvey.errors import DpsurveyError, ReleaseFormatError
from dpsurvey.privacy.statistics import NEIGHBOURS
from dpsurvey.texts import is_text

if TYPE_CHECKING:
    from dpsurvey.privacy.release import Release

_LARGEST_N = 10**9
_LARGEST_P = 1000  # half a million counts, a file of some 6 MB
_IMPOSSIBLE = -1e5  # log-probability: no draw ends out there, and its likelihood would have no digits left


def check_release(release: Release) -> None:
    """Refuse a release whose fields have the wrong type or do not fit together.

    Raises
    ------
    ReleaseFormatError
    """
    _check_types(release)
    _expect(
        release.p >= 2 and len(set(release.variables)) == release.p, "variables are not two or more names"
    )
    _expect(release.p <= _LARGEST_P, f"there are more than {_LARGEST_P} variables")
    _expect(4 <= release.n <= _LARGEST_N, f"n is not within 4 and {_LARGEST_N}")
    _expect(
        release.m == release.p * (release.p - 1) // 2, "there is not one count a pair (p and counts differ)"
    )
    _expect(all(abs(count) < 2**63 for count in release.counts), "a count does not fit 64 bits")
    _expect(0 < release.epsilon < math.inf, "epsilon is not finite and above 0")
    _expect(0 <= release.delta < 1, "delta is not in [0, 1)")
    _expect(release.neighbours == NEIGHBOURS, f"the neighbour rule is not {NEIGHBOURS!r}")
    _expect(0 <= release.key_seed < 2**64, "key_seed is not within 0 and 2**64 - 1")
    _expect(set(release.labels) <= set(release.variables), "a label belongs to no variable")
    _expect(
        set(release.coarse) <= set(release.variables) and len(set(release.coarse)) == len(release.coarse),
        "coarse does not name some of the variables, each once",
    )
    _check_laws(release)


def _check_types(release: Release) -> None:
    def texts(values: Any) -> bool:
        return all(map(is_text, values))

    def number(value: Any) -> bool:
        return isinstance(value, float) or (is_integer(value) and abs(value) < 2**63)

    _expect(
        isinstance(release.variables, tuple) and texts(release.variables), "variables is not a list of names"
    )
    _expect(
        isinstance(release.counts, tuple) and all(map(is_integer, release.counts)), "counts are not integers"
    )
    _expect(isinstance(release.filters, tuple) and texts(release.filters), "filters is not a list of rules")
    _expect(isinstance(release.coarse, tuple) and texts(release.coarse), "coarse is not a list of names")
    _expect(is_integer(release.n) and is_integer(release.key_seed), "n or key_seed is not an integer")
    _expect(number(release.epsilon) and number(release.delta), "epsilon or delta is not a number")
    _expect(isinstance(release.secure, bool), "secure is not true or false")
    _expect(release.rounding is None or is_integer(release.rounding), "rounding is not a number of decimals")
    for name in ("statistic", "mechanism", "neighbours", "key_fingerprint"):
        _expect(is_text(getattr(release, name)), f"{name} is not text")
    for name in ("labels", "versions"):
        table = getattr(release, name)
        _expect(
            isinstance(table, dict) and texts(table) and texts(table.values()),
            f"{name} does not map text to text",
        )
    parameters = release.parameters
    _expect(
        isinstance(parameters, dict) and texts(parameters) and all(map(number, parameters.values())),
        "parameters does not map names to numbers",
    )
    _expect(release.ledger is None or _is_receipt(release.ledger), "ledger is not a receipt")


def is_integer(value: Any) -> bool:
    """Whether a JSON value is an integer: true and false are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def _is_receipt(table: Any) -> bool:
    return (
        isinstance(table, dict)
        and set(table) == {"dataset", "sequence", "head"}
        and is_text(table["dataset"])
        and is_text(table["head"])
        and is_integer(table["sequence"])
        and table["sequence"] >= 1
    )


def _check_laws(release: Release) -> None:
    """Check that the recorded statistic and mechanism exist and that their numbers agree with n, p and epsilon."""
    try:
        statistic, mechanism = release.statistic_law(), release.noise_law()
        agrees = mechanism.agrees(statistic, float(release.epsilon), float(release.delta))
    except (DpsurveyError, TypeError, ValueError, OverflowError) as error:
        raise ReleaseFormatError(
            "statistic, mechanism and parameters do not name a known law", got=type(error).__name__
        ) from None
    _expect(agrees, "the mechanism's parameters do not belong to this n, p and epsilon")
    _expect(release.delta == 0.0 or release.mechanism == "gaussian", "the mechanism has no delta")
    for i, (noisy, (lower, upper)) in enumerate(zip(release.counts, statistic.ranges, strict=True)):
        nearest = min(max(noisy, lower), upper)
        possible = mechanism.marginal(i).log_pmf(noisy, nearest) > _IMPOSSIBLE
        _expect(bool(possible), "a count lies where the mechanism's noise cannot have taken it")


def _expect(condition: bool, problem: str) -> None:
    if not condition:
        raise ReleaseFormatError(problem, expected="the fields of a release, as Release.save writes them")
