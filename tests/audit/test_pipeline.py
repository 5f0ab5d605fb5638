"""The whole door under audit: ``dpsurvey.release`` on two tables that differ in one row.

Statistic, ties, domain checks, calibration and noise are all in it. The neighbours are as far apart as one row can
move them. A door that is broken on purpose is caught. 10,000 runs always, 100,000 behind the marker.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import dpsurvey as dps
from dpsurvey.confidential import disclose
from dpsurvey.confidential.counts import pair_counts
from dpsurvey.confidential.discordance import discordant_counts
from dpsurvey.privacy.statistics import Statistic, make_statistic

NAMES = ("x", "y", "z")
ALIKE = (
    (0, 0, 2),
    (1, 2, 1),
    (2, 1, 0),
    (3, 3, 3),
    (4, 4, 4),
    (5, 5, 5),
)  # who moves up differs below the median
UNLIKE = ((2, 3, 2), (1, 4, 5), (0, 1, 0), (4, 5, 3), (3, 2, 4), (5, 0, 1))
pytestmark = pytest.mark.filterwarnings("ignore::dpsurvey.errors.NoLedgerWarning")
Counts = NDArray[np.int64]


class Door(NamedTuple):
    """Options of a release, a table, the row that is substituted for its last one, and how that moves the counts."""

    options: dict[str, Any]
    rows: tuple[tuple[int, ...], ...]
    other: tuple[int, ...]
    change: tuple[int, ...]

    def __str__(self) -> str:
        few = f"-coarse={','.join(self.options['coarse'])}" if "coarse" in self.options else ""
        return f"{self.options['statistic']}-{self.options['mechanism']}{few}"

    @property
    def statistic(self) -> Statistic:
        """Its kinds and sensitivities."""
        few = tuple(NAMES.index(name) for name in self.options.get("coarse", ()))
        return make_statistic(self.options["statistic"], len(self.rows), 3, few)

    def tables(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the two neighbours, with the ids of persons."""
        ids = pd.Index(range(100, 100 + len(self.rows)), name="SEQN")
        both = (self.rows, (*self.rows[:-1], self.other))
        here, there = (
            pd.DataFrame(np.array(rows, dtype=float), columns=list(NAMES), index=ids) for rows in both
        )
        return here, there

    def counts(self, table: pd.DataFrame) -> Counts:
        """Return the true counts of a table."""
        quadrants, discordant = (
            count(table, NAMES, dps.TieKeys()) for count in (pair_counts, discordant_counts)
        )
        return np.where(np.array(self.statistic.kinds) == "quadrant", quadrants, discordant)


DOORS = [
    Door({"statistic": "quadrant", "mechanism": "geometric"}, ALIKE, (-1, -1, 5), (-1, -1, -1)),
    Door({"statistic": "concordance", "mechanism": "linf"}, ALIKE, (-1, 5, 5), (5, 5, 0)),
    Door(
        {"statistic": "concordance", "mechanism": "linf", "coarse": ["z"]}, UNLIKE, (-1, -1, 6), (-5, -1, -1)
    ),
    Door({"statistic": "quadrant", "mechanism": "gaussian", "delta": 0.05}, ALIKE, (-1, -1, 5), (-1, -1, -1)),
]


@pytest.mark.parametrize("door", DOORS, ids=str)
def test_the_neighbours_are_as_far_apart_as_one_row_can_move_them(door: Door) -> None:
    here, there = door.tables()
    assert (here != there).any(axis=1).sum() == 1
    change = door.counts(there) - door.counts(here)
    assert tuple(change.tolist()) == door.change
    assert np.abs(change / door.statistic.sensitivities).max() == 1.0


@pytest.fixture
def bound(
    epsilon_bound: Callable[..., float], scores: Callable[..., NDArray[np.float64]]
) -> Callable[..., float]:
    """Return the audit of the door: a lower bound on epsilon from releases of two neighbours."""

    def audit(door: Door, epsilon: float, runs: int) -> float:
        tables = door.tables()
        here, there = map(door.counts, tables)
        seen = []
        for table in tables:
            released = [dps.release(table, epsilon, **door.options) for _ in range(runs // 2)]
            assert all(one.secure for one in released)
            seen.append(
                scores(
                    np.array([one.counts for one in released]),
                    here,
                    there,
                    np.array(door.statistic.sensitivities),
                )
            )
        return epsilon_bound(*seen, delta=door.options.get("delta", 0.0))

    return audit


@pytest.mark.parametrize("runs", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("door", DOORS, ids=str)
def test_no_event_proves_more_than_epsilon(
    door: Door, runs: int, bound: Callable[..., float], note: Callable[..., None]
) -> None:
    found = bound(door, 1.0, runs)
    note(mechanism=door.options["mechanism"], statistic=repr(door.statistic), delta=door.options.get("delta", 0.0),
         claim=1.0, runs=runs, door="release", bound=found)  # fmt: skip
    assert found <= 1.0


def test_ties_broken_without_keys_are_caught(
    epsilon_bound: Callable[..., float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rows at or above the median are high, however many: one row then moves each count by half the table."""

    def unkeyed(table: pd.DataFrame, names: tuple[str, ...], keys: dps.TieKeys) -> Counts:
        values = table[list(names)].to_numpy()
        high = (values >= np.median(values, axis=0)).astype(int)
        return (high.T @ high)[np.triu_indices(len(names), 1)]

    monkeypatch.setattr(disclose, "pair_counts", unkeyed)
    options = DOORS[0].options
    tables = Door(options, ((0, 0, 0),) * 6 + ((1, 1, 1),) * 6, (0, 0, 0), ()).tables()
    sums = [
        np.array([[float(dps.release(table, 1.0, **options).noisy.sum())] for _ in range(1500)])
        for table in tables
    ]
    assert epsilon_bound(*sums) > 1.0


# --- one seed on two neighbours


@pytest.mark.parametrize("door", DOORS, ids=str)
def test_one_seed_on_two_neighbours_gives_one_row_away_and_the_release_says_that_it_is_insecure(
    door: Door,
) -> None:
    """With the noise known the difference of two releases is that of the rows: for simulations alone."""
    tables = door.tables()
    released = [
        dps.release(table, 1.0, insecure_rng=np.random.default_rng(7), **door.options) for table in tables
    ]
    assert tuple((released[1].noisy - released[0].noisy).tolist()) == door.change
    for one in released:
        assert not one.secure
        assert "INSECURE noise (simulation)" in repr(one)
        assert "protects nobody" in one.statement()
        assert json.loads(json.dumps(one.to_dict()))["secure"] is False
        assert "INSECURE" in repr(dps.Release.from_dict(one.to_dict()))


def test_no_seed_but_a_generator_that_is_called_insecure_makes_noise_repeat() -> None:
    """Neither numpy's nor Python's global seed, nor an integer, nor the old generator of numpy."""
    import random

    table, _ = DOORS[0].tables()
    seen = set()
    for _ in range(4):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002  the global generator that noise must not come from
        seen.add(dps.release(table, 0.001, statistic="quadrant", mechanism="geometric").counts)
    assert len(seen) == 4  # three counts with noise of sd 4000 each
    for seed in (1, np.random.RandomState(1), np.random.default_rng(1).bit_generator, "1"):
        with pytest.raises(dps.errors.ArgumentTypeError, match="insecure_rng"):
            dps.release(table, 1.0, insecure_rng=seed)
