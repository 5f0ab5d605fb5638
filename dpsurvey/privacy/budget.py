"""The privacy loss parameter: checked when it comes in, never rounded in the user's disfavour."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from decimal import Context, Decimal, Inexact, localcontext
from numbers import Real
from typing import Any

from dpsurvey.errors import ArgumentError, ArgumentTypeError, LargeEpsilonWarning

LARGE_EPSILON = 10.0
EXACT = Context(prec=2000, traps=[Inexact])  # room for sums of floats and of their squares, digit for digit


def check_epsilon(epsilon: float, *, what: str = "epsilon") -> float:
    """Return epsilon as a float, or refuse it.

    Parameters
    ----------
    epsilon : float
        Total privacy loss over all pairs, in nats; finite and above 0.
    what : str
        What the messages call it.

    Returns
    -------
    float

    Raises
    ------
    ArgumentTypeError
        If it is not a real number (True and "1" are refused).
    ArgumentError
        If it is 0, negative, NaN or infinite.

    Warns
    -----
    LargeEpsilonWarning
        Above 10, where the guarantee means little.

    Examples
    --------
    >>> check_epsilon(1)
    1.0
    """
    value = check_amount(epsilon, what=what)
    if value > LARGE_EPSILON:
        warnings.warn(
            f"{what} = {value:g} is above {LARGE_EPSILON:g}: the guarantee then allows any one person's row to "
            f"change the probability of a result by a factor of up to exp({value:g})",
            LargeEpsilonWarning,
            stacklevel=3,
        )
    return value


def check_amount(amount: float, *, what: str = "epsilon") -> float:
    """Return an amount of privacy loss as a float above 0, without a warning where it is large.

    Raises
    ------
    ArgumentTypeError, ArgumentError
        As :func:`check_epsilon`.

    Examples
    --------
    >>> check_amount(20)
    20.0
    """
    given: object = amount
    if isinstance(given, bool) or not isinstance(given, Real):
        raise ArgumentTypeError(
            f"{what} is not a number",
            expected="a real number above 0, such as 1.0",
            got=type(given).__name__,
        )
    value = _as_float(given)
    if not (math.isfinite(value) and value > 0):
        raise ArgumentError(
            f"{what} must be finite and above 0",
            expected="a number above 0, such as 1.0",
            got=repr(value),
            hint="smaller values protect better; 0 would allow no output at all",
        )
    return value


def check_delta(delta: float) -> float:
    """Return delta as a float, or refuse it.

    Parameters
    ----------
    delta : float
        Chance with which the guarantee of epsilon may fail, roughly: 0 for pure epsilon, else far below 1/n.

    Raises
    ------
    ArgumentTypeError, ArgumentError
        If it is not a number in [0, 1).

    Examples
    --------
    >>> check_delta(0)
    0.0
    """
    given: object = delta
    if isinstance(given, bool) or not isinstance(given, Real):
        raise ArgumentTypeError(
            "delta is not a number", expected="0, or such as 1e-6", got=type(given).__name__
        )
    value = _as_float(given)
    if not 0.0 <= value < 1.0:
        raise ArgumentError("delta is not in [0, 1)", expected="0, or such as 1e-6", got=repr(value))
    return value


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:  # an integer or a fraction beyond all floats
        return math.inf if number > 0 else -math.inf


def spendable(epsilon: float) -> float:
    """Return the largest float that is not above the decimal number the user wrote.

    The float 0.1 lies a little above one tenth. Mechanisms get the float below, so that ten releases at 0.1
    cost at most 1 in exact arithmetic.

    Examples
    --------
    >>> spendable(0.1) < 0.1, spendable(0.5) == 0.5
    (True, True)
    """
    exact = Decimal(epsilon)  # the float's value, digit for digit
    return epsilon if exact <= decimal(epsilon) else math.nextafter(epsilon, 0.0)


def decimal(epsilon: float) -> Decimal:
    """Return epsilon as the decimal number that was written: its shortest representation.

    Examples
    --------
    >>> decimal(0.1)
    Decimal('0.1')
    """
    return Decimal(repr(float(epsilon)))


def written(epsilon: float) -> str:
    """Return epsilon as text with all its digits: a claim of privacy is never rounded down.

    Examples
    --------
    >>> written(1.0), written(0.1), written(1.0000004)
    ('1', '0.1', '1.0000004')
    """
    return repr(float(epsilon)).removesuffix(".0")


def total(amounts: Iterable[Decimal]) -> Decimal:
    """Return the sum of amounts without any rounding.

    Examples
    --------
    >>> total([Decimal("0.1")] * 10), total([Decimal("1"), Decimal("1E-40")]) > 1
    (Decimal('1.0'), True)
    """
    with localcontext(EXACT):
        return sum(amounts, Decimal(0))


def difference(amount: Decimal, less: Decimal) -> Decimal:
    """Return amount - less without any rounding.

    Examples
    --------
    >>> difference(Decimal("1.0"), Decimal("0.9"))
    Decimal('0.1')
    """
    with localcontext(EXACT):
        return amount - less
