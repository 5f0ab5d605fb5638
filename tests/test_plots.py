"""Figures show the numbers they are given, can be read, and say what is not private."""

import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsurvey.baselines.ols import ols_benchmark
from dpsurvey.copula.planning import plan
from dpsurvey.copula.posterior import CorrelationEstimate, CorrelationPosterior
from dpsurvey.errors import ArgumentError, ArgumentTypeError, MissingDependencyError
from dpsurvey.plots import plot_forest, plot_heatmap, plot_plan, plot_regression
from dpsurvey.privacy.release import Release

matplotlib = pytest.importorskip("matplotlib", reason="figures need matplotlib")

NAMES = ("Kcal", "Income", "Grain", "Dairy", "Veg", "PF", "Sugar", "Fibre", "Sodium", "BMI")


def correlation_draws(p: int, n: int, seed: int) -> np.ndarray:
    """Sample correlations of n normal rows around one LKJ(1) matrix, shape (1, 60, p, p)."""
    factor = np.random.default_rng(p).normal(size=(p, p + 1))
    rows = np.random.default_rng(seed).normal(size=(1, 60, n, p + 1)) @ factor.T
    rows = rows - rows.mean(axis=-2, keepdims=True)
    cov = np.swapaxes(rows, -1, -2) @ rows
    scale = 1 / np.sqrt(np.diagonal(cov, axis1=-2, axis2=-1))
    return cov * scale[..., None] * scale[..., None, :]


def release(p: int, epsilon: float) -> Release:
    m = p * (p - 1) // 2
    return Release(
        variables=NAMES[:p],
        n=5820,
        counts=(1500,) * m,
        statistic="quadrant",
        mechanism="geometric",
        parameters={"scale": m / epsilon, "privacy_map": epsilon},
        epsilon=epsilon,
        delta=0.0,
        neighbours="substitute one row",
        key_seed=1,
        key_fingerprint="00",
        secure=True,
    )


def private(p: int, epsilon: float = 1.0, **changes: object) -> CorrelationPosterior:
    fields: dict[str, object] = {
        "variables": NAMES[:p],
        "labels": {name: f"{name} on day one (kilocalories)" for name in NAMES[:p:2]},
        "method": "Bayes-NA",
        "engine": "gibbs",
        "private": True,
        "release": release(p, epsilon),
    }
    draws = correlation_draws(p, int(100 * epsilon), 1)
    return CorrelationPosterior(draws, **{**fields, **changes})


def erl(p: int) -> CorrelationPosterior:
    return CorrelationPosterior(
        correlation_draws(p, 1000, 2), NAMES[:p], {}, method="ERL", engine="native", private=False
    )


def mle(p: int) -> CorrelationEstimate:
    return CorrelationEstimate(
        private(p).mean(), NAMES[:p], {}, method="MLE-NN", private=True, release=release(p, 1.0)
    )


def title(ax) -> str:
    return ax.get_title(loc="left")


def segments(ax) -> list[np.ndarray]:
    """The ends of the drawn intervals, one array (rows, 2) per result."""
    collections = [c for c in ax.collections if isinstance(c, matplotlib.collections.LineCollection)]
    return [np.array([segment[:, 0] for segment in c.get_segments() if len(segment)]) for c in collections]


def markers(ax) -> list[np.ndarray]:
    return [line.get_xdata() for line in ax.lines if line.get_marker() not in ("None", "")]


def boxes(ax, texts) -> list:
    """Where texts lie, in pixels."""
    ax.figure.draw_without_rendering()
    return [text.get_window_extent() for text in texts]


