"""Properties that hold for every table and every release, sought by counterexample."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpsurvey as dps
from dpsurvey.confidential.counts import pair_counts
from dpsurvey.confidential.discordance import discordant_counts
from dpsurvey.copula.correlation import matrix_from_pairs
from dpsurvey.copula.likelihood import tabulate

COUNTS = {"quadrant": pair_counts, "concordance": discordant_counts}
SETTINGS = [(s, m) for s in COUNTS for m in ("geometric", "rgm", "linf", "gaussian")]
KEYS = dps.TieKeys(seed=7)
UNHURRIED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
few = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=UNHURRIED)
fewer = settings(few, max_examples=12)
fewest = settings(few, max_examples=4)
both = pytest.mark.parametrize("statistic", COUNTS)
every = pytest.mark.parametrize(("statistic", "mechanism"), SETTINGS)


@st.composite
def tables(draw: st.DrawFn, *, most_levels: int = 6, ties: bool = True) -> pd.DataFrame:
    """Draw a table of small integers, most of them tied, or of distinct ones; ids are numbers or text."""
    n, p = draw(st.integers(4, 25)), draw(st.integers(2, 4))
    if ties:
        columns = draw(
            st.lists(st.lists(st.integers(0, most_levels), min_size=n, max_size=n), min_size=p, max_size=p)
        )
    else:
        columns = draw(st.lists(st.permutations(range(n)), min_size=p, max_size=p))
    ids: Any = range(100, 100 + n) if draw(st.booleans()) else [f"id{i}" for i in range(n)]
    return pd.DataFrame(dict(zip("abcd", columns, strict=False)), index=pd.Index(ids), dtype="int64")  # fmt: skip


@st.composite
def releases(draw: st.DrawFn, statistic: str, mechanism: str) -> dps.Release:
    """Draw a release whose noisy counts lie anywhere the noise may well have taken them."""
    n, p = draw(st.integers(4, 60)), draw(st.integers(2, 4))
    values = np.random.default_rng(draw(st.integers(0, 99))).normal(size=(n, p))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dps.errors.LargeEpsilonWarning)
        made = dps.release(
            pd.DataFrame(values, columns=list("abcd")[:p]),
            draw(st.sampled_from([0.01, 0.3, 1.0, 5.0, 40.0])),
            statistic=statistic, mechanism=mechanism, delta=1e-6 if mechanism == "gaussian" else 0.0,
            insecure_rng=np.random.default_rng(1),
        )  # fmt: skip
    law, noise = made.statistic_law(), made.noise_law()
    counts = []
    for i, (lower, upper) in enumerate(law.ranges):
        reach = 0 if mechanism == "rgm" else int(4 * np.sqrt(noise.marginal(i).variance))
        counts.append(draw(st.integers(lower - reach, upper + reach)))
    return replace(made, counts=tuple(counts))


def by_pair(counts: Any, names: Any) -> dict[frozenset[str], int]:
    """Return counts by their pair of names, in whichever order."""
    first, second = np.triu_indices(len(names), 1)
    pairs = [frozenset((names[j], names[k])) for j, k in zip(first, second, strict=True)]
    return dict(zip(pairs, map(int, counts), strict=True))


# ---------------------------------------------------------------- counts


@both
@few
@given(df=tables(), data=st.data())
def test_permuting_columns_and_rows_permutes_counts(
    statistic: str, df: pd.DataFrame, data: st.DataObject
) -> None:
    """Keys follow a column's name and a row's id, so the counts of a pair are the same wherever they stand."""
    count, names = COUNTS[statistic], list(df.columns)
    shuffled = data.draw(st.permutations(names))
    rows = data.draw(st.permutations(range(len(df))))
    expected = by_pair(count(df, names, KEYS), names)
    assert by_pair(count(df.iloc[rows], shuffled, KEYS), shuffled) == expected
    assert by_pair(count(df[shuffled], shuffled, KEYS), shuffled) == expected


@both
@few
@given(df=tables(), data=st.data())
def test_an_increasing_transformation_leaves_counts_unchanged(
    statistic: str, df: pd.DataFrame, data: st.DataObject
) -> None:
    count, names = COUNTS[statistic], list(df.columns)
    steps = data.draw(st.lists(st.integers(1, 10**6), min_size=7, max_size=7))
    levels = np.cumsum(steps) - data.draw(st.integers(0, 10**6))
    name = data.draw(st.sampled_from(names))
    expected = count(df, names, KEYS).tolist()
    for changed in (levels[df[name]], levels[df[name]] / 7.0, levels[df[name]].astype("float32") * 2.0**60):
        if len(set(changed)) == df[name].nunique():  # float32 may merge two of them
            assert count(df.assign(**{name: changed}), names, KEYS).tolist() == expected
    ordered = pd.Categorical.from_codes(df[name], [f"level {i}" for i in range(7)], ordered=True)
    assert count(df.assign(**{name: ordered}), names, KEYS).tolist() == expected


@few
@given(df=tables(ties=False))
def test_a_decreasing_transformation_reverses_counts(df: pd.DataFrame) -> None:
    """Without ties: D turns into n(n-1)/2 - D, and t into the high half of k less t, plus 1 where the median row of
    an odd n, which is high before and after, is high in k.
    """
    names, n = list(df.columns), len(df)
    turned = df.assign(a=-df["a"])
    before, after = (by_pair(discordant_counts(t, names, KEYS), names) for t in (df, turned))
    high = {name: df[name] >= n // 2 for name in names}
    quadrant_before, quadrant_after = (by_pair(pair_counts(t, names, KEYS), names) for t in (df, turned))
    for other in names[1:]:
        pair = frozenset(("a", other))
        assert after[pair] == n * (n - 1) // 2 - before[pair]
        both_times = int((high[other] & (df["a"] == n // 2)).sum()) if n % 2 else 0
        assert quadrant_after[pair] == -(-n // 2) - quadrant_before[pair] + both_times


@both
@few
@given(df=tables(most_levels=2))
def test_counts_obey_their_bounds(statistic: str, df: pd.DataFrame) -> None:
    names = list(df.columns)
    made = dps.release(
        df, 1.0, statistic=statistic, mechanism="geometric", insecure_rng=np.random.default_rng(1)
    )
    for count, (lower, upper) in zip(
        COUNTS[statistic](df, names, KEYS), made.statistic_law().ranges, strict=True
    ):
        assert lower <= count <= upper


# ---------------------------------------------------------------- releases and results


@every
@fewer
@given(data=st.data())
def test_release_to_json_and_back_is_the_identity(
    statistic: str, mechanism: str, data: st.DataObject, tmp_path
) -> None:
    made = data.draw(releases(statistic, mechanism))
    assert dps.Release.from_dict(json.loads(json.dumps(made.to_dict()))) == made
    assert dps.Release.load(made.save(tmp_path / "release.json")) == made


@every
@fewest
@given(data=st.data())
def test_posterior_draws_are_correlation_matrices(
    statistic: str, mechanism: str, data: st.DataObject
) -> None:
    made = data.draw(releases(statistic, mechanism))
    lkj = data.draw(st.sampled_from([0.5, 1.0, 4.0]))
    informative = data.draw(st.sampled_from([None, {("a", "b"): (8.0, 4.0)}, {("b", "a"): (0.5, 300.0)}]))
    posterior = dps.bayes_na(
        made, draws=10, chains=2, seed=1, lkj=lkj, informative=informative, progress=False
    )
    assert (posterior.joint is None) == (made.p == 2)
    for draws in (posterior.draws, posterior.joint):
        if draws is not None:
            assert np.isfinite(draws).all()
            assert np.array_equal(draws, draws.swapaxes(-1, -2))
            assert np.all(draws.diagonal(axis1=-2, axis2=-1) == 1.0)
            assert np.all(np.abs(draws) <= 1.0)
            assert np.linalg.eigvalsh(draws).min() > -1e-9
    again = dps.bayes_na(made, draws=10, chains=2, seed=1, lkj=lkj, informative=informative, progress=False)
    assert np.array_equal(posterior.draws, again.draws)


def permuted(made: dps.Release, order: list[int]) -> dps.Release:
    """Return the release that the columns in another order would have given with the same noise."""
    table = matrix_from_pairs(np.array(made.counts, dtype=float), made.p)[np.ix_(order, order)]
    counts = tuple(int(count) for count in table[np.triu_indices(made.p, 1)])
    return replace(made, variables=tuple(made.variables[i] for i in order), counts=counts)


@every
@fewer
@given(data=st.data())
def test_estimates_are_correlation_matrices_and_follow_the_order_of_columns(
    statistic: str, mechanism: str, data: st.DataObject
) -> None:
    made = data.draw(releases(statistic, mechanism))
    order = data.draw(st.permutations(range(made.p)))
    for adjust in ("btgm", "tgm"):
        R = dps.mle_nn(made, adjust=adjust).R
        assert np.array_equal(R, R.T)
        assert np.all(np.diag(R) == 1.0)
        assert np.all(np.abs(R) <= 1.0)
        assert np.linalg.eigvalsh(R)[0] > -1e-9
        other = dps.mle_nn(permuted(made, order), adjust=adjust).R
        np.testing.assert_allclose(other, R[np.ix_(order, order)], atol=1e-6)


@every
@fewer
@given(data=st.data())
def test_the_likelihood_follows_the_order_of_columns(
    statistic: str, mechanism: str, data: st.DataObject
) -> None:
    made = data.draw(releases(statistic, mechanism))
    order = data.draw(st.permutations(range(made.p)))
    R = np.full((made.p, made.p), 0.2) + 0.8 * np.eye(made.p)
    R[0, 1] = R[1, 0] = -0.1
    moved = R[np.ix_(order, order)]
    one = tabulate(made).log_likelihood(R)
    other = tabulate(permuted(made, order)).log_likelihood(moved)
    np.testing.assert_allclose(other, one, rtol=1e-9)
