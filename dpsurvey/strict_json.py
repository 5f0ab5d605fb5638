"""JSON from files that others may have made: strict, and refused in one way whatever is wrong with it."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    NaN and Infinity are not JSON, and a name that stands twice in one object would let two readers see two things.

    Parameters
    ----------
    text : str or bytes

    Raises
    ------
    ValueError
        If it is no JSON text, has one of those, or is nested deeper than the parser goes.

    Examples
    --------
    >>> parse_json('{"epsilon": 1.0}')
    {'epsilon': 1.0}
    >>> parse_json('{"epsilon": 1.0, "epsilon": 9.0}')
    Traceback (most recent call last):
    ValueError: a name stands twice in one object
    """
    try:
        return json.loads(text, parse_constant=_refuse, object_pairs_hook=_once_each)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return values
