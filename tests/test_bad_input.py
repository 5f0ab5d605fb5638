"""Bad input, by the table: what must be refused, with the error it must give, and what must not be refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import dpsurvey as dps
from dpsurvey.errors import (
    ArgumentError,
    ArgumentTypeError,
    DomainError,
    DpsurveyError,
    FileFormatError,
    LargeEpsilonWarning,
    MissingFileError,
    ReleaseFormatError,
    UnknownNameError,
)

N = 8
SETTINGS = [
    ("auto", "auto"), ("quadrant", "geometric"), ("quadrant", "rgm"), ("quadrant", "linf"), ("quadrant", "gaussian"),
    ("concordance", "geometric"), ("concordance", "rgm"), ("concordance", "linf"), ("concordance", "gaussian"),
]  # fmt: skip


def good(n: int = N, p: int = 2) -> pd.DataFrame:
    values = np.random.default_rng(1).normal(size=(n, p))
    return pd.DataFrame(values, columns=[*"xyz", *(f"v{i}" for i in range(3, p))][:p])


def release(df: Any = None, epsilon: Any = 1.0, **options: Any) -> dps.Release:
    """Make a simulated release; a Gaussian one needs a delta."""
    if isinstance(options.get("mechanism"), str) and options["mechanism"] == "gaussian":
        options.setdefault("delta", 1e-6)
    return dps.release(
        good() if df is None else df, epsilon, insecure_rng=np.random.default_rng(1), **options
    )


# ---------------------------------------------------------------- tables that are refused


def odd_column(values: Any, **options: Any) -> pd.DataFrame:
    return good().assign(x=pd.Series(values, **options))


class BadTable(NamedTuple):
    """A table outside the domain: part of the error of a release, and the code of preflight's finding."""

    make: Callable[[], Any]
    message: str
    code: str


def with_cell(value: Any, dtype: Any = None) -> Callable[[], pd.DataFrame]:
    return lambda: odd_column([value, *range(N - 1)], dtype=dtype)


