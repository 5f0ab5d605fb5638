"""Results: what they accept, what they say, and that a saved one comes back equal."""

import io
import json
import warnings
import zipfile

import numpy as np
import pytest

from dpsurvey.copula.correlation import pair_values
from dpsurvey.copula.posterior import CorrelationEstimate, CorrelationPosterior
from dpsurvey.copula.result_file import load_result
from dpsurvey.errors import (
    ArgumentError,
    ArgumentTypeError,
    MissingFileError,
    ReleaseFormatError,
    WideIntervalWarning,
)

NAMES = ("Kcal", "Grain", "Veg")
COLUMNS = ["var1", "var2", "mean", "sd", "lower", "upper", "ess_bulk", "ess_tail", "r_hat"]


def lkj_draws(p: int, chains: int, draws: int, seed: int = 1) -> np.ndarray:
    """Independent LKJ(1) matrices: Wishart(p + 1, I) scaled to unit diagonal."""
    factors = np.random.default_rng(seed).normal(size=(chains, draws, p, p + 1))
    wishart = factors @ np.swapaxes(factors, -1, -2)
    scale = 1 / np.sqrt(np.diagonal(wishart, axis1=-2, axis2=-1))
    return wishart * scale[..., None] * scale[..., None, :]


def near(R: np.ndarray, chains: int = 4, draws: int = 250, n: int = 500) -> np.ndarray:
    """Draws around R: sample correlations of n normal rows."""
    rows = np.random.default_rng(2).multivariate_normal(np.zeros(len(R)), R, size=(chains, draws, n))
    cov = np.einsum("...ni,...nj->...ij", rows, rows)
    scale = 1 / np.sqrt(np.diagonal(cov, axis1=-2, axis2=-1))
    return cov * scale[..., None] * scale[..., None, :]


@pytest.fixture(scope="module")
def strong() -> np.ndarray:
    return near(np.array([[1, 0.7, 0.4], [0.7, 1, 0.3], [0.4, 0.3, 1]]))


def posterior(draws: np.ndarray, **changes: object) -> CorrelationPosterior:
    fields: dict[str, object] = {
        "variables": NAMES[: draws.shape[-1]],
        "labels": {"Kcal": "Energy <kcal>"},
        "method": "Bayes-NA",
        "engine": "gibbs",
        "private": True,
        "seed": 7,
        "info": {"sweeps": 1500, "versions": {"numpy": "2"}},
    }
    return CorrelationPosterior(draws, **{**fields, **changes})


def estimate(**changes: object) -> CorrelationEstimate:
    fields: dict[str, object] = {
        "R": [[1, 0.5, 0.2], [0.5, 1, 0.1], [0.2, 0.1, 1]],
        "variables": NAMES,
        "labels": {},
        "method": "MLE-NN",
        "private": True,
        "info": {"boundary": [False, False, True], "projected": True, "frobenius_distance": 0.25},
    }
    return CorrelationEstimate(**{**fields, **changes})


def test_statistics_are_those_of_the_pooled_draws(strong: np.ndarray) -> None:
    result = posterior(strong)
    pooled = strong.reshape(-1, 3, 3)
    np.testing.assert_allclose(result.mean(), pooled.mean(axis=0), atol=1e-14)
    np.testing.assert_allclose(result.sd(), pooled.std(axis=0, ddof=1), atol=1e-14)
    lower, upper = result.interval(0.9)
    ordered = np.sort(pooled[:, 0, 1])
    # (N + 1) q plotting positions with N = 1000: q = .05 falls between the 50th and 51st draw, at 50.05
    assert lower[0, 1] == pytest.approx(ordered[49] + 0.05 * (ordered[50] - ordered[49]))
    assert upper[0, 1] == pytest.approx(ordered[949] + 0.95 * (ordered[950] - ordered[949]))
    assert np.array_equal(np.diag(lower), np.ones(3))
    assert np.array_equal(np.diag(result.sd()), np.zeros(3))
    assert np.array_equal(lower, lower.T)


