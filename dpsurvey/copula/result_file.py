"""Saved results: an .npz archive with a JSON header and the entries above the diagonal; never a pickle."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from dpsurvey.atomic import atomic_write
from dpsurvey.copula.correlation import matrix_from_pairs, pair_values
from dpsurvey.copula.posterior import CorrelationEstimate, CorrelationPosterior
from dpsurvey.errors import DpsurveyError, MissingFileError, ReleaseFormatError
from dpsurvey.strict_json import parse_json

SCHEMA_VERSION = 1
_SHOWN = 400  # characters of what a file holds, in an error
_LONGEST_HEADER = 2**22  # characters; that of p = 60 variables has some 100,000

Result = CorrelationPosterior | CorrelationEstimate
Kind = TypeVar("Kind", CorrelationPosterior, CorrelationEstimate)

_SCHEMAS: dict[str, type[Result]] = {
    "dpsurvey.correlation_posterior": CorrelationPosterior,
    "dpsurvey.correlation_estimate": CorrelationEstimate,
}
_ARRAY_FIELD = {CorrelationPosterior: "draws", CorrelationEstimate: "R"}
_ARRAY_DIMENSIONS = {CorrelationPosterior: 3, CorrelationEstimate: 1}
_FIELDS: dict[type[Result], dict[str, Any]] = {
    CorrelationPosterior: {"variables": list, "labels": dict, "method": str, "engine": str, "private": bool,
                           "release": (dict, type(None)), "seed": (int, type(None)), "info": dict},
    CorrelationEstimate: {"variables": list, "labels": dict, "method": str, "private": bool,
                          "release": (dict, type(None)), "info": dict},
}  # fmt: skip


def save_result(result: Result, path: str | os.PathLike[str]) -> Path:
    """Write a posterior or an estimate to an .npz file, whole or not at all.

    Parameters
    ----------
    result : CorrelationPosterior or CorrelationEstimate
    path : path-like
        Written exactly as named.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    MissingFileError
        If the folder does not exist or cannot be written.
    """
    kind = type(result)
    schema = next(name for name, known in _SCHEMAS.items() if known is kind)
    header: dict[str, Any] = {"schema": schema, "schema_version": SCHEMA_VERSION}
    header |= {name: getattr(result, name) for name in _FIELDS[kind] if name != "release"}
    header["release"] = None if result.release is None else result.release.to_dict()
    arrays: dict[str, Any] = {"pairs": pair_values(getattr(result, _ARRAY_FIELD[kind]))}
    joint = getattr(result, "joint", None)
    if joint is not None:
        arrays["joint"] = pair_values(joint)
    with atomic_write(path, "wb") as file:
        np.savez(file, header=np.array(json.dumps(header, allow_nan=False)), **arrays)
    return Path(path)


@overload
def load_result(path: str | os.PathLike[str], *, kind: type[Kind]) -> Kind: ...
@overload
def load_result(path: str | os.PathLike[str], *, kind: None = None) -> Result: ...
def load_result(path: str | os.PathLike[str], *, kind: Any = None) -> Any:
    """Read a posterior or an estimate that :func:`save_result` wrote.

    Parameters
    ----------
    path : path-like
    kind : {CorrelationPosterior, CorrelationEstimate}, optional
        The kind of result that the file must hold; either by default.

    Returns
    -------
    CorrelationPosterior or CorrelationEstimate

    Raises
    ------
    MissingFileError
        If the file cannot be opened.
    ReleaseFormatError
        If the file is not such an archive, is of an unknown version, or a field is missing, unknown, or of
        the wrong type or shape.
    """
    file = Path(path)
    text, values, joint = _read_archive(file)
    header = _parse_header(text, file)
    found = _SCHEMAS[header.pop("schema")]
    if kind is not None and found is not kind:
        raise _format_error(file, "it holds another kind of result", kind.__name__, found.__name__)
    _check_fields(header, found, file)
    _check_pairs(values, found, len(header["variables"]), file)
    header["release"] = _release(header["release"])
    header[_ARRAY_FIELD[found]] = matrix_from_pairs(values, len(header["variables"]))
    if joint is not None:
        if found is not CorrelationPosterior:
            raise _format_error(file, "an estimate has no draws", "header, pairs", "also joint")
        _check_pairs(joint, found, len(header["variables"]), file)
        header["joint"] = matrix_from_pairs(joint, len(header["variables"]))
    try:
        return found(**header)
    except DpsurveyError as error:
        raise _format_error(file, error.detail, error.expected, error.got) from None


def _read_archive(file: Path) -> tuple[str, NDArray[Any], NDArray[Any] | None]:
    """Return the header's text, the array of pairs, and that of joint draws if there is one.

    Arrays take no more memory than the file does: compressed ones, of which a small file can hold any amount, are
    not ours.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise MissingFileError(f"cannot read {file.name!r}", got=error.strerror) from None
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
        plain = len(members) <= 3 and all(member.compress_type == zipfile.ZIP_STORED for member in members)
        arrays = _arrays(content) if plain else {}
        if not all(isinstance(array, np.ndarray) for array in arrays.values()):
            raise ValueError("a member that is no array")
    except Exception:  # damaged bytes make zipfile and numpy raise a dozen kinds of error
        raise _format_error(file, "it is not an .npz archive, or it is damaged", None, None) from None
    if not plain:
        raise _format_error(
            file,
            "it is compressed, or holds too much",
            "two or three plain arrays",
            f"{len(members)} members",
        )
    if arrays.keys() - {"joint"} != {"header", "pairs"}:
        raise _format_error(file, "it holds other arrays", "header, pairs", ", ".join(arrays))
    text, values = arrays["header"], arrays["pairs"]
    if text.ndim or text.dtype.kind != "U":
        raise _format_error(file, "its header is not a text", "one JSON text", f"dtype {text.dtype}")
    if text.dtype.itemsize > 4 * _LONGEST_HEADER:
        raise _format_error(file, "its header is too long", f"up to {_LONGEST_HEADER:,} characters", None)
    return str(text), values, arrays.get("joint")


