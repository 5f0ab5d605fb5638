"""The fields that every result shares (names, labels, privacy, release, facts), checked once here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import pandas as pd

from dpsurvey.errors import ArgumentError, ArgumentTypeError


def variable_pairs(variables: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of names in the order of ``np.triu_indices(p, 1)``.

    Examples
    --------
    >>> variable_pairs(("a", "b", "c"))
    (('a', 'b'), ('a', 'c'), ('b', 'c'))
    """
    return tuple(combinations(variables, 2))


def pair_frame(variables: Sequence[str], labels: Mapping[str, str]) -> pd.DataFrame:
    """Return the columns ``var1`` and ``var2`` of a summary, one row per pair.

    Examples
    --------
    >>> pair_frame(("a", "b"), {"b": "the second"})
      var1        var2
    0    a  the second
    """
    shown = [labels.get(name, name) for name in variables]
    return pd.DataFrame(variable_pairs(shown), columns=["var1", "var2"])


def settle_common_fields(result: Any, p: int, words: Sequence[str]) -> None:
    """Check the fields both kinds of result share, and give them their final types."""
    for word in words:
        value = getattr(result, word)
        if not isinstance(value, str) or not value:
            raise ArgumentTypeError(f"{word} is not a name", expected="a non-empty str", got=repr(value))
    if not isinstance(result.private, bool):
        raise ArgumentTypeError(
            "private does not say whether the result is private", expected="a bool", got=repr(result.private)
        )
    variables = _checked_variables(result.variables, p)
    object.__setattr__(result, "variables", variables)
    object.__setattr__(result, "labels", _checked_labels(result.labels, variables))
    object.__setattr__(result, "info", _json_copy(result.info))
    if result.release is not None:
        _check_release(result, variables)


def _check_release(result: Any, variables: tuple[str, ...]) -> None:
    """Raise unless the release is one, is of these variables, and the result says that it is private."""
    from dpsurvey.privacy.release import Release

    if not isinstance(result.release, Release):
        raise ArgumentTypeError(
            "release is not a release", expected="a Release or None", got=type(result.release).__name__
        )
    if not result.private:
        raise ArgumentError(
            "a result that holds a release says that it is not private",
            expected="private=True, or no release",
            got="private=False with a release",
        )
    if result.release.variables != variables:
        raise ArgumentError(
            "the variables are not those of the release",
            expected=", ".join(result.release.variables),
            got=", ".join(variables),
        )


def _checked_variables(variables: Sequence[str], p: int) -> tuple[str, ...]:
    names = (variables,) if isinstance(variables, str) else tuple(variables)
    if not all(isinstance(name, str) for name in names):
        raise ArgumentTypeError("variables are not names", expected="a sequence of str", got=repr(names))
    if len(names) != p or len(set(names)) != p:
        raise ArgumentError(
            "variables do not fit the matrices",
            expected=f"{p} different names",
            got=f"{len(names)} names, {len(set(names))} of them different",
        )
    return names


def _checked_labels(labels: Mapping[str, str], variables: tuple[str, ...]) -> dict[str, str]:
    copy = dict(labels)
    if not all(isinstance(text, str) for text in copy.values()):
        raise ArgumentTypeError("labels are not texts", expected="a mapping of str to str", got=repr(copy))
    strangers = [name for name in copy if name not in variables]
    if strangers:
        raise ArgumentError(
            "labels name variables that are not there",
            expected=f"names among {', '.join(variables)}",
            got=", ".join(map(str, strangers)),
        )
    return copy


def _json_copy(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return `info` as it comes back from a JSON file, so that a saved result equals the original."""
    try:
        copy: dict[str, Any] = json.loads(json.dumps(dict(info), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(
            "info holds something that JSON cannot",
            expected="numbers, texts, truth values, lists, mappings",
            got=str(error),
        ) from None
    return copy
