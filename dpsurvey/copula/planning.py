"""Planning before any data are touched: how long intervals will be, and the epsilon or n for a wanted length.

The expected length averages, over R from the prior, the length of the 95% interval of one correlation given its own
noisy count and its marginal prior. With p > 2 the other correlations narrow it through the bounds of the positive
definite set. With x the length as a share of the prior's, that takes off about ``c (1 - 1.6/p) 4 x (1 - x)`` of it; c
is larger the longer the tails of the count's error, since bounds help most where it is far off. The constants are
those of simulations with independent errors of three shapes (``benchmarks/planning.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsurvey.copula.correlation import prior_interval_length
from dpsurvey.copula.likelihood import LAWS, SamplingLaw, tabulate_counts
from dpsurvey.copula.quadrant import correlation, log_odds
from dpsurvey.errors import ArgumentError, ArgumentTypeError, UnknownNameError
from dpsurvey.privacy.budget import check_amount, check_delta
from dpsurvey.privacy.mechanisms import MECHANISMS, NoiseLaw, build_mechanism
from dpsurvey.privacy.statistics import STATISTICS, Statistic, make_statistic
from dpsurvey.texts import shown

PURE = ("linf", "geometric", "rgm")  # mechanisms of pure epsilon, in the order of preference
PREFERRED = ("concordance", "quadrant")  # statistics, likewise
_TAILS = (-1.2, 0.0, 3.0)  # excess kurtosis of an error: uniform, normal, two-sided exponential,
_NARROWING = (0.050, 0.067, 0.090)  # and c for each
_FROM_P = 1.6
_CORRELATIONS, _ERRORS, _POINTS = 6, 5, 400  # values averaged over, and points of a posterior
_QUICK = (3, 3, 200)  # the same where only the order of methods matters
_LITTLE, _FAR, _MOST_STEPS = (
    0.3,
    25.0,
    20_000,
)  # standard deviations of noise that are summed over, and how finely
_CLEARLY = 0.99  # a method counts as better than a preferred one below this share of its length
_SMALLEST_EPSILON, _LARGEST_EPSILON = 1e-3, 100.0
_SMALLEST_N, _LARGEST_N = 10, 10_000_000

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a release would give, by public numbers alone: no data have been looked at.

    Parameters
    ----------
    n, p : int
        Rows and variables.
    epsilon, delta : float
    statistic, mechanism : str
        Of the release that is planned.
    length : float
        Expected length of a 95% interval, averaged over R from LKJ(1) and over pairs.
    mae : float
        Expected absolute error of a posterior mean, likewise.
    coarse : int
        Number of columns declared to have few levels.

    Examples
    --------
    >>> made = plan(1000, 2, epsilon=1.0)
    >>> made.statistic, made.mechanism, made.length < 0.1 < made.prior_length
    ('concordance', 'linf', True)
    """

    n: int
    p: int
    epsilon: float
    delta: float
    statistic: str
    mechanism: str
    length: float
    mae: float
    coarse: int = 0

    @property
    def prior_length(self) -> float:
        """Length of a 95% interval without any data."""
        return prior_interval_length(self.p)

    def to_frame(self) -> pd.DataFrame:
        """Return the plan as a table of one row."""
        return pd.DataFrame([asdict(self)])

    def __repr__(self) -> str:
        delta = f", delta = {self.delta:g}" if self.delta else ""
        few = f", {self.coarse} of them coarse" if self.coarse else ""
        return (
            f"<Plan: n = {self.n}, p = {self.p}{few}, epsilon = {self.epsilon:g}{delta}, {self.statistic} counts with "
            f"{self.mechanism} noise: 95% intervals of length {self.length:.3f} (without data "
            f"{self.prior_length:.3f}), mean absolute error {self.mae:.3f}; looked at no data>"
        )


