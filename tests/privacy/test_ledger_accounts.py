"""How spending adds up: exact sums, hand-computed zCDP, and rounding that never favours the spender."""

from __future__ import annotations

import math
import tempfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import dpsurvey as dps
from dpsurvey.errors import (
    ArgumentError,
    BudgetExceededError,
    LedgerError,
    UnknownNameError,
)
from dpsurvey.privacy.budget import spendable
from dpsurvey.privacy.gaussian import DiscreteGaussian, converted_epsilon
from dpsurvey.privacy.ledger import Ledger
from dpsurvey.privacy.ledger_accounts import Cost, PureAccount, ZcdpAccount, pure_rho
from dpsurvey.privacy.statistics import QuadrantCounts

DELTA = 1e-6


def make(folder: Path, budget: float = 3.0, delta: float = DELTA, accounting: str = "zcdp") -> Ledger:
    return Ledger.create(
        folder / f"{accounting}.json", dataset="d", budget=budget, delta=delta, accounting=accounting
    )


def table() -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(1).normal(size=(300, 3)), columns=["a", "b", "c"])


# --- making one


def test_the_accounting_is_fixed_at_creation_and_read_back(tmp_path: Path) -> None:
    book = Ledger.open(make(tmp_path).path)
    assert (book.accounting, book.budget, book.delta) == ("zcdp", 3, Decimal("0.000001"))
    assert (book.spent, "by zCDP" in book.status()) == (0, True)


@pytest.mark.parametrize("accounting", ["renyi", "", None, 1, ["pure"]])
def test_an_unknown_accounting_is_refused(tmp_path: Path, accounting) -> None:
    with pytest.raises(UnknownNameError, match="'pure' or 'zcdp'"):
        Ledger.create(tmp_path / "l", dataset="d", budget=1.0, accounting=accounting)
    assert not list(tmp_path.iterdir())


def test_zcdp_needs_a_delta_and_no_accounting_takes_one_of_1(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="delta above 0"):
        make(tmp_path, delta=0.0)
    for delta in (1.0, -1e-6, math.nan):
        with pytest.raises(ArgumentError, match="delta is not in"):
            make(tmp_path, delta=delta)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("rule", ["add or remove one row", "", None, 4])
def test_there_is_one_neighbour_rule(tmp_path: Path, rule) -> None:
    with pytest.raises(UnknownNameError, match="neighbour rule"):
        Ledger.create(tmp_path / "l", dataset="d", budget=1.0, neighbours=rule)
    book = Ledger.create(tmp_path / "l", dataset="d", budget=1.0, neighbours="substitute one row")
    with pytest.raises(LedgerError, match="another neighbour rule"):
        book.reserve(0.1, {}, neighbours=rule)
    assert book.spent == 0


# --- pure


def test_a_tenth_and_two_tenths_are_three_tenths(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "l", dataset="d", budget=0.3)
    book.reserve(0.1, {})
    book.reserve(0.2, {})  # in floats 0.1 + 0.2 > 0.3
    assert (str(book.spent), book.remaining) == ("0.3", 0)


def test_epsilon_and_delta_add_up_side_by_side(tmp_path: Path) -> None:
    book = make(tmp_path, 1.0, 3e-6, "pure")
    book.reserve(0.25, {}, delta=1e-6, rho=0.01)
    book.reserve(0.25, {})
    book.reserve(0.25, {}, delta=2e-6)
    assert (book.spent, book.remaining) == (Decimal("0.75"), Decimal("0.25"))
    assert book.status().endswith(
        "budget 1.0, spent 0.75, remaining 0.25; delta 0.000003, spent 0.000003, remaining 0.000000"
    )
    with pytest.raises(
        BudgetExceededError, match=r"requested delta 1E-7, remaining 0\.000000: 1E-7 too much"
    ):
        book.reserve(0.1, {}, delta=1e-7)
    with pytest.raises(BudgetExceededError, match=r"requested epsilon 0\.5, remaining 0\.25"):
        book.reserve(0.5, {})
    book.reserve(0.25, {})
    table = book.summary()
    assert table["delta"].tolist() == ["0.000001", "0", "0.000002", "0"]
    assert "rho" not in table
    book.verify()


def test_pure_sums_take_no_advantage_of_rho(tmp_path: Path) -> None:
    """A hundred releases at 0.1 cost 10 by the sum and 3.9 by zCDP: the ledger never takes the better of the two."""
    costs = [Cost(Decimal("0.1"), rho=pure_rho(Decimal("0.1")))] * 100
    assert PureAccount(Decimal(20), Decimal("0.000001")).spent(costs) == 10
    assert ZcdpAccount(Decimal(20), Decimal("0.000001")).spent(costs) < 6
    one = [Cost(Decimal("0.1"), rho=pure_rho(Decimal("0.1")))]
    assert ZcdpAccount(Decimal(20), Decimal("0.000001")).spent(one) > Decimal("0.3")  # nor here


