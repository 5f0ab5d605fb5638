"""Results side by side: intervals against the reference, order of variables, and privacy of the whole."""

import numpy as np
import pandas as pd
import pytest

from dpsurvey.copula.compare import Comparison, compare
from dpsurvey.copula.posterior import CorrelationEstimate, CorrelationPosterior
from dpsurvey.errors import ArgumentError, ArgumentTypeError

NAMES = ("Kcal", "Grain", "Veg")


def from_pairs(values: np.ndarray) -> np.ndarray:
    """Matrices of three variables from their pairs (1,2), (1,3), (2,3)."""
    R = np.broadcast_to(np.eye(3), (*values.shape[:-1], 3, 3)).copy()
    for k, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
        R[..., i, j] = R[..., j, i] = values[..., k]
    return R


def uniform_posterior(centres: list[float], half: float, **changes: object) -> CorrelationPosterior:
    """Equally spaced draws, so that a 95% interval is the central 95% of centre +- half up to 1/N."""
    steps = np.linspace(-half, half, 1999)
    values = np.array(centres) + steps[:, None]
    fields: dict[str, object] = {
        "variables": NAMES,
        "labels": {},
        "method": "ERL",
        "engine": "native",
        "private": False,
    }
    return CorrelationPosterior(from_pairs(values)[None], **{**fields, **changes})


@pytest.fixture(scope="module")
def erl() -> CorrelationPosterior:
    return uniform_posterior([0.5, 0.2, 0.0], 0.02)


@pytest.fixture
def private(make_release) -> CorrelationPosterior:
    return uniform_posterior(
        [0.52, 0.3, 0.03], 0.04, method="Bayes-NA", private=True, release=make_release(NAMES)
    )


@pytest.fixture
def mle(make_release) -> CorrelationEstimate:
    return CorrelationEstimate(
        from_pairs(np.array([0.55, 0.21, 0.01])),
        NAMES,
        {},
        method="MLE-NN",
        private=True,
        release=make_release(NAMES),
    )


def test_frame_has_one_row_per_pair_and_result(private, mle, erl) -> None:
    frame = compare(private, mle, erl).frame
    assert list(frame.columns) == [
        "var1", "var2", "result", "estimate", "lower", "upper", "length",
        "contains_reference", "overlap", "length_ratio",
    ]  # fmt: skip
    assert len(frame) == 9
    assert list(frame["result"].unique()) == ["Bayes-NA (ε = 1)", "MLE-NN (ε = 1)", "ERL"]
    assert frame["var1"].tolist() == ["Kcal", "Kcal", "Grain"] * 3


def test_numbers_against_the_non_private_reference(private, mle, erl) -> None:
    comparison = compare(private, mle, erl)
    assert comparison.reference == "ERL"
    rows = comparison.frame.set_index("result")
    bayes = rows.loc["Bayes-NA (ε = 1)"]
    np.testing.assert_allclose(bayes["estimate"], [0.52, 0.3, 0.03], atol=1e-12)
    np.testing.assert_allclose(bayes["lower"], [0.52 - 0.038, 0.3 - 0.038, 0.03 - 0.038], atol=1e-4)
    np.testing.assert_allclose(bayes["length"], 0.076, atol=1e-4)
    assert bayes["contains_reference"].tolist() == [True, False, True]
    np.testing.assert_allclose(bayes["length_ratio"], 2.0, rtol=1e-2)
    # ERL's intervals: .481-.519, .181-.219, -.019-.019; those of Bayes-NA: .482-.558, .262-.338, -.008-.068
    np.testing.assert_allclose(bayes["overlap"], [0.037 / 0.038, 0.0, 0.027 / 0.038], atol=5e-3)


def test_estimates_have_no_intervals_and_references_no_reference(private, mle, erl) -> None:
    rows = compare(private, mle, erl).frame.set_index("result")
    empty = ["lower", "upper", "length", "contains_reference", "overlap", "length_ratio"]
    assert rows.loc["MLE-NN (ε = 1)", empty].isna().all(axis=None)
    assert rows.loc["ERL", empty[3:]].isna().all(axis=None)
    assert rows.loc["ERL", empty[:3]].notna().all(axis=None)


def test_summary_puts_results_side_by_side(private, mle, erl) -> None:
    wide = compare(private, mle, erl, names=["B", "M", "E"]).summary()
    assert list(wide.columns) == [
        "var1", "var2",
        "B estimate", "B lower", "B upper", "M estimate", "E estimate", "E lower", "E upper",
        "B contains", "B overlap", "B ratio",
    ]  # fmt: skip
    assert len(wide) == 3
    assert wide["B contains"].tolist() == [True, False, True]
    np.testing.assert_allclose(wide["M estimate"], [0.55, 0.21, 0.01])