def assert_readable(ax) -> None:
    """Nothing is cut off by the edge of the figure, and no two labels of an axis overlap."""
    ax.figure.draw_without_rendering()
    frame = ax.figure.bbox
    legend = ax.get_legend()
    low, high = ax.get_xlim()
    ticks = [tick.label1 for tick in ax.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
    texts = [*ax.get_yticklabels(), *ticks, ax.xaxis.label, ax._left_title, *ax.texts]
    texts += legend.get_texts() if legend else []
    for text in texts:
        if text.get_text():
            box = text.get_window_extent()
            assert box.x0 >= frame.x0 - 1, text
            assert box.x1 <= frame.x1 + 1, text
            assert box.y0 >= frame.y0 - 1, text
            assert box.y1 <= frame.y1 + 1, text
    labels = boxes(ax, ax.get_yticklabels())
    for upper, lower in itertools.pairwise(labels):
        assert not upper.overlaps(lower)
    if legend:
        assert not legend.get_window_extent().overlaps(ax._left_title.get_window_extent())


def test_forest_shows_the_intervals_and_means() -> None:
    results = (private(4), private(4, 3.0), erl(4))
    ax = plot_forest(*results, prob=0.8)
    upper_triangle = np.triu_indices(4, 1)
    for result, drawn, centres in zip(results, segments(ax), markers(ax), strict=True):
        lower, upper = result.interval(0.8)
        np.testing.assert_allclose(drawn, np.column_stack([lower[upper_triangle], upper[upper_triangle]]))
        np.testing.assert_allclose(centres, result.mean()[upper_triangle])
    assert [label.get_text() for label in ax.get_yticklabels()][:3] == [
        "Kcal ~ Income",
        "Kcal ~ Grain",
        "Kcal ~ Dairy",
    ]
    assert ax.yaxis_inverted()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "Bayes-NA (ε = 1)",
        "Bayes-NA (ε = 3)",
        "ERL",
    ]
    assert "80% intervals" in title(ax)
    assert "latent standard normal" in ax.get_xlabel()


def test_forest_places_results_side_by_side_in_their_row() -> None:
    ax = plot_forest(private(3), private(3, 3.0), erl(3))
    heights = [line.get_ydata() for line in ax.lines if line.get_marker() not in ("None", "")]
    assert (np.diff(np.array(heights), axis=0) > 0.1).all()
    for row in range(3):
        assert all(abs(y[row] - row) < 0.5 for y in heights)


def test_an_estimate_has_a_marker_and_no_interval() -> None:
    ax = plot_forest(mle(3))
    assert segments(ax)[0].size == 0
    np.testing.assert_allclose(markers(ax)[0], mle(3).summary()["estimate"])
    assert "intervals" not in title(ax)


def test_forest_brings_results_into_the_first_order() -> None:
    full = erl(4)
    order = [3, 1, 0, 2]
    turned = CorrelationPosterior(
        full.draws[..., order, :][..., order],
        tuple(NAMES[k] for k in order),
        {},
        method="ERL",
        engine="native",
        private=False,
    )
    first, second = segments(plot_forest(full, turned))
    np.testing.assert_allclose(first, second)


@pytest.mark.parametrize(
    ("draw", "loud"),
    [
        (lambda: plot_forest(private(3)), False),
        (lambda: plot_forest(private(3), erl(3)), True),
        (lambda: plot_forest(private(3), erl(3), names=["a", "b"]), True),
        (lambda: plot_heatmap(private(3)), False),
        (lambda: plot_heatmap(erl(3)), True),
        (lambda: plot_regression(private(3).regress("Kcal", on=["Grain"])), False),
        (lambda: plot_regression(erl(3).regress("Kcal", on=["Grain"])), True),
    ],
)
def test_titles_flag_what_is_not_private(draw, loud: bool) -> None:
    ax = draw()
    assert ("NOT PRIVATE" in title(ax)) == loud
    assert ("private" in title(ax)) != loud
    assert (matplotlib.colors.to_hex(ax._left_title.get_color()) == "#b00020") == loud


