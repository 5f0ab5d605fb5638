"""Many releases at once: tables built once for each distinct noisy count, and many posteriors per kernel call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.correlation import (
    NEGATIVE_EIGENVALUE,
    matrix_from_pairs,
    nearest_correlation,
    pair_values,
)
from dpsurvey.copula.gibbs import advance, fill
from dpsurvey.copula.inversion import InversionTable, build_inversion, draw_between
from dpsurvey.copula.jit import njit
from dpsurvey.copula.likelihood import SamplingLaw, tabulate_counts
from dpsurvey.copula.mle_nn import posterior_mean_count
from dpsurvey.copula.quadrant import QuadrantLaw
from dpsurvey.privacy.mechanisms import Mechanism

Array = NDArray[np.float64]
LEVELS = (0.025, 0.975)
BLOCK = 16  # posteriors of one kernel call; the kernel is compiled for this number of generators
WARMUP = 100  # sweeps from the identity; the slowest pair at p = 10 forgets in about 5
SWEEPS = {3: 1200, 5: 1200, 10: 1200}  # kept, one draw each; p = 2 needs none
_BATCHES = 30  # of draws, whose scatter tells how many draws are effective
_QUANTILES = 2000  # of which a mean at p = 2 is made
_MOST_POINTS = 2**22  # of tables kept for counts that may come again: about 100 MB


def high_low_counts(latent: Array) -> NDArray[np.int64]:
    """Return the quadrant counts of all pairs of columns without ties.

    Marginals are monotone in the latent normals, so these counts are those of the table itself:
    :func:`dpsurvey.confidential.counts.pair_counts` gives the same.

    Parameters
    ----------
    latent : numpy.ndarray, shape (n, p)

    Returns
    -------
    numpy.ndarray of int64, shape (p(p-1)/2,)

    Examples
    --------
    >>> high_low_counts(np.array([[1.0, 4.0], [2.0, 3.0], [3.0, 2.0], [4.0, 1.0]]))
    array([0])
    """
    n, p = latent.shape
    thresholds = np.partition(latent, n // 2, axis=0)[n // 2]
    high = (latent >= thresholds).astype(np.float64)  # a product of floats is BLAS, and exact to 2**53
    return np.asarray((high.T @ high)[np.triu_indices(p, 1)], dtype=np.int64)


class Catalogue:
    """Everything about a noisy count that can be known once and for all, for one law of counts and one mechanism.

    Geometric noise is memoryless: beyond the range of true counts every noisy count has the same likelihood as
    the end of the range, up to a constant. So quadrant counts with it have at most ``ceil(n/2) + 1`` distinct
    tables. Other tables are kept while there is room; discordant counts seldom come twice.

    Parameters
    ----------
    law : SamplingLaw
        Of a true count given the correlation of its pair.
    mechanism : Mechanism
        Whose noise has the same law for all pairs.
    """

    def __init__(self, law: SamplingLaw, mechanism: Mechanism) -> None:
        self.law = law
        self.mechanism = mechanism
        self.noise = mechanism.marginal(0)
        self._parts: dict[int, int] = {}
        self._table: InversionTable | None = None
        self._summaries: dict[int, Array] = {}
        self._estimates: dict[tuple[str, int], float] = {}

    def representative(self, noisy: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the counts that have the same likelihoods as the noisy ones, up to constants."""
        if not isinstance(self.law, QuadrantLaw) or self.mechanism.name != "geometric":
            return noisy
        return np.clip(noisy, self.law.lower, self.law.upper)

    def table(self, noisy: NDArray[np.int64]) -> tuple[InversionTable, NDArray[np.int64]]:
        """Return an inversion table and where each noisy count stands in it, adding what is missing.

        Parameters
        ----------
        noisy : numpy.ndarray of int64, any shape

        Returns
        -------
        table : InversionTable
            Of these counts and of others met before.
        which : numpy.ndarray of int64, the same shape
        """
        counts = self.representative(noisy)
        wanted = set(counts.ravel().tolist())
        if (
            not wanted <= self._parts.keys()
            and self._table is not None
            and len(self._table.points) > _MOST_POINTS
        ):
            self._table = None
            self._parts.clear()
        missing = sorted(wanted - self._parts.keys())
        if missing:
            added = build_inversion(tabulate_counts(self.law, self.noise, missing))
            self._table = added if self._table is None else _join(self._table, added)
            self._parts.update({count: len(self._parts) + i for i, count in enumerate(missing)})
        assert self._table is not None
        which = [self._parts[count] for count in counts.ravel().tolist()]
        return self._table, np.array(which, dtype=np.int64).reshape(counts.shape)

    def pair_summaries(self, noisy: NDArray[np.int64]) -> Array:
        """Return mean and 95% interval of posteriors at p = 2, each its likelihood itself: no draws.

        Parameters
        ----------
        noisy : numpy.ndarray of int64, any shape

        Returns
        -------
        numpy.ndarray, the same shape and (3,)
        """
        counts = self.representative(noisy)
        missing = sorted(set(counts.ravel().tolist()) - self._summaries.keys())
        if missing:
            table, which = self.table(np.array(missing))
            levels = np.concatenate((LEVELS, (np.arange(_QUANTILES) + 0.5) / _QUANTILES))
            for count, pair in zip(missing, which, strict=True):
                quantiles = _quantiles_of_pair(table, int(pair), levels)
                self._summaries[count] = np.array([quantiles[2:].mean(), *quantiles[:2]])
        summaries = [self._summaries[count] for count in counts.ravel().tolist()]
        return np.array(summaries).reshape(*counts.shape, 3)

    def pair_estimate(self, noisy: int, adjust: str) -> float:
        """Return the MLE of one pair, as :func:`dpsurvey.mle_nn` has it before the projection."""
        count = int(np.clip(noisy, self.law.lower, self.law.upper))
        if self.mechanism.name == "geometric" or adjust == "tgm":
            noisy = count
        if (adjust, noisy) not in self._estimates:
            adjusted = float(noisy)
            if adjust == "btgm":
                bounds = self.law.lower, self.law.upper
                adjusted = float(posterior_mean_count(np.array([noisy]), *bounds, self.noise)[0])
            self._estimates[adjust, noisy] = self.law.solve(adjusted)
        return self._estimates[adjust, noisy]