TABLES: dict[str, BadTable] = {
    # dtypes
    "objects": BadTable(lambda: odd_column(list(range(N)), dtype=object), "'x': dtype object is not numeric", "dtype"),
    "Decimals": BadTable(lambda: odd_column([Decimal(i) for i in range(N)]), "dtype object is not numeric", "dtype"),
    "text": BadTable(lambda: odd_column(list("abcdefgh")), "is not numeric", "dtype"),
    "nullable text": BadTable(lambda: odd_column(list("abcdefgh"), dtype="string"), "is not numeric", "dtype"),
    "numbers as text": BadTable(lambda: odd_column(list("12345678")), "convert it with pandas.to_numeric", "dtype"),
    "categories": BadTable(lambda: odd_column(list("abcdefgh"), dtype="category"), "category has no order", "dtype"),
    "categories of numbers": BadTable(lambda: odd_column(range(N), dtype="category"), "has no order", "dtype"),
    "dates": BadTable(lambda: odd_column(pd.date_range("2020-01-01", periods=N)), "is a date or duration", "dtype"),
    "dates with a zone": BadTable(
        lambda: odd_column(pd.date_range("2020-01-01", periods=N, tz="UTC")), "is a date or duration", "dtype"),
    "durations": BadTable(lambda: odd_column(pd.to_timedelta(range(N), unit="D")), "is a date or duration", "dtype"),
    "periods": BadTable(lambda: odd_column(pd.period_range("2020", periods=N, freq="Y")), "is not numeric", "dtype"),
    "intervals": BadTable(lambda: odd_column(pd.interval_range(0, N)), "is not numeric", "dtype"),
    "complex numbers": BadTable(lambda: odd_column(np.arange(N) * 1j), "complex128 has no order", "dtype"),
    "lists": BadTable(lambda: odd_column([[1.0]] * N), "dtype object is not numeric", "dtype"),
    "dicts": BadTable(lambda: odd_column([{}] * N), "dtype object is not numeric", "dtype"),
    "tables": BadTable(lambda: odd_column([good()] * N), "dtype object is not numeric", "dtype"),
    # kinds of missing cells, and infinity
    "nan": BadTable(with_cell(np.nan), "'x': 1 missing cell", "missing"),
    "None": BadTable(with_cell(None), "'x': 1 missing cell", "missing"),
    "pd.NA": BadTable(with_cell(pd.NA, "Int64"), "'x': 1 missing cell", "missing"),
    "pd.NA among floats": BadTable(with_cell(pd.NA, "Float64"), "'x': 1 missing cell", "missing"),
    "pd.NA among truths": BadTable(
        lambda: odd_column([pd.NA, *[True] * (N - 1)], dtype="boolean"), "'x': 1 missing cell", "missing"),
    "NaT": BadTable(
        lambda: odd_column([pd.NaT, *pd.date_range("2020-01-01", periods=N - 1)]), "is a date or duration", "dtype"),
    "a missing category": BadTable(
        lambda: good().assign(x=pd.Categorical([None, *"aabbaab"], ["a", "b"], ordered=True)), "1 missing", "missing"),
    "inf": BadTable(with_cell(np.inf), "'x': 1 infinite cell", "infinite"),
    "-inf": BadTable(with_cell(-np.inf), "'x': 1 infinite cell", "infinite"),
    "all missing": BadTable(lambda: good().assign(x=np.nan), f"'x': {N} missing cell", "all_missing"),
    "all pd.NA": BadTable(lambda: odd_column([pd.NA] * N, dtype="Int64"), f"{N} missing cell", "all_missing"),
    "all None": BadTable(lambda: odd_column([None] * N, dtype=object), "not numeric", "dtype"),
    # names
    "one name twice": BadTable(lambda: good().set_axis(["x", "x"], axis=1), "more than one column called 'x'",
                               "duplicate_name"),
    "two-level names": BadTable(lambda: pd.concat({"a": good()}, axis=1), "are a MultiIndex", "multiindex_columns"),
    "numbers as names": BadTable(lambda: good().set_axis([1, 2], axis=1), "name is not text", "name_not_text"),
    "None as a name": BadTable(lambda: good().set_axis(["x", None], axis=1), "name is not text", "name_not_text"),
    "half a character as a name": BadTable(
        lambda: good().set_axis(pd.Index(["x", "\udc80"], dtype=object), axis=1), "not text", "name_not_text"),
    # sizes
    "n = 0": BadTable(lambda: good(0), "0 row(s), and at least 4", "too_few_rows"),
    "n = 1": BadTable(lambda: good(1), "1 row(s), and at least 4", "too_few_rows"),
    "n = 2": BadTable(lambda: good(2), "2 row(s), and at least 4", "too_few_rows"),
    "n = 3": BadTable(lambda: good(3), "3 row(s), and at least 4", "too_few_rows"),
    "p = 0": BadTable(lambda: good(p=0), "too few columns", "too_few_columns"),
    "p = 1": BadTable(lambda: good(p=1), "too few columns", "too_few_columns"),
    # ids
    "repeated ids": BadTable(lambda: good().set_axis([1, 1, *range(2, N)]), "1 duplicate row id", "duplicate_ids"),
    "missing ids": BadTable(lambda: good().set_axis([np.nan, *range(1, N)]), "missing row id", "missing_ids"),
    "fractions as ids": BadTable(lambda: good().set_axis(np.arange(N) + 0.5), "neither whole numbers", "id_type"),
    "infinite ids": BadTable(lambda: good().set_axis([np.inf, *range(1, N)]), "neither whole numbers", "id_type"),
    "dates as ids": BadTable(
        lambda: good().set_axis(pd.date_range("2020-01-01", periods=N)), "neither whole numbers", "id_type"),
    "two ids": BadTable(lambda: good().set_axis(pd.MultiIndex.from_product([[1], range(N)])), "MultiIndex",
                        "multiindex_rows"),
}  # fmt: skip


@pytest.mark.parametrize("kind", TABLES)
def test_tables_that_are_refused(kind: str) -> None:
    bad = TABLES[kind]
    df = bad.make()
    doors: list[Callable[[], Any]] = [
        *(lambda s=s, m=m: release(df, statistic=s, mechanism=m) for s, m in SETTINGS),
        lambda: dps.li_kendall(df, 1.0, insecure_rng=np.random.default_rng(1)),
        lambda: dps.asghar_dpc(
            df, 1.0, thresholds={"x": 0.0, "y": 0.0}, insecure_rng=np.random.default_rng(1)
        ),
        lambda: df.dpcopula.bayes_na(1.0),
    ]
    for door in doors:
        with pytest.raises(DomainError) as caught:
            door()
        assert bad.message in str(caught.value)
    report = dps.preflight(df)
    assert bad.code in {problem.code for problem in report.problems}
    with pytest.raises(DomainError):
        report.raise_if_bad()


