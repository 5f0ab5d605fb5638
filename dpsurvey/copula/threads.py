"""How many cores this process may use."""

from __future__ import annotations

import os


def available_cores() -> int:
    """Return the number of cores the process is allowed to run on.

    Examples
    --------
    >>> available_cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1