# --- zCDP


def reference(rho: float, delta: float) -> float:
    """Canonne, Kamath and Steinke (2020), corollary 13, minimised over alpha by another optimiser."""

    def epsilon(log: float) -> float:
        alpha = 1.0 + math.exp(log)
        return alpha * rho - (math.log(alpha * delta)) / (alpha - 1.0) + math.log1p(-1.0 / alpha)

    return float(minimize_scalar(epsilon, bounds=(-12, 12), method="bounded", options={"xatol": 1e-10}).fun)


@pytest.mark.parametrize("rho", [1e-4, 0.005, 0.125, 0.5, 2.0, 20.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-10])
def test_the_conversion_is_that_of_the_paper_and_never_below_it(rho: float, delta: float) -> None:
    converted = converted_epsilon(rho, delta)
    assert converted == pytest.approx(reference(rho, delta), rel=1e-7)
    assert converted >= reference(rho, delta) * (1 - 1e-9)
    assert converted <= rho + 2 * math.sqrt(
        rho * math.log(1 / delta)
    )  # Bun and Steinke (2016), proposition 1.3


def test_the_conversion_has_ends() -> None:
    assert converted_epsilon(0.0, DELTA) == 0.0
    assert converted_epsilon(1e150, DELTA) == math.inf
    assert converted_epsilon(math.inf, DELTA) == math.inf


def test_hand_computed_sums_of_rho(tmp_path: Path) -> None:
    """Pure 0.5, 0.1 and 0.3 cost 0.125 + 0.005 + 0.045 = 0.175; Gaussian noise costs what it says."""
    book = make(tmp_path)
    for epsilon in (0.5, 0.1, 0.3):
        book.reserve(epsilon, {})
    rows = book.summary()
    assert rows["rho"].tolist() == ["0.125", "0.005", "0.045"]
    assert float(book.spent) == pytest.approx(reference(0.175, DELTA), rel=1e-9)
    assert "(rho 0.175)" in book.status()
    book.reserve(0.5, {}, delta=1e-6, rho=0.0078125)
    assert "(rho 0.1828125)" in book.status()
    assert float(book.spent) == pytest.approx(reference(0.1828125, DELTA), rel=1e-9)
    left = Fraction(str(book.remaining)) ** 2 / 2
    assert reference(0.1828125 + float(left), DELTA) == pytest.approx(3.0, rel=1e-6)


def test_overspending_rho_shows_requested_remaining_and_difference(tmp_path: Path) -> None:
    book = make(tmp_path, 1.0)
    before = book.path.read_bytes()
    with pytest.raises(
        BudgetExceededError, match=r"requested rho 0\.125, remaining 0\.0243\d+: 0\.100\d+ too much"
    ) as caught:
        book.reserve(0.5, {})
    assert "epsilon 1.0 at delta 0.000001" in str(caught.value)
    assert book.path.read_bytes() == before


def test_delta_without_rho_cannot_be_added_up(tmp_path: Path) -> None:
    book = make(tmp_path)
    with pytest.raises(LedgerError, match="says no rho"):
        book.reserve(0.5, {}, delta=1e-6)
    for rho in (0.0, -1.0, math.nan):
        with pytest.raises(ArgumentError, match="rho"):
            book.reserve(0.5, {}, delta=1e-6, rho=rho)
    assert book.spent == 0


def test_a_rewritten_rho_is_refused(tmp_path: Path) -> None:
    from dpsurvey.privacy.ledger_records import Reservation

    account = ZcdpAccount(Decimal(1), Decimal("0.000001"))
    good = Reservation(1, Cost(Decimal("0.1"), Decimal(0), Decimal("0.005")), {}).to_record("0", account)
    assert Reservation.from_record(good, account).cost.rho == Decimal("0.005")
    for changes in ({"rho": "0.004"}, {"rho": "0.0050"}, {"rho": 0.005}, {"delta": "0.1", "rho": "1E-2"}):
        with pytest.raises(ValueError, match="no valid rho"):
            Reservation.from_record(good | changes, account)
    good.pop("rho")
    with pytest.raises(ValueError, match="lacks a field"):
        Reservation.from_record(good, account)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("p", [2, 5])
def test_one_gaussian_release_may_spend_the_whole_budget_and_then_nothing_is_left(
    tmp_path: Path, epsilon: float, delta: float, p: int
) -> None:
    book = make(tmp_path, epsilon, delta)
    rho = DiscreteGaussian.build(QuadrantCounts(500, p), epsilon, delta).rho
    book.reserve(epsilon, {}, delta=delta, rho=rho)
    assert 0.999 * epsilon < book.spent <= Decimal(repr(epsilon))
    with pytest.raises(BudgetExceededError):
        book.reserve(epsilon / 10, {}, delta=delta, rho=rho / 100)
    book.verify()