def catalogue(law: SamplingLaw, mechanism: Mechanism) -> Catalogue:
    """Return this process's catalogue for a law of counts and a mechanism, which are frozen values."""
    return _catalogue(law, mechanism)  # type: ignore[arg-type]  # the protocols do not say hashable


@lru_cache(maxsize=2)
def _catalogue(law: SamplingLaw, mechanism: Mechanism) -> Catalogue:
    return Catalogue(law, mechanism)


def posteriors(
    book: Catalogue, noisy: NDArray[np.int64], p: int, generators: Sequence[np.random.Generator]
) -> tuple[Array, Array, Array]:
    """Return Bayes-NA means and 95% intervals of many releases.

    Parameters
    ----------
    book : Catalogue
    noisy : numpy.ndarray of int64, shape (releases, p(p-1)/2)
    p : int
    generators : sequence of numpy.random.Generator, length releases
        One for each release's draws.

    Returns
    -------
    mean, lower, upper : numpy.ndarray, shape (releases, p(p-1)/2)

    Notes
    -----
    At p = 2 these are exact. Otherwise quantiles of N draws stand at plotting positions (N + 1) q, so that
    intervals cover as intended however few the draws; N counts effective draws in the tails, measured for each
    release by batch means, averaged over its pairs.
    """
    if p == 2:
        summaries = book.pair_summaries(noisy)
        return summaries[..., 0], summaries[..., 1], summaries[..., 2]
    table, which = book.table(noisy)
    mean, lower, upper = (np.empty(noisy.shape) for _ in range(3))
    for start in range(0, len(noisy), BLOCK):
        part = slice(start, min(start + BLOCK, len(noisy)))
        rows = part.stop - part.start
        padded = tuple(generators[start + min(i, rows - 1)] for i in range(BLOCK))
        _fit_block(
            table, which[part], p, WARMUP, SWEEPS[p], np.array(LEVELS), padded,
            mean[part], lower[part], upper[part],
        )  # fmt: skip
    return mean, lower, upper