@pytest.mark.parametrize("p", [3, 10])
@pytest.mark.parametrize("labels", [False, True])
def test_forests_are_readable(p: int, labels: bool) -> None:
    for results in ((private(p),), (private(p), mle(p), erl(p))):
        ax = plot_forest(*results, labels=labels)
        assert_readable(ax)
        assert ax.get_window_extent().width / ax.figure.dpi > 4.0  # long labels do not squeeze the panel


@pytest.mark.parametrize("p", [2, 10])
@pytest.mark.parametrize("labels", [False, True])
def test_heatmaps_are_readable(p: int, labels: bool) -> None:
    ax = plot_heatmap(private(p), labels=labels)
    assert_readable(ax)
    cell = ax.transData.transform([[0, 0], [1, 1]])
    width, height = np.abs(cell[1] - cell[0])
    for text in ax.texts:
        box = text.get_window_extent()
        assert box.width < width
        assert box.height < height


def test_long_names_of_results_do_not_run_out_of_the_figure() -> None:
    names = [f"the posterior that was made under assumption number {k}" for k in range(3)]
    assert_readable(plot_forest(private(3), mle(3), erl(3), names=names))


def test_heatmap_writes_every_pair_once() -> None:
    result = private(5)
    ax = plot_heatmap(result)
    assert len(ax.texts) == 10
    lower, upper = result.interval()
    shown = {(round(t.get_position()[1]) + 1, round(t.get_position()[0])): t.get_text() for t in ax.texts}
    for (row, column), text in shown.items():
        assert row > column
        value = f"{result.mean()[row, column]:.2f}".replace("-", "−")
        covers = lower[row, column] <= 0 <= upper[row, column]
        assert text == (f"({value})" if covers else value)
    assert any(text.startswith("(") for text in shown.values())
    assert [t.get_text() for t in ax.get_xticklabels()] == list(NAMES[:4])
    assert [t.get_text() for t in ax.get_yticklabels()] == list(NAMES[1:5])
    assert ax.images[0].get_clim() == (-1.0, 1.0)


def test_heatmap_of_an_estimate_has_no_parentheses() -> None:
    ax = plot_heatmap(mle(5))
    assert not any("(" in text.get_text() for text in ax.texts)
    assert ax.get_xlabel() == ""


def test_regression_forest_shows_coefficients_of_all() -> None:
    on = ["Income", "Grain", "Dairy"]
    first, second = private(4).regress("Kcal", on=on), erl(4).regress("Kcal", on=on[::-1])
    rows = np.random.default_rng(3).normal(size=(100, 5)) @ np.random.default_rng(4).normal(size=(5, 4))
    ols = ols_benchmark(pd.DataFrame(rows, columns=list(NAMES[:4])), "Kcal", on=on)
    ax = plot_regression(first, second, ols)
    assert [label.get_text() for label in ax.get_yticklabels()] == on
    for drawn, regression in zip(segments(ax), (first, second, ols), strict=True):
        expected = regression.intervals(0.95).set_index("term").loc[on, ["lower", "upper"]]
        np.testing.assert_allclose(drawn, expected)
    assert title(ax).startswith(
        "Regression of Kcal, 95% intervals\nNOT PRIVATE: ERL, OLS on normal scores saw"
    )
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "Bayes-NA (ε = 1)",
        "ERL",
        "OLS on normal scores",
    ]
    assert_readable(ax)


def test_a_given_axes_is_used() -> None:
    figure = matplotlib.figure.Figure()
    left, right = figure.subplots(1, 2)
    assert plot_forest(private(3), ax=left) is left
    assert plot_heatmap(private(3), ax=right) is right
    assert plot_regression(private(3).regress("Kcal", on=["Grain"]), ax=left) is left


def test_dollar_signs_are_not_mathematics() -> None:
    names = ("in$come", "co$ts", "x")
    result = private(3, variables=names, labels={"x": "$a_b$ {"}, release=None)
    for ax in (plot_forest(result, labels=True), plot_heatmap(result, labels=True)):
        ax.figure.draw_without_rendering()
    plot_regression(result.regress("in$come", on=["co$ts"])).figure.draw_without_rendering()
    plot_forest(result, names=["$1 \\frac"]).figure.draw_without_rendering()


