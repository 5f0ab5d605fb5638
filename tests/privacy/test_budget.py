"""Epsilon: what is refused, and exact arithmetic that never favours the spender."""

from __future__ import annotations

import decimal
import math
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsurvey.errors import ArgumentError, ArgumentTypeError, LargeEpsilonWarning
from dpsurvey.privacy.budget import check_amount, check_epsilon, difference, spendable, total, written
from dpsurvey.privacy.budget import decimal as as_decimal

positive = st.floats(min_value=5e-324, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    "epsilon",
    [1, 1.0, 0.1, 10, 5e-324, Fraction(1, 3), np.float64(0.5), np.float32(0.5), np.int64(2), np.uint8(3)],
    ids=repr,
)
def test_real_numbers_above_zero_are_taken(epsilon) -> None:
    value = check_epsilon(epsilon)
    assert type(value) is float
    assert value == float(epsilon)


@pytest.mark.parametrize(
    "epsilon", [0, 0.0, -0.0, -1, -1e-9, math.nan, math.inf, -math.inf, 10**400, Fraction(10**400)], ids=str
)
def test_numbers_that_are_no_budget_are_refused(epsilon) -> None:
    with pytest.raises(ArgumentError) as caught:
        check_epsilon(epsilon)
    assert caught.value.code == "DPS101"
    assert "above 0" in str(caught.value)


@pytest.mark.parametrize(
    "epsilon",
    [True, False, np.True_, "1", "", None, 1j, [1.0], Decimal("1"), np.array([1.0]), np.array(1.0), b"1"],
    ids=repr,
)
def test_what_is_no_real_number_is_refused_by_type(epsilon) -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        check_epsilon(epsilon)
    assert caught.value.code == "DPS102"
    assert type(epsilon).__name__ in str(caught.value)


def test_above_ten_it_warns_and_at_ten_it_does_not() -> None:
    with pytest.warns(LargeEpsilonWarning, match=r"epsilon = 10\.5 is above 10.*exp\(10\.5\)"):
        assert check_epsilon(10.5) == 10.5
    assert check_epsilon(10.0) == 10.0
    assert check_amount(10.5) == 10.5  # a sum that was warned of already


def test_messages_name_what_was_wrong() -> None:
    with pytest.raises(ArgumentError, match="budget must be finite"):
        check_epsilon(math.nan, what="budget")
    with pytest.raises(ArgumentTypeError, match="budget is not a number"):
        check_epsilon("3", what="budget")


@given(positive)
def test_what_is_spent_is_at_most_what_was_written_and_next_to_it(epsilon: float) -> None:
    spent = spendable(epsilon)
    assert Fraction(spent) <= Fraction(str(as_decimal(epsilon)))
    assert spent in (epsilon, math.nextafter(epsilon, 0.0))
    assert Fraction(math.nextafter(spent, math.inf)) > Fraction(str(as_decimal(epsilon))) or spent == epsilon


def test_ten_tenths_cost_at_most_one() -> None:
    assert 10 * Fraction(0.1) > 1  # the float itself would overspend
    assert 10 * Fraction(spendable(0.1)) <= 1


@given(positive)
def test_text_of_epsilon_has_all_its_digits(epsilon: float) -> None:
    assert float(written(epsilon)) == epsilon
    assert Fraction(written(epsilon)) == Fraction(str(as_decimal(epsilon)))


@given(st.lists(positive, max_size=30))
def test_sums_are_exact_whatever_the_callers_decimal_context(amounts: list[float]) -> None:
    exact = sum((Fraction(str(as_decimal(a))) for a in amounts), Fraction(0))
    with decimal.localcontext(decimal.Context(prec=3, rounding=decimal.ROUND_UP)):
        added = total(map(as_decimal, amounts))
        left = difference(as_decimal(1.0), added)
    assert Fraction(str(added)) == exact
    assert Fraction(str(left)) == 1 - exact


def test_no_warning_for_ordinary_use() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_epsilon(1) == 1.0
