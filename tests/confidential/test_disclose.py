"""The only door from rows to a release: total on its domain, spends last, and shows no value to anyone."""

from __future__ import annotations

import hashlib
import json
import logging
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsurvey as dps
from dpsurvey.confidential import disclose
from dpsurvey.confidential.codebook import Codebook
from dpsurvey.confidential.counts import pair_counts
from dpsurvey.confidential.variables import Variable
from dpsurvey.errors import (
    ArgumentError,
    ArgumentTypeError,
    BudgetExceededError,
    DomainError,
    DpsurveyError,
    LargeEpsilonWarning,
    LedgerError,
    MissingFileError,
    NoLedgerWarning,
    ReleaseFormatError,
    UnknownNameError,
)
from dpsurvey.privacy.ledger import Ledger
from dpsurvey.privacy.mechanisms import Geometric


def paper_release(df: Any, epsilon: Any, **options: Any) -> dps.Release:
    """Release with the paper's statistic and mechanism unless told otherwise."""
    return dps.release(df, epsilon, **{"statistic": "quadrant", "mechanism": "geometric", **options})


CANARY, CANARY_ID = 8675309.25, 424242
MECHANISMS = ["geometric", "rgm"]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(1)


@pytest.fixture
def book(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "diet.ledger.json", dataset="diet", budget=3.0)


def table(n: int = 101, p: int = 3, seed: int = 5) -> pd.DataFrame:
    values = np.random.default_rng(seed).normal(size=(n, p))
    return pd.DataFrame(
        values, columns=[f"v{i}" for i in range(p)], index=pd.RangeIndex(1000, 1000 + n, name="SEQN")
    )


# --- what comes out


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_release_holds_public_facts_and_noisy_counts(mechanism: str, book: Ledger) -> None:
    df = table()
    release = paper_release(df, 1.5, mechanism=mechanism, ledger=book)
    assert release.variables == ("v0", "v1", "v2")
    assert (release.n, release.p, release.m) == (101, 3, 3)
    assert (release.epsilon, release.delta, release.secure) == (1.5, 0.0, True)
    assert (release.statistic, release.mechanism) == ("quadrant", mechanism)
    assert release.neighbours == "substitute one row"
    assert (release.key_seed, release.key_fingerprint) == (dps.TieKeys().seed, dps.TieKeys().fingerprint)
    assert (release.labels, release.filters, release.rounding) == ({}, (), None)
    assert release.versions["dpsurvey"] == dps.__version__
    assert set(release.versions) == {"python", "dpsurvey", "numpy", "opendp"}
    assert all(type(count) is int for count in release.counts)
    assert (release.ledger["dataset"], release.ledger["sequence"]) == ("diet", 1)


def test_the_receipt_is_of_the_ledgers_last_line(book: Ledger) -> None:
    release = paper_release(table(), 1.0, ledger=book)
    assert (
        release.ledger["head"]
        == hashlib.sha256(book.path.read_bytes().splitlines(keepends=True)[-1]).hexdigest()
    )
    entry = book.summary().iloc[0]
    assert (entry["epsilon"], entry["n"], entry["mechanism"]) == ("1.0", "101", "geometric")