def _arrays(content: bytes) -> dict[str, NDArray[Any]]:
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _parse_header(text: str, file: Path) -> dict[str, Any]:
    try:
        header: dict[str, Any] = parse_json(text)
    except ValueError:
        raise _format_error(file, "its header is not JSON", None, None) from None
    schema: Any = header.get("schema") if isinstance(header, dict) else None
    if not isinstance(schema, str) or schema not in _SCHEMAS:
        raise _format_error(file, "its header names no schema of dpsurvey", " or ".join(_SCHEMAS), None)
    version = header.pop("schema_version", None)
    if version != SCHEMA_VERSION or isinstance(version, bool):
        raise _format_error(
            file, "its schema version is unknown", f"schema_version {SCHEMA_VERSION}", repr(version),
            hint="a file from a newer dpsurvey needs that dpsurvey",
        )  # fmt: skip
    return header


def _check_fields(header: dict[str, Any], kind: type[Result], file: Path) -> None:
    fields = _FIELDS[kind]
    if header.keys() != fields.keys():
        missing, unknown = sorted(fields.keys() - header.keys()), sorted(header.keys() - fields.keys())
        raise _format_error(
            file, "its header has other fields", ", ".join(fields), f"missing {missing}, unknown {unknown}"
        )
    for name, types in fields.items():
        if not isinstance(header[name], types) or (name == "seed" and isinstance(header[name], bool)):
            raise _format_error(file, f"its field {name!r} has the wrong type", None, repr(header[name]))


def _check_pairs(values: NDArray[Any], kind: type[Result], p: int, file: Path) -> None:
    dimensions, m = _ARRAY_DIMENSIONS[kind], p * (p - 1) // 2
    if values.dtype != np.float64 or values.ndim != dimensions or values.shape[-1] != m:
        raise _format_error(
            file, "its array does not fit its header",
            f"float64 with {dimensions} dimensions, the last of length {m}",
            f"{values.dtype}, shape {values.shape}",
        )  # fmt: skip


def _release(fields: dict[str, Any] | None) -> Any:
    if fields is None:
        return None
    from dpsurvey.privacy.release import Release

    return Release.from_dict(fields)


def _format_error(
    file: Path, detail: str, expected: str | None, got: str | None, *, hint: str | None = None
) -> ReleaseFormatError:
    return ReleaseFormatError(
        f"{file.name!r} is not a saved result: {detail[:_SHOWN]}",
        expected=expected and expected[:_SHOWN],
        got=got and got[:_SHOWN],
        hint=hint,
    )
