"""The statistics that can be released: their ranges and how far one person can move them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

from dpsurvey.errors import ArgumentError, UnknownNameError
from dpsurvey.privacy.concordance import ConcordanceCounts
from dpsurvey.texts import shown


class Statistic(Protocol):
    """What mechanisms need of a statistic: ranges and sensitivities, from public numbers alone."""

    name: ClassVar[str]  # by which a release records it

    @property
    def n(self) -> int:
        """Number of rows, public."""

    @property
    def p(self) -> int:
        """Number of variables."""

    @property
    def m(self) -> int:
        """Number of pairs, p(p-1)/2."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """What is counted for each pair, in the order of ``numpy.triu_indices(p, 1)``."""

    @property
    def sensitivities(self) -> tuple[int, ...]:
        """How far one row moves each count."""

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """Smallest and largest possible value of each count."""

    @property
    def sensitivity(self) -> int:
        """Largest of them."""

    @property
    def lower(self) -> int:
        """Smallest possible count of the statistic's own kind."""

    @property
    def upper(self) -> int:
        """Largest possible count of the statistic's own kind."""

    @property
    def l1_sensitivity(self) -> int:
        """Largest change of the whole vector in L1, where all counts are of one kind."""

    @property
    def l2_sensitivity(self) -> float:
        """Largest change of the whole vector in L2, where all counts are of one kind."""


NEIGHBOURS = "substitute one row"  # the rule under which the sensitivities below hold


@dataclass(frozen=True, slots=True)
class QuadrantCounts:
    """Median-quadrant counts t_jk: rows in the high half of both variables (paper, section 3).

    The high half of a variable holds exactly ``ceil(n/2)`` rows, ties broken by fixed keys, so substituting
    one row changes each half by at most one row in and one row out, and each t_jk by at most 1.

    Parameters
    ----------
    n : int
        Number of rows, public.
    p : int
        Number of variables.

    Examples
    --------
    >>> counts = QuadrantCounts(n=5820, p=7)
    >>> counts.m, counts.lower, counts.upper, counts.l1_sensitivity
    (21, 0, 2910, 21)
    """

    name: ClassVar[str] = "quadrant"
    sensitivity: ClassVar[int] = 1  # of one count, and of the whole vector in max-norm
    n: int
    p: int

    @property
    def m(self) -> int:
        """Number of pairs, p(p-1)/2."""
        return self.p * (self.p - 1) // 2

    @property
    def kinds(self) -> tuple[str, ...]:
        """What is counted for each pair."""
        return (self.name,) * self.m

    @property
    def sensitivities(self) -> tuple[int, ...]:
        """How far one row moves each count: 1, attained, for all of them at once."""
        return (self.sensitivity,) * self.m

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """Smallest and largest possible value of each count."""
        return ((self.lower, self.upper),) * self.m

    @property
    def high(self) -> int:
        """Rows in the high half of a variable, ceil(n/2)."""
        return (self.n + 1) // 2

    @property
    def lower(self) -> int:
        """Smallest possible count: 0 for even n, 1 for odd n."""
        return 2 * self.high - self.n

    @property
    def upper(self) -> int:
        """Largest possible count, ceil(n/2)."""
        return self.high

    @property
    def l1_sensitivity(self) -> int:
        """Largest change of the whole vector in L1 when one row is substituted: m, attained."""
        return self.m

    @property
    def l2_sensitivity(self) -> float:
        """Largest change of the whole vector in L2 when one row is substituted: sqrt(m), attained."""
        return math.sqrt(self.m)


STATISTICS = (QuadrantCounts.name, ConcordanceCounts.name)


def make_statistic(name: str, n: int, p: int, coarse: tuple[int, ...] = ()) -> Statistic:
    """Return the statistic called `name` for n rows and p variables.

    Parameters
    ----------
    name : {"quadrant", "concordance"}
    n, p : int
    coarse : tuple of int
        Positions of variables declared to have few levels, whose pairs are quadrant counts.

    Raises
    ------
    UnknownNameError
        If there is none of that name.
    ArgumentError
        If quadrant counts are told of coarse variables: they treat all alike.

    Examples
    --------
    >>> make_statistic("concordance", 100, 3).upper
    4950
    """
    if not isinstance(name, str) or name not in STATISTICS:
        raise UnknownNameError(
            "no such statistic", expected=" or ".join(map(repr, STATISTICS)), got=shown(name)
        )
    if name == ConcordanceCounts.name:
        return ConcordanceCounts(n, p, coarse)
    if coarse:
        raise ArgumentError(
            "quadrant counts treat coarse columns as any other",
            expected="no coarse columns, or statistic='concordance'",
            got=f"{len(coarse)} coarse column(s)",
        )
    return QuadrantCounts(n, p)