def test_overview_averages_over_pairs(private, mle, erl) -> None:
    table = compare(private, mle, erl, names=["B", "M", "E"]).overview()
    assert table.index.tolist() == ["B", "M", "E"]
    assert table.loc["B", "contains_reference"] == pytest.approx(2 / 3)
    assert table.loc["B", "mean_difference"] == pytest.approx(0.05)
    assert table.loc["B", "largest_difference"] == pytest.approx(0.1)
    assert table.loc["M", "mean_difference"] == pytest.approx(0.07 / 3)
    assert np.isnan(table.loc["M", "mean_length"])
    assert table.loc["E", "mean_difference"] == 0.0


def test_an_overview_keeps_the_order_of_the_results(private, mle, erl) -> None:
    names = ["z", "a", "m"]
    assert compare(private, mle, erl, names=names).overview().index.tolist() == names


def test_variables_are_brought_into_the_first_order(private, erl) -> None:
    order = [2, 0, 1]
    other = CorrelationPosterior(
        erl.draws[..., order, :][..., order],
        tuple(NAMES[k] for k in order),
        {},
        method="ERL",
        engine="native",
        private=False,
    )
    straight, turned = compare(private, erl), compare(private, other)
    pd.testing.assert_frame_equal(straight.frame, turned.frame)


def test_without_a_non_private_result_the_first_is_the_reference(private, mle) -> None:
    comparison = compare(private, mle)
    assert comparison.reference == "Bayes-NA (ε = 1)"
    assert comparison.private
    assert "NOT PRIVATE" not in repr(comparison)
    assert "private: follows from private releases alone" in repr(comparison)


def test_a_point_estimate_can_be_the_reference(private) -> None:
    truth = CorrelationEstimate(
        from_pairs(np.array([0.53, 0.2, 0.0])), NAMES, {}, method="truth", private=False
    )
    comparison = compare(private, truth)
    rows = comparison.frame.set_index("result").loc["Bayes-NA (ε = 1)"]
    assert rows["contains_reference"].tolist() == [True, False, True]
    assert rows[["overlap", "length_ratio"]].isna().all(axis=None)


def test_a_comparison_with_a_non_private_result_is_not_private(private, erl) -> None:
    comparison = compare(private, erl)
    assert isinstance(comparison, Comparison)
    assert comparison.private is False
    for text in (repr(comparison), comparison._repr_html_()):
        assert "NOT PRIVATE: ERL saw" in text
        assert "latent standard normal" in text
        assert "survey weights and design are not used" in text
        assert "Bayes-NA (ε = 1): private: epsilon = 1" in text
        assert "reference: ERL; 95% intervals" in text


def test_own_names_do_not_hide_what_is_not_private(private, erl) -> None:
    assert "NOT PRIVATE: ours saw" in repr(compare(private, erl, names=["theirs", "ours"]))


def test_insecure_noise_is_loud(erl, make_release) -> None:
    seeded = uniform_posterior(
        [0.5, 0.2, 0.0], 0.1, method="Bayes-NA", private=True, release=make_release(NAMES, secure=False)
    )
    comparison = compare(seeded, seeded)
    assert comparison.names == ("Bayes-NA (ε = 1)", "Bayes-NA (ε = 1) #2")
    assert "!!! INSECURE NOISE" in repr(comparison)


def test_intervals_of_no_length_count_as_points(erl) -> None:
    inside = uniform_posterior([0.5, 0.7, 0.0], 0.0, method="point", private=True)
    rows = compare(inside, erl).frame.set_index("result").loc["point"]
    assert rows["overlap"].tolist() == [1.0, 0.0, 1.0]
    assert rows["length_ratio"].tolist() == pytest.approx([0.0, 0.0, 0.0], abs=1e-9)
    against_points = compare(erl, uniform_posterior([0.5, 0.7, 0.0], 0.0, method="first")).frame
    assert np.isfinite(against_points["length_ratio"].dropna()).all()


def test_prob_reaches_the_intervals(private, erl) -> None:
    half = compare(private, erl, prob=0.5)
    np.testing.assert_allclose(half.frame["length"][:3], 0.04, atol=1e-4)
    assert "50% intervals" in repr(half)


@pytest.mark.parametrize("names", [["one"], ["same", "same"], "ab", [1, 2]])
def test_names_must_fit(private, erl, names) -> None:
    with pytest.raises(ArgumentError, match="names do not fit"):
        compare(private, erl, names=names)


def test_bad_calls_are_named(private, erl) -> None:
    with pytest.raises(ArgumentError, match="nothing to compare"):
        compare(private)
    with pytest.raises(ArgumentTypeError, match="not a correlation result"):
        compare(private, erl.draws)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="prob"):
        compare(private, erl, prob=95)
    other = uniform_posterior([0.5, 0.2, 0.0], 0.1, variables=("Kcal", "Grain", "Sugar"))
    with pytest.raises(ArgumentError, match=r"not about the same variables") as caught:
        compare(private, other)
    assert "missing: Veg; only there: Sugar" in str(caught.value)