def settings(p: int) -> dict[str, int | str]:
    """Return what the draws of p variables depend on, for the record."""
    sampler: dict[str, int | str] = {"sweeps": SWEEPS.get(p, 0), "warmup": WARMUP}
    return sampler | ({"intervals": "effective draws by batch means"} if p > 3 else {})


def draws(book: Catalogue, noisy: NDArray[np.int64], p: int, rng: np.random.Generator) -> Array:
    """Return draws of one Bayes-NA posterior, shape (draws, p, p)."""
    table, which = book.table(noisy)
    kept = np.empty((SWEEPS[p], p, p))
    fill_product(gather(table, which), WARMUP, rng, kept)
    return kept


def summarise(values: Array) -> Array:
    """Return mean and 95% interval of draws of several quantities, at plotting positions of effective draws.

    Parameters
    ----------
    values : numpy.ndarray, shape (draws, quantities)

    Returns
    -------
    numpy.ndarray, shape (3, quantities)
    """
    columns = np.ascontiguousarray(values.T)
    ordered = np.sort(columns, axis=1)
    effective = _effective(columns, ordered, np.array(LEVELS))
    ends = [[_quantile(row, level, effective) for row in ordered] for level in LEVELS]
    return np.array([columns.mean(axis=1), *ends])


def estimates(book: Catalogue, noisy: NDArray[np.int64], p: int, adjust: str) -> Array:
    """Return MLE-NN's correlation of every pair for many releases; see :func:`dpsurvey.mle_nn`.

    Parameters
    ----------
    book : Catalogue
    noisy : numpy.ndarray of int64, shape (releases, p(p-1)/2)
    p : int
    adjust : {"btgm", "tgm"}

    Returns
    -------
    numpy.ndarray, shape (releases, p(p-1)/2)
    """
    single = np.array([[book.pair_estimate(int(c), adjust) for c in row] for row in noisy])
    return single if p == 2 else project(single, p)


def project(pairs: Array, p: int) -> Array:
    """Replace each row of pair estimates by the nearest correlation matrix's where it is not one already."""
    matrices = matrix_from_pairs(pairs, p)
    projected = pairs.copy()
    for i in np.flatnonzero(np.linalg.eigvalsh(matrices)[:, 0] < NEGATIVE_EIGENVALUE):
        projected[i] = pair_values(nearest_correlation(matrices[i], tol=1e-8))
    return projected


def _join(first: InversionTable, second: InversionTable) -> InversionTable:
    """Return one table of the pairs of both."""
    size = len(first.points)
    return InversionTable(
        points=np.concatenate((first.points, second.points)),
        logs=np.concatenate((first.logs, second.logs)),
        cumulative=np.concatenate((first.cumulative, second.cumulative)),
        at_mode=np.concatenate((first.at_mode, second.at_mode)),
        mode=np.concatenate((first.mode, second.mode + size)),
        offsets=np.concatenate((first.offsets, second.offsets[1:] + size)),
        cdf=np.concatenate((first.cdf, second.cdf)),
        guide=np.concatenate((first.guide, second.guide)),
    )


