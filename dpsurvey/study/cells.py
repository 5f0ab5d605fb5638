"""A cell of a study, and the random streams of its runs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpsurvey.privacy.mechanisms import Mechanism, build_mechanism
from dpsurvey.privacy.statistics import make_statistic
from dpsurvey.study.designs import Design, find_design


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One setting of a study, to be run many times.

    Parameters
    ----------
    design : str
    p, n : int
        Variables and rows.
    epsilon : float
    method : str
        A name in :data:`dpsurvey.study.methods.METHODS`.

    Examples
    --------
    >>> Cell("continuous", 5, 200, 0.5, "Bayes-NA").name
    'continuous_p5_n200_eps0.5_Bayes-NA'
    """

    design: str
    p: int
    n: int
    epsilon: float
    method: str

    @property
    def name(self) -> str:
        """Short name, fit for a file."""
        return f"{self.setting}_{self.method.replace(' ', '-')}"

    @property
    def setting(self) -> str:
        """The cell without its method: methods of one setting meet the same rows and the same noise."""
        return f"{self.design}_p{self.p}_n{self.n}_eps{self.epsilon:g}"

    @property
    def m(self) -> int:
        """Number of pairs."""
        return self.p * (self.p - 1) // 2

    def find_design(self) -> Design:
        """Return how the rows are drawn."""
        return find_design(self.design, self.p)

    def mechanism(self, name: str = "geometric", statistic: str = "quadrant") -> Mechanism:
        """Return the mechanism that adds noise to the counts; by default the paper's."""
        return build_mechanism(name, make_statistic(statistic, self.n, self.p), self.epsilon)


class Streams(NamedTuple):
    """Independent generators of one run, by what they are for."""

    rows: np.random.Generator
    noise: np.random.Generator
    draws: np.random.Generator
    keys: np.random.Generator
    li_kendall: np.random.Generator
    asghar: np.random.Generator
    range_preserving: np.random.Generator


def streams(cell: Cell, run: int, seed: int) -> Streams:
    """Return the generators of one run of a cell.

    They are children of ``SeedSequence(seed)`` with a spawn key made of the cell's setting and the run, so a run's
    numbers depend on nothing else: not on the order of cells, how runs are shared out, or how many there are.
    The method is left out of the key: methods of one setting see the same rows, and those that use a release the
    same release.

    Parameters
    ----------
    cell : Cell
    run : int
        From 0.
    seed : int

    Returns
    -------
    Streams

    Examples
    --------
    >>> cell = Cell("continuous", 2, 50, 1.0, "Bayes-NA")
    >>> streams(cell, 3, 1).rows.random() == streams(cell, 3, 1).rows.random()
    True
    """
    digest = hashlib.sha256(cell.setting.encode()).digest()
    words = tuple(int.from_bytes(digest[i : i + 4], "little") for i in (0, 4, 8, 12))
    children = np.random.SeedSequence(seed, spawn_key=(*words, run)).spawn(len(Streams._fields))
    return Streams(*map(np.random.default_rng, children))
