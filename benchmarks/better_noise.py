"""What the better statistics and mechanisms give beyond the studies `dpsurvey study better` and `... regression`.

    python benchmarks/better_noise.py speed              # posteriors at p = 7 and 20, concordance counts at n = 100,000
    python benchmarks/better_noise.py ordinal            # attenuation at 2 to 10 levels
    python benchmarks/better_noise.py bias               # equation (10) against simulated counts
    python benchmarks/better_noise.py diet FOLDER        # the NHANES diet table (files: examples/nhanes_diet.py)

All but `speed` write tables and figures into docs/results. `diet` sets releases beside an analysis of the rows and
spends a budget again and again: NOT PRIVATE, and shown because these data are public.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import dpsurvey as dps
from dpsurvey.confidential.discordance import discordant_counts
from dpsurvey.confidential.ties import TieKeys
from dpsurvey.copula.correlation import pair_values
from dpsurvey.copula.quadrant import QuadrantLaw, log_odds
from dpsurvey.study.batch import high_low_counts
from dpsurvey.study.designs import draw_correlation
from dpsurvey.study.paper import SEED

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
METHODS = {
    "quadrants, geometric (the paper)": ("quadrant", "geometric"),
    "quadrants, L-infinity": ("quadrant", "linf"),
    "concordance, L-infinity": ("concordance", "linf"),
}
COLOURS = ("#0072B2", "#D55E00", "#009E73")
NO_NOISE = 1e4  # epsilon at which L-infinity noise is 0 but for a chance of exp(-1e4 / (n - 1))
DIET_EPSILONS = (1.0, 3.0)


def release(df, epsilon, statistic, mechanism, **options):
    """Release without the warning that large epsilons and seeded generators rightly give."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dps.release(df, epsilon, statistic=statistic, mechanism=mechanism, **options)


def normal_table(R, n, rng):
    return pd.DataFrame(
        rng.multivariate_normal(np.zeros(len(R)), R, n), columns=[f"v{j}" for j in range(len(R))]
    )


def ordinal(runs):
    """Estimates without noise where columns are cut into equally likely levels: what R is attenuated to."""
    from scipy.special import ndtri

    rows = []
    for levels, both, R, statistic in itertools.product(
        range(2, 11), (False, True), (0.3, 0.6, 0.9), ("quadrant", "concordance")
    ):
        found = []
        for run in range(runs):
            rng = np.random.default_rng([SEED, levels, run])
            x = rng.multivariate_normal([0, 0], [[1, R], [R, 1]], 5000)
            cuts = ndtri(np.arange(1, levels) / levels)
            table = pd.DataFrame({"a": x[:, 0], "b": np.searchsorted(cuts, x[:, 1])})
            if both:
                table["a"] = np.searchsorted(cuts, x[:, 0])
            made = release(table, NO_NOISE, statistic, "linf", coarse=None, insecure_rng=rng)
            found.append(dps.mle_nn(made).R[0, 1])
        rows.append((levels, int(both), R, statistic, np.mean(found), np.std(found, ddof=1) / np.sqrt(runs)))
    frame = pd.DataFrame(rows, columns=["levels", "both", "R", "statistic", "estimate", "estimate_se"])
    frame.to_csv(RESULTS / "better_noise_ordinal.csv", index=False, float_format="%.4f", lineterminator="\n")
    print(frame.to_string())


def derived_bias(R):
    """Return by how much equation (10)'s mean count exceeds the true one, to leading order: see the report."""
    u, s = 2.0 / np.pi * np.arcsin(R), np.sqrt(1.0 - R * R)
    return u / 4.0 + (R - u) / (4.0 * s)


def simulated_counts(n, R, rng):
    """Quadrant counts of n rows at each correlation."""
    counts = np.empty(len(R), dtype=np.int64)
    for i, r in enumerate(R):
        x = rng.standard_normal((n, 2))
        x[:, 1] = r * x[:, 0] + np.sqrt(1.0 - r * r) * x[:, 1]
        counts[i] = high_low_counts(x)[0]
    return counts