def plan(
    n: int | None = None,
    p: int | None = None,
    *,
    epsilon: float | None = None,
    length: float | None = None,
    statistic: str = "auto",
    mechanism: str = "auto",
    delta: float = 0.0,
    coarse: int = 0,
) -> Plan:
    """Return the expected interval length and error of a release, before any data are touched.

    Give two of `n`, `epsilon` and `length`; the third is found. It uses public numbers alone, so it costs no privacy.

    Parameters
    ----------
    n : int, optional
        Number of rows.
    p : int
        Number of variables.
    epsilon : float, optional
        Privacy loss of the release.
    length : float, optional
        Wanted mean length of 95% intervals.
    statistic : {"auto", "concordance", "quadrant"}
        "auto" takes what gives the shortest intervals.
    mechanism : {"auto", "linf", "geometric", "rgm", "gaussian"}
        "auto" takes the best of those with pure epsilon, or "gaussian" too where delta is above 0.
    delta : float, default 0
        For mechanism "gaussian".
    coarse : int, default 0
        How many columns are declared to have few levels.

    Returns
    -------
    Plan

    Raises
    ------
    ArgumentError, ArgumentTypeError, UnknownNameError
        If the arguments are not two of the three, or out of range; or if no epsilon up to 100, or no n up to ten
        million, gives intervals of the wanted length.

    Notes
    -----
    Within 7% of the lengths simulated at the paper's settings, with R ~ LKJ(1) and continuous columns. Ties at
    few levels, and data that are no Gaussian copula, are not in it.

    Examples
    --------
    >>> plan(500, 5, epsilon=1.0, statistic="quadrant", mechanism="geometric").length.__round__(2)
    0.61
    >>> plan(500, 5, epsilon=1.0).length < 0.35
    True
    """
    if p is None:
        raise ArgumentTypeError("p is not given", expected="the number of variables, 2 or more")
    for name, value, least in (("p", p, 2), ("n", n, 4), ("coarse", coarse, 0)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise ArgumentTypeError(f"{name} is not an integer", got=type(value).__name__)
        if value is not None and value < least:
            raise ArgumentError(f"{name} is too small", expected=f"{least} or more", got=str(value))
    if coarse > p:
        raise ArgumentError(
            "there are more coarse columns than columns", expected=f"at most {p}", got=str(coarse)
        )
    delta = check_delta(delta)
    epsilon = None if epsilon is None else check_amount(epsilon)
    wanted = None if length is None else _check_length(length, p)
    options = (statistic, mechanism, delta, coarse)
    if n is not None and epsilon is not None and wanted is None:
        return best_plan(n, p, epsilon, *options)
    if n is not None and epsilon is None and wanted is not None:
        method = choose(n, p, 1.0, *options)
        found = _search(
            lambda e, quick: expected(n, p, e, *method, delta, coarse, quick=quick)[0],
            wanted, _SMALLEST_EPSILON, _LARGEST_EPSILON,
        )  # fmt: skip
        return best_plan(n, p, float(f"{found:.3g}"), *method, delta, coarse)
    if n is None and epsilon is not None and wanted is not None:
        method = choose(1000, p, epsilon, *options)
        rows = _search(
            lambda r, quick: expected(round(r), p, epsilon, *method, delta, coarse, quick=quick)[0],
            wanted, _SMALLEST_N, _LARGEST_N,
        )  # fmt: skip
        return best_plan(math.ceil(float(f"{rows:.3g}")), p, epsilon, *method, delta, coarse)
    raise ArgumentError(
        "a plan needs two of n, epsilon and length",
        expected="n and epsilon; n and length; or epsilon and length",
        got=", ".join(k for k, v in (("n", n), ("epsilon", epsilon), ("length", length)) if v is not None)
        or "none",
    )


def plan_table(n: int, p: int, *, epsilon: float, delta: float = 0.0, coarse: int = 0) -> pd.DataFrame:
    """Return the plans of every statistic and mechanism at these public numbers, best first.

    Parameters
    ----------
    n, p : int
    epsilon, delta : float
    coarse : int

    Returns
    -------
    pandas.DataFrame
        Columns ``statistic, mechanism, length, mae``.

    Examples
    --------
    >>> plan_table(1000, 2, epsilon=1.0)["statistic"].tolist()[:2]
    ['concordance', 'concordance']
    """
    rows = [
        (s, m, *expected(n, p, epsilon, s, m, delta, coarse))
        for s, m in candidates("auto", "auto", p, delta, coarse, every=True)
    ]
    frame = pd.DataFrame(rows, columns=["statistic", "mechanism", "length", "mae"])
    return frame.sort_values("length", kind="stable", ignore_index=True)


def best_plan(
    n: int, p: int, epsilon: float, statistic: str, mechanism: str, delta: float, coarse: int
) -> Plan:
    """Return the plan of the named statistic and mechanism, "auto" replaced by what :func:`choose` takes."""
    statistic, mechanism = choose(n, p, epsilon, statistic, mechanism, delta, coarse)
    length, mae = expected(n, p, epsilon, statistic, mechanism, delta, coarse)
    return Plan(
        n, p, epsilon, delta if mechanism == "gaussian" else 0.0, statistic, mechanism, length, mae, coarse
    )


def choose(
    n: int, p: int, epsilon: float, statistic: str, mechanism: str, delta: float = 0.0, coarse: int = 0
) -> tuple[str, str]:
    """Return the statistic and mechanism with the shortest expected intervals, "auto" being free.

    A preferred method is left only for one that is clearly better, so that the choice does not hang on rounding.

    Examples
    --------
    >>> choose(500, 5, 1.0, "auto", "auto")
    ('concordance', 'linf')
    >>> choose(500, 5, 1.0, "quadrant", "geometric")
    ('quadrant', 'geometric')
    """
    options = candidates(statistic, mechanism, p, delta, coarse)
    best, shortest = options[0], math.inf
    if len(options) == 1:
        return best
    for option in options:
        length, _ = expected(n, p, epsilon, *option, delta, coarse, quick=True)
        if length < _CLEARLY * shortest:
            best, shortest = option, length
    return best


def candidates(
    statistic: str, mechanism: str, p: int, delta: float, coarse: int, *, every: bool = False
) -> list[tuple[str, str]]:
    """Return the pairs of statistic and mechanism to choose from, preferred ones first.

    Counts of two kinds take joint noise only, and where at most one column is not coarse all pairs are quadrants.
    Range-preserving noise never beats what it is derived from, and is left out unless `every` or named.
    """
    check_names(statistic, mechanism)
    statistics: tuple[str, ...] = PREFERRED if statistic == "auto" else (statistic,)
    mechanisms: tuple[str, ...] = (mechanism,)
    if mechanism == "auto":
        pure = tuple(name for name in PURE if every or name != "rgm")
        mechanisms = (*pure, "gaussian") if delta > 0.0 else pure
    if coarse:
        one_kind = p - coarse < 2
        statistics = tuple(
            s for s in statistics if not (one_kind and s == "concordance" and statistic == "auto")
        )
    free = "auto" in (statistic, mechanism)
    return [
        (s, m)
        for s in statistics
        for m in mechanisms
        if not (free and coarse and s == "concordance" and m != "linf")
    ]


def check_names(statistic: str, mechanism: str) -> None:
    """Refuse a statistic or mechanism that there is not; "auto" is one.

    Raises
    ------
    UnknownNameError
    """
    for what, name, known in (("statistic", statistic, STATISTICS), ("mechanism", mechanism, MECHANISMS)):
        if not isinstance(name, str) or name not in ("auto", *known):
            raise UnknownNameError(
                f"no such {what}", expected=" or ".join(map(repr, ("auto", *known))), got=shown(name)
            )


@lru_cache(maxsize=512)
def expected(
    n: int,
    p: int,
    epsilon: float,
    statistic: str,
    mechanism: str,
    delta: float = 0.0,
    coarse: int = 0,
    *,
    quick: bool = False,
) -> tuple[float, float]:
    """Return the expected length of 95% intervals and the expected absolute error, averaged over pairs.

    Parameters
    ----------
    n, p : int
    epsilon, delta : float
    statistic, mechanism : str
    coarse : int
        Number of coarse columns; quadrant counts treat them as any other.
    quick : bool
        Coarser averages, for comparing methods.
    """
    few = tuple(range(coarse)) if statistic == "concordance" else ()
    counts: Statistic = make_statistic(statistic, n, p, few)
    noise = build_mechanism(mechanism, counts, epsilon, delta if mechanism == "gaussian" else 0.0)
    kinds = counts.kinds
    parts = {
        kind: _one_pair(LAWS[kind](n), noise.marginal(kinds.index(kind)), p, quick)
        for kind in dict.fromkeys(kinds)
    }
    length, mae, tails = np.mean([parts[kind] for kind in kinds], axis=0)
    if p == 2:
        return float(length), float(mae)
    x = min(length / prior_interval_length(p), 1.0)
    kept = 1.0 - np.interp(tails, _TAILS, _NARROWING) * (1.0 - _FROM_P / p) * 4.0 * x * (1.0 - x)
    return float(length * kept), float(mae * kept)


def _excess_kurtosis(noise: NoiseLaw, true: int) -> float:
    """Return the excess kurtosis of noise on a true count; 0 where there is next to no noise."""
    sd = math.sqrt(noise.variance)
    if sd < _LITTLE:
        return 0.0
    steps = math.ceil(_FAR * sd)
    z = np.unique(np.rint(np.linspace(-steps, steps, min(2 * steps, _MOST_STEPS) + 1)))
    weight = np.exp(noise.log_pmf(true + z, true)) * np.gradient(z)
    return float(np.sum(weight * z**4) * np.sum(weight) / np.sum(weight * z**2) ** 2 - 3.0)


def _one_pair(law: SamplingLaw, noise: NoiseLaw, p: int, quick: bool) -> tuple[float, float, float]:
    """Return expected length and absolute error for one pair by itself, and the excess kurtosis of its count's error.

    Averages over R >= 0 from its prior; the sampling error of the count is taken for normal in the kurtosis.
    """
    from scipy.special import betaincinv

    correlations, errors, points = _QUICK if quick else (_CORRELATIONS, _ERRORS, _POINTS)
    levels, shares = np.polynomial.legendre.leggauss(correlations)
    true = 2.0 * betaincinv(p / 2, p / 2, 0.75 + 0.25 * levels) - 1.0
    offsets, weights = np.polynomial.hermite_e.hermegauss(errors)
    eta = log_odds(true)
    spread = np.sqrt(law.variance(eta) + noise.variance)
    noisy = np.rint(law.mean(eta)[:, None] + offsets * spread[:, None]).astype(np.int64)
    possible = np.isfinite(noise.log_pmf(noisy.astype(float), law.lower))
    noisy = np.where(possible, noisy, np.clip(noisy, law.lower, law.upper))  # noise that stays in the range
    table = tabulate_counts(law, noise, noisy.ravel().tolist())
    slope = np.abs(law.mean(eta + 1e-4) - law.mean(eta - 1e-4)) / 2e-4
    error = np.minimum(spread / np.maximum(slope, 1e-300), 3.0)
    prior = 2.0 * betaincinv(p / 2, p / 2, (np.arange(points // 2) + 0.5) / (points // 2)) - 1.0
    length = mae = 0.0
    for i in range(correlations):
        for j in range(errors):
            count = float(np.clip(noisy[i, j], law.lower + 1e-3, law.upper - 1e-3))
            mode = float(log_odds(np.clip(law.solve(count), -1.0 + 1e-9, 1.0 - 1e-9)))
            near = correlation(np.clip(mode + np.linspace(-7.0, 7.0, points // 2) * error[i], -30.0, 30.0))
            R = np.unique(np.concatenate((near, prior)))
            R = R[np.abs(R) < 1.0]
            log_density = table.pair_log_likelihood(i * errors + j, R) + (p / 2 - 1.0) * np.log1p(-R * R)
            low, high, center = _interval(R, np.exp(log_density - log_density.max()))
            weight = weights[j] / weights.sum() * shares[i] / 2.0
            length += weight * (high - low)
            mae += weight * abs(center - true[i])
    noisiness = float(shares @ (noise.variance / spread**2) ** 2 / 2.0)
    return length, mae, noisiness * _excess_kurtosis(noise, (law.lower + law.upper) // 2)


def _interval(R: Array, density: Array) -> tuple[float, float, float]:
    """Return the 95% interval and the mean of a density given at points."""
    mass = np.diff(R) * (density[1:] + density[:-1]) / 2.0
    cdf = np.concatenate(([0.0], np.cumsum(mass))) / mass.sum()
    low, high = np.interp([0.025, 0.975], cdf, R)
    return float(low), float(high), float(np.trapezoid(R * density, R) / mass.sum())


def _search(length: Callable[[float, bool], float], wanted: float, low: float, high: float) -> float:
    """Return the number between low and high at which intervals have the wanted length.

    The root is found on the quick average; one secant step in logs then brings the full one there.
    """
    from scipy.optimize import brentq

    def excess(log_value: float, quick: bool = True) -> float:
        return math.log(length(math.exp(log_value), quick) / wanted)

    a, b = math.log(low), math.log(high)
    if excess(a) <= 0.0:
        return low
    if excess(b) > 0.0:
        raise ArgumentError(
            "no plan gives intervals that short",
            expected=f"{length(high, True):.3g} or more with these numbers",
            got=f"{wanted:g}",
            hint="more rows, a larger epsilon or fewer variables give shorter intervals",
        )
    root = float(brentq(excess, a, b, xtol=5e-3, rtol=1e-3))
    slope = (excess(root + 0.1) - excess(root - 0.1)) / 0.2
    step = -excess(root, False) / slope if slope < 0.0 else 0.0
    return math.exp(min(max(root + min(max(step, -0.5), 0.5), a), b))


def _check_length(length: float, p: int) -> float:
    if isinstance(length, bool) or not isinstance(length, int | float):
        raise ArgumentTypeError("length is not a number", expected="such as 0.2", got=type(length).__name__)
    if not 0.0 < length < prior_interval_length(p):
        raise ArgumentError(
            "length is out of range",
            expected=f"above 0 and below {prior_interval_length(p):.3f}, the length without any data",
            got=repr(length),
        )
    return float(length)
