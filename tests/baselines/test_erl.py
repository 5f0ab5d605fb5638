"""erl(): golden values of sbgcop, settings, determinism, warnings, and how loudly it is not private."""

import json
import threading
import time

import numpy as np
import pandas as pd
import pytest

import dpsurvey as dps
from dpsurvey.baselines import erl_native
from dpsurvey.baselines.ranks import rank_table
from dpsurvey.errors import ArgumentError, ArgumentTypeError, DomainError, SlowMixingWarning


@pytest.fixture
def ordinal():
    """Three related columns, one with four levels, 40 cells missing."""
    rng = np.random.default_rng(8)
    z = rng.standard_normal((400, 3)) @ np.linalg.cholesky([[1, 0.5, 0.2], [0.5, 1, -0.3], [0.2, -0.3, 1]]).T
    frame = pd.DataFrame(z, columns=["x", "level", "y"])
    frame["level"] = np.digitize(frame["level"], [-1, 0, 1])
    frame.iloc[:40, 2] = np.nan
    return frame


@pytest.mark.parametrize("data", ["a", "b", "c"])
def test_native_agrees_with_sbgcop(golden, data):
    """Means within .005, sds within 3%, for correlations and for the regression of the last variable."""
    reference = json.loads((golden / "sbgcop" / "sbgcop_golden.json").read_text())["data"][data]
    frame = pd.read_csv(golden / "sbgcop" / f"{data}.csv")
    posterior = dps.erl(frame, draws=10_000, chains=2, seed=17, progress=False)
    for row in posterior.summary().itertuples():
        expected = reference["correlations"][f"{row.var1}~~{row.var2}"]
        assert abs(row.mean - expected["mean"]) < 0.005
        assert abs(row.sd / expected["sd"] - 1) < 0.03
        assert abs(row.lower - expected["q025"]) < 0.01
        assert abs(row.upper - expected["q975"]) < 0.01
    y = posterior.variables[-1]
    terms = posterior.variables[:-1]
    coefficients = _coefficients(posterior.regress(y, on=terms))
    for term in terms:
        expected = reference["regression_of_last"][f"{y}~{term}"]
        assert abs(coefficients.loc[term, "mean"] - expected["mean"]) < 0.005
        assert abs(coefficients.loc[term, "sd"] / expected["sd"] - 1) < 0.03


def _coefficients(regression):
    summary = regression.summary()
    return summary[summary["quantity"] == "coefficient"].set_index("term")


def test_complete_continuous_columns_give_independent_draws(golden):
    posterior = dps.erl(pd.read_csv(golden / "sbgcop" / "a.csv"), seed=1, progress=False)
    assert posterior.info["independent"]
    assert posterior.info["burn_in"] == 0
    assert posterior.info["plug_in"] == ["x1", "x2", "y"]
    assert posterior.info["latent_ess"] == {}
    assert posterior.summary()["ess_bulk"].min() > 0.8 * 4000


def test_gibbs_and_the_independent_shortcut_are_one_posterior(golden):
    """A single missing cell sends the same data through the whole sampler."""
    frame = pd.read_csv(golden / "sbgcop" / "a.csv")
    gap = frame.copy()
    gap.iloc[0, 0] = np.nan
    direct = dps.erl(frame, draws=8000, chains=2, seed=1, progress=False)
    gibbs = dps.erl(gap, draws=8000, chains=2, seed=2, progress=False)
    assert not gibbs.info["independent"]
    np.testing.assert_allclose(gibbs.mean(), direct.mean(), atol=0.008)  # one row of 200 less
    np.testing.assert_allclose(gibbs.sd()[0, 1:], direct.sd()[0, 1:], rtol=0.05)