def bias(runs):
    """Equation (10) against simulated counts, and what it does to intervals at p = 2 without noise."""
    rows = []
    for n, R in itertools.product((20, 50, 200), (0.0, 0.3, 0.6, 0.8, 0.9, 0.97)):
        law, eta = QuadrantLaw(n), log_odds(R)
        t = simulated_counts(n, np.full(runs, R), np.random.default_rng([SEED, n]))
        rows.append((n, R, float(law.mean(eta)) - t.mean(), t.std() / np.sqrt(runs), derived_bias(R),
                     float(law.variance(eta)) / t.var()))  # fmt: skip
    frame = pd.DataFrame(rows, columns=["n", "R", "bias", "bias_se", "derived", "variance_ratio"])
    frame.to_csv(RESULTS / "better_noise_bias.csv", index=False, float_format="%.4f", lineterminator="\n")
    print(frame.to_string())
    for n in (50, 100, 200):
        rng = np.random.default_rng([SEED, n, 2])
        true = rng.uniform(-1.0, 1.0, runs)
        t = simulated_counts(n, true, rng)
        for name, shifted in (("equation (10)", False), ("its mean shifted", True)):
            low, high = intervals_without_noise(n, shifted)[t].T
            covered = (low < true) & (true < high)
            strong = np.abs(true) > 0.9
            print(
                f"n = {n}, {name}: coverage {100 * covered.mean():.2f} ({100 * covered.std() / np.sqrt(runs):.2f}), "
                f"at |R| > .9 {100 * covered[strong].mean():.1f}, length {np.mean(high - low):.4f}"
            )


def intervals_without_noise(n, shifted):
    """95% intervals under R ~ U(-1, 1) for each count of an even n, with eta so shifted that the mean is right."""
    law = QuadrantLaw(n)
    R = np.sin(np.linspace(-np.pi / 2, np.pi / 2, 4003)[1:-1])
    eta = log_odds(R)
    if shifted:
        gap = derived_bias(np.abs(R))
        eta = eta - np.sign(R) * gap / (law.variance(eta) + gap**2)  # variance is dE[T]/d eta
    logs = law.log_weights + eta[:, None] * law.support
    mass = np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)) * np.gradient(R)[:, None]
    cdf = np.cumsum(mass, axis=0) / mass.sum(axis=0)
    return np.array([np.interp([0.025, 0.975], column, R) for column in cdf.T])