# ---------------------------------------------------------------- arguments that are refused


class BadArgument(NamedTuple):
    """Options of a door that it must refuse, the error, and part of its message."""

    door: str
    options: dict[str, Any]
    error: type[DpsurveyError]
    message: str


def doors() -> dict[str, Callable[..., Any]]:
    rng = np.random.default_rng(1)
    thresholds = {"x": 0.0, "y": 0.0}
    return {
        "release": release,
        "li_kendall": lambda **o: dps.li_kendall(**({"df": good(), "epsilon": 1.0, "insecure_rng": rng} | o)),
        "asghar_dpc": lambda **o: dps.asghar_dpc(
            **({"df": good(), "epsilon": 1.0, "insecure_rng": rng, "thresholds": thresholds} | o)
        ),
        "erl": lambda **o: dps.erl(**({"df": good(), "draws": 5, "chains": 1, "progress": False} | o)),
        "ols_benchmark": lambda **o: dps.ols_benchmark(**({"df": good(), "y": "x", "on": ["y"]} | o)),
        "preflight": lambda **o: dps.preflight(**({"df": good()} | o)),
        "complete": lambda **o: dps.nhanes.complete(**({"df": good()} | o)),
        "bayes_na": lambda **o: dps.bayes_na(**({"release": release(), "draws": 5, "progress": False} | o)),
        "mle_nn": lambda **o: dps.mle_nn(**({"release": release()} | o)),
        "plan": lambda **o: dps.plan(**({"n": 100, "p": 2, "epsilon": 1.0} | o)),
        "TieKeys": dps.TieKeys,
        "read_survey": lambda path=dps.example_files()[0], **o: dps.read_survey(path, **o),
        "Ledger.create": lambda **o: dps.Ledger.create(**({"path": "l", "dataset": "d", "budget": 1.0} | o)),
        "Ledger.open": dps.Ledger.open,
        "Release.load": dps.Release.load,
    }  # fmt: skip


def amounts(door: str, name: str) -> list[BadArgument]:
    """Return what no privacy loss can be."""
    wrong = [0, 0.0, -1, -1.0, -5e-324, np.nan, np.inf, -np.inf, 10**400, Fraction(-1, 2), np.float64("nan")]
    other = [True, False, np.bool_(True), "1", b"1", None, 1j, Decimal(1), pd.NA, pd.NaT, [1.0], (1.0,), {},
             np.array(1.0), np.array([1.0]), good()["x"], np.datetime64("2020-01-01")]  # fmt: skip
    return [
        BadArgument(door, {name: v}, ArgumentError, f"{name} must be finite and above 0") for v in wrong
    ] + [BadArgument(door, {name: value}, ArgumentTypeError, f"{name} is not a number") for value in other]