def test_intervals_from_few_draws_cover_as_promised() -> None:
    """With N equally good draws, (N + 1) q positions cover .95; naive quantiles .95 (N - 1)/(N + 1)."""
    rng, N, runs = np.random.default_rng(3), 39, 4000
    z = np.tanh(rng.normal(scale=0.3, size=(runs, N + 1)))
    covered = 0
    for truth, values in zip(z[:, 0], z[:, 1:], strict=True):
        draws = np.broadcast_to(np.eye(2), (1, N, 2, 2)).copy()
        draws[..., 0, 1] = draws[..., 1, 0] = values
        lower, upper = posterior(draws).interval()
        covered += lower[0, 1] <= truth <= upper[0, 1]
    error = np.sqrt(0.95 * 0.05 / runs)
    assert abs(covered / runs - 0.95) < 3.5 * error  # the naive rule gives .9025, 14 errors away


def test_summary_has_one_row_per_pair_in_order(strong: np.ndarray) -> None:
    frame = posterior(strong).summary()
    assert list(frame.columns) == COLUMNS
    assert list(zip(frame["var1"], frame["var2"], strict=True)) == [
        ("Kcal", "Grain"),
        ("Kcal", "Veg"),
        ("Grain", "Veg"),
    ]
    np.testing.assert_allclose(frame["mean"], pair_values(posterior(strong).mean()))
    assert frame["ess_bulk"].between(700, 1400).all()
    assert frame["r_hat"].between(0.99, 1.02).all()
    labelled = posterior(strong).summary(labels=True)
    assert list(labelled["var1"]) == ["Energy <kcal>", "Energy <kcal>", "Grain"]


def test_diagnostics_are_those_of_arviz(strong: np.ndarray) -> None:
    from arviz_stats.base import array_stats

    sticky = strong.copy()
    sticky[:2] = sticky[:1, :1]  # two chains that stand still
    for draws in (strong, sticky):
        frame = posterior(draws).summary()
        values = pair_values(posterior(draws).draws)
        for k in range(3):
            one = values[..., k]
            assert frame["ess_bulk"][k] == pytest.approx(array_stats.ess(one, method="bulk"))
            tail = array_stats.ess(one, method="tail", prob=(0.05, 0.95))
            assert frame["ess_tail"][k] == pytest.approx(tail)
            assert frame["r_hat"][k] == pytest.approx(array_stats.rhat(one))
    assert (frame["r_hat"] > 1.5).all()


def test_diagnostics_that_do_not_exist_are_nan(strong: np.ndarray) -> None:
    one_chain = posterior(strong[:1]).summary()
    assert one_chain["ess_bulk"].notna().all()
    assert one_chain["r_hat"].isna().all()
    constant = posterior(np.broadcast_to(strong[0, 0], (2, 50, 3, 3))).summary()
    assert constant[["ess_bulk", "ess_tail", "r_hat"]].isna().all(axis=None)
    assert (constant["sd"] < 1e-15).all()
    single = posterior(strong[:1, :1]).summary()
    assert single[["sd", "ess_bulk", "r_hat"]].isna().all(axis=None)
    assert np.array_equal(single["lower"], single["upper"])


def test_wide_private_intervals_warn_once_per_summary() -> None:
    draws = lkj_draws(3, 2, 500)
    with pytest.warns(WideIntervalWarning, match="3 of 3 intervals cover 0") as caught:
        posterior(draws).summary()
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert "too little budget" in repr(posterior(draws))
    assert "too little budget" in posterior(draws)._repr_html_()


def test_wide_intervals_say_how_long_they_would_be_without_data() -> None:
    with pytest.warns(WideIntervalWarning) as caught:
        posterior(lkj_draws(3, 4, 5000)).summary()
    text = str(caught[0].message)
    assert "without any data it would be 1.76" in text
    assert "interval length 1.7" in text


