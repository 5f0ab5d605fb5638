"""The privacy loss parameter: checked when it comes in, never rounded in the user's disfavour."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal
from numbers import Real

from dpsurvey.errors import ArgumentError, ArgumentTypeError, LargeEpsilonWarning

LARGE_EPSILON = 10.0


def check_epsilon(epsilon: float) -> float:
    """Return epsilon as a float, or refuse it.

    Parameters
    ----------
    epsilon : float
        Total privacy loss over all pairs, in nats; finite and above 0.

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
    given: object = epsilon
    if isinstance(given, bool) or not isinstance(given, Real):
        raise ArgumentTypeError(
            "epsilon is not a number",
            expected="a real number above 0, such as 1.0",
            got=type(given).__name__,
        )
    value = float(given)
    if not (math.isfinite(value) and value > 0):
        raise ArgumentError(
            "epsilon must be finite and above 0",
            expected="a number above 0, such as 1.0",
            got=repr(value),
            hint="smaller values protect better; 0 would allow no output at all",
        )
    if value > LARGE_EPSILON:
        warnings.warn(
            f"epsilon = {value:g} is above {LARGE_EPSILON:g}: the guarantee then allows any one person's row to "
            f"change the probability of a result by a factor of up to exp({value:g})",
            LargeEpsilonWarning,
            stacklevel=3,
        )
    return value


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
    return Decimal(repr(epsilon))