@njit
def gather(table: InversionTable, which: NDArray[np.int64]) -> InversionTable:
    """Return the table of one release's pairs, side by side in memory."""
    m = which.shape[0]
    offsets = np.zeros(m + 1, dtype=np.int64)
    for i in range(m):
        offsets[i + 1] = offsets[i] + table.offsets[which[i] + 1] - table.offsets[which[i]]
    points, logs = np.empty(offsets[m]), np.empty(offsets[m])
    cumulative, cdf = np.empty(offsets[m]), np.empty(offsets[m])
    at_mode, mode = np.empty((m, 2)), np.empty(m, dtype=np.int64)
    for i in range(m):
        start, stop = table.offsets[which[i]], table.offsets[which[i] + 1]
        points[offsets[i] : offsets[i + 1]] = table.points[start:stop]
        logs[offsets[i] : offsets[i + 1]] = table.logs[start:stop]
        cumulative[offsets[i] : offsets[i + 1]] = table.cumulative[start:stop]
        cdf[offsets[i] : offsets[i + 1]] = table.cdf[start:stop]
        at_mode[i] = table.at_mode[which[i]]
        mode[i] = table.mode[which[i]] - start + offsets[i]
    return InversionTable(points, logs, cumulative, at_mode, mode, offsets, cdf, table.guide[which])


@njit
def fill_product(own: InversionTable, warmup: int, rng: np.random.Generator, kept: Array) -> None:
    """Fill `kept` with one draw a sweep of the product posterior, from the identity after the warm-up."""
    R = np.eye(kept.shape[1])
    advance(own, R, warmup, False, rng)
    fill(own, R, kept, 1, False, rng)


@njit
def _fit_block(
    table: InversionTable,
    which: NDArray[np.int64],
    p: int,
    warmup: int,
    sweeps: int,
    levels: Array,
    generators: tuple[np.random.Generator, ...],
    mean: Array,
    lower: Array,
    upper: Array,
) -> None:
    """Write means and intervals of up to :data:`BLOCK` posteriors."""
    kept, values = np.empty((sweeps, p, p)), np.empty((which.shape[1], sweeps))
    for release in range(which.shape[0]):
        fill_product(gather(table, which[release]), warmup, generators[release], kept)
        pair = 0
        for j in range(p):
            for k in range(j + 1, p):
                values[pair] = kept[:, j, k]
                pair += 1
        ordered = np.empty(values.shape)
        for pair in range(values.shape[0]):
            ordered[pair] = np.sort(values[pair])
            mean[release, pair] = values[pair].mean()
        effective = _effective(values, ordered, levels)
        for pair in range(values.shape[0]):
            lower[release, pair] = _quantile(ordered[pair], levels[0], effective)
            upper[release, pair] = _quantile(ordered[pair], levels[1], effective)


@njit
def _effective(values: Array, ordered: Array, levels: Array) -> float:
    """Return the number of independent draws that know the tails as well, at most the number of draws.

    Shares of draws beyond a quantile scatter between batches of a chain as those of independent draws would,
    times the ratio of draws to effective draws.
    """
    draws = values.shape[1]
    size = draws // _BATCHES
    excess, expected = 0.0, 0.0
    for pair in range(values.shape[0]):
        for level in levels:
            cut = ordered[pair, int(level * draws)]
            shares = np.empty(_BATCHES)
            for batch in range(_BATCHES):
                shares[batch] = np.mean(values[pair, batch * size : (batch + 1) * size] < cut)
            centre = shares.mean()
            excess += np.sum((shares - centre) ** 2) / (_BATCHES - 1)
            expected += centre * (1.0 - centre) / size
    return float(draws / max(excess / expected, 1.0))


@njit
def _quantile(ordered: Array, level: float, effective: float) -> float:
    """Return the quantile of ordered draws at plotting position (N + 1) level of N effective draws.

    Each draw stands for 1/draws of the mass, half of it on either side.
    """
    draws = ordered.shape[0]
    share = ((effective + 1.0) * level - 0.5) / effective
    place = min(max(share * draws - 0.5, 0.0), draws - 1.0)
    below = min(int(place), draws - 2)
    return float(ordered[below] + (place - below) * (ordered[below + 1] - ordered[below]))


@njit
def _quantiles_of_pair(table: InversionTable, pair: int, levels: Array) -> Array:
    values = np.empty(levels.shape[0])
    for i in range(levels.shape[0]):
        values[i] = draw_between(table, pair, -1.0, 1.0, levels[i])
    return values