LISTS: list[tuple[Any, type[DpsurveyError], str]] = [
    ("x", ArgumentTypeError, "list of names"), (b"x", ArgumentTypeError, "list of names"),
    (5, ArgumentTypeError, "list of names"), (np.nan, ArgumentTypeError, "list of names"),
    (good()["x"], ArgumentTypeError, "list of names"), (good(), ArgumentTypeError, "list of names"),
    (["x", "Y"], UnknownNameError, "did you mean 'y'"),
]  # fmt: skip
ARGUMENTS: list[BadArgument] = [
    *amounts("release", "epsilon"), *amounts("li_kendall", "epsilon"), *amounts("asghar_dpc", "epsilon"),
    *amounts("Ledger.create", "budget"),
    *(BadArgument("release", {"epsilon": 1e-300, "statistic": s, "mechanism": m}, ArgumentError, "too small")
      for s, m in SETTINGS),
    BadArgument("li_kendall", {"epsilon": 1e-300}, ArgumentError, "too small"),
    BadArgument("release", {"epsilon": 5e-324}, ArgumentError, "too small"),
    # delta
    *(BadArgument("release", {"delta": v}, ArgumentError, "delta is not in [0, 1)")
      for v in (-1e-9, 1.0, 2, np.nan, np.inf, 10**400, -10**400)),
    *(BadArgument("release", {"delta": v}, ArgumentTypeError, "delta is not a number")
      for v in (True, "0", None, Decimal(0), 1j, [0.0], good()["x"])),
    BadArgument("release", {"delta": 0.0, "mechanism": "gaussian"}, ArgumentError, "delta above 0"),
    BadArgument("release", {"delta": 1e-6, "mechanism": "geometric"}, ArgumentError, "delta"),
    # names of columns
    *(BadArgument(door, {"columns": v}, e, m)
      for door in ("release", "li_kendall", "complete", "erl") for v, e, m in LISTS),
    *(BadArgument("preflight", {"columns": v}, e, m) for v, e, m in LISTS[:-1]),
    *(BadArgument("release", {"coarse": v, "statistic": "concordance", "mechanism": "linf"}, e, m)
      for v, e, m in LISTS[:-1]),
    BadArgument("release", {"coarse": ["q"], "statistic": "concordance"}, UnknownNameError, "'q'"),
    BadArgument("release", {"columns": ["x", "x"]}, ArgumentError, "named twice"),
    BadArgument("release", {"columns": []}, DomainError, "too few columns"),
    BadArgument("release", {"columns": ["x"]}, DomainError, "too few columns"),
    BadArgument("release", {"columns": [["x"], "y"]}, DomainError, "not text"),
    BadArgument("complete", {"columns": [["x"], "y"]}, ArgumentTypeError, "no name"),
    # statistics, mechanisms, engines
    *(BadArgument("release", {name: v}, UnknownNameError, f"no such {name}")
      for name in ("statistic", "mechanism") for v in ("Quadrant", "", "laplace", None, 1, ["rgm"], good()["x"])),
    *(BadArgument("bayes_na", {"engine": v}, UnknownNameError, "no such engine") for v in ("nuts", None, good()["x"])),
    *(BadArgument("mle_nn", {"adjust": v}, UnknownNameError, "no such adjust") for v in ("BTGM", None, good()["x"])),
    *(BadArgument("erl", {"engine": v}, ArgumentError, "unknown engine") for v in ("stan", None, good()["x"])),
    BadArgument("li_kendall", {"sensitivity": good()["x"]}, UnknownNameError, "no such sensitivity"),
    # what is no table, no release, no key, no ledger
    *(BadArgument("release", {"df": v}, ArgumentTypeError, "df is not a table")
      for v in (good().to_numpy(), good()["x"], good().to_dict(), "x", 5)),
    *(BadArgument(door, {"release": v}, ArgumentTypeError, "inference takes a release, never rows")
      for door in ("bayes_na", "mle_nn") for v in (good(), None, "release.json")),
    BadArgument("release", {"keys": 7}, ArgumentTypeError, "keys is not TieKeys"),
    BadArgument("release", {"codebook": {}}, ArgumentTypeError, "codebook is not a Codebook"),
    BadArgument("release", {"ledger": 5}, ArgumentTypeError, "ledger is not a path"),
    BadArgument("release", {"ledger": "/nowhere/l.json"}, MissingFileError, "l.json"),
    BadArgument("TieKeys", {"seed": -1}, ArgumentError, "out of range"),
    BadArgument("TieKeys", {"seed": 2**64}, ArgumentError, "out of range"),
    *(BadArgument("TieKeys", {"seed": v}, ArgumentTypeError, "not an integer") for v in (1.0, True, "1", None)),
    BadArgument("Ledger.create", {"dataset": " "}, ArgumentError, "no label"),
    BadArgument("Ledger.create", {"dataset": None}, ArgumentError, "no label"),
    BadArgument("Ledger.open", {"path": 5}, ArgumentTypeError, "ledger is not a path"),
    BadArgument("Release.load", {"path": "nowhere.json"}, MissingFileError, "nowhere.json"),
    # numbers of other kinds
    *(BadArgument("bayes_na", {name: v}, ArgumentTypeError, "not an integer")
      for name in ("draws", "chains") for v in (1.5, True, "5", None)),
    *(BadArgument("bayes_na", {name: 0}, ArgumentError, "below 1") for name in ("draws", "chains")),
    BadArgument("bayes_na", {"seed": -1}, ArgumentError, "below 0"),
    *(BadArgument("bayes_na", {"lkj": v}, ArgumentError, "above 0") for v in (0, -1.0, np.nan, np.inf)),
    BadArgument("bayes_na", {"informative": {("x", "q"): (1, 1)}}, UnknownNameError, "no such pair"),
    BadArgument("plan", {"n": 3}, ArgumentError, "n"),
    BadArgument("plan", {"p": 1}, ArgumentError, "p"),
    *(BadArgument("plan", {"n": v}, ArgumentTypeError, "not an integer") for v in (10.5, "10", good()["x"])),
    BadArgument("ols_benchmark", {"on": "y"}, ArgumentTypeError, "not a sequence of names"),
    BadArgument("ols_benchmark", {"on": 5}, ArgumentTypeError, "not a sequence of names"),
    BadArgument("ols_benchmark", {"y": good()["x"]}, ArgumentTypeError, "no name"),
    # files
    BadArgument("read_survey", {"path": 5}, ArgumentTypeError, "given by its path"),
    BadArgument("read_survey", {"path": good()}, ArgumentTypeError, "given by its path"),
    BadArgument("read_survey", {"path": "nowhere.xpt"}, MissingFileError, "nowhere.xpt"),
    BadArgument("read_survey", {"path": __file__}, FileFormatError, "does not say by its name"),
    BadArgument("read_survey", {"columns": 1.5}, ArgumentTypeError, "list of names"),
    BadArgument("read_survey", {"columns": ["BMXBM"]}, UnknownNameError, "BMXBM"),
]  # fmt: skip