def test_gaussian_releases_of_a_table_compose_far_below_their_sum(tmp_path: Path) -> None:
    book = make(tmp_path, 3.0)
    for _ in range(4):
        release = dps.release(table(), 1.0, mechanism="gaussian", delta=DELTA, ledger=book)
    assert book.summary()["rho"].tolist() == [repr(release.parameters["rho"])] * 4
    assert Decimal("1.9") < book.spent < Decimal("2.2")  # the sum would be 4
    dps.release(table(), 0.25, ledger=book)
    assert book.summary()["rho"].tolist()[-1] == "0.03125"
    book.check_release(release)


def test_gaussian_releases_add_up_by_the_sum_where_the_ledger_says_so(tmp_path: Path) -> None:
    book = make(tmp_path, 3.0, 2e-6, "pure")
    dps.release(table(), 1.0, mechanism="gaussian", delta=DELTA, ledger=book)
    dps.release(table(), 1.0, ledger=book)
    assert book.remaining == 1
    assert book.summary()["delta"].tolist() == ["0.000001", "0"]


@settings(max_examples=12, deadline=None)
@given(
    st.floats(0.01, 10.0),
    st.sampled_from([1e-9, 1e-6, 1e-2]),
    st.lists(st.floats(1e-12, 1.0), min_size=1, max_size=5),
)
def test_rounding_never_favours_the_spender(budget: float, delta: float, requests: list[float]) -> None:
    """What was granted costs at most the budget in exact numbers, and what is said to remain can be had."""
    with tempfile.TemporaryDirectory() as folder:
        book = make(Path(folder), budget, delta)
        granted = Fraction(0)
        for epsilon in requests:
            rho = Fraction(repr(epsilon)) ** 2 / 2
            try:
                book.reserve(epsilon, {})
                granted += rho
            except BudgetExceededError:
                assert converted_epsilon(float(granted + rho), spendable(delta)) > spendable(budget) * (
                    1 - 1e-6
                )
        assert Fraction(str(book.spent)) >= Fraction(converted_epsilon(float(granted), delta)) * (
            1 - Fraction(1, 10**12)
        )
        assert book.spent <= Decimal(repr(budget))
        left = float(book.remaining)
        if left > 0:
            book.reserve(left, {})  # never overstated
            assert book.spent <= Decimal(repr(budget))
        with pytest.raises(BudgetExceededError):
            book.reserve(max(left / 50, 1e-3 * budget), {})
        book.verify()


@settings(deadline=None)
@given(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300))
def test_sums_of_squares_are_exact(one: float, two: float) -> None:
    account = ZcdpAccount(Decimal(1), Decimal("0.000001"))
    costs = [account.cost(one, 0.0, None), account.cost(two, 0.0, None)]
    assert [Fraction(str(cost.rho)) for cost in costs] == [Fraction(repr(x)) ** 2 / 2 for x in (one, two)]
    assert account.holds([]) is True


@settings(deadline=None)
@given(st.floats(1e-30, 1e30))
def test_rho_of_noise_is_written_at_or_above_its_float(rho: float) -> None:
    cost = ZcdpAccount(Decimal(1), Decimal("0.000001")).cost(1.0, 1e-6, rho)
    assert (
        Fraction(rho)
        <= Fraction(str(cost.rho))
        <= Fraction(math.nextafter(rho, math.inf)) * (1 + Fraction(1, 10**15))
    )


@settings(max_examples=50, deadline=None)
@given(st.floats(1e-12, 1e-1), st.sampled_from([0.5, 1.0, 3.0]))
def test_what_is_said_to_remain_is_rounded_down(rho: float, budget: float) -> None:
    account = ZcdpAccount(Decimal(str(budget)), Decimal("0.000001"))
    costs = [Cost(Decimal(1), Decimal("0.000001"), Decimal(rho))]
    assume(account.holds(costs))
    left, epsilon = account.remaining_rho(costs), account.remaining(costs)
    assert Fraction(str(epsilon)) ** 2 / 2 <= Fraction(str(left))
    assert float(epsilon) ** 2 / 2 == pytest.approx(float(left), rel=1e-13)
    assert account.holds([*costs, Cost(epsilon, rho=left)])
    assert Decimal(repr(float(epsilon))) == epsilon  # its digits survive the way through a float


def test_the_table_of_a_long_ledger_says_after_each_entry_what_was_left(tmp_path: Path) -> None:
    for accounting in ("pure", "zcdp"):
        book = make(tmp_path, 3.0, DELTA, accounting)
        left = []
        for _ in range(30):
            book.reserve(0.01, {})
            left.append(str(book.remaining))
        assert book.summary()["remaining"].tolist() == left
