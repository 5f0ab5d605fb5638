"""The methods of the studies: from a cell and some of its runs to estimates and intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsurvey.confidential.counts import pair_counts
from dpsurvey.confidential.discordance import count_discordances, discordant_counts
from dpsurvey.confidential.ties import TieKeys
from dpsurvey.copula.likelihood import LAWS
from dpsurvey.study import batch, regressions
from dpsurvey.study.cells import Cell, Streams, streams
from dpsurvey.study.joint_fit import fit

Array = NDArray[np.float64]


class Simulated(NamedTuple):
    """One simulated survey: its correlation matrix, latent normals, and generators."""

    R: Array
    latent: Array
    streams: Streams


class Answers(NamedTuple):
    """What a method says: arrays of shape (runs, quantities); intervals are NaN for point estimates.

    Quantities are the correlations of all pairs in the order of ``numpy.triu_indices(p, 1)``, then whatever else the
    method estimates.
    """

    truth: Array
    estimate: Array
    lower: Array
    upper: Array


def simulate(cell: Cell, run: int, seed: int) -> Simulated:
    """Draw one run's correlations and rows."""
    generators = streams(cell, run, seed)
    return Simulated(*cell.find_design().draw(cell.n, generators.rows), generators)


def true_counts(cell: Cell, survey: Simulated, statistic: str = "quadrant") -> NDArray[np.int64]:
    """Return the counts of a simulated survey, straight from the latent normals where there are no ties."""
    design, quadrants = cell.find_design(), statistic == "quadrant"
    if not design.discrete:
        if quadrants:
            return batch.high_low_counts(survey.latent)
        return count_discordances(list(np.argsort(survey.latent, axis=0).T))
    keys = TieKeys(int(survey.streams.keys.integers(2**63)))  # new keys every run: results average over keys
    count = pair_counts if quadrants else discordant_counts
    return count(design.table(survey.latent), design.variables, keys)


def answer(cell: Cell, runs: range, seed: int) -> pd.DataFrame:
    """Run a cell's method on the given runs.

    Parameters
    ----------
    cell : Cell
    runs : range
    seed : int

    Returns
    -------
    pandas.DataFrame
        Columns ``run``, ``quantity``, ``truth``, ``estimate``, ``lower``, ``upper``.
    """
    surveys = [simulate(cell, run, seed) for run in runs]
    answers = METHODS[cell.method](cell, surveys)
    quantities = answers.truth.shape[1]
    return pd.DataFrame(
        {
            "run": np.repeat(np.array(runs, dtype=np.int32), quantities),
            "quantity": np.tile(np.arange(quantities, dtype=np.int16), len(runs)),
            **{name: values.ravel() for name, values in answers._asdict().items()},
        }
    )


def noisy_counts(
    cell: Cell, surveys: Sequence[Simulated], book: batch.Catalogue, stream: str = "noise"
) -> NDArray[np.int64]:
    """Return one release of every survey, shape (runs, pairs)."""
    return np.array(
        [
            book.mechanism.simulate(
                true_counts(cell, survey, book.law.statistic), getattr(survey.streams, stream)
            )
            for survey in surveys
        ]
    )


def _truth(cell: Cell, surveys: Sequence[Simulated]) -> Array:
    rows, columns = np.triu_indices(cell.p, 1)
    return np.array([survey.R[rows, columns] for survey in surveys])


def _points(truth: Array, estimate: Array) -> Answers:
    nothing = np.full(truth.shape, np.nan)
    return Answers(truth, estimate, nothing, nothing)


def book_of(cell: Cell, statistic: str = "quadrant", mechanism: str = "geometric") -> batch.Catalogue:
    """Return the catalogue of a cell's counts under a statistic and a mechanism; by default the paper's."""
    return batch.catalogue(LAWS[statistic](cell.n), cell.mechanism(mechanism, statistic))


def _bayes_na(statistic: str, mechanism: str) -> Callable[[Cell, Sequence[Simulated]], Answers]:
    def run(cell: Cell, surveys: Sequence[Simulated]) -> Answers:
        book = book_of(cell, statistic, mechanism)
        noisy = noisy_counts(cell, surveys, book)
        generators = [survey.streams.draws for survey in surveys]
        return Answers(_truth(cell, surveys), *batch.posteriors(book, noisy, cell.p, generators))

    return run


def _regression(statistic: str) -> Callable[[Cell, Sequence[Simulated]], Answers]:
    def run(cell: Cell, surveys: Sequence[Simulated]) -> Answers:
        book = book_of(cell, statistic, "linf")
        truth = np.array([survey.R for survey in surveys])
        generators = [survey.streams.draws for survey in surveys]
        return Answers(*regressions.fit(book, truth, noisy_counts(cell, surveys, book), generators))

    return run


def _mle_nn(adjust: str, mechanism: str, stream: str) -> Callable[[Cell, Sequence[Simulated]], Answers]:
    def run(cell: Cell, surveys: Sequence[Simulated]) -> Answers:
        book = book_of(cell, mechanism=mechanism)
        noisy = noisy_counts(cell, surveys, book, stream)
        return _points(_truth(cell, surveys), batch.estimates(book, noisy, cell.p, adjust))

    return run


def _li_kendall(cell: Cell, surveys: Sequence[Simulated]) -> Answers:
    from dpsurvey.baselines.li_kendall import li_kendall

    design, pairs = cell.find_design(), np.triu_indices(cell.p, 1)
    fits = [
        li_kendall(design.table(survey.latent), cell.epsilon, insecure_rng=survey.streams.li_kendall).R[pairs]
        for survey in surveys
    ]
    return _points(_truth(cell, surveys), np.array(fits))


def _asghar(cell: Cell, surveys: Sequence[Simulated]) -> Answers:
    from dpsurvey.baselines.asghar import asghar_dpc

    design, pairs = cell.find_design(), np.triu_indices(cell.p, 1)
    thresholds = {name: round(median, 2) for name, median in design.medians.items()}
    fits = [
        asghar_dpc(
            design.table(survey.latent),
            cell.epsilon,
            thresholds=thresholds,
            insecure_rng=survey.streams.asghar,
        ).R[pairs]
        for survey in surveys
    ]
    return _points(_truth(cell, surveys), np.array(fits))


def _joint3(joint: bool) -> Callable[[Cell, Sequence[Simulated]], Answers]:
    def run(cell: Cell, surveys: Sequence[Simulated]) -> Answers:
        book = book_of(cell)
        truth = np.array([survey.R for survey in surveys])
        generators = [survey.streams.draws for survey in surveys]
        return Answers(*fit(book, truth, noisy_counts(cell, surveys, book), generators, joint=joint))

    return run


METHODS: dict[str, Callable[[Cell, Sequence[Simulated]], Answers]] = {
    "Bayes-NA": _bayes_na("quadrant", "geometric"),
    "Bayes-NA linf": _bayes_na("quadrant", "linf"),
    "Bayes-NA concordance": _bayes_na("concordance", "linf"),
    "Regression linf": _regression("quadrant"),
    "Regression concordance": _regression("concordance"),
    "MLE-NN": _mle_nn("btgm", "geometric", "noise"),
    "MLE-NN TGM": _mle_nn("tgm", "geometric", "noise"),
    "MLE-NN RGM": _mle_nn("tgm", "rgm", "range_preserving"),
    "Li-Kendall": _li_kendall,
    "Asghar-dpc": _asghar,
    "Composite": _joint3(joint=False),
    "Joint": _joint3(joint=True),
}
