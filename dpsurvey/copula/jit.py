"""One door to numba: compiled kernels that release the GIL and are cached on disk where a cache can be had."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

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
    return compiled
