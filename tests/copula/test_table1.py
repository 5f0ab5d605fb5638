"""Table 1 of the paper through the public doors: simulated surveys, `release`, `bayes_na`, intervals.

As a program it prints the full comparison as Markdown: ``python tests/copula/test_table1.py 1000``.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpsurvey as dps
from dpsurvey.study.paper import TABLE1

MARGINALS = {
    2: (stats.gamma(2), stats.norm()),
    5: (stats.norm(), stats.expon(), stats.gamma(2), stats.beta(2, 5), stats.t(5)),
}
CELLS_P5 = [(5, 500, 1.0), (5, 500, 5.0)]


def read_table(golden: Path) -> dict[tuple[int, int, float], tuple[float, float]]:
    """Return (p, n, epsilon) -> coverage in percent, length."""
    table = pd.read_csv(golden / "table1.csv", comment="#")
    return {(int(r.p), int(r.n), float(r.eps)): (r.coverage_pct, r.ci_length) for r in table.itertuples()}


@dataclass
class Cell:
    """Simulated coverage (percent) and length of 95% intervals, with standard errors; a run is the unit."""

    coverage: float
    coverage_error: float
    length: float
    length_error: float

    def agrees(self, paper: tuple[float, float]) -> tuple[bool, bool]:
        """Length within 2% and 3 standard errors; coverage within 3.5 standard errors of 95% or of the paper."""
        coverage, length = paper
        near = min(abs(self.coverage - 95.0), abs(self.coverage - coverage))
        return (
            abs(self.length - length) <= 0.02 * length + 3 * self.length_error,
            near <= 3.5 * self.coverage_error,
        )


def correlations(p: int, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Return LKJ(1) matrices; at p = 2, where that is the uniform law, one from each of `runs` strata."""
    if p == 2:
        r = -1 + 2 * (np.arange(runs) + rng.random(runs)) / runs
        return np.array([[[1, x], [x, 1]] for x in r])
    rows = rng.normal(size=(runs, p + 1, p))
    S = np.swapaxes(rows, 1, 2) @ rows
    scale = np.sqrt(np.diagonal(S, axis1=1, axis2=2))
    return S / scale[:, :, None] / scale[:, None, :]


def simulate(p: int, n: int, epsilon: float, runs: int, draws: int) -> Cell:
    """Simulate one cell of the table."""
    rng = np.random.default_rng([p, n, round(1000 * epsilon)])
    pairs = np.triu_indices(p, 1)
    length, covered, known = np.empty(runs), np.empty(runs), {}
    for run, R in enumerate(correlations(p, runs, rng)):
        latent = stats.norm.cdf(rng.normal(size=(n, p)) @ np.linalg.cholesky(R).T)
        df = pd.DataFrame({f"x{j}": law.ppf(latent[:, j]) for j, law in enumerate(MARGINALS[p])})
        release = dps.release(df, epsilon, statistic="quadrant", mechanism="geometric", insecure_rng=rng)
        if p > 2 or release.counts not in known:  # at p = 2 the posterior depends on the noisy count alone
            posterior = dps.bayes_na(release, draws=draws, chains=2, seed=run, progress=False)
            known[release.counts] = tuple(side[pairs] for side in posterior.interval())
        lower, upper = known[release.counts]
        length[run] = np.mean(upper - lower)
        covered[run] = 100 * np.mean((lower <= R[pairs]) & (R[pairs] <= upper))
    least = 100 * math.sqrt(0.95 * 0.05 / (len(pairs[0]) * runs))  # where all runs cover, their spread says 0
    return Cell(
        coverage=covered.mean(),
        coverage_error=max(covered.std(ddof=1) / math.sqrt(runs), least),
        length=length.mean(),
        length_error=length.std(ddof=1) / math.sqrt(runs),
    )


def line(key: tuple[int, int, float], cell: Cell, paper: tuple[float, float]) -> str:
    """Return one row of the printed table."""
    verdict = " and ".join(
        name for name, good in zip(("length", "coverage"), cell.agrees(paper), strict=True) if not good
    )
    return (
        f"| {key[0]} | {key[1]} | {key[2]:g} | {cell.length:.3f} ± {cell.length_error:.3f} | {paper[1]:.3f} | "
        f"{cell.length / paper[1]:.3f} | {cell.coverage:.1f} ± {cell.coverage_error:.1f} | {paper[0]:.1f} | "
        f"{verdict + ' off' if verdict else 'agrees'} |"
    )


def check(key: tuple[int, int, float], runs: int, draws: int, golden: Path) -> None:
    paper = read_table(golden)[key]
    cell = simulate(*key, runs=runs, draws=draws)
    print(line(key, cell, paper))
    assert cell.agrees(paper) == (True, True), line(key, cell, paper)


def cells_p2(golden: Path) -> list[tuple[int, int, float]]:
    return [key for key in read_table(golden) if key[0] == 2]


def test_golden_table_is_the_one_that_studies_compare_with(golden: Path) -> None:
    assert read_table(golden) == TABLE1
    assert len(cells_p2(golden)) == 25


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0, 5.0])
@pytest.mark.parametrize("n", [50, 100, 200, 500, 1000])
def test_two_variables(n: int, epsilon: float, golden: Path) -> None:
    check((2, n, epsilon), runs=200, draws=400, golden=golden)


@pytest.mark.parametrize("key", CELLS_P5)
def test_five_variables(key: tuple[int, int, float], golden: Path) -> None:
    check(key, runs=60, draws=400, golden=golden)


@pytest.mark.slow
def test_two_variables_in_full(golden: Path) -> None:
    for key in cells_p2(golden):
        check(key, runs=1000, draws=2000, golden=golden)


@pytest.mark.slow
@pytest.mark.parametrize("key", CELLS_P5)
def test_five_variables_in_full(key: tuple[int, int, float], golden: Path) -> None:
    check(key, runs=1000, draws=1000, golden=golden)


def main(runs: int) -> None:
    golden = Path(__file__).resolve().parents[1] / "golden"
    table, start = read_table(golden), time.perf_counter()
    print(f"# Bayes-NA's intervals beside Table 1 of the paper, {runs} runs a cell\n")
    print(
        f"Made by `python tests/copula/test_table1.py {runs}`: simulated surveys with the paper's marginals go through"
    )
    print(
        "`dpsurvey.release` and `dpsurvey.bayes_na`. R is LKJ(1), in strata at p = 2. ± is a standard error; a run is"
    )
    print(
        "the unit. Agreement: length within 2% and 3 standard errors, coverage within 3.5 of 95% or of the paper's.\n"
    )
    print("| p | n | epsilon | length | paper | ratio | coverage % | paper | |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for key in cells_p2(golden) + CELLS_P5:
        print(
            line(key, simulate(*key, runs=runs, draws=2000 if key[0] == 2 else 1000), table[key]), flush=True
        )
    print(f"\n{(time.perf_counter() - start) / 60:.0f} minutes.")


if __name__ == "__main__":
    main(int(sys.argv[1]))
