"""How spending adds up: the two ways of accounting, fixed when a ledger is made.

"pure" adds epsilon, and delta beside it (basic composition). "zcdp" adds rho of zero-concentrated differential
privacy and converts the sum to epsilon at the budget's delta (Bun and Steinke, 2016; Canonne, Kamath and Steinke,
2020). A ledger keeps to one of them: taking the better of the two as releases come would be a choice made after
the fact, for which neither theorem pays. All sums are exact decimals; what must be rounded is rounded against
the spender.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from functools import lru_cache
from typing import ClassVar, Protocol

from dpsurvey.errors import BudgetExceededError, LedgerError
from dpsurvey.privacy.budget import EXACT, check_amount, check_delta, decimal, difference, spendable, total
from dpsurvey.privacy.gaussian import converted_epsilon

_DOWN = Context(prec=15, rounding=ROUND_FLOOR)  # 15 digits survive the way through a float and back
_SMALLEST = 1e-50  # rho that is not told from none
_WIDE = Context(prec=40)  # a square root rounds to the nearest, whatever its context says
_TOLERANCE = 1e-7  # relative, of the largest rho within a budget


@dataclass(frozen=True, slots=True)
class Cost:
    """What one release costs.

    Parameters
    ----------
    epsilon, delta : decimal.Decimal
        Its guarantee.
    rho : decimal.Decimal or None
        The same in zero-concentrated privacy, where an account adds that up.
    """

    epsilon: Decimal
    delta: Decimal = Decimal(0)
    rho: Decimal | None = None

    def __add__(self, other: Cost) -> Cost:
        """Return both together, exactly."""
        rho = None if self.rho is None or other.rho is None else total([self.rho, other.rho])
        return Cost(total([self.epsilon, other.epsilon]), total([self.delta, other.delta]), rho)


class Account(Protocol):
    """A budget, and how spending adds up."""

    name: ClassVar[str]
    uses_rho: ClassVar[bool]

    @property
    def budget(self) -> Decimal:
        """Total epsilon that may ever be spent."""

    @property
    def delta(self) -> Decimal:
        """Total delta that may ever be spent, or at which rho is converted."""

    def cost(self, epsilon: float, delta: float, rho: float | None) -> Cost:
        """Return what a release costs here, or refuse one that cannot be added up."""

    def spent(self, costs: Sequence[Cost]) -> Decimal:
        """Return the epsilon of all costs together."""

    def remaining(self, costs: Sequence[Cost]) -> Decimal:
        """Return the epsilon of one more release with pure epsilon that fits in any case."""

    def check(self, costs: Sequence[Cost], cost: Cost, dataset: str) -> None:
        """Refuse a cost that does not fit beside the others."""

    def holds(self, costs: Sequence[Cost]) -> bool:
        """Return whether all costs together are within the budget."""

    def describe(self, costs: Sequence[Cost]) -> str:
        """Return in words what the budget is, what was spent and what remains."""


@dataclass(frozen=True, slots=True)
class PureAccount:
    """Sums of epsilon, and of delta where the budget has one.

    Examples
    --------
    >>> account = PureAccount(Decimal("0.3"), Decimal(0))
    >>> account.remaining([Cost(Decimal("0.1")), Cost(Decimal("0.2"))])
    Decimal('0.0')
    """

    name: ClassVar[str] = "pure"
    uses_rho: ClassVar[bool] = False
    budget: Decimal
    delta: Decimal

    def cost(self, epsilon: float, delta: float, rho: float | None) -> Cost:
        """Return what a release costs: its epsilon and delta as written.

        Raises
        ------
        LedgerError
            If it has a delta and the budget none.
        """
        cost = _written_cost(epsilon, delta)
        if cost.delta and not self.delta:
            raise LedgerError(
                "the ledger keeps count of pure epsilon, and the release has delta above 0",
                expected="delta = 0",
                got=f"delta = {cost.delta}",
                hint="choose a mechanism with pure epsilon, such as 'linf'; Gaussian noise needs a ledger made with "
                "Ledger.create(..., delta=1e-6, accounting='zcdp')",
            )
        return cost

    def spent(self, costs: Sequence[Cost]) -> Decimal:
        """Return the exact sum of epsilon."""
        return total(cost.epsilon for cost in costs)

    def remaining(self, costs: Sequence[Cost]) -> Decimal:
        """Return exactly what is left of epsilon."""
        return difference(self.budget, self.spent(costs))

    def remaining_delta(self, costs: Sequence[Cost]) -> Decimal:
        """Return exactly what is left of delta."""
        return difference(self.delta, total(cost.delta for cost in costs))

    def check(self, costs: Sequence[Cost], cost: Cost, dataset: str) -> None:
        """Refuse a cost whose epsilon or delta is above what remains.

        Raises
        ------
        BudgetExceededError
        """
        budget = f"{self.budget} (delta {self.delta})" if self.delta else f"{self.budget}"
        _check_enough("epsilon", cost.epsilon, self.remaining(costs), dataset, budget)
        _check_enough("delta", cost.delta, self.remaining_delta(costs), dataset, budget)

    def holds(self, costs: Sequence[Cost]) -> bool:
        """Return whether the sums are within the budget."""
        return self.remaining(costs) >= 0 and self.remaining_delta(costs) >= 0

    def describe(self, costs: Sequence[Cost]) -> str:
        """Return in words what the budget is, what was spent and what remains."""
        text = f"budget {self.budget}, spent {self.spent(costs)}, remaining {self.remaining(costs)}"
        if self.delta:
            left = self.remaining_delta(costs)
            text += f"; delta {self.delta}, spent {difference(self.delta, left)}, remaining {left}"
        return text


@dataclass(frozen=True, slots=True)
class ZcdpAccount:
    """Sums of rho, converted to epsilon at the budget's delta.

    Examples
    --------
    >>> account = ZcdpAccount(Decimal("1.0"), Decimal("0.000001"))
    >>> account.cost(0.5, 0.0, None).rho  # epsilon^2 / 2
    Decimal('0.125')
    """

    name: ClassVar[str] = "zcdp"
    uses_rho: ClassVar[bool] = True
    budget: Decimal
    delta: Decimal

    def cost(self, epsilon: float, delta: float, rho: float | None) -> Cost:
        """Return what a release costs: its own rho, or epsilon^2 / 2 where it has pure epsilon.

        Raises
        ------
        LedgerError
            If it has a delta and no rho.
        """
        cost = _written_cost(epsilon, delta)
        if not cost.delta:
            return Cost(cost.epsilon, rho=pure_rho(cost.epsilon))
        if rho is None:
            raise LedgerError(
                "the release has delta above 0 and says no rho, which this ledger adds up",
                expected="rho of its noise",
            )
        return Cost(cost.epsilon, cost.delta, _not_below(check_amount(rho, what="rho")))

    def spent(self, costs: Sequence[Cost]) -> Decimal:
        """Return the epsilon into which the sum of rho converts."""
        return _not_below(self._converted(spent_rho(costs))) if costs else Decimal(0)

    def remaining(self, costs: Sequence[Cost]) -> Decimal:
        """Return the epsilon of one more release with pure epsilon that fits, rounded down."""
        return _DOWN.plus(_WIDE.sqrt(_DOWN.multiply(self.remaining_rho(costs), Decimal(2))))

    def remaining_rho(self, costs: Sequence[Cost]) -> Decimal:
        """Return the rho that is left, rounded down."""
        return max(Decimal(0), _DOWN.plus(difference(self._largest_rho(), spent_rho(costs))))

    def check(self, costs: Sequence[Cost], cost: Cost, dataset: str) -> None:
        """Refuse a cost with which the sum of rho converts to more than the budget.

        Raises
        ------
        BudgetExceededError
        """
        if not self.holds([*costs, cost]):
            budget = f"epsilon {self.budget} at delta {self.delta}"
            _check_enough("rho", cost.rho or Decimal(0), self.remaining_rho(costs), dataset, budget)

    def holds(self, costs: Sequence[Cost]) -> bool:
        """Return whether the sum of rho converts to at most the budget."""
        rho = spent_rho(costs)
        return self._converted(rho) <= spendable(float(self.budget)) or rho <= self._largest_rho()

    def describe(self, costs: Sequence[Cost]) -> str:
        """Return in words what the budget is, what was spent and what remains."""
        return (
            f"budget {self.budget} at delta {self.delta} by zCDP, spent {self.spent(costs)} "
            f"(rho {spent_rho(costs)}), remaining rho {self.remaining_rho(costs)} "
            f"(one release with pure epsilon {self.remaining(costs)})"
        )

    def _converted(self, rho: Decimal) -> float:
        return converted_epsilon(_float_above(rho), spendable(float(self.delta))) if rho else 0.0

    def _largest_rho(self) -> Decimal:
        return Decimal(_largest_rho(spendable(float(self.budget)), spendable(float(self.delta))))


ACCOUNTS: dict[str, type[PureAccount] | type[ZcdpAccount]] = {
    kind.name: kind for kind in (PureAccount, ZcdpAccount)
}


def pure_rho(epsilon: Decimal) -> Decimal:
    """Return exactly epsilon^2 / 2, the rho of a release with pure epsilon (Bun and Steinke, 2016, prop. 1.4).

    Examples
    --------
    >>> pure_rho(Decimal("0.1"))
    Decimal('0.005')
    """
    return EXACT.divide(EXACT.multiply(epsilon, epsilon), Decimal(2))


def spent_rho(costs: Sequence[Cost]) -> Decimal:
    """Return the exact sum of rho."""
    return total(cost.rho for cost in costs if cost.rho is not None)


def _written_cost(epsilon: float, delta: float) -> Cost:
    delta = check_delta(delta)
    return Cost(decimal(check_amount(epsilon)), decimal(delta) if delta else Decimal(0))


def _check_enough(what: str, requested: Decimal, remaining: Decimal, dataset: str, budget: str) -> None:
    if requested > remaining:
        raise BudgetExceededError(
            f"requested {what} {requested}, remaining {remaining}: {difference(requested, remaining)} too much",
            expected=f"at most {remaining}",
            got=str(requested),
            hint=f"the budget of {dataset!r} is {budget}; what is spent stays spent. A saved release can be "
            "loaded and analysed as often as you like at no cost.",
        )


def _not_below(value: float) -> Decimal:
    """Return the shortest digits of a float, or of the next where they lie below it."""
    short = decimal(value)
    return short if short >= Decimal(value) else decimal(math.nextafter(value, math.inf))


def _float_above(value: Decimal) -> float:
    """Return the smallest float that is not below a decimal."""
    near = float(value)
    return near if Decimal(near) >= value else math.nextafter(near, math.inf)


@lru_cache(maxsize=16)
def _largest_rho(epsilon: float, delta: float) -> float:
    """Return the largest rho that converts to at most epsilon, from below to within a relative 1e-7."""
    log = -math.log(
        delta
    )  # the simplest conversion, epsilon = rho + 2 sqrt(rho log(1/delta)), says where to look
    low = max((epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))) ** 2, _SMALLEST)
    while converted_epsilon(low, delta) > epsilon:
        low *= 0.5
        if low < _SMALLEST:
            return 0.0
    high = 2.0 * low
    while converted_epsilon(high, delta) <= epsilon:
        low, high = high, 2.0 * high
    while high > low * (1.0 + _TOLERANCE):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if converted_epsilon(middle, delta) <= epsilon else (low, middle)
    return low
