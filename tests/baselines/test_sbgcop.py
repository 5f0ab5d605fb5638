"""R through rpy2: our R code against golden sbgcop values, and the manners of the bridge."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pandas as pd
import pytest

import dpsurvey as dps
from dpsurvey.baselines import rbridge
from dpsurvey.baselines.sbgcop import chain_seeds
from dpsurvey.errors import DomainError, EngineError, MissingDependencyError, SlowMixingWarning

pytestmark = [
    pytest.mark.usefixtures("r_session"),
    pytest.mark.filterwarnings(
        "ignore:a correlation has only:dpsurvey.errors.SlowMixingWarning"
    ),  # short runs
]


@pytest.fixture
def frame(golden):
    return pd.read_csv(golden / "sbgcop" / "c.csv")


def agrees_with_golden(posterior, reference):
    """Means within .005, sds within 3%, for correlations and for the regression of the last variable."""
    for row in posterior.summary().itertuples():
        expected = reference["correlations"][f"{row.var1}~~{row.var2}"]
        assert abs(row.mean - expected["mean"]) < 0.005
        assert abs(row.sd / expected["sd"] - 1) < 0.03
    y, terms = posterior.variables[-1], posterior.variables[:-1]
    summary = posterior.regress(y, on=terms).summary()
    coefficients = summary[summary["quantity"] == "coefficient"].set_index("term")
    for term in terms:
        expected = reference["regression_of_last"][f"{y}~{term}"]
        assert abs(coefficients.loc[term, "mean"] - expected["mean"]) < 0.005
        assert abs(coefficients.loc[term, "sd"] / expected["sd"] - 1) < 0.03


@pytest.mark.parametrize("data", ["a", "b", "c"])
def test_our_r_code_agrees_with_sbgcop(golden, data):
    reference = json.loads((golden / "sbgcop" / "sbgcop_golden.json").read_text())["data"][data]
    frame = pd.read_csv(golden / "sbgcop" / f"{data}.csv")
    posterior = dps.erl(frame, engine="r", draws=8000, burn_in=200, chains=2, seed=3, progress=False)
    agrees_with_golden(posterior, reference)


@pytest.mark.real_sbgcop
@pytest.mark.parametrize("data", ["a", "b", "c"])
def test_the_package_sbgcop_itself(golden, data, r_session):
    version = r_session.package_version("sbgcop")
    if version is None:
        pytest.skip("the R package sbgcop is not installed; it comes from CRAN alone")
    reference = json.loads((golden / "sbgcop" / "sbgcop_golden.json").read_text())["data"][data]
    frame = pd.read_csv(golden / "sbgcop" / f"{data}.csv")
    posterior = dps.erl(frame, engine="sbgcop", draws=8000, burn_in=200, chains=2, seed=3, progress=False)
    agrees_with_golden(posterior, reference)
    assert posterior.engine == "sbgcop"
    assert posterior.info["versions"]["sbgcop"] == version


def test_without_sbgcop_the_engine_says_how_to_get_it(frame, r_session):
    if r_session.package_version("sbgcop") is not None:
        pytest.skip("sbgcop is installed, so its absence cannot be shown")
    with pytest.raises(MissingDependencyError, match=r"install.packages\('sbgcop'\)"):
        dps.erl(frame, engine="sbgcop", draws=5, progress=False)


def test_auto_says_which_engine_it_took(frame, r_session, capsys):
    posterior = dps.erl(frame, engine="auto", draws=200, burn_in=20, chains=2, seed=1, progress=False)
    expected = "r" if r_session.package_version("sbgcop") is None else "sbgcop"
    assert posterior.engine == expected
    assert f"engine {expected!r} taken" in capsys.readouterr().out
    assert r_session.version in posterior.info["engine_reason"]


def test_facts_of_the_run_are_recorded(frame):
    posterior = dps.erl(frame, engine="r", draws=200, burn_in=10, chains=3, odens=2, seed=9, progress=False)
    assert posterior.draws.shape == (3, 200, 4, 4)
    assert posterior.info["chain_seeds"] == chain_seeds(9, 3)
    assert len(set(posterior.info["chain_seeds"])) == 3
    assert posterior.info["nsamp"] == 410
    assert set(posterior.info["versions"]) >= {"R", "rpy2", "dpsurvey", "numpy"}
    assert posterior.info["plug_in"] == ["x1", "x2", "y"]
    assert "NOT PRIVATE" in repr(posterior)


def test_same_seed_same_draws_whatever_R_was_set_to(frame):
    import rpy2.robjects as ro

    options = {"engine": "r", "draws": 150, "burn_in": 50, "chains": 1, "seed": 2, "progress": False}
    first = dps.erl(frame, **options)
    ro.r('RNGkind("Wichmann-Hill", "Box-Muller", "Rounding")')
    try:
        again = dps.erl(frame, **options)
        assert list(ro.r("RNGkind()")) == ["Wichmann-Hill", "Box-Muller", "Rounding"]
    finally:
        ro.r('RNGkind("default", "default", "default")')
    np.testing.assert_array_equal(first.draws, again.draws)


def test_state_of_R_generator_is_put_back(frame, r_session):
    import rpy2.robjects as ro

    options = {"engine": "r", "draws": 120, "burn_in": 0, "chains": 1, "progress": False}
    ro.r("set.seed(5); invisible(runif(1))")
    expected = list(ro.r("runif(3)"))
    ro.r("set.seed(5); invisible(runif(1))")
    dps.erl(frame, seed=1, **options)
    assert list(ro.r("runif(3)")) == expected
    ro.r('rm(".Random.seed", envir = globalenv())')
    dps.erl(frame, seed=1, **options)
    assert not ro.r('exists(".Random.seed", globalenv(), inherits = FALSE)')[0]
    ro.r("set.seed(6)")
    expected = list(ro.r("runif(3)"))
    ro.r("set.seed(6)")
    with pytest.raises(EngineError):  # also after an error
        r_session.call("erl_draws", "r", np.zeros((3, 2)), np.eye(3), 4.0, 10, 1, 100.0, 1)
    assert list(ro.r("runif(3)")) == expected


def test_nothing_is_activated_or_left_in_R(frame):
    import rpy2.robjects as ro

    before = set(ro.r("ls(globalenv())"))
    dps.erl(frame, engine="r", draws=120, burn_in=0, chains=1, seed=1, progress=False)
    assert set(ro.r("ls(globalenv())")) == before
    assert type(ro.r("c(1, 2)")).__name__ == "FloatVector"  # no global converter to numpy or pandas


def test_processes_started_after_R_find_the_libraries_they_would_without_it(tmp_path):
    """A loader path of R's in the environment could give a Python started from here another Python's libpython."""
    code = """