def test_figures_are_written(tmp_path) -> None:
    for kind in ("png", "pdf", "svg"):
        path = tmp_path / f"figure.{kind}"
        plot_forest(private(3), erl(3)).figure.savefig(path)
        assert path.stat().st_size > 2000


def test_many_figures_leave_no_global_state() -> None:
    """Figures do not belong to pyplot, which would keep every one of them alive and warn after twenty."""
    code = """
import sys, numpy as np
import dpsurvey.plots as plots
assert "matplotlib" not in sys.modules
from dpsurvey import CorrelationEstimate
estimate = CorrelationEstimate(np.eye(3), ("a", "b", "c"), {}, method="ERL", private=False)
for _ in range(25):
    plots.plot_heatmap(estimate)
plots.plot_forest(estimate).figure.savefig(sys.argv[1])
assert "matplotlib.pyplot" not in sys.modules
"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.png"
        environment = {"PATH": "", "HOME": folder, "MPLBACKEND": "tkagg", "MPLCONFIGDIR": folder}
        subprocess.run([sys.executable, "-W", "error", "-c", code, str(path)], check=True, env=environment)
        assert path.read_bytes().startswith(b"\x89PNG")


def test_in_a_notebook_figures_belong_to_pyplot(monkeypatch) -> None:
    import matplotlib.pyplot as plt

    monkeypatch.setitem(sys.modules, "ipykernel", object())
    with matplotlib.rc_context({"backend": "agg"}):
        plt.close("all")
        ax = plot_forest(private(3))
        assert plt.get_fignums() == [ax.figure.number]
        plt.close("all")


def test_without_matplotlib_the_extra_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "dpsurvey\[plot\]"'):
        plot_forest(private(3))


def test_bad_calls_are_named() -> None:
    for function in (plot_forest, plot_regression):
        with pytest.raises(ArgumentError, match="nothing to draw"):
            function()
    with pytest.raises(ArgumentTypeError, match="not a correlation result"):
        plot_forest(np.eye(3))
    with pytest.raises(ArgumentTypeError, match="not a correlation result"):
        plot_heatmap(private(3).regress("Kcal", on=["Grain"]))
    with pytest.raises(ArgumentTypeError, match="not a regression"):
        plot_regression(private(3))
    with pytest.raises(ArgumentError, match="prob"):
        plot_forest(private(3), prob=95)
    with pytest.raises(ArgumentError, match="names do not fit"):
        plot_forest(private(3), names=["a", "b"])
    with pytest.raises(ArgumentError, match="not about the same variables"):
        plot_forest(private(3), private(4))
    one, other = private(3).regress("Kcal", on=["Grain"]), private(3).regress("Kcal", on=["Income"])
    with pytest.raises(ArgumentError, match="same outcome on the same predictors"):
        plot_regression(one, other)


def test_a_plan_is_drawn_method_by_method() -> None:
    ax = plot_plan(300, 3, delta=1e-6)
    curves = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    assert set(curves) == {
        "no data",
        *(
            f"{s} counts, {m} noise"
            for s in ("concordance", "quadrant")
            for m in ("linf", "geometric", "gaussian")
        ),
    }
    for name, curve in curves.items():
        assert np.all(np.diff(curve) < 0) or name == "no data"
    lengths = curves["quadrant counts, geometric noise"]
    epsilons = ax.get_lines()[0].get_xdata()
    planned = plan(300, 3, epsilon=epsilons[6], statistic="quadrant", mechanism="geometric").length
    assert lengths[6] == pytest.approx(planned, rel=0.03)
    with pytest.raises(ArgumentError, match="n is too small"):
        plot_plan(3, 3)
