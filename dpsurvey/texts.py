"""Text that can be written down: names, labels and rules go into files, tables and other programs."""

from __future__ import annotations

from typing import Any


def is_text(value: Any) -> bool:
    r"""Whether a value is a str that UTF-8 can write, which a lone half of a surrogate pair is not.

    Examples
    --------
    >>> is_text("Énergie (kcal)"), is_text("broken \udc80"), is_text(5)
    (True, False, False)
    """
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