import os, subprocess, sys
from dpsurvey.baselines.rbridge import open_r
shown = [sys.executable, "-c", "import os; print(os.environ.get('LD_LIBRARY_PATH'))"]
open_r()
print(subprocess.run(shown, capture_output=True, text=True, check=True).stdout.strip())
"""
    for path in (None, str(tmp_path)):
        environment = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
        environment |= {} if path is None else {"LD_LIBRARY_PATH": path}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == str(path)


def test_missing_cells_cross_as_NA(r_session):
    import rpy2.robjects as ro

    matrix = r_session._to_r(np.array([[1.0, np.nan], [2.0, 3.0]]))
    assert list(ro.r("function(Y) is.na(Y)")(matrix)) == [False, False, True, False]
    assert list(ro.r("dim")(matrix)) == [2, 2]


def test_errors_of_R_keep_their_message(r_session):
    with pytest.raises(EngineError, match="non-conformable arrays"):
        r_session.call("erl_draws", "r", np.zeros((3, 2)), np.eye(3), 4.0, 10, 1, 100.0, 1)


def test_tables_are_refused_before_R_is_called(monkeypatch):
    def no_r():
        raise AssertionError("R was opened")

    monkeypatch.setattr("dpsurvey.baselines.sbgcop.open_r", no_r)
    with pytest.raises(DomainError, match="constant"):
        dps.erl(pd.DataFrame({"a": [1, 2, 3], "b": [1, 1, 1]}), engine="r", progress=False)


def test_second_thread_is_refused_with_the_reason(frame):
    errors = []

    def work():
        try:
            dps.erl(frame, engine="r", draws=5, progress=False)
        except EngineError as error:
            errors.append(str(error))

    thread = threading.Thread(target=work, name="worker")
    thread.start()
    thread.join()
    assert len(errors) == 1
    assert "second thread" in errors[0]
    assert "R has one interpreter" in errors[0]
    assert "'worker'" in errors[0]


def test_auto_in_a_second_thread_is_native(frame):
    taken = []
    thread = threading.Thread(target=lambda: taken.append(rbridge.best_engine()))
    thread.start()
    thread.join()
    assert taken[0][0] == "native"
    assert "second thread" in taken[0][1]


def test_python_inside_R_is_refused(frame, monkeypatch):
    monkeypatch.setenv("R_SESSION_INITIALIZED", f'PID={os.getpid()}:NAME="reticulate"')
    with pytest.raises(EngineError, match="runs inside R"):
        dps.erl(frame, engine="r", draws=5, progress=False)
    monkeypatch.setenv("R_SESSION_INITIALIZED", 'PID=1:NAME="reticulate"')  # another process's R
    assert rbridge.open_r() is not None


def test_interrupt_reaches_R(frame):
    before = signal.getsignal(signal.SIGINT)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        dps.erl(frame, engine="r", draws=10**6, burn_in=0, chains=1, seed=1, progress=False)
    timer.join()
    assert signal.getsignal(signal.SIGINT) is before
    dps.erl(frame, engine="r", draws=120, burn_in=0, chains=1, seed=1, progress=False)  # R is well


def test_without_rpy2_the_error_says_how_to_get_it():
    code = textwrap.dedent(
        """
        import sys
        sys.modules["rpy2"] = None
        import pandas as pd, dpsurvey as dps
        from dpsurvey.errors import MissingDependencyError
        df = pd.DataFrame({"a": [1.0, 2, 3, 4], "b": [2.0, 1, 4, 3]})
        try:
            dps.erl(df, engine="r", progress=False)
        except MissingDependencyError as error:
            assert 'dpsurvey[r]' in str(error), str(error)
        else:
            raise SystemExit("no error")
        posterior = dps.erl(df, engine="auto", draws=200, burn_in=0, seed=1, progress=False)
        assert posterior.engine == "native"
        """
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.filterwarnings("ignore::dpsurvey.errors.SlowMixingWarning")  # wild correlations, few draws
def test_hundred_random_frames_agree_and_R_stays_silent(random_frame, capfd):
    """Ties, missing cells, odd names: both engines give one posterior, and R prints nothing."""
    scores = []
    for seed in range(100):
        frame = random_frame(seed)
        options = {"plugin_threshold": 8, "chains": 1, "seed": seed, "progress": False}
        try:
            in_r = dps.erl(frame, engine="r", draws=150, burn_in=40, **options)
        except DomainError:
            with pytest.raises(DomainError):
                dps.erl(frame, **options)
            continue
        native = dps.erl(frame, draws=2000, burn_in=100, **options)
        assert in_r.variables == native.variables == tuple(frame.columns)
        assert in_r.info["plug_in"] == native.info["plug_in"]
        scores.append(standardised_difference(in_r, native))
    scores = np.concatenate(scores)
    assert scores.size > 200
    assert np.sqrt(np.mean(scores**2)) < 0.25  # 150 draws of R's chain are worth 16 at least
    assert np.abs(scores).max() < 1.0
    assert abs(np.mean(scores)) < 5 * np.std(scores) / np.sqrt(scores.size)
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == ""


def standardised_difference(one, two):
    """Differences of posterior means in posterior standard deviations."""
    upper = np.triu_indices(len(one.variables), 1)
    return (one.mean() - two.mean())[upper] / two.sd()[upper]


def test_full_rank_likelihood_in_R_warns():
    frame = pd.DataFrame(np.random.default_rng(1).standard_normal((30, 2)), columns=["a", "b"])
    with pytest.warns(SlowMixingWarning, match="one latent value at a time"):
        posterior = dps.erl(
            frame, engine="r", plugin_threshold=None, draws=60, burn_in=10, chains=2, seed=1, progress=False
        )
    assert posterior.info["plug_in"] == []
