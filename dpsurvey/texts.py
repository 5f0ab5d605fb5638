"""Text that can be written down: names, labels and rules go into files, tables and other programs."""

from __future__ import annotations

from numbers import Number
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


def shown(name: Any) -> str:
    """Return how an error may show what was given for a name: text as it is, anything else by its type alone.

    What is no text may be a column that was passed by mistake, whose repr shows cells.

    Examples
    --------
    >>> shown("rgm"), shown([1.5, 2.5])
    ("'rgm'", 'list')
    """
    return repr(name)[:80] if isinstance(name, str) else type(name).__name__


def shown_setting(value: Any) -> str:
    """Return how an error may show what was given for a number: a number or None as it is, else the type alone.

    Text, a list or a column that was passed by mistake may be cells.

    Examples
    --------
    >>> shown_setting(2.5), shown_setting(None), shown_setting([1.5, 2.5])
    ('2.5', 'None', 'list')
    """
    return repr(value)[:80] if value is None or isinstance(value, Number) else type(value).__name__
