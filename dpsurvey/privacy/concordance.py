"""Concordance counts: the discordant pairs of rows of every pair of variables, and how far one row moves them.

For variables j and k, D_jk counts the pairs of rows that j orders one way and k the other. Ties in a variable are
broken by fixed keys, so each variable is a strict order, D_jk lies in 0..n(n-1)/2 and Kendall's
tau is ``1 - 4 D / (n(n-1))``.

*Sensitivity.* Substituting row i changes the order of a pair of rows only if i is one of the two, since keys of
other rows stay: n - 1 pairs of rows, so |dD_jk| <= n - 1, attained when row i goes from one end of j to the other.
For the whole vector take one other row r: substituting i flips the order of i and r in some a of the p variables,
and then exactly the a(p-a) pairs of variables with one of them among the a change from concordant to discordant
or back. So the L1 change is at most ``(n-1) max a(p-a) = (n-1) floor(p^2/4)``, and the
L2 change at most the root of ``max |dD| * sum |dD| <= (n-1)^2 floor(p^2/4)``; both attained.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class ConcordanceCounts:
    """Discordant pairs of rows D_jk of every pair of variables; some pairs may be quadrant counts instead.

    Parameters
    ----------
    n : int
        Number of rows, public.
    p : int
        Number of variables.
    coarse : tuple of int
        Positions of variables declared to have few levels: concordance attenuates their correlations most, so
        pairs with one of them are median-quadrant counts (:class:`~dpsurvey.privacy.statistics.QuadrantCounts`).

    Examples
    --------
    >>> counts = ConcordanceCounts(n=100, p=3)
    >>> counts.sensitivities, counts.upper, counts.l1_sensitivity
    ((99, 99, 99), 4950, 198)
    >>> ConcordanceCounts(n=100, p=3, coarse=(2,)).kinds
    ('concordance', 'quadrant', 'quadrant')
    """

    name: ClassVar[str] = "concordance"
    n: int
    p: int
    coarse: tuple[int, ...] = ()

    @property
    def m(self) -> int:
        """Number of pairs, p(p-1)/2."""
        return self.p * (self.p - 1) // 2

    @property
    def kinds(self) -> tuple[str, ...]:
        """What is counted for each pair, in the order of ``numpy.triu_indices(p, 1)``."""
        few = set(self.coarse)
        return tuple(
            "quadrant" if j in few or k in few else self.name
            for j in range(self.p)
            for k in range(j + 1, self.p)
        )

    @property
    def sensitivity(self) -> int:
        """How far one row moves one discordant count: n - 1, attained."""
        return self.n - 1

    @property
    def sensitivities(self) -> tuple[int, ...]:
        """How far one row moves each count: n - 1, or 1 for a quadrant count; each attained."""
        return tuple(1 if kind == "quadrant" else self.n - 1 for kind in self.kinds)

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """Smallest and largest possible value of each count; quadrant counts go from n mod 2 to ceil(n/2)."""
        quadrant, own = (self.n % 2, (self.n + 1) // 2), (self.lower, self.upper)
        return tuple(quadrant if kind == "quadrant" else own for kind in self.kinds)

    @property
    def lower(self) -> int:
        """Smallest discordant count, 0."""
        return 0

    @property
    def upper(self) -> int:
        """Largest discordant count, n(n-1)/2."""
        return self.n * (self.n - 1) // 2

    @property
    def l1_sensitivity(self) -> int:
        """Largest change of the whole vector in L1: (n-1) floor(p^2/4); for vectors of one kind."""
        return (self.n - 1) * (self.p**2 // 4)

    @property
    def l2_sensitivity(self) -> float:
        """Largest change of the whole vector in L2: (n-1) sqrt(floor(p^2/4)); for vectors of one kind."""
        return (self.n - 1) * math.sqrt(self.p**2 // 4)
