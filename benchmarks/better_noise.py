"""Coverage and length of intervals with the better statistics and mechanisms, beside the paper's Table 1.

    python benchmarks/better_noise.py table1 --runs 1000        # coverage and length at the paper's settings
    python benchmarks/better_noise.py regression --runs 1000    # coefficients and partial correlations
    python benchmarks/better_noise.py ordinal --runs 20         # attenuation at 2 to 10 levels
    python benchmarks/better_noise.py speed

Each cell appends one line to a CSV file under docs/results and is skipped where a line with as many runs stands there
already, so that an interrupted study goes on. A run is the unit of standard errors. Rows are drawn at R ~ LKJ(1)
on the latent scale: counts depend on ranks alone, so the margins of the paper's designs do not matter.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from dpsurvey.confidential.disclose import release
from dpsurvey.copula.bayes_na import bayes_na
from dpsurvey.copula.chains import sample
from dpsurvey.copula.correlation import pair_values
from dpsurvey.copula.least_squares import regression_functionals
from dpsurvey.copula.likelihood import tabulate
from dpsurvey.copula.planning import expected

RESULTS = Path(__file__).parents[1] / "docs" / "results"
METHODS = (("quadrant", "linf"), ("concordance", "linf"))
CELLS = [(2, n, e) for n in (50, 100, 200, 500, 1000) for e in (0.01, 0.1, 0.5, 1.0, 5.0)] + [
    (p, n, e) for p in (5, 10) for n in (200, 500, 1000) for e in (0.1, 0.5, 1.0, 5.0)
]
NO_NOISE = 1e4  # epsilon at which L-infinity noise is 0 but for a chance of exp(-1e4 / (n - 1))
DRAWS = {2: 2000, 3: 800, 5: 800, 10: 800}
EFFECTIVE = 0.6  # effective draws in the tails per draw, for plotting positions
SEED = 2601_03497


def draw_correlation(p, rng):
    a = rng.normal(size=(p + 1, p))
    s = a.T @ a
    return s / np.sqrt(np.outer(np.diag(s), np.diag(s)))


def record_of(p, n, epsilon, method, run):
    rng = np.random.default_rng([SEED, p, n, run])
    R = draw_correlation(p, rng)
    df = pd.DataFrame(rng.multivariate_normal(np.zeros(p), R, n), columns=[f"v{j}" for j in range(p)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return R, release(df, epsilon, statistic=method[0], mechanism=method[1], insecure_rng=rng)


def levels(draws):
    effective = EFFECTIVE * draws
    return ((effective + 1) * np.array([0.025, 0.975]) - 1) / (effective - 1)


def elementwise(p, n, epsilon, method, run):
    R, record = record_of(p, n, epsilon, method, run)
    draws = pair_values(sample(tabulate(record), p, draws=DRAWS[p], chains=1, seed=run).draws[0])
    low, high = np.quantile(draws, levels(len(draws)), axis=0)
    true = pair_values(R)
    return np.mean((low < true) & (true < high)), np.mean(high - low), np.mean(np.abs(draws.mean(0) - true))


def functionals(p, n, epsilon, method, run):
    R, record = record_of(p, n, epsilon, method, run)
    posterior = bayes_na(record, draws=DRAWS[p], chains=1, seed=run, progress=False)
    on = list(range(1, p))
    true = regression_functionals(R, 0, on)[:3]
    found = []
    for draws in (posterior.draws[0], posterior.joint[0]):
        for value, drawn in zip(true, regression_functionals(draws, 0, on)[:3], strict=True):
            low, high = np.quantile(drawn, levels(len(drawn)), axis=0)
            found.append(np.mean((low < value) & (value < high)))
    return tuple(found)


def study(path, columns, cells, work, runs, workers):
    """Append mean and standard error over runs of each column, for each cell that is not there yet."""
    done = {}
    if path.exists():
        done = {tuple(row[:5]): int(row[5]) for row in list(csv.reader(path.open()))[1:]}
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        heads = [f"{name}{end}" for name in columns for end in ("", "_se")]
        path.write_text(",".join(["statistic", "mechanism", "p", "n", "epsilon", "runs", *heads]) + "\n")
    with ProcessPoolExecutor(workers) as pool:
        for method, (p, n, epsilon) in itertools.product(METHODS, cells):
            key = (*method, str(p), str(n), f"{epsilon:g}")
            if done.get(key, 0) >= runs:
                continue
            start = time.time()
            rows = np.array(list(pool.map(partial(work, p, n, epsilon, method), range(runs), chunksize=4)))
            mean, error = rows.mean(0), rows.std(0, ddof=1) / np.sqrt(runs)
            numbers = [f"{value:.5f}" for pair in zip(mean, error, strict=True) for value in pair]
            with path.open("a") as file:
                file.write(",".join([*key, str(runs), *numbers]) + "\n")
            print(*key, runs, *numbers, f"{time.time() - start:.0f} s", flush=True)


def ordinal(runs):
    """Mean posterior-free estimates at R = .5 with columns cut into equally likely levels, no noise."""
    from scipy.special import ndtri

    path = RESULTS / "better_noise_ordinal.csv"
    lines = ["levels,both,R,statistic,estimate,estimate_se"]
    for count, both, R, statistic in itertools.product(
        range(2, 11), (False, True), (0.3, 0.6, 0.9), ("quadrant", "concordance")
    ):
        found = []
        for run in range(runs):
            rng = np.random.default_rng([SEED, count, run])
            x = rng.multivariate_normal([0, 0], [[1, R], [R, 1]], 5000)
            cuts = ndtri(np.arange(1, count) / count)
            table = pd.DataFrame({"a": x[:, 0], "b": np.searchsorted(cuts, x[:, 1])})
            if both:
                table["a"] = np.searchsorted(cuts, x[:, 0])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                record = release(
                    table, NO_NOISE, statistic=statistic, mechanism="linf", coarse=None, insecure_rng=rng
                )
            from dpsurvey.copula.mle_nn import mle_nn

            found.append(mle_nn(record).R[0, 1])
        error = np.std(found, ddof=1) / np.sqrt(runs)
        lines.append(f"{count},{int(both)},{R},{statistic},{np.mean(found):.4f},{error:.4f}")
        print(lines[-1], flush=True)
    path.write_text("\n".join(lines) + "\n")


def speed():
    from dpsurvey.confidential.discordance import discordant_counts
    from dpsurvey.confidential.ties import TieKeys

    rng = np.random.default_rng(1)
    df = pd.DataFrame(rng.normal(size=(100_000, 20)).round(2), columns=[f"v{j}" for j in range(20)])
    discordant_counts(df.head(100), list(df.columns), TieKeys())
    start, cpu = time.time(), time.process_time()
    discordant_counts(df, list(df.columns), TieKeys())
    print(
        f"concordance counts, n = 100000, p = 20: {time.time() - start:.1f} s, {time.process_time() - cpu:.1f} s CPU"
    )
    base = None
    for p, n in ((7, 5820), (20, 5820)):
        R = draw_correlation(p, rng)
        df = pd.DataFrame(rng.multivariate_normal(np.zeros(p), R, n), columns=[f"v{j}" for j in range(p)])
        for method in (("quadrant", "geometric"), ("quadrant", "linf"), ("concordance", "linf")):
            for joint in (False, True):
                record = release(df, 1.0, statistic=method[0], mechanism=method[1], insecure_rng=rng)
                bayes_na(record, draws=2, chains=1, joint=joint, progress=False)
                start, cpu = time.time(), time.process_time()
                bayes_na(record, seed=1, joint=joint, progress=False)
                spent = time.process_time() - cpu
                base = base or spent
                print(f"p = {p}, n = {n}, {' '.join(method)}, joint {joint}: {time.time() - start:.1f} s, "
                      f"{spent:.1f} s CPU, {spent / base:.1f} times the first")  # fmt: skip


def report():
    """Write the tables as Markdown beside the paper's, with what `plan` expects."""
    golden = Path(__file__).parents[1] / "tests" / "golden" / "table1.csv"
    paper = pd.read_csv(golden, comment="#").set_index(["p", "n", "eps"])
    import dpsurvey

    made = f"`python benchmarks/{Path(__file__).name}`, dpsurvey {dpsurvey.__version__}, numpy {np.__version__}, "
    made += f"Python {sys.version.split()[0]}, seed {SEED}"
    lines = [
        "# Better inference at the same epsilon",
        "",
        f"Made by {made}. Standard errors over runs in brackets.",
        "",
    ]
    table = RESULTS / "better_noise_table1.csv"
    if table.exists():
        lines += ["## Table 1 (R ~ LKJ(1), 95% intervals)", "",
                  "| p | n | epsilon | statistic | noise | runs | coverage, % | length | paper's length | planned |",
                  "|---|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
        for row in pd.read_csv(table).itertuples():
            planned = expected(row.n, row.p, float(row.epsilon), row.statistic, row.mechanism)[0]
            lines.append(
                f"| {row.p} | {row.n} | {row.epsilon:g} | {row.statistic} | {row.mechanism} | {row.runs} | "
                f"{100 * row.coverage:.1f} ({100 * row.coverage_se:.1f}) | {row.length:.3f} ({row.length_se:.3f}) | "
                f"{paper.loc[(row.p, row.n, row.epsilon), 'ci_length']:.3f} | {planned:.3f} |"
            )
    table = RESULTS / "better_noise_regression.csv"
    if table.exists():
        lines += ["", "## Regression (R ~ LKJ(1), coverage of 95% intervals, %)", "",
                  "| p | n | epsilon | statistic | runs | coefficients: product | calibrated | partial: product | "
                  "calibrated | R^2: product | calibrated |",
                  "|---|---|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
        for row in pd.read_csv(table).itertuples():
            cells = [
                f"{100 * getattr(row, f'{what}_{kind}'):.1f} ({100 * getattr(row, f'{what}_{kind}_se'):.1f})"
                for what in ("coefficient", "partial", "r2") for kind in ("product", "joint")
            ]  # fmt: skip
            epsilon = "none" if row.epsilon == NO_NOISE else f"{row.epsilon:g}"
            lines.append(
                f"| {row.p} | {row.n} | {epsilon} | {row.statistic} | {row.runs} | {' | '.join(cells)} |"
            )
    table = RESULTS / "better_noise_ordinal.csv"
    if table.exists():
        frame = pd.read_csv(table).pivot_table(
            index=["both", "levels"], columns=["R", "statistic"], values="estimate"
        )
        lines += ["", "## Few levels: the estimate that replaces R", "",
                  "Equally likely levels in one column (or both), n = 5000, no noise, ties broken by keys.", "",
                  "| columns | levels | " + " | ".join(f"R = {R:g}, {s}" for R, s in frame.columns) + " |",
                  "|---" * (2 + len(frame.columns)) + "|"]  # fmt: skip
        for (both, count), row in frame.iterrows():
            values = " | ".join(f"{value:.3f}" for value in row)
            lines.append(f"| {'both' if both else 'one'} | {count} | {values} |")
    (RESULTS / "better_noise.md").write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["table1", "regression", "ordinal", "speed", "report"])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--p", type=int, nargs="*", help="only these numbers of variables")
    given = parser.parse_args()

    def wanted(cell):
        return given.p is None or cell[0] in given.p

    if given.what == "table1":
        study(RESULTS / "better_noise_table1.csv", ("coverage", "length", "mae"), list(filter(wanted, CELLS)),
              elementwise, given.runs, given.workers)  # fmt: skip
    elif given.what == "regression":
        cells = [(p, n, e) for p in (3, 5) for n in (500, 5000) for e in (1.0, 5.0, NO_NOISE)]
        names = [
            f"{what}_{kind}" for kind in ("product", "joint") for what in ("coefficient", "partial", "r2")
        ]
        study(RESULTS / "better_noise_regression.csv", names, list(filter(wanted, cells)), functionals,
              given.runs, given.workers)  # fmt: skip
    elif given.what == "ordinal":
        ordinal(given.runs)
    elif given.what == "speed":
        speed()
    report()


if __name__ == "__main__":
    main()