@pytest.mark.filterwarnings("ignore::dpsurvey.errors.SlowMixingWarning")  # 150 draws are few
def test_same_seed_same_numbers_whatever_the_threads(ordinal, monkeypatch):
    options = {"draws": 50, "burn_in": 20, "chains": 3, "progress": False}
    first = dps.erl(ordinal, seed=4, **options)
    monkeypatch.setattr(erl_native, "_BLOCK_SECONDS", 1e-9)  # other blocks
    monkeypatch.setattr(erl_native, "available_cores", lambda: 1)  # other threads
    again = dps.erl(ordinal, seed=4, **options)
    other = dps.erl(ordinal, seed=5, **options)
    np.testing.assert_array_equal(first.draws, again.draws)
    assert not np.array_equal(first.draws, other.draws)
    assert not np.array_equal(first.draws[0], first.draws[1])


def test_without_a_seed_one_is_drawn_and_recorded(golden):
    frame = pd.read_csv(golden / "sbgcop" / "a.csv")
    first = dps.erl(frame, draws=20, progress=False)
    again = dps.erl(frame, draws=20, seed=first.seed, progress=False)
    np.testing.assert_array_equal(first.draws, again.draws)


def test_row_order_and_monotone_scales_do_not_matter_but_ranks_do(golden):
    frame = pd.read_csv(golden / "sbgcop" / "a.csv")
    stretched = frame.assign(x1=np.exp(frame["x1"]), y=-1 / (1 + np.exp(frame["y"])))
    one = dps.erl(frame, draws=200, seed=3, progress=False)
    two = dps.erl(stretched, draws=200, seed=3, progress=False)
    np.testing.assert_array_equal(one.draws, two.draws)


def test_missing_cells_drop_no_row(ordinal):
    """The first 40 rows lack y; what they say of the other two columns counts."""
    whole = dps.erl(ordinal, ["x", "level"], draws=4000, chains=2, seed=1, progress=False)
    gaps = dps.erl(ordinal, draws=4000, chains=2, seed=1, progress=False)
    short = dps.erl(ordinal.dropna(), ["x", "level"], draws=4000, chains=2, seed=1, progress=False)
    gap = abs(whole.mean()[0, 1] - gaps.mean()[0, 1])
    assert gap < 0.01
    assert abs(whole.mean()[0, 1] - short.mean()[0, 1]) > 2 * gap
    assert gaps.info["n"] == 400


def test_prior_is_used(golden):
    """With n0 huge the posterior is S0's correlation."""
    frame = pd.read_csv(golden / "sbgcop" / "a.csv")
    S0 = np.array([[2.0, 0.9, 0.0], [0.9, 1.0, -0.4], [0.0, -0.4, 3.0]])
    posterior = dps.erl(frame, prior=(S0, 1e7), draws=200, seed=1, progress=False)
    d = np.sqrt(np.diag(S0))
    np.testing.assert_allclose(posterior.mean(), S0 / np.outer(d, d), atol=1e-3)
    assert posterior.info["S0"] == S0.tolist()
    assert dps.erl(frame, prior=(None, None), draws=5, seed=1, progress=False).info["n0"] == 5.0


def test_burn_in_and_thinning_are_counted(ordinal):
    options = {"chains": 1, "seed": 6, "progress": False}
    with pytest.warns(SlowMixingWarning):  # ten draws are few
        thinned = dps.erl(ordinal, draws=10, burn_in=7, odens=5, **options)
    assert thinned.info["nsamp"] == 60
    whole = dps.erl(ordinal, draws=600, burn_in=0, **options)
    np.testing.assert_array_equal(thinned.draws[0], whole.draws[0, 14:60:5])


def test_full_rank_likelihood_mixes_and_says_how_well(golden):
    """The slides keep continuous columns moving where sweeps alone need tens of thousands of iterations."""
    frame = pd.read_csv(golden / "sbgcop" / "a.csv")
    posterior = dps.erl(frame, plugin_threshold=None, draws=2000, chains=2, seed=2, progress=False)
    assert posterior.info["plug_in"] == []
    assert set(posterior.info["latent_ess"]) == {"x1", "x2", "y"}
    assert min(posterior.info["latent_ess"].values()) > 200
    plug_in = dps.erl(frame, draws=2000, chains=2, seed=2, progress=False)
    assert np.abs(posterior.mean() - plug_in.mean()).max() < 0.03