def diet(folder, releases):
    """Lengths of intervals on the paper's diet table by each method, and all its correlations at epsilon 1."""
    spec = importlib.util.spec_from_file_location("nhanes_diet", ROOT / "examples" / "nhanes_diet.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    table, _ = example.read_diet(example.survey_files(folder))
    erl = pd.DataFrame(json.loads(example.GOLDEN.read_text())["correlations"]).T  # in the order of pairs
    rows = []
    for (name, method), epsilon, run in itertools.product(METHODS.items(), DIET_EPSILONS, range(releases)):
        made = release(table, epsilon, *method)
        posterior = dps.bayes_na(made, joint=False, seed=run, progress=False)
        assert [f"{a}~~{b}" for a, b in made.pairs] == list(erl.index)
        values = (pair_values(posterior.mean()), *(pair_values(end) for end in posterior.interval()))
        rows += [(name, epsilon, run, *row) for row in zip(erl.index, *values, erl["mean"], strict=True)]
    columns = ["method", "epsilon", "release", "pair", "estimate", "lower", "upper", "erl"]
    frame = pd.DataFrame(rows, columns=columns)
    frame.to_csv(RESULTS / "better_noise_diet.csv", index=False, float_format="%.5g", lineterminator="\n")
    report_diet(frame, erl)


def report_diet(frame, erl):
    """Print mean lengths with errors over releases, and draw them."""
    values = frame.assign(
        length=frame["upper"] - frame["lower"], contains=frame["erl"].between(frame["lower"], frame["upper"])
    )
    by_release = values.groupby(["method", "epsilon", "release"], sort=False)[["length", "contains"]].mean()
    lengths = by_release.groupby(["method", "epsilon"], sort=False)["length"].agg(["mean", "sem"])
    lengths["contains ERL"] = by_release.groupby(["method", "epsilon"], sort=False)["contains"].mean()
    erl_length = float((erl["q975"] - erl["q025"]).mean())
    print(lengths.round(4).to_string(), f"\nERL, non-private: {erl_length:.4f}")
    figure = draw_diet(frame[frame["release"] == 0], lengths, erl, erl_length)
    figure.savefig(RESULTS / "better_noise_diet.png", dpi=110)


def draw_diet(first, lengths, erl, erl_length):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.5, 7.0), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.7, 1.0))
    places = np.arange(len(erl))[::-1].astype(float)
    for shift, (name, colour) in enumerate(zip(METHODS, COLOURS, strict=True)):
        rows = first[(first["method"] == name) & (first["epsilon"] == DIET_EPSILONS[0])]
        at = places + 0.27 - 0.18 * shift
        left.hlines(at, rows["lower"], rows["upper"], color=colour, linewidth=2.0)
        left.plot(rows["estimate"], at, "o", color=colour, markersize=3.5, label=name)
    at = places - 0.27
    left.hlines(at, erl["q025"], erl["q975"], color="black", linewidth=2.0)
    left.plot(erl["mean"], at, "o", color="black", markersize=3.5, label="rank likelihood, non-private")
    left.set_yticks(places, [pair.replace("~~", " ~ ") for pair in erl.index])
    left.set_xlabel("latent correlation, 95% intervals")
    left.set_title(f"epsilon {DIET_EPSILONS[0]:g}, one release of each", fontsize="medium")
    left.legend(frameon=False, fontsize="small", loc="lower right")
    for shift, (name, colour) in enumerate(zip(METHODS, COLOURS, strict=True)):
        mean = [lengths.loc[(name, epsilon), "mean"] for epsilon in DIET_EPSILONS]
        bars = right.bar(np.arange(len(DIET_EPSILONS)) + 0.27 * (shift - 1), mean, 0.25, color=colour)
        right.bar_label(bars, fmt="%.3f", fontsize="small")
    label = f"rank likelihood, non-private: {erl_length:.3f}"
    right.axhline(erl_length, color="black", linewidth=1.0, linestyle=(0, (4, 3)), label=label)
    right.legend(frameon=False, fontsize="small", loc="upper right")
    right.set_xticks(np.arange(len(DIET_EPSILONS)), [f"epsilon {epsilon:g}" for epsilon in DIET_EPSILONS])
    right.set_ylabel("mean length of 95% intervals")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    figure.suptitle("Diet of 5820 people, NHANES 2017-18: NOT PRIVATE, for it shows the rank likelihood")
    return figure


def timed(what):
    start, cpu = time.time(), time.process_time()
    what()
    return time.time() - start, time.process_time() - cpu


def speed():
    rng = np.random.default_rng(1)
    df = pd.DataFrame(rng.normal(size=(100_000, 20)).round(2), columns=[f"v{j}" for j in range(20)])
    discordant_counts(df.head(100), list(df.columns), TieKeys())
    wall, cpu = timed(lambda: discordant_counts(df, list(df.columns), TieKeys()))
    print(f"concordance counts, n = 100000, p = 20: {wall:.1f} s, {cpu:.1f} s CPU")
    for p, n in ((7, 5820), (20, 5820)):
        df, base = normal_table(draw_correlation(p, rng), n, rng), None
        for (name, method), joint in itertools.product(METHODS.items(), (False, True)):
            made = release(df, 1.0, *method, insecure_rng=rng)
            dps.bayes_na(made, draws=2, chains=1, joint=joint, progress=False)
            wall, cpu = timed(lambda: dps.bayes_na(made, seed=1, joint=joint, progress=False))  # noqa: B023
            base = base or cpu
            what = "product and joint" if joint else "product"
            print(
                f"p = {p}, n = {n}, {name}, {what}: {wall:.1f} s, {cpu:.1f} s CPU, {cpu / base:.2f} times the first"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["speed", "ordinal", "bias", "diet"])
    parser.add_argument("folder", nargs="?", type=Path, help="of the diet files")
    parser.add_argument("--runs", type=int, help="by default 20 for ordinal, 20000 for bias, 10 for diet")
    given = parser.parse_args()
    if given.what == "speed":
        speed()
    elif given.what == "ordinal":
        ordinal(given.runs or 20)
    elif given.what == "bias":
        bias(given.runs or 20_000)
    else:
        diet(given.folder, given.runs or 10)


if __name__ == "__main__":
    main()
