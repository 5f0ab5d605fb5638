"""The radius of an L-infinity draw: an exact, secret random integer.

K has probability proportional to ``(2K+1)^wide (2 floor(K/unit)+1)^narrow exp(-rate K)``, rate = budget / unit: the
number of points of the integer box in which `wide` counts reach K and `narrow` ones K/unit, times the decay.

The draw is by blocks of consecutive integers. A block comes with probability proportional to a bound on the weights
in it, a place in the block from the geometric law, and both are accepted by rational Bernoullis that make up for
the bound: exact, and accepted more often than not for the epsilons in use.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from dpsurvey.privacy.exact import RandBelow, bernoulli, geometric

_REJECTION_UP_TO = 2.5  # -log of the acceptance rate
_SHORT_TABLE = 2000  # typical block number up to which the inversion's table takes no time
_GUARD_DIGITS = 20  # beyond those claimed: room for the rounding of ten million operations


class RadiusWeights(NamedTuple):
    """Public parameters of the law of K.

    Attributes
    ----------
    budget : Fraction
        Epsilon, exactly.
    unit : int
        Sensitivity of the wide counts, as a multiple of that of the narrow ones.
    wide, narrow : int
        Numbers of counts.
    """

    budget: Fraction
    unit: int
    wide: int
    narrow: int

    @property
    def m(self) -> int:
        """Number of counts."""
        return self.wide + self.narrow

    @property
    def block(self) -> int:
        """Length of a block: over it the decay is at most about exp(-1)."""
        return max(1, min(self.unit, int(self.unit / self.budget))) if self.budget > 1 else self.unit

    def bounds(self, number: int) -> tuple[int, int]:
        """Return ``2K+1`` and ``2 floor(K/unit)+1`` at the last K of a block: the largest in it."""
        last = (number + 1) * self.block - 1
        return 2 * last + 1, 2 * (last // self.unit) + 1


def draw_radius(law: RadiusWeights, randbelow: RandBelow) -> int:
    """Draw K exactly from its law. What it returns is as secret as the noise itself.

    Parameters
    ----------
    law : RadiusWeights
    randbelow : callable
        Source of randomness.

    Returns
    -------
    int
    """
    rate, block = law.budget / law.unit, law.block
    while True:
        number = draw_block(law, randbelow)
        place = geometric(rate, randbelow) % block if block > 1 else 0  # its law within any one block
        k = number * block + place
        wide, narrow = law.bounds(number)
        if _power(Fraction(2 * k + 1, wide), law.wide, randbelow) and _power(
            Fraction(2 * (k // law.unit) + 1, narrow), law.narrow, randbelow
        ):
            return k


def draw_block(law: RadiusWeights, randbelow: RandBelow) -> int:
    """Draw a block's number with probability exactly proportional to its bound, by the quicker of two routes."""
    decay = law.budget * law.block / law.unit
    if law.block == law.unit and law.m > _SHORT_TABLE * decay and law.m * decay / 2 <= _REJECTION_UP_TO:
        return block_by_rejection(law, randbelow)
    return block_by_inversion(law, randbelow)


def block_by_rejection(law: RadiusWeights, randbelow: RandBelow) -> int:
    """Propose the sum of m + 1 geometric draws, of weight C(b+m, m) exp(-budget b), and accept exactly.

    The bound of block b, divided by C(b+m, m), is proportional to the product of ``(2b + 2 - 1/unit)/(2b + 2i)``
    over i = 1..wide and of ``(2b + 1)/(2b + 2i)`` over the other i up to m, all at most 1. For blocks as long as
    the unit.
    """
    while True:
        b = sum(geometric(law.budget, randbelow) for _ in range(law.m + 1))
        wide, narrow = law.bounds(b)
        ratios = (
            Fraction(wide, 2 * law.unit * (b + i)) if i <= law.wide else Fraction(narrow, 2 * (b + i))
            for i in range(1, law.m + 1)
        )
        if all(bernoulli(ratio, randbelow) for ratio in ratios):
            return b


def block_by_inversion(law: RadiusWeights, randbelow: RandBelow, bits: int = 128) -> int:
    """Invert the cdf lazily: more random bits and digits until the uniform number lies in one cell for certain."""
    uniform = randbelow(1 << bits)
    while True:
        digits = int(bits * 0.302) + 6
        cell = _certain_cell(_cumulative_bounds(law, digits), uniform, bits, digits)
        if cell is not None:
            return cell
        uniform = uniform << 64 | randbelow(1 << 64)
        bits += 64


def _power(probability: Fraction, times: int, randbelow: RandBelow) -> bool:
    """Return True with probability exactly ``probability ** times``."""
    return probability == 1 or all(bernoulli(probability, randbelow) for _ in range(times))


@lru_cache(maxsize=8)
def _cumulative_bounds(law: RadiusWeights, digits: int) -> tuple[Decimal, ...]:
    """Return sums of the bounds of blocks 0..b, for b up to where the rest is below 10^-digits of them.

    Each is within a relative 10^-digits of the truth: every operation is rounded correctly in the last of
    `digits` + 20 places, and there are fewer than 10^8 of them. The rest is bounded by a geometric series: with
    the floor in the narrow counts' factor left out, the ratio of successive bounds only falls.
    """
    with localcontext() as context:
        context.prec = digits + _GUARD_DIGITS
        exponent = law.budget * law.block / law.unit
        decay = (-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
        negligible = Decimal(10) ** -(digits + 1)
        total, power, sums, b = Decimal(0), Decimal(1), [], 0
        ceiling = _ceiling(law, 0)
        while True:
            wide, narrow = law.bounds(b)
            total += Decimal(wide) ** law.wide * Decimal(narrow) ** law.narrow * power
            sums.append(total)
            following = _ceiling(law, b + 1)
            ratio = following / ceiling * decay
            if ratio < 1 and following * decay * power / (1 - ratio) < total * negligible:
                return tuple(sums)
            power *= decay
            ceiling = following
            b += 1


def _ceiling(law: RadiusWeights, b: int) -> Decimal:
    """Return a smooth number that is not below the bound of block b, without its decay."""
    smooth = Decimal(2 * (b + 1) * law.block) / law.unit + 1
    return Decimal(law.bounds(b)[0]) ** law.wide * smooth**law.narrow


def _certain_cell(cumulative: tuple[Decimal, ...], uniform: int, bits: int, digits: int) -> int | None:
    """Return the cell that holds all of [uniform, uniform + 1) / 2^bits whatever the rounding, or None."""
    with localcontext() as context:
        context.prec = digits + _GUARD_DIGITS
        slack = Decimal(10) ** (1 - digits)
        share = cumulative[-1] / Decimal(2**bits)
        low, high = share * uniform * (1 - slack), share * (uniform + 1) * (1 + slack)
        first, last = 0, len(cumulative) - 1
        while first < last:
            middle = (first + last) // 2
            if cumulative[middle] > low:
                last = middle
            else:
                first = middle + 1
        below = cumulative[first - 1] if first else Decimal(0)
        certain = high < cumulative[first] * (1 - slack) and (first == 0 or low > below * (1 + slack))
        return first if certain else None