def test_no_advice_on_budget_where_there_is_none(strong: np.ndarray) -> None:
    draws = lkj_draws(3, 2, 500)
    posterior(draws, private=False, method="ERL").summary()  # warnings are errors
    posterior(strong).summary()
    assert "budget" not in repr(posterior(draws, private=False))
    assert "budget" not in repr(posterior(strong))


def test_repr_says_privacy_scale_weights_and_size(strong: np.ndarray) -> None:
    text = repr(posterior(strong))
    for part in ("Bayes-NA", "3 variables", "3 correlations", "4 chains x 250 draws", "engine gibbs"):
        assert part in text
    for part in ("private", "latent standard normal", "survey weights and design are not used"):
        assert part in text
    assert "NOT PRIVATE" not in text
    assert "!!! NOT PRIVATE" in repr(posterior(strong, private=False))


def test_html_escapes_and_shouts(strong: np.ndarray) -> None:
    html = posterior(strong, private=False)._repr_html_()
    assert "<strong>" in html
    assert "NOT PRIVATE" in html
    assert "#b00020" in html
    assert "Energy &lt;kcal&gt;" in html
    assert "Energy <kcal>" not in html
    assert "latent standard normal" in html
    assert "survey weights" in html
    assert html.count("<tr") == 4
    assert "#b00020" not in posterior(strong)._repr_html_()


def test_results_are_frozen_copies(strong: np.ndarray) -> None:
    mine = strong.copy()
    result = posterior(mine)
    mine[:] = 0
    np.testing.assert_allclose(result.draws, strong, atol=1e-12)
    with pytest.raises(ValueError, match="read-only"):
        result.draws[0, 0, 0, 1] = 0.0
    with pytest.raises(AttributeError):
        result.method = "other"  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        estimate().R[0, 1] = 0.0


def test_draws_become_exactly_symmetric_with_unit_diagonal(strong: np.ndarray) -> None:
    noisy = strong + np.random.default_rng(5).normal(scale=1e-9, size=strong.shape)
    result = posterior(noisy)
    assert np.array_equal(result.draws, np.swapaxes(result.draws, -1, -2))
    assert (np.diagonal(result.draws, axis1=-2, axis2=-1) == 1.0).all()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: d[0], "wrong shape"),
        (lambda d: d[:, :0], "wrong shape"),
        (lambda d: d[..., :2], "square"),
        (lambda d: np.where(d == d[0, 0, 0, 1], np.nan, d), "not finite"),
        (lambda d: 1.1 * d, "unit diagonal"),
        (lambda d: d + np.triu(np.full((3, 3), 1e-3), 1), "not symmetric"),
        (lambda d: np.where(np.eye(3) == 1, 1.0, -0.9), "wrong shape"),
        (lambda d: d * 0 + np.where(np.eye(3) == 1, 1.0, -0.9), "semidefinite"),
    ],
)
def test_what_are_not_draws_of_correlations_is_refused(strong, damage, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        posterior(damage(strong))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"variables": ("a", "b")}, ArgumentError, "2 names"),
        ({"variables": ("a", "b", "a")}, ArgumentError, "2 of them different"),
        ({"variables": "abc"}, ArgumentError, "1 names"),
        ({"variables": ("a", "b", 3)}, ArgumentTypeError, "names"),
        ({"labels": {"Carrots": "x"}}, ArgumentError, "Carrots"),
        ({"labels": {"Kcal": 3}}, ArgumentTypeError, "labels"),
        ({"method": ""}, ArgumentTypeError, "method"),
        ({"engine": None}, ArgumentTypeError, "engine"),
        ({"private": 1}, ArgumentTypeError, "private"),
        ({"seed": True}, ArgumentTypeError, "seed"),
        ({"seed": 1.5}, ArgumentTypeError, "seed"),
        ({"info": {"x": np.float64(1) + 1j}}, ArgumentTypeError, "info"),
        ({"info": {"x": float("nan")}}, ArgumentTypeError, "info"),
    ],
)
def test_bad_fields_are_named(strong, changes, error, message: str) -> None:
    with pytest.raises(error, match=message):
        posterior(strong, **changes)