def test_too_few_effective_draws_warn_by_column(ordinal):
    with pytest.warns(SlowMixingWarning, match="'level'") as caught:
        dps.erl(ordinal, draws=30, burn_in=0, chains=1, seed=1, progress=False)
    assert caught[0].filename == __file__


def test_large_ordinal_column_mixes():
    """n = 5000 and five levels: without the slides R-hat stays near 1.2 after 4 x 1000 iterations."""
    rng = np.random.default_rng(3)
    z = rng.standard_normal((5000, 2)) @ np.array([[1, 0.6], [0, 0.8]])
    frame = pd.DataFrame({"x": z[:, 0], "level": np.digitize(z[:, 1], [-1, 0, 1, 1.5])})
    posterior = dps.erl(frame, draws=500, burn_in=200, chains=2, seed=1, progress=False)
    summary = posterior.summary().iloc[0]
    assert summary["r_hat"] < 1.03
    assert abs(summary["mean"] - 0.6) < 4 * summary["sd"]


@pytest.mark.filterwarnings("ignore::dpsurvey.errors.SlowMixingWarning")  # few rows say little
def test_more_columns_than_rows():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.standard_normal((5, 9)), columns=list("abcdefghi"))
    for threshold in (2, None):
        posterior = dps.erl(frame, plugin_threshold=threshold, draws=400, chains=2, seed=1, progress=False)
        assert np.isfinite(posterior.draws).all()


def test_says_loudly_that_it_is_not_private(golden):
    posterior = dps.erl(pd.read_csv(golden / "sbgcop" / "a.csv"), draws=20, seed=1, progress=False)
    assert posterior.private is False
    assert posterior.release is None
    assert "NOT PRIVATE" in repr(posterior)
    assert "NOT PRIVATE" in posterior._repr_html_()


def test_accessor_and_labels(golden):
    frame = pd.read_csv(golden / "sbgcop" / "a.csv")
    frame.attrs["dpsurvey_codebook"] = {"labels": {"y": "Outcome", "elsewhere": "?"}}
    options = {"draws": 20, "seed": 1, "progress": False}
    posterior = frame.dpcopula.erl(["y", "x1"], **options)
    assert posterior.labels == {"y": "Outcome"}
    np.testing.assert_array_equal(posterior.draws, dps.erl(frame, ["y", "x1"], **options).draws)


def test_saved_and_loaded(golden, tmp_path):
    posterior = dps.erl(pd.read_csv(golden / "sbgcop" / "b.csv"), draws=300, chains=2, seed=1, progress=False)
    posterior.save(tmp_path / "erl.npz")
    back = dps.CorrelationPosterior.load(tmp_path / "erl.npz")
    np.testing.assert_array_equal(back.draws, posterior.draws)
    assert back.info == posterior.info


@pytest.mark.filterwarnings("ignore::dpsurvey.errors.SlowMixingWarning")  # 150 draws are few
def test_hundred_random_frames(random_frame):
    """Ties, missing cells and odd names: correlation matrices come out, or a named refusal."""
    refused = 0
    for seed in range(100):
        frame = random_frame(seed)
        try:
            posterior = dps.erl(frame, draws=150, burn_in=50, chains=1, seed=seed, progress=False)
        except DomainError:
            refused += 1
            continue
        assert posterior.variables == tuple(frame.columns)
        assert np.linalg.eigvalsh(posterior.draws).min() > 0
    assert refused < 20


