"""Values that cross between R and Python: numbers, texts, truth values and lists of them, nothing else.

Old reticulate cannot pass matrices and frames to current numpy and pandas, corrupts missing integers and
logicals, and turns vectors of length one into scalars. So R sends every column as doubles (nan where missing)
with a word for its kind, and both sides rebuild their own objects.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsurvey.copula.correlation import matrix_from_pairs, pair_values
from dpsurvey.copula.posterior import CorrelationEstimate, CorrelationPosterior
from dpsurvey.errors import ArgumentError
from dpsurvey.privacy.release import Release

Value = dict[str, Any]


def as_list(value: Any) -> list[Any]:
    """Return a list where R's vector of length one came as a scalar, and an empty one for None.

    Examples
    --------
    >>> as_list("a"), as_list(["a", "b"]), as_list(None)
    (['a'], ['a', 'b'], [])
    """
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def as_dict(value: Any) -> dict[str, Any]:
    """Return a dict where R's empty named list came as a list."""
    return dict(value) if isinstance(value, Mapping) else {}


def labels_to_r(labels: Mapping[str, str]) -> Value:
    """Return labels as two lists, ``names`` and ``texts``: names of R's lists depend on its locale, texts do not.

    Examples
    --------
    >>> labels_to_r({"Kcal": "Energy (kcal)"})
    {'names': ['Kcal'], 'texts': ['Energy (kcal)']}
    """
    return {"names": list(labels), "texts": list(labels.values())}


def labels_from_r(value: Any) -> dict[str, str]:
    """Return labels by name."""
    parts = as_dict(value)
    return dict(zip(as_list(parts.get("names")), as_list(parts.get("texts")), strict=True))


def numbers(value: Any) -> NDArray[np.float64]:
    """Return an array of doubles, shape (length,)."""
    return np.array(as_list(value), dtype=np.float64)


def frame_from_r(table: Value) -> pd.DataFrame:
    """Rebuild a data frame of R.

    Parameters
    ----------
    table : dict
        ``columns``: a list of dicts with ``name``, ``kind``, ``values`` and, for factors and text, ``levels``
        (the values are then codes from 1). ``id``: None, or such a dict, which becomes the index. ``labels``
        (see :func:`labels_to_r`), ``filters``, ``round_to``: what was declared when files were read.

    Returns
    -------
    pandas.DataFrame
    """
    series = [pd.Series(_column(column), name=column["name"]) for column in as_list(table["columns"])]
    frame = pd.concat(series, axis=1) if series else pd.DataFrame()
    if table.get("id") is not None:
        frame.index = pd.Index(_ids(table["id"]), name=table["id"]["name"])
    frame.attrs["dpsurvey_codebook"] = {
        "labels": labels_from_r(table.get("labels")),
        "filters": as_list(table.get("filters")),
        "round_to": None if table.get("round_to") is None else int(table["round_to"]),
    }
    return frame


def _column(column: Value) -> Any:
    values, kind = numbers(column["values"]), column["kind"]
    if kind == "double":
        return values
    missing = np.isnan(values)
    if kind in ("integer", "logical"):
        whole = np.where(missing, 0, values)
        if kind == "logical":
            return pd.arrays.BooleanArray(whole.astype(bool), missing)
        return pd.arrays.IntegerArray(whole.astype(np.int64), missing)
    if kind == "date":
        return pd.to_datetime(values, unit="s")
    codes = np.where(missing, 0, values).astype(np.int64) - 1
    levels = [str(level) for level in as_list(column.get("levels"))]
    if kind == "text":
        return np.array([None if code < 0 else levels[code] for code in codes], dtype=object)
    return pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(levels, ordered=kind == "ordered"))


def _ids(column: Value) -> Any:
    """Return ids as R's user sees them: whole numbers as int64, text as text; missing ones stay missing."""
    values = _column(column)
    if column["kind"] == "double" and np.isfinite(values).all() and (values == np.round(values)).all():
        return values.astype(np.int64)
    if isinstance(values, pd.Categorical):
        return np.asarray(values, dtype=object)
    return values


def frame_to_r(frame: pd.DataFrame) -> list[Value]:
    """Take a frame apart: one dict a column: ``name``, ``kind`` ("double", "logical", "text"), ``values``.

    Missing numbers and truth values are nan; missing texts are empty with their place in ``missing``.

    Examples
    --------
    >>> frame_to_r(pd.DataFrame({"a": [1, 2], "b": ["x", None]}))[1]["missing"]
    [False, True]
    """
    return [_column_to_r(str(name), frame[name]) for name in frame.columns]