def test_without_noise_worth_the_name_the_counts_are_the_true_ones() -> None:
    """At an absurd epsilon the noise is 0: what is released is pair_counts, in its order, as exact integers."""
    df = table(p=6)
    truth = pair_counts(df, list(df.columns), dps.TieKeys(seed=4)).tolist()
    for mechanism in MECHANISMS:
        with pytest.warns(LargeEpsilonWarning):
            release = paper_release(
                df, 1e6, mechanism=mechanism, keys=dps.TieKeys(seed=4), insecure_rng=np.random.default_rng(1)
            )
        assert list(release.counts) == truth


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_noise_is_the_mechanisms(mechanism: str) -> None:
    """Release minus truth over 400 simulated releases: its mean within 4.5 Monte Carlo errors of the law's."""
    df, keys = table(n=40, p=2), dps.TieKeys()
    rng = np.random.default_rng(3)
    noisy = [paper_release(df, 0.5, mechanism=mechanism, insecure_rng=rng).counts[0] for _ in range(400)]
    law = paper_release(df, 0.5, mechanism=mechanism, insecure_rng=rng).noise_law()
    truth = int(pair_counts(df, ["v0", "v1"], keys)[0])
    support = np.arange(-200, 240)
    pmf = np.exp(law.log_pmf(support, truth))
    mean = (pmf * support).sum()
    sd = np.sqrt((pmf * (support - mean) ** 2).sum())
    assert np.mean(noisy) == pytest.approx(mean, abs=4.5 * sd / 20)
    assert np.std(noisy) == pytest.approx(sd, rel=0.3)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_same_seed_gives_the_same_release_and_marks_it_insecure(mechanism: str) -> None:
    df = table()
    first, again, other = (
        paper_release(df, 1.0, mechanism=mechanism, insecure_rng=np.random.default_rng(seed))
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first.counts != other.counts
    assert not first.secure
    assert "INSECURE" in repr(first)
    assert "protects nobody" in first.statement()


def test_secure_noise_is_fresh_each_time_and_does_not_follow_numpys_seed(book: Ledger) -> None:
    df = table(p=6)
    seen = set()
    for _ in range(3):
        np.random.seed(1)  # noqa: NPY002  the global generator that noise must not come from
        seen.add(paper_release(df, 0.05, ledger=book).counts)
    assert len(seen) == 3  # 15 counts with noise of sd 420 each


def test_rows_may_come_in_any_order_and_columns_are_named_as_asked(rng) -> None:
    df = table(p=4)
    shuffled = df.sample(frac=1, random_state=1)[["v3", "v1", "v0", "v2"]]
    columns = ["v2", "v0", "v3"]
    first = paper_release(df, 1.0, columns=columns, insecure_rng=np.random.default_rng(1))
    second = paper_release(shuffled, 1.0, columns=columns, insecure_rng=np.random.default_rng(1))
    assert first == second
    assert first.variables == ("v2", "v0", "v3")


def test_the_table_is_left_as_it_was(rng) -> None:
    df = table()
    df.attrs["note"] = "mine"
    before = df.copy()
    paper_release(df, 1.0, insecure_rng=rng)
    pd.testing.assert_frame_equal(df, before)
    assert df.attrs == {"note": "mine"}


def test_keys_can_be_chosen_and_are_named(rng) -> None:
    df = pd.DataFrame(np.zeros((60, 2)), columns=["x", "y"])  # all ties: the keys decide everything
    releases = {
        seed: paper_release(df, 9.9, keys=dps.TieKeys(seed=seed), insecure_rng=np.random.default_rng(1))
        for seed in (1, 2, 3, 4, 5)
    }
    assert [release.key_seed for release in releases.values()] == [1, 2, 3, 4, 5]
    assert len({release.key_fingerprint for release in releases.values()}) == 5
    assert len({release.counts for release in releases.values()}) > 1
    default = paper_release(df, 9.9, insecure_rng=np.random.default_rng(1))
    assert default == paper_release(df, 9.9, keys=dps.TieKeys(), insecure_rng=np.random.default_rng(1))


# --- total on its domain


def domain_tables() -> dict[str, pd.DataFrame]:
    n = 51
    x = np.random.default_rng(1).normal(size=n)
    ties = np.where(np.arange(n) < 0.8 * n, 3.0, x)
    codes = np.arange(n) % 3
    return {
        "constant": pd.DataFrame({"x": np.full(n, 7.0), "y": x, "z": np.zeros(n)}),
        "80% tied": pd.DataFrame({"x": ties, "y": ties[::-1], "z": x}),
        "collinear": pd.DataFrame({"x": x, "y": 2 * x + 1, "z": -x}),
        "the same column twice": pd.DataFrame({"x": x, "y": x}),
        "ordered categories": pd.DataFrame(
            {"x": pd.Categorical.from_codes(codes, ["lo", "mid", "hi"], ordered=True), "y": x}
        ),
        "one ordered category": pd.DataFrame(
            {"x": pd.Categorical(["a"] * n, categories=["a", "b"], ordered=True), "y": x}
        ),
        "flags": pd.DataFrame({"x": x > 0, "y": np.ones(n, dtype=bool), "z": x}),
        "nullable": pd.DataFrame(
            {"x": pd.array(codes, dtype="Int64"), "y": pd.array(x, dtype="Float64"),
             "z": pd.array(x > 0, dtype="boolean")}
        ),
        "unsigned": pd.DataFrame({"x": np.full(n, 2**64 - 1, dtype="uint64"), "y": codes.astype("uint8")}),
        "extremes": pd.DataFrame({"x": np.where(codes, np.finfo(float).max, -5e-324), "y": -x * 1e300}),
        "half floats": pd.DataFrame({"x": x.astype("float16"), "y": x.astype("float32")}),
        "sparse": pd.DataFrame({"x": pd.arrays.SparseArray(np.where(codes, 0.0, 1.0)), "y": x}),
        "n = 4": pd.DataFrame({"x": [1, 1, 1, 1], "y": [1, 2, 3, 4]}),
        "n = 5": pd.DataFrame({"x": [1, 1, 1, 1, 2], "y": [1, 2, 3, 4, 4]}),
        "text ids": pd.DataFrame({"x": codes, "y": codes}, index=[f"é{i}" for i in range(n)]),
        "broken text ids": pd.DataFrame(
            {"x": codes, "y": codes}, index=pd.Index([f"p\udc80{i}" for i in range(n)], dtype=object)
        ),
        "float ids": pd.DataFrame({"x": codes, "y": codes}, index=np.arange(n) + 93703.0),
        "nullable ids": pd.DataFrame({"x": codes, "y": codes}, index=pd.Index(pd.array(range(n), dtype="UInt64"))),
        "odd names": pd.DataFrame({"a * b": codes, "c ~ d": x, " vs ": x, "é": codes, "dpcopula": codes}),
        "p = 60": pd.DataFrame(np.random.default_rng(1).integers(0, 2, (n, 60)), columns=[f"v{i}" for i in range(60)]),
    }  # fmt: skip


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("kind", domain_tables())
def test_no_table_of_the_domain_is_refused(kind: str, mechanism: str, tmp_path: Path) -> None:
    """Constant, tied, collinear: a refusal that depended on values would itself be a release."""
    df = domain_tables()[kind]
    book = Ledger.create(tmp_path / "l.json", dataset="d", budget=1.0)
    release = paper_release(df, 1.0, mechanism=mechanism, ledger=book)
    assert release.variables == tuple(df.columns)
    assert book.remaining == 0
    assert dps.Release.load(release.save(tmp_path / "r.json")) == release


@pytest.mark.parametrize("dtype", ["int64[pyarrow]", "double[pyarrow]", "bool[pyarrow]"])
def test_arrow_tables_are_not_refused(dtype: str, rng) -> None:
    pytest.importorskip("pyarrow", reason="Arrow columns need pyarrow")
    codes = np.arange(51) % 2
    df = pd.DataFrame({"x": codes.astype(bool) if "bool" in dtype else codes, "y": codes[::-1]}).astype(
        {"x": dtype}
    )
    df.index = pd.Index(pd.array(range(51), dtype="int64[pyarrow]"))
    numpy_ids = df.set_axis(range(51)).astype({"x": "int64"})
    first = paper_release(df, 1.0, insecure_rng=np.random.default_rng(1))
    assert first == paper_release(numpy_ids, 1.0, insecure_rng=np.random.default_rng(1))


# --- what is refused, before anything is spent


def bad_tables() -> dict[str, tuple[pd.DataFrame, list[str]]]:
    """Tables outside the domain, with a canary in every cell and id, and what the refusal must name."""
    ids = CANARY_ID * 1000 + np.arange(6)
    good = pd.DataFrame(CANARY + np.arange(12.0).reshape(6, 2), columns=["x", "y"], index=ids)
    text = [f"s{CANARY}"] * 6
    fill = pd.arrays.SparseArray([str(CANARY), *"abcde"], fill_value=str(CANARY))
    infinite, gaps = good.copy(), good.copy()
    infinite.iloc[1, 0], gaps.iloc[[1, 2], 1] = np.inf, np.nan
    return {
        "text": (good.assign(x=text), ["'x'", "numeric"]),
        "mixed objects": (good.assign(x=pd.Series([CANARY, None, "a", 1, 2, 3], index=ids, dtype=object)), ["'x'"]),
        "unordered": (good.assign(x=pd.Categorical(text)), ["'x'", "no order"]),
        "unordered numbers": (good.assign(x=pd.Categorical(good["x"])), ["'x'", "no order"]),
        "complex": (good.assign(x=good["x"] * 1j), ["'x'", "complex"]),
        "dates": (good.assign(x=pd.to_datetime(good["x"], unit="s")), ["'x'", "date"]),
        "durations": (good.assign(x=pd.to_timedelta(good["x"], unit="s")), ["'x'", "duration"]),
        "intervals": (good.assign(x=pd.IntervalIndex.from_breaks(CANARY + np.arange(7))), ["'x'"]),
        "sparse text": (good.assign(x=fill), ["'x'"]),
        "missing": (gaps, ["'y'", "2 missing"]),
        "nullable missing": (gaps.convert_dtypes(dtype_backend="numpy_nullable"), ["'y'", "2 missing"]),
        "infinite": (infinite, ["'x'", "1 infinite"]),
        "both": (infinite.assign(z=gaps["y"], w=text), ["'x'", "'z'", "'w'", "1 infinite", "2 missing"]),
        "ids twice": (good.set_axis([*ids[:5], ids[0]]), ["1 duplicate"]),
        "text ids twice": (good.set_axis([f"p{CANARY_ID}"] * 6), ["5 duplicate"]),
        "ids missing": (good.set_axis([*ids[:5].astype(float), np.nan]), ["missing row id"]),
        "fractions as ids": (good.set_axis(ids + 0.5), ["whole numbers"]),
        "objects as ids": (good.set_axis(pd.Index([*ids[:5], "a"], dtype=object)), ["whole numbers"]),
        "two-level ids": (good.set_axis(pd.MultiIndex.from_product([[CANARY_ID], range(6)])), ["MultiIndex"]),
        "three rows": (good.iloc[:3], ["3 row(s)"]),
        "no rows": (good.iloc[:0], ["0 row(s)"]),
        "one column": (good[["x"]], ["at least 2"]),
        "no columns": (good[[]], ["at least 2"]),
        "one name twice": (pd.concat([good, good], axis=1), ["more than one column", "'x'"]),
        "two-level names": (good.set_axis(pd.MultiIndex.from_product([["a"], ["x", "y"]]), axis=1), ["MultiIndex"]),
        "names that are numbers": (good.set_axis([1, 2], axis=1), ["not text"]),
    }  # fmt: skip


GOOD = pd.DataFrame(
    CANARY + np.random.default_rng(1).normal(size=(8, 2)),
    columns=["x", "y"],
    index=CANARY_ID * 1000 + np.arange(8),
)
BAD_ARGUMENTS: dict[str, tuple[dict[str, Any], type[DpsurveyError]]] = {
    "epsilon 0": ({"epsilon": 0}, ArgumentError),
    "epsilon negative": ({"epsilon": -1.0}, ArgumentError),
    "epsilon nan": ({"epsilon": float("nan")}, ArgumentError),
    "epsilon inf": ({"epsilon": float("inf")}, ArgumentError),
    "epsilon True": ({"epsilon": True}, ArgumentTypeError),
    "epsilon text": ({"epsilon": "1"}, ArgumentTypeError),
    "epsilon None": ({"epsilon": None}, ArgumentTypeError),
    "epsilon tiny": ({"epsilon": 1e-300}, ArgumentError),
    "epsilon tiny, rgm": ({"epsilon": 1e-300, "mechanism": "rgm"}, ArgumentError),
    "df": ({"df": GOOD.to_numpy()}, ArgumentTypeError),
    "df a series": ({"df": GOOD["x"]}, ArgumentTypeError),
    "df a dict": ({"df": GOOD.to_dict()}, ArgumentTypeError),
    "df None": ({"df": None}, ArgumentTypeError),
    "columns one string": ({"columns": "x"}, ArgumentTypeError),
    "columns unknown": ({"columns": ["x", "Y"]}, UnknownNameError),
    "columns twice": ({"columns": ["x", "x"]}, ArgumentError),
    "columns one": ({"columns": ["x"]}, DomainError),
    "columns a number": ({"columns": 3}, ArgumentTypeError),
    "columns of lists": ({"columns": [["x"], "y"]}, DomainError),
    "columns a column": ({"columns": GOOD["x"].astype(str)}, ArgumentTypeError),
    "columns a table": ({"columns": GOOD}, ArgumentTypeError),
    "columns cells": ({"columns": GOOD["x"].to_list()}, DomainError),
    "statistic a column": ({"statistic": GOOD["x"]}, UnknownNameError),
    "mechanism cells": ({"mechanism": GOOD["x"].to_list()}, UnknownNameError),
    "keys a column": ({"keys": GOOD["x"]}, ArgumentTypeError),
    "epsilon a column": ({"epsilon": GOOD["x"]}, ArgumentTypeError),
    "ledger a table": ({"ledger": GOOD}, ArgumentTypeError),
    "codebook a table": ({"codebook": GOOD}, ArgumentTypeError),
    "insecure_rng a column": ({"insecure_rng": GOOD["x"]}, ArgumentTypeError),
    "statistic": ({"statistic": "concord"}, UnknownNameError),
    "statistic None": ({"statistic": None}, UnknownNameError),
    "mechanism": ({"mechanism": "laplace"}, UnknownNameError),
    "mechanism a list": ({"mechanism": ["rgm"]}, UnknownNameError),
    "keys": ({"keys": 7}, ArgumentTypeError),
    "insecure_rng a seed": ({"insecure_rng": 1}, ArgumentTypeError),
    "insecure_rng old": ({"insecure_rng": np.random.RandomState(1)}, ArgumentTypeError),
    "codebook": ({"codebook": {"labels": {}}}, ArgumentTypeError),
    "codebook with a label that is none": (
        {"codebook": Codebook((Variable("x", "x", 5, None, None, "f"),))}, ReleaseFormatError),  # type: ignore[arg-type]
    "codebook with a rule that is none": ({"codebook": Codebook((), filters=(5,))}, ReleaseFormatError),
    "codebook with odd rounding": ({"codebook": Codebook((), round_to=2.5)}, ReleaseFormatError),
    "ledger a number": ({"ledger": 5}, ArgumentTypeError),
    "ledger missing": ({"ledger": "/nowhere/at/all.json"}, MissingFileError),
}  # fmt: skip


def exhibits(error: BaseException) -> str:
    """All that an error can show: its text, repr, arguments and traceback, and those of what it came from."""
    shown, at = [], error
    while at is not None:
        shown += [
            str(at),
            repr(at),
            repr(at.args),
            repr(getattr(at, "__dict__", {})),
            repr(getattr(at, "object", None)),
        ]
        shown += traceback.format_exception(at)
        at = at.__cause__ or at.__context__
    return "\n".join(shown)


def assert_silent(text: str) -> None:
    for canary in (str(CANARY), str(int(CANARY)), str(CANARY_ID), f"{CANARY:.6e}", f"{CANARY:g}"):
        assert canary not in text


@pytest.fixture
def overheard(capsys, caplog) -> Callable[[Callable[[], Any]], tuple[BaseException | None, str]]:
    """Run something and return its error and everything it said anywhere."""

    def listen(action: Callable[[], Any]) -> tuple[BaseException | None, str]:
        error: BaseException | None = None
        with warnings.catch_warnings(record=True) as told, caplog.at_level(logging.DEBUG):
            warnings.simplefilter("always")
            try:
                action()
            except Exception as caught:
                error = caught
        out = capsys.readouterr()
        said = [out.out, out.err, caplog.text, *(str(one.message) for one in told)]
        return error, "\n".join(said) + ("" if error is None else exhibits(error))

    return listen


@pytest.mark.parametrize("kind", bad_tables())
def test_a_table_outside_the_domain_is_refused_and_nothing_is_spent_or_shown(
    kind: str, book, overheard
) -> None:
    df, named = bad_tables()[kind]
    before = book.path.read_bytes()
    error, said = overheard(lambda: paper_release(df, 1.0, ledger=book))
    assert isinstance(error, DomainError)
    for part in named:
        assert part in str(error)
    assert_silent(said)
    assert book.path.read_bytes() == before


@pytest.mark.parametrize("kind", BAD_ARGUMENTS)
def test_a_bad_argument_is_refused_and_nothing_is_spent_or_shown(kind: str, book, overheard) -> None:
    changes, kind_of_error = BAD_ARGUMENTS[kind]
    before = book.path.read_bytes()
    error, said = overheard(lambda: paper_release(**{"df": GOOD, "epsilon": 1.0, "ledger": book, **changes}))
    assert type(error) is kind_of_error
    assert_silent(said)
    assert book.path.read_bytes() == before


def test_the_ledger_is_asked_last(book: Ledger, monkeypatch) -> None:
    def never(*arguments: object) -> None:
        raise AssertionError("asked too early")

    monkeypatch.setattr(Ledger, "reserve", never)
    for df, _ in bad_tables().values():
        with pytest.raises(DpsurveyError):
            paper_release(df, 1.0, ledger=book)
    for changes, _ in BAD_ARGUMENTS.values():
        with pytest.raises(DpsurveyError):
            paper_release(**{"df": GOOD, "epsilon": 1.0, "ledger": book, **changes})


def test_epsilon_is_on_disk_before_counts_are_computed(book: Ledger, monkeypatch) -> None:
    spent_by_then = []

    def interrupted(*arguments: object) -> None:
        spent_by_then.append(book.spent)
        raise KeyboardInterrupt

    monkeypatch.setattr(disclose, "pair_counts", interrupted)
    with pytest.raises(KeyboardInterrupt):
        paper_release(table(), 1.25, ledger=book)
    assert spent_by_then == [Decimal("1.25")]
    assert book.spent == Decimal("1.25")  # what came after that counts as spent


def test_nothing_is_counted_where_the_budget_is_not_enough(book: Ledger, monkeypatch, overheard) -> None:
    def never(*arguments: object) -> None:
        raise AssertionError("counted")

    monkeypatch.setattr(disclose, "pair_counts", never)
    error, said = overheard(lambda: paper_release(GOOD, 3.5, ledger=book))
    assert isinstance(error, BudgetExceededError)
    assert "requested epsilon 3.5, remaining 3.0: 0.5 too much" in str(error)
    assert_silent(said)
    book.path.write_bytes(book.path.read_bytes().replace(b"3.0", b"9.0"))
    error, said = overheard(lambda: paper_release(GOOD, 3.5, ledger=book.path))
    assert isinstance(error, LedgerError)
    assert_silent(said)


def test_a_release_is_whole_before_epsilon_is_spent(book: Ledger, monkeypatch) -> None:
    """Whatever a release checks of itself is checked while refusing is still free."""
    made: list[tuple[tuple[int, ...], Decimal]] = []
    check = dps.Release.__post_init__

    def spy(self: Any) -> None:
        made.append((self.counts, book.spent))
        check(self)

    monkeypatch.setattr(dps.Release, "__post_init__", spy)
    release = paper_release(table(), 1.0, ledger=book)
    assert made == [((1, 1, 1), 0), (release.counts, 1)]  # 1 is the smallest count possible at n = 101


# --- warnings


def test_without_a_ledger_it_says_so_once(monkeypatch) -> None:
    df = table()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        releases = [paper_release(df, 1.0) for _ in range(3)]
    assert [one.category for one in told] == [NoLedgerWarning]
    assert told[0].filename == __file__
    assert all(release.ledger is None for release in releases)


def test_simulations_need_no_ledger(rng) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert paper_release(table(), 1.0, insecure_rng=rng).ledger is None


def test_a_large_epsilon_warns_once_at_the_callers_line(tmp_path: Path) -> None:
    with pytest.warns(LargeEpsilonWarning):
        book = Ledger.create(tmp_path / "l", dataset="d", budget=100.0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        paper_release(table(), 50.0, ledger=book)
    assert [one.category for one in told] == [LargeEpsilonWarning]
    assert told[0].filename == __file__


def test_a_warning_made_an_error_spends_nothing(book: Ledger) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(LargeEpsilonWarning):
            paper_release(table(), 50.0, ledger=book)
        with pytest.raises(NoLedgerWarning):
            paper_release(table(), 1.0)
    assert book.spent == 0


# --- declared facts


CODEBOOK = Codebook(
    (
        Variable("v0", "DR1TKCAL", "Energy (kcal)", "kcal", None, "DR1TOT_J.xpt"),
        Variable("v9", "X", "Not released", None, None, "DR1TOT_J.xpt"),
    ),
    filters=("RIDAGEYR >= 20", "DRABF == 2"),
    round_to=3,
)


def test_a_codebooks_labels_filters_and_rounding_are_recorded(rng) -> None:
    release = paper_release(table(), 1.0, codebook=CODEBOOK, insecure_rng=rng)
    assert release.labels == {"v0": "Energy (kcal)"}
    assert release.filters == ("RIDAGEYR >= 20", "DRABF == 2")
    assert release.rounding == 3
    assert "RIDAGEYR >= 20; DRABF == 2" in release.statement()


def test_attrs_are_a_second_best(rng) -> None:
    df = table()
    df.attrs["dpsurvey_codebook"] = CODEBOOK.public()
    release = paper_release(df, 1.0, insecure_rng=rng)
    assert (release.labels, release.filters, release.rounding) == (
        {"v0": "Energy (kcal)"},
        CODEBOOK.filters,
        3,
    )
    given = paper_release(df, 1.0, codebook=Codebook(()), insecure_rng=rng)
    # a codebook's labels and rounding replace theirs; but rows may be selected after reading, so filters add up
    assert (given.labels, given.filters, given.rounding) == ({}, CODEBOOK.filters, None)


@pytest.mark.parametrize("attrs", [None, 5, "x", [], {}, {"labels": None, "filters": None}])
def test_attrs_that_are_no_codebook_are_passed_over(attrs, rng) -> None:
    df = table()
    df.attrs["dpsurvey_codebook"] = attrs
    release = paper_release(df, 1.0, insecure_rng=rng)
    assert (release.labels, release.filters, release.rounding) == ({}, (), None)


# --- no value leaves


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_no_value_and_no_id_is_in_anything_that_is_made(
    mechanism: str, book, overheard, tmp_path: Path
) -> None:
    """Every cell and id is a distinctive number: none is in the release, its file, the ledger or what was said."""
    made: list[dps.Release] = []
    error, said = overheard(lambda: made.append(paper_release(GOOD, 1.0, mechanism=mechanism, ledger=book)))
    assert error is None
    release = made[0]
    path = release.save(tmp_path / "r.json")
    everything = [
        said, repr(release), str(release), release.statement(), release.to_frame().to_string(), path.read_text(),
        book.path.read_text(), book.summary().to_string(), repr(book), repr(dps.TieKeys()), repr(release.noise_law()),
    ]  # fmt: skip
    for text in everything:
        assert_silent(text)
        for value in [*GOOD.to_numpy().ravel(), *GOOD.index]:
            assert repr(value) not in text
    assert set(json.loads(path.read_text())) == {
        "format", "schema", "variables", "labels", "n", "counts", "statistic", "mechanism", "parameters", "epsilon",
        "delta", "neighbours", "key_seed", "key_fingerprint", "filters", "rounding", "coarse", "versions", "secure",
        "ledger",
    }  # fmt: skip
    assert b"rows" not in book.path.read_bytes().replace(b"one row", b"")


def test_apart_from_the_counts_a_release_is_the_same_for_all_tables_of_one_shape() -> None:
    """Nothing but the noisy counts is computed from rows: not ties, not distinct values, not ids."""
    n = 51
    one = pd.DataFrame({"x": np.zeros(n), "y": np.arange(n)})
    two = pd.DataFrame(
        {"x": np.random.default_rng(1).normal(size=n), "y": np.full(n, 8.0)},
        index=[f"p{i}" for i in range(n)],
    )
    first, second = (
        paper_release(df, 1.0, insecure_rng=np.random.default_rng(1)).to_dict() for df in (one, two)
    )
    first.pop("counts")
    second.pop("counts")
    assert first == second


def test_a_fault_deep_inside_shows_no_value(book: Ledger, monkeypatch, overheard) -> None:
    """Something breaks after the counts are known: the traceback has code and no values."""

    def broken(self: Geometric, counts: Any) -> None:
        raise RuntimeError("no randomness")

    monkeypatch.setattr(Geometric, "release", broken)
    error, said = overheard(lambda: paper_release(GOOD, 1.0, ledger=book))
    assert isinstance(error, RuntimeError)
    assert_silent(said)
    assert book.spent == 1


def test_it_works_from_a_clone_that_is_not_installed(root: Path, tmp_path: Path) -> None:
    """No package metadata: a release must not fail on it, least of all after epsilon is spent."""
    code = """
import sys
from importlib import metadata
real = metadata.version
def version(name):
    if name == "dpsurvey":
        raise metadata.PackageNotFoundError(name)
    return real(name)
metadata.version = version
import numpy as np, pandas as pd, dpsurvey as dps
df = pd.DataFrame(np.arange(20.0).reshape(10, 2), columns=["x", "y"])
print(dps.release(df, 1.0, insecure_rng=np.random.default_rng(1)).versions["dpsurvey"])
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env={"PYTHONPATH": str(root), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == dps.__version__, done.stderr


@pytest.mark.parametrize("mechanism", ["linf", "geometric", "rgm", "gaussian"])
def test_concordance_counts_are_released_by_every_mechanism(mechanism: str) -> None:
    df = pd.DataFrame(np.random.default_rng(1).normal(size=(60, 3)), columns=["a", "b", "c"])
    delta = 1e-6 if mechanism == "gaussian" else 0.0
    release = dps.release(
        df,
        1.0,
        statistic="concordance",
        mechanism=mechanism,
        delta=delta,
        insecure_rng=np.random.default_rng(1),
    )
    assert (release.statistic, release.mechanism, release.delta) == ("concordance", mechanism, delta)
    assert dps.Release.from_dict(release.to_dict()) == release
    assert "rank differently" in release.statement()


def test_default_is_what_plan_takes_and_coarse_columns_are_quadrants() -> None:
    df = pd.DataFrame(np.random.default_rng(1).normal(size=(60, 3)), columns=["a", "b", "c"])
    df["d"] = df["a"] > 0.5
    release = dps.release(df, 1.0, insecure_rng=np.random.default_rng(1))
    assert (release.statistic, release.mechanism, release.coarse) == ("concordance", "linf", ("d",))
    assert release.statistic_law().kinds.count("quadrant") == 3
    assert dps.Release.from_dict(release.to_dict()) == release
    assert "pairs with d, declared to have few levels" in release.statement()
    named = dps.release(
        df, 1.0, coarse=["a", "b"], columns=["a", "b", "c"], insecure_rng=np.random.default_rng(1)
    )
    assert (named.statistic, named.coarse) == ("quadrant", ())  # no pair of two fine columns is left
    one = dps.release(df, 1.0, mechanism="geometric", insecure_rng=np.random.default_rng(1))
    assert (one.statistic, one.coarse) == ("quadrant", ())
    with pytest.raises(UnknownNameError, match="coarse"):
        dps.release(df, 1.0, coarse=["e"], insecure_rng=np.random.default_rng(1))


def test_a_ledger_of_pure_epsilon_refuses_delta_before_anything_is_spent(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "l.json", dataset="x", budget=1.0)
    with pytest.raises(LedgerError, match="pure epsilon") as caught:
        dps.release(GOOD, 1.0, mechanism="gaussian", delta=1e-6, ledger=book)
    assert "accounting='zcdp'" in str(caught.value)
    assert book.spent == 0