def test_an_error_in_one_chain_stops_the_others(ordinal, monkeypatch):
    def failing_tick(iterations):
        raise KeyboardInterrupt

    layout = erl_native.lay_out(rank_table(ordinal), np.eye(3), 5.0, 100)
    generators = [np.random.default_rng(seed) for seed in range(2)]
    began = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        erl_native.run_chains(layout, generators, draws=10**5, burn_in=0, odens=10, tick=failing_tick)
    assert time.perf_counter() - began < 30
    assert not [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"engine": "R"}, ArgumentError, "unknown engine"),
        ({"draws": 0}, ArgumentError, "draws is too small"),
        ({"draws": 10.0}, ArgumentTypeError, "draws is not a whole number"),
        ({"chains": True}, ArgumentTypeError, "chains is not a whole number"),
        ({"burn_in": -1}, ArgumentError, "burn_in is too small"),
        ({"odens": 0}, ArgumentError, "odens is too small"),
        ({"seed": -1}, ArgumentError, "seed is too small"),
        ({"seed": "1"}, ArgumentTypeError, "seed is not a whole number"),
        ({"plugin_threshold": "all"}, ArgumentTypeError, "plugin_threshold is not a number"),
        ({"plugin_threshold": float("inf")}, ArgumentError, "None asks for the rank likelihood"),
        ({"plugin_threshold": -1}, ArgumentError, "plugin_threshold is out of range"),
        ({"prior": np.eye(3)}, ArgumentTypeError, "prior is not a pair"),
        ({"prior": (np.eye(2), None)}, ArgumentError, "S0 has the wrong shape"),
        ({"prior": (-np.eye(3), None)}, ArgumentError, "not symmetric and positive definite"),
        ({"prior": ([[1, 1, 0], [0, 1, 0], [0, 0, 1]], None)}, ArgumentError, "not symmetric"),
        ({"prior": ("one", None)}, ArgumentTypeError, "S0 is not numeric"),
        ({"prior": (None, 2.0)}, ArgumentError, "n0 is out of range"),
        ({"prior": (None, float("nan"))}, ArgumentError, "n0 is out of range"),
        ({"prior": (None, "5")}, ArgumentTypeError, "n0 is not a number"),
    ],
)
def test_settings_out_of_range(ordinal, options, error, told):
    with pytest.raises(error) as caught:
        dps.erl(ordinal, progress=False, **options)
    assert told in str(caught.value)


def test_only_frames():
    with pytest.raises(ArgumentTypeError, match="not a table"):
        dps.erl([[1, 2], [3, 4]])


def test_the_diet_table_matches_sbgcop(shared, golden):
    """The paper's n = 5820 by seven table against 4000 draws of sbgcop: means within .005, sds within 3%."""
    reference = json.loads((golden / "sbgcop" / "nhanes_erl.json").read_text())
    diet = _diet(shared / "nhanes")
    assert len(diet) == 5820
    posterior = dps.erl(diet, draws=8000, chains=2, seed=1, progress=False)
    lengths = []
    for row in posterior.summary().itertuples():
        expected = reference["correlations"][f"{row.var1}~~{row.var2}"]
        assert abs(row.mean - expected["mean"]) < 0.005
        assert abs(row.sd / expected["sd"] - 1) < 0.04  # 3%, and 1.1% of error in 4000 golden draws
        lengths.append(row.upper - row.lower)
    assert abs(np.mean(lengths) - 0.046) < 0.0015
    coefficients = _coefficients(posterior.regress("Kcal", on=list(diet.columns[1:])))
    for name, expected in reference["regression_of_Kcal"].items():
        assert abs(coefficients.loc[name, "mean"] - expected["mean"]) < 0.005


def _diet(folder):
    from dpsurvey.confidential.files import read_survey

    columns = {
        "DR1TKCAL": "Kcal",
        "INDFMPIR": "Income",
        "DR1T_G_TOTAL": "Grain",
        "DR1T_D_TOTAL": "Dairy",
        "DR1T_V_TOTAL": "Veg",
        "DR1T_PF_TOTAL": "PF",
        "DR1T_ADD_SUGARS": "Sugar",
        "DRDINT": "DRDINT",
        "DRABF": "DRABF",
    }
    files = ["DR1TOT_J_subset_rebuilt.xpt", "DEMO_J_rebuilt.xpt", "fped_dr1tot_1718.sas7bdat"]
    frame = read_survey(*(folder / name for name in files), on="SEQN", columns=columns)
    frame = frame[(frame["DRDINT"] == 2) & (frame["DRABF"] == 2)].drop(columns=["DRDINT", "DRABF"])
    return frame.dropna()