@pytest.mark.parametrize("prob", [0, 1, -0.5, 95, float("nan"), True, "0.95"])
def test_prob_must_be_a_probability(strong, prob) -> None:
    with pytest.raises(ArgumentError, match="prob"):
        posterior(strong).summary(prob)


def test_a_percentage_is_recognised(strong: np.ndarray) -> None:
    with pytest.raises(ArgumentError, match=r"for 95% intervals give prob=0.95"):
        posterior(strong).interval(95)


def test_to_arviz_has_each_pair_once(strong: np.ndarray) -> None:
    tree = posterior(strong, private=False).to_arviz()
    R = tree["posterior"]["R"]
    assert R.dims == ("chain", "draw", "pair")
    assert list(R.coords["pair"].values) == ["Kcal ~ Grain", "Kcal ~ Veg", "Grain ~ Veg"]
    np.testing.assert_allclose(R.sel(pair="Kcal ~ Veg").values, strong[..., 0, 2], atol=1e-12)
    attributes = tree["posterior"].attrs
    assert attributes["private"] == 0
    assert "NOT PRIVATE" in attributes["privacy"]
    assert attributes["variables"] == list(NAMES)


def test_a_saved_posterior_comes_back_equal(strong, tmp_path) -> None:
    saved = posterior(strong, info={"sweeps": (1, 2), "nested": {"x": None}}, seed=None)
    assert saved.save(tmp_path / "p.npz") == tmp_path / "p.npz"
    loaded = CorrelationPosterior.load(tmp_path / "p.npz")
    assert np.array_equal(saved.draws, loaded.draws)
    for name in ("variables", "labels", "method", "engine", "private", "release", "seed", "info"):
        assert getattr(saved, name) == getattr(loaded, name)
    assert repr(saved) == repr(loaded)
    assert not loaded.draws.flags.writeable
    assert list(tmp_path.iterdir()) == [tmp_path / "p.npz"]
    # 4 x 250 draws of 3 pairs in float64, and little else
    assert (tmp_path / "p.npz").stat().st_size < 4 * 250 * 3 * 8 + 3000


def test_a_saved_estimate_comes_back_equal(tmp_path) -> None:
    saved = estimate()
    saved.save(tmp_path / "e.npz")
    loaded = CorrelationEstimate.load(tmp_path / "e.npz")
    assert np.array_equal(saved.R, loaded.R)
    for name in ("variables", "labels", "method", "private", "release", "info"):
        assert getattr(saved, name) == getattr(loaded, name)
    assert isinstance(load_result(tmp_path / "e.npz"), CorrelationEstimate)


def test_loading_the_other_kind_is_refused(strong, tmp_path) -> None:
    estimate().save(tmp_path / "e.npz")
    posterior(strong).save(tmp_path / "p.npz")
    with pytest.raises(ReleaseFormatError, match="another kind"):
        CorrelationPosterior.load(tmp_path / "e.npz")
    with pytest.raises(ReleaseFormatError, match="another kind"):
        CorrelationEstimate.load(tmp_path / "p.npz")


def rewrite(path, header_changes: dict | None = None, drop: tuple = (), **arrays: object) -> None:
    """Write the archive again with a changed header or other arrays."""
    with np.load(path) as archive:
        header, pairs = json.loads(str(archive["header"])), archive["pairs"]
    header.update(header_changes or {})
    for name in drop:
        del header[name]
    content = {"header": np.array(json.dumps(header)), "pairs": pairs} | arrays
    with open(path, "wb") as file:
        np.savez(file, **{name: value for name, value in content.items() if value is not None})


