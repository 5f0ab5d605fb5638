"""Planning: lengths against those simulated, the search for epsilon and n, the choice of a method."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from dpsurvey.copula.correlation import prior_interval_length
from dpsurvey.copula.planning import candidates, choose, expected, plan, plan_table
from dpsurvey.errors import ArgumentError, ArgumentTypeError, UnknownNameError

GOLDEN = Path(__file__).parents[1] / "golden" / "table1.csv"
# Simulated mean lengths, 40 to 4000 runs a cell: p, n, epsilon, statistic, length (L-infinity noise).
SIMULATED = [
    (5, 500, 1.0, "quadrant", 0.357), (10, 1000, 1.0, "quadrant", 0.499), (10, 1000, 5.0, "quadrant", 0.211),
    (2, 200, 1.0, "concordance", 0.245), (2, 1000, 1.0, "concordance", 0.097), (5, 500, 1.0, "concordance", 0.316),
    (5, 1000, 5.0, "concordance", 0.112), (5, 200, 0.5, "concordance", 0.980), (2, 50, 1.0, "concordance", 0.669),
]  # fmt: skip


def test_lengths_of_the_papers_table_1() -> None:
    """All 49 cells at quadrant counts with geometric noise, within 7% of the published mean lengths."""
    rows = list(csv.DictReader(line for line in GOLDEN.read_text().splitlines() if not line.startswith("#")))
    assert len(rows) == 49
    for row in rows:
        length, _ = expected(int(row["n"]), int(row["p"]), float(row["eps"]), "quadrant", "geometric")
        assert length == pytest.approx(float(row["ci_length"]), rel=0.07), row


@pytest.mark.parametrize(("p", "n", "epsilon", "statistic", "length"), SIMULATED)
def test_lengths_simulated_with_other_methods(
    p: int, n: int, epsilon: float, statistic: str, length: float
) -> None:
    assert expected(n, p, epsilon, statistic, "linf")[0] == pytest.approx(length, rel=0.07)


def test_epsilon_and_n_for_a_length_give_that_length() -> None:
    by_epsilon = plan(1000, 3, length=0.2)
    assert by_epsilon.length == pytest.approx(0.2, rel=0.02)
    by_rows = plan(p=3, epsilon=1.0, length=0.2)
    assert by_rows.length == pytest.approx(0.2, rel=0.02)
    assert plan(by_rows.n, 3, epsilon=1.0).length == by_rows.length


def test_choice_is_by_public_numbers_and_prefers_pure_epsilon() -> None:
    assert choose(1000, 5, 1.0, "auto", "auto") == ("concordance", "linf")
    assert choose(1000, 5, 1.0, "auto", "geometric") == ("concordance", "geometric")
    assert choose(1000, 5, 1.0, "quadrant", "auto") == ("quadrant", "linf")
    assert choose(1000, 5, 1.0, "auto", "auto", coarse=2) == ("concordance", "linf")
    assert choose(1000, 5, 1.0, "auto", "auto", coarse=4) == ("quadrant", "linf")
    assert choose(1000, 20, 1.0, "auto", "auto", delta=1e-6) == ("concordance", "gaussian")
    assert choose(1000, 20, 1.0, "auto", "auto") == ("concordance", "linf")


def test_counts_of_two_kinds_lie_between_those_of_one() -> None:
    quadrant = expected(1000, 5, 1.0, "quadrant", "linf")[0]
    concordance = expected(1000, 5, 1.0, "concordance", "linf")[0]
    assert concordance < expected(1000, 5, 1.0, "concordance", "linf", 0.0, 2)[0] < quadrant


def test_table_lists_every_method_best_first() -> None:
    table = plan_table(500, 3, epsilon=1.0, delta=1e-6)
    assert len(table) == 8
    assert table["length"].is_monotonic_increasing
    assert tuple(table.loc[0, ["statistic", "mechanism"]]) == ("concordance", "linf")
    assert len(candidates("auto", "auto", 3, 0.0, 0)) == 4


def test_plan_says_that_it_has_seen_no_data() -> None:
    made = plan(500, 5, epsilon=1.0)
    assert "looked at no data" in repr(made)
    assert made.to_frame().loc[0, "length"] == made.length
    assert made.prior_length == prior_interval_length(5)
    assert 0 < made.mae < made.length < made.prior_length


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"n": 100, "epsilon": 1.0}, ArgumentTypeError),
        ({"n": 100, "p": 3}, ArgumentError),
        ({"n": 100, "p": 3, "epsilon": 1.0, "length": 0.2}, ArgumentError),
        ({"p": 3, "epsilon": 1.0}, ArgumentError),
        ({"n": 3, "p": 3, "epsilon": 1.0}, ArgumentError),
        ({"n": 100, "p": 1, "epsilon": 1.0}, ArgumentError),
        ({"n": 100.0, "p": 3, "epsilon": 1.0}, ArgumentTypeError),
        ({"n": 100, "p": 3, "epsilon": -1.0}, ArgumentError),
        ({"n": 100, "p": 3, "length": 1.9}, ArgumentError),
        ({"n": 100, "p": 3, "length": "0.2"}, ArgumentTypeError),
        ({"n": 50, "p": 3, "length": 0.001}, ArgumentError),
        ({"n": 100, "p": 3, "epsilon": 1.0, "mechanism": "laplace"}, UnknownNameError),
        ({"n": 100, "p": 3, "epsilon": 1.0, "statistic": "spearman"}, UnknownNameError),
        ({"n": 100, "p": 3, "epsilon": 1.0, "coarse": 4}, ArgumentError),
        ({"n": 100, "p": 3, "epsilon": 1.0, "mechanism": "gaussian"}, ArgumentError),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        plan(**arguments)  # type: ignore[arg-type]