def named(bad: BadArgument) -> str:
    name, value = next(iter(bad.options.items()))
    text = (
        repr(value) if isinstance(value, str | int | float | None | list | Fraction) else type(value).__name__
    )
    return f"{bad.door} {name} {text[:20]}"


@pytest.mark.parametrize("bad", ARGUMENTS, ids=named)
def test_arguments_that_are_refused(bad: BadArgument, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DpsurveyError) as caught:
        doors()[bad.door](**bad.options)
    assert type(caught.value) is bad.error
    assert bad.message in str(caught.value)
    assert not list(tmp_path.glob("l*"))  # no ledger was made


# ---------------------------------------------------------------- what must work


def sound(matrix: np.ndarray) -> bool:
    """Whether a matrix is a correlation matrix."""
    return bool(
        np.array_equal(matrix, matrix.T) and np.all(np.diag(matrix) == 1.0) and np.linalg.eigvalsh(matrix)[0] > -1e-8
    )  # fmt: skip


def fits(made: dps.Release) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dps.errors.DpsurveyWarning)
        posterior = dps.bayes_na(made, draws=5, chains=1, seed=1, joint=False, progress=False)
        assert all(map(sound, posterior.draws.reshape(-1, made.p, made.p)))
        for adjust in ("btgm", "tgm"):
            assert sound(dps.mle_nn(made, adjust=adjust).R)
        assert len(posterior.summary()) == made.m


def allowed() -> dict[str, pd.DataFrame]:
    """Tables that no release may refuse: a refusal that depends on values would itself be a release."""
    n = 21
    x = np.random.default_rng(1).normal(size=n)
    tied = np.where(np.arange(n) < 0.8 * n, 3.0, x)
    locked = np.random.default_rng(2).normal(size=(n, 2))
    locked.setflags(write=False)
    return {
        "constant": pd.DataFrame({"x": np.full(n, 7.0), "y": x}),
        "all constant": pd.DataFrame({"x": np.full(n, 7.0), "y": np.zeros(n)}),
        "perfectly correlated": pd.DataFrame({"x": x, "y": 2.0 * x + 1.0, "z": -x}),
        "80% tied": pd.DataFrame({"x": tied, "y": tied[::-1]}),
        "n = 4": good(4),
        "n = 5, odd": good(5),
        "n = 7, odd": good(7),
        "spaces, stars and tildes": pd.DataFrame({"a b": x, "c * d": x[::-1], "e ~ f": x**2, " ": -x}),
        "vs, unicode and quotes": pd.DataFrame({"a vs b": x, "Énergie µ": x[::-1], 'q"\'': x**2, "": -x}),
        "formatting": pd.DataFrame({"<b>": x, "%s {x}": x[::-1], "a,b\nc": x**2, "\\n": -x, "💊": x}),
        "dpcopula": pd.DataFrame({"dpcopula": x, "counts": x[::-1], "index": x**2}),
        "read-only": pd.DataFrame(locked, columns=["x", "y"]),
        "small types": pd.DataFrame({"x": (x * 9).astype("int8"), "y": x.astype("float32"), "z": x > 0}),
        "nullable": pd.DataFrame({"x": pd.array(x, dtype="Float64"), "y": pd.array(range(n), dtype="UInt8")}),
        "ordered": pd.DataFrame({"x": pd.Categorical(["a", "b", "c"] * 7, ordered=True), "y": x}),
        "text ids": pd.DataFrame({"x": x, "y": x[::-1]}, index=[f"id {i}" for i in range(n)]),
        "extremes": pd.DataFrame({"x": np.where(x > 0, 1.7e308, -1.7e308), "y": np.where(x > 0, 5e-324, 0.0)}),
    }  # fmt: skip