@pytest.mark.parametrize(
    ("header", "drop", "arrays", "message"),
    [
        ({"schema": "dpsurvey.release"}, (), {}, "names no schema"),
        ({"schema_version": 2}, (), {}, "version is unknown"),
        ({"schema_version": True}, (), {}, "version is unknown"),
        ({}, ("schema_version",), {}, "version is unknown"),
        ({}, ("engine",), {}, r"missing \['engine'\]"),
        ({"surprise": 1}, (), {}, r"unknown \['surprise'\]"),
        ({"private": "yes"}, (), {}, "'private' has the wrong type"),
        ({"seed": True}, (), {}, "'seed' has the wrong type"),
        ({"variables": ["a", "b"]}, (), {}, "does not fit"),
        ({"variables": ["a", "b", "b"]}, (), {}, "2 of them different"),
        ({"labels": {"z": "a"}}, (), {}, "labels"),
        ({}, (), {"pairs": np.zeros((2, 5, 3), np.float32)}, "float32"),
        ({}, (), {"pairs": np.zeros((5, 3))}, "2 dimensions|3 dimensions"),
        ({}, (), {"pairs": np.full((2, 5, 3), -0.9)}, "semidefinite"),
        ({}, (), {"pairs": np.full((2, 5, 3), np.inf)}, "finite"),
        ({}, (), {"pairs": None}, "other arrays"),
        ({}, (), {"extra": np.zeros(1)}, "other arrays"),
        ({}, (), {"header": np.zeros(3)}, "not a text"),
        ({}, (), {"header": np.array("{")}, "not JSON"),
        ({}, (), {"header": np.array("[1]")}, "names no schema"),
    ],
)
def test_loading_is_strict(strong, tmp_path, header, drop, arrays, message: str) -> None:
    path = tmp_path / "p.npz"
    posterior(strong).save(path)
    rewrite(path, header, drop, **arrays)
    with pytest.raises(ReleaseFormatError, match=message):
        CorrelationPosterior.load(path)


