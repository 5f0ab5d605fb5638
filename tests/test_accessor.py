"""The accessor: the functions under another name, with everything checked before epsilon is spent."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpsurvey as dps
from dpsurvey.errors import ArgumentError, ArgumentTypeError, DomainError, DpsurveyError, UnknownNameError


@pytest.fixture
def df() -> pd.DataFrame:
    R = [[1.0, 0.6, 0.3], [0.6, 1.0, 0.0], [0.3, 0.0, 1.0]]
    values = np.random.default_rng(1).multivariate_normal(np.zeros(3), R, 400)
    return pd.DataFrame(
        values, columns=["Kcal", "Grain", "Veg"], index=pd.RangeIndex(5000, 5400, name="SEQN")
    )


@pytest.fixture
def book(tmp_path: Path) -> dps.Ledger:
    return dps.Ledger.create(tmp_path / "l.json", dataset="d", budget=3.0)


def fresh() -> np.random.Generator:
    return np.random.default_rng(7)


def test_release_is_the_function(df: pd.DataFrame) -> None:
    options = {"columns": ["Veg", "Kcal"], "mechanism": "rgm", "keys": dps.TieKeys(seed=3)}
    assert df.dpcopula.release(0.8, insecure_rng=fresh(), **options) == dps.release(
        df, 0.8, insecure_rng=fresh(), **options
    )
    assert df.dpcopula.release(epsilon=1, insecure_rng=fresh()) == dps.release(df, 1, insecure_rng=fresh())


def test_release_spends_from_the_ledger(df: pd.DataFrame, book: dps.Ledger) -> None:
    release = df.dpcopula.release(1.0, ledger=book)
    assert release.secure
    assert book.spent == 1


def test_preflight_is_the_function(df: pd.DataFrame) -> None:
    df.loc[5000, "Veg"] = np.nan
    mine, theirs = df.dpcopula.preflight(["Kcal", "Veg"]), dps.preflight(df, ["Kcal", "Veg"])
    assert mine.problems == theirs.problems
    pd.testing.assert_frame_equal(mine.table, theirs.table)
    assert df.dpcopula.preflight().rows == 400


def test_bayes_na_is_release_and_fit_in_one_go(df: pd.DataFrame, book: dps.Ledger) -> None:
    options = {"draws": 60, "chains": 2, "seed": 5, "progress": False}
    mine = df.dpcopula.bayes_na(1.0, insecure_rng=fresh(), columns=["Kcal", "Grain"], **options)
    release = dps.release(df, 1.0, insecure_rng=fresh(), columns=["Kcal", "Grain"])
    assert mine.release == release
    assert np.array_equal(mine.draws, dps.bayes_na(release, **options).draws)
    secure = df.dpcopula.bayes_na(1.0, ledger=book, **options)
    assert secure.release.ledger["sequence"] == 1
    assert book.spent == 1


@pytest.mark.parametrize("adjust", ["btgm", "tgm"])
def test_mle_nn_is_release_and_estimate_in_one_go(df: pd.DataFrame, adjust: str) -> None:
    mine = df.dpcopula.mle_nn(1.0, adjust=adjust, insecure_rng=fresh())
    release = dps.release(df, 1.0, insecure_rng=fresh())
    assert mine.release == release
    assert np.array_equal(mine.R, dps.mle_nn(release, adjust=adjust).R)


def test_erl_is_the_function(df: pd.DataFrame) -> None:
    options = {"draws": 40, "chains": 1, "burn_in": 20, "seed": 1, "progress": False}
    mine = df.dpcopula.erl(["Kcal", "Veg"], **options)
    assert not mine.private
    assert np.array_equal(mine.draws, dps.erl(df, ["Kcal", "Veg"], **options).draws)


def test_the_accessor_keeps_nothing(df: pd.DataFrame) -> None:
    accessor = df.dpcopula
    before = set(vars(accessor))
    accessor.release(1.0, insecure_rng=fresh())
    accessor.mle_nn(1.0, insecure_rng=fresh())
    assert set(vars(accessor)) == before == {"_df"}
    df["Kcal"] = 0.0  # a table that has changed is what the next release is of
    assert df.dpcopula.release(9.0, insecure_rng=fresh()) == dps.release(df, 9.0, insecure_rng=fresh())


def test_a_column_called_like_the_accessor_does_not_hide_it() -> None:
    df = pd.DataFrame({"dpcopula": np.arange(10.0), "y": np.arange(10.0)})
    assert df.dpcopula.release(1.0, insecure_rng=fresh()).variables == ("dpcopula", "y")


def test_every_function_of_a_frame_has_its_method_with_the_same_options() -> None:
    accessor = type(pd.DataFrame().dpcopula)
    for name in ("release", "preflight", "bayes_na", "mle_nn", "erl"):
        method, function = getattr(accessor, name), getattr(dps, name)
        assert inspect.getdoc(method)
        own = set(inspect.signature(method).parameters) - {"self", "options", "epsilon"}
        assert own <= set(inspect.signature(function).parameters)


BAD_FITS = [
    ("bayes_na", {"engine": "nope"}, UnknownNameError),
    ("bayes_na", {"draws": 0}, ArgumentError),
    ("bayes_na", {"draws": 10.0}, ArgumentTypeError),
    ("bayes_na", {"draws": True}, ArgumentTypeError),
    ("bayes_na", {"chains": -1}, ArgumentError),
    ("bayes_na", {"seed": "x"}, ArgumentTypeError),
    ("bayes_na", {"seed": -1}, ArgumentError),
    ("bayes_na", {"seed": 1.5}, ArgumentTypeError),
    ("bayes_na", {"drwas": 10}, TypeError),
    ("bayes_na", {"mechanism": "nope"}, UnknownNameError),
    ("bayes_na", {"columns": ["Kcal"]}, DomainError),
    ("mle_nn", {"adjust": "nope"}, UnknownNameError),
    ("mle_nn", {"adjust": None}, UnknownNameError),
    ("mle_nn", {"draws": 10}, TypeError),
    ("mle_nn", {"keys": 1}, ArgumentTypeError),
]


@pytest.mark.parametrize(("method", "options", "error"), BAD_FITS, ids=str)
def test_what_a_fit_cannot_use_is_refused_before_epsilon_is_spent(df, book, method, options, error) -> None:
    before = book.path.read_bytes()
    with pytest.raises(error):
        getattr(df.dpcopula, method)(1.0, ledger=book, **options)
    assert book.path.read_bytes() == before


@pytest.mark.parametrize("engine", ["stan", "stan-direct"])
def test_an_engine_that_is_not_installed_is_refused_before_epsilon_is_spent(
    df, book, engine, monkeypatch
) -> None:
    from dpsurvey.copula import cmdstan
    from dpsurvey.errors import MissingDependencyError

    def missing() -> None:
        raise MissingDependencyError("CmdStan is not installed")

    monkeypatch.setattr(cmdstan, "find_cmdstan", missing)
    with pytest.raises(MissingDependencyError):
        df.dpcopula.bayes_na(1.0, ledger=book, engine=engine)
    assert book.spent == 0


@pytest.mark.parametrize("stop", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize(("method", "place"), [("bayes_na", "dpsurvey.copula.bayes_na.tabulate"),
                                               ("mle_nn", "dpsurvey.copula.mle_nn.posterior_mean_count")])  # fmt: skip
def test_a_release_that_was_paid_for_outlives_an_interrupted_fit(
    df, book, method, place, stop, monkeypatch
) -> None:
    def interrupted(*arguments: object) -> None:
        raise stop

    monkeypatch.setattr(place, interrupted)
    with pytest.raises(stop) as caught:
        getattr(df.dpcopula, method)(1.0, ledger=book)
    assert book.spent == 1
    assert caught.value.release.ledger["sequence"] == 1
    assert "save the release" in "".join(caught.value.__notes__)


def test_errors_are_those_of_the_functions(df: pd.DataFrame) -> None:
    with pytest.raises(DpsurveyError) as mine:
        df.dpcopula.release(-1, insecure_rng=fresh())
    with pytest.raises(DpsurveyError) as theirs:
        dps.release(df, -1, insecure_rng=fresh())
    assert str(mine.value) == str(theirs.value)
