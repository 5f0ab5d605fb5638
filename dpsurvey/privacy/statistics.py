"""The statistics that can be released: their ranges and how far one person can move them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dpsurvey.errors import UnknownNameError
from dpsurvey.texts import shown

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


STATISTICS = {QuadrantCounts.name: QuadrantCounts}


def make_statistic(name: str, n: int, p: int) -> QuadrantCounts:
    """Return the statistic called `name` for n rows and p variables.

    Raises
    ------
    UnknownNameError
        If there is none of that name.
    """
    if not isinstance(name, str) or name not in STATISTICS:
        raise UnknownNameError(
            "no such statistic", expected=" or ".join(map(repr, STATISTICS)), got=shown(name)
        )
    return STATISTICS[name](n, p)