def test_a_pickle_is_never_opened(strong, tmp_path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple:
            return (pytest.fail, ("the pickle was executed",))

    path = tmp_path / "p.npz"
    posterior(strong).save(path)
    rewrite(path, pairs=np.array([Bomb()], dtype=object))
    with pytest.raises(ReleaseFormatError, match=r"not an \.npz archive"):
        load_result(path)


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04broken", "npy", "zip"])
def test_other_files_are_refused(tmp_path, content) -> None:
    path = tmp_path / "x.npz"
    if content == "npy":
        buffer = io.BytesIO()
        np.save(buffer, np.zeros(3))
        content = buffer.getvalue()
    elif content == "zip":
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("readme.txt", "hello")
        content = buffer.getvalue()
    path.write_bytes(content)
    with pytest.raises(ReleaseFormatError, match=r"x\.npz"):
        load_result(path)


def test_a_file_that_is_not_there_is_named(tmp_path) -> None:
    with pytest.raises(MissingFileError, match=r"nowhere\.npz"):
        load_result(tmp_path / "nowhere.npz")
    with pytest.raises(MissingFileError):
        load_result(tmp_path)


def test_damaged_files_give_the_named_error_or_load_what_was_saved(strong, tmp_path) -> None:
    """A byte flipped or the tail cut: never a stray exception."""
    path = tmp_path / "p.npz"
    posterior(strong[:1, :4]).save(path)
    original = path.read_bytes()
    rng = np.random.default_rng(6)
    outcomes = {"loaded": 0, "refused": 0}
    for _ in range(300):
        damaged = bytearray(original)
        if rng.random() < 0.3:
            damaged = damaged[: rng.integers(len(damaged))]
        else:
            damaged[rng.integers(len(damaged))] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # zipfile warns about some damaged directories
                load_result(path)
        except ReleaseFormatError:
            outcomes["refused"] += 1
        else:
            outcomes["loaded"] += 1
    assert outcomes["refused"] > 200


def test_estimate_summary_shows_the_flags_of_each_pair() -> None:
    frame = estimate().summary()
    assert list(frame.columns) == ["var1", "var2", "estimate", "boundary"]
    assert list(frame["estimate"]) == [0.5, 0.2, 0.1]
    assert list(frame["boundary"]) == [False, False, True]
    assert list(estimate(info={"estimate": [9, 9, 9]}).summary()["estimate"]) == [0.5, 0.2, 0.1]


def test_estimate_says_what_it_is() -> None:
    text = repr(estimate())
    for part in ("MLE-NN estimate", "no intervals", "latent standard normal", "survey weights"):
        assert part in text
    assert "projected: True" in text
    assert "boundary: 1 of 3 pairs" in text
    assert "NOT PRIVATE" in repr(estimate(private=False))
    html = estimate(private=False)._repr_html_()
    assert "NOT PRIVATE" in html
    assert html.count("<tr") == 4


def test_estimate_refuses_what_is_not_a_correlation_matrix() -> None:
    with pytest.raises(ArgumentError, match="semidefinite"):
        estimate(R=[[1, 0.9, 0.9], [0.9, 1, -0.9], [0.9, -0.9, 1]])
    with pytest.raises(ArgumentError, match="wrong shape"):
        estimate(R=np.eye(3)[None])


def test_a_release_is_described_and_travels_with_the_result(strong, make_release, tmp_path) -> None:
    release = make_release(NAMES, epsilon=0.5)
    saved = posterior(strong, release=release)
    text = repr(saved)
    assert "private: epsilon = 0.5, n = 500, quadrant counts, geometric noise, secure noise" in text
    saved.save(tmp_path / "p.npz")
    assert CorrelationPosterior.load(tmp_path / "p.npz").release == release
    estimate(release=release).save(tmp_path / "e.npz")
    assert CorrelationEstimate.load(tmp_path / "e.npz").release == release
    assert "epsilon = 0.5" in saved.to_arviz()["posterior"].attrs["privacy"]


def test_insecure_noise_is_as_loud_as_no_privacy(strong, make_release) -> None:
    result = posterior(strong, release=make_release(NAMES, secure=False))
    assert "!!! private" in repr(result)
    assert "INSECURE NOISE" in repr(result)
    assert "#b00020" in result._repr_html_()
    assert "INSECURE NOISE" in repr(estimate(release=make_release(NAMES, secure=False)))


def test_advice_on_budget_states_epsilon_and_n(make_release) -> None:
    result = posterior(lkj_draws(3, 2, 500), release=make_release(NAMES, epsilon=0.01))
    with pytest.warns(WideIntervalWarning, match=r"epsilon = 0\.01, n = 500, p = 3"):
        result.summary()


@pytest.mark.parametrize(
    ("names", "changes", "error", "message"),
    [
        (("Grain", "Kcal", "Veg"), {}, ArgumentError, "not those of the release"),
        (NAMES, {"private": False}, ArgumentError, "not private"),
    ],
)
def test_a_result_that_contradicts_its_release_is_refused(
    strong, make_release, names, changes, error, message
) -> None:
    with pytest.raises(error, match=message):
        posterior(strong, release=make_release(names), **changes)
    with pytest.raises(ArgumentTypeError, match="release is not a release"):
        posterior(strong, release={"epsilon": 1})


def test_a_damaged_release_inside_a_saved_result_is_refused(strong, make_release, tmp_path) -> None:
    path = tmp_path / "p.npz"
    posterior(strong, release=make_release(NAMES)).save(path)
    broken = make_release(NAMES).to_dict() | {"n": 3}
    rewrite(path, {"release": broken})
    with pytest.raises(ReleaseFormatError, match="n is not within"):
        load_result(path)
    rewrite(path, {"release": None, "private": False})
    assert not load_result(path).private