@pytest.mark.parametrize("kind", allowed())
@pytest.mark.parametrize(("statistic", "mechanism"), SETTINGS)
def test_tables_that_must_not_be_refused(kind: str, statistic: str, mechanism: str) -> None:
    df = allowed()[kind]
    before = df.copy()
    made = release(df, statistic=statistic, mechanism=mechanism)
    assert made.variables == tuple(df.columns)
    assert dps.Release.from_dict(made.to_dict()) == made
    pd.testing.assert_frame_equal(df, before)
    if (statistic, mechanism) in SETTINGS[:2]:
        fits(made)
        assert made.statement()


@pytest.mark.parametrize(("statistic", "mechanism"), [("auto", "auto"), ("quadrant", "geometric")])
def test_sixty_variables_work(statistic: str, mechanism: str, tmp_path) -> None:
    made = release(good(200, 60), statistic=statistic, mechanism=mechanism)
    assert made.m == 1770
    assert dps.Release.load(made.save(tmp_path / "r.json")) == made
    assert sound(dps.mle_nn(made).R)
    posterior = dps.bayes_na(made, draws=2, chains=1, seed=1, joint=False, progress=False)
    assert all(map(sound, posterior.draws[0]))


EPSILONS = [1, np.int8(1), np.uint64(1), np.float16(0.5), np.float32(0.1), np.float64(1.0), Fraction(1, 3), 1e-9,
            1e-12, 10.0]  # fmt: skip


@pytest.mark.parametrize("epsilon", EPSILONS, ids=repr)
@pytest.mark.parametrize(("statistic", "mechanism"), SETTINGS)
def test_every_kind_of_number_is_an_epsilon(epsilon: Any, statistic: str, mechanism: str) -> None:
    made = release(epsilon=epsilon, statistic=statistic, mechanism=mechanism)
    assert type(made.epsilon) is float
    assert made.epsilon == float(epsilon)
    assert dps.Release.from_dict(made.to_dict()) == made
    assert sound(dps.mle_nn(made).R)


@pytest.mark.parametrize("epsilon", [50.0, 1e4, 1e9, 1e18, 1e300, 1.7e308])
@pytest.mark.parametrize(("statistic", "mechanism"), SETTINGS)
def test_huge_epsilons_warn_and_work(epsilon: float, statistic: str, mechanism: str) -> None:
    with pytest.warns(LargeEpsilonWarning):
        made = release(epsilon=epsilon, statistic=statistic, mechanism=mechanism)
    assert dps.Release.from_dict(made.to_dict()) == made
    assert sound(dps.mle_nn(made).R)


@pytest.mark.parametrize("p", [2, 3])
@pytest.mark.parametrize("n", [20, 21])
@pytest.mark.parametrize(("statistic", "mechanism"), SETTINGS[1:])
def test_noisy_counts_below_and_above_the_range_fit(statistic: str, mechanism: str, n: int, p: int) -> None:
    """Both ends and beyond, alone and mixed: by as much as noise goes, and for rgm to the ends of its range."""
    made = release(good(n, p), statistic=statistic, mechanism=mechanism)
    law, noise = made.statistic_law(), made.noise_law()
    for far in (0.0, 1.0, 8.0):
        step = 0 if mechanism == "rgm" else round(far * float(np.sqrt(noise.marginal(0).variance)))
        low, high = (tuple(end + sign * step for end in ends)
                     for sign, ends in ((-1, [r[0] for r in law.ranges]), (1, [r[1] for r in law.ranges])))  # fmt: skip
        for counts in (low, high, (low[0], *high[1:])):
            fits(replace(made, counts=counts))


def test_a_count_that_noise_cannot_reach_is_no_release() -> None:
    made = release(statistic="quadrant", mechanism="geometric")
    with pytest.raises(ReleaseFormatError, match="cannot have taken it"):
        replace(made, counts=(10**15,))
