"""One door to numba: compiled kernels that release the GIL and are cached on disk where a cache can be had."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba.core.dispatcher import Dispatcher

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def njit(function: Kernel) -> Kernel:
    """Compile `function` with ``nogil``, ``error_model="numpy"`` and an on-disk cache.

    numba refuses ``cache=True`` where neither the package folder nor the user's cache can be written (a
    read-only install with an unwritable home); the kernel then compiles once per process instead.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        compiled: Kernel = numba.njit(cache=True, **options)(function)
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        compiled = numba.njit(**options)(function)
    else:
        _watch_callees(compiled, function)
    return compiled


def _watch_callees(compiled: Any, function: Callable[..., Any]) -> None:
    """Make the cached kernel stale when a file with a kernel that it may call changes.

    numba looks at the kernel's own file only, though the code of its callees is compiled into it: after a change
    to another module the old code would go on running.
    """
    file: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if hasattr(file, "_source_stamp"):  # numba's own names: without them its rule stands as it is
        stamps = [(path, _stamp(path)) for path in _sources(function)]
        file._source_stamp = (file._source_stamp, stamps)


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:  # a package in an archive
        return None
    return status.st_mtime_ns, status.st_size


def _sources(function: Callable[..., Any]) -> list[str]:
    """Return the files of all kernels within reach of the function's module."""
    found: dict[str, Callable[..., Any]] = {function.__code__.co_filename: function}
    pending = [function]
    while pending:
        for value in list(pending.pop().__globals__.values()):
            if isinstance(value, Dispatcher) and value.py_func.__code__.co_filename not in found:
                found[value.py_func.__code__.co_filename] = value.py_func
                pending.append(value.py_func)
    return sorted(found)