def _column_to_r(name: str, column: pd.Series[Any]) -> Value:
    missing = column.isna().to_numpy(dtype=bool)
    present = column[~missing]
    logical = pd.api.types.is_bool_dtype(column.dtype) or (
        column.dtype == object and len(present) > 0 and present.map(lambda x: isinstance(x, bool)).all()
    )
    if logical or pd.api.types.is_numeric_dtype(column.dtype):
        values = np.full(len(column), np.nan)
        values[~missing] = present.to_numpy(dtype=np.float64)
        return {"name": name, "kind": "logical" if logical else "double", "values": values.tolist()}
    texts = ["" if gone else str(value) for value, gone in zip(column, missing, strict=True)]
    return {"name": name, "kind": "text", "values": texts, "missing": missing.tolist()}


def release_to_r(release: Release) -> Value:
    """Take a release apart; ``json`` is the release itself, the rest is for R's eyes."""
    return {
        "json": json.dumps(release.to_dict(), allow_nan=False),
        "variables": list(release.variables),
        "n": float(release.n),
        "epsilon": float(release.epsilon),
        "secure": release.secure,
        "counts": frame_to_r(release.to_frame()),
        "statement": release.statement(),
        "text": repr(release),
    }


def release_from_r(text: str) -> Release:
    """Rebuild a release from its JSON, as strictly as from a file."""
    from dpsurvey.errors import ReleaseFormatError

    try:
        values = json.loads(text)
    except ValueError:
        raise ReleaseFormatError(
            "the release is not JSON", hint="it was changed after dp_release()"
        ) from None
    return Release.from_dict(values)


def result_to_r(result: CorrelationPosterior | CorrelationEstimate) -> Value:
    """Take a result apart: entries above the diagonal, row by row, in one vector; facts as JSON text."""
    posterior = isinstance(result, CorrelationPosterior)
    values = result.draws if isinstance(result, CorrelationPosterior) else result.R[None, None]
    joint = result.joint if isinstance(result, CorrelationPosterior) else None
    return {
        "kind": "posterior" if posterior else "estimate",
        "chains": float(values.shape[0]),
        "draws": float(values.shape[1]),
        "values": pair_values(values).ravel().tolist(),
        "joint": [] if joint is None else pair_values(joint).ravel().tolist(),
        "variables": list(result.variables),
        "labels": labels_to_r(result.labels),
        "method": result.method,
        "engine": result.engine if isinstance(result, CorrelationPosterior) else "",
        "private": result.private,
        "seed": ""
        if not isinstance(result, CorrelationPosterior) or result.seed is None
        else str(result.seed),
        "release": "" if result.release is None else json.dumps(result.release.to_dict(), allow_nan=False),
        "info": json.dumps(result.info, allow_nan=False),
        "text": repr(result),
    }


def result_from_r(value: Value) -> CorrelationPosterior | CorrelationEstimate:
    """Rebuild a result that :func:`result_to_r` took apart."""
    variables = tuple(as_list(value["variables"]))
    shape = (int(value["chains"]), int(value["draws"]), -1)
    matrices = matrix_from_pairs(numbers(value["values"]).reshape(shape), len(variables))
    joint = numbers(value["joint"])
    common: dict[str, Any] = {
        "variables": variables,
        "labels": labels_from_r(value["labels"]),
        "method": value["method"],
        "private": bool(value["private"]),
        "release": release_from_r(value["release"]) if value["release"] else None,
        "info": json.loads(value["info"]),
    }
    if value["kind"] == "estimate":
        return CorrelationEstimate(R=matrices[0, 0], **common)
    seed = int(value["seed"]) if value["seed"] else None
    coupled = matrix_from_pairs(joint.reshape(shape), len(variables)) if joint.size else None
    return CorrelationPosterior(draws=matrices, engine=value["engine"], seed=seed, joint=coupled, **common)


def whole(name: str, value: Any) -> int:
    """Return a whole number, which R sent as a double.

    Raises
    ------
    ArgumentError
        If it is not one.

    Examples
    --------
    >>> whole("draws", 1000.0)
    1000
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not float(value).is_integer():
        raise ArgumentError(f"{name} is not a whole number", expected="a whole number", got=repr(value))
    return int(value)


def columns_or_none(columns: Any) -> Sequence[str] | None:
    """Return column names, None for R's NULL."""
    return None if columns is None else as_list(columns)
