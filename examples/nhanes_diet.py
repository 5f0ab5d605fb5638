"""The diet table of NHANES 2017-18: what a release tells, beside what the rows themselves tell.

This is the illustration of Wang, Feldman and Reiter (arXiv 2601.03497, section 6 and Figure 3): energy, income and
five food groups of n = 5820 people, released at epsilon 1 and 3, and analysed by Bayes-NA from the releases and by the
extended rank likelihood (ERL) from the rows. Run it with::

    python examples/nhanes_diet.py FOLDER
    python examples/nhanes_diet.py FOLDER --releases 20 --results docs/results

FOLDER holds three public files, which are too large to travel with the package; without it the script looks in
``../shared/nhanes`` beside the project and where ``dps.nhanes.download`` keeps its files. The second line makes twenty
fresh releases at each epsilon and reports how often their intervals contain ERL's estimates.

What is private here: the releases, and all that is computed from them. What is not: ERL, everything that is set beside
it (the comparison, the figure, the report on repeated releases), and the counts of rows lost. They are shown because
these data are public; with data of your own they must be guarded like the rows.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill
from warnings import catch_warnings, simplefilter

import numpy as np
import pandas as pd
import platformdirs
from matplotlib.figure import Figure

import dpsurvey as dps
from dpsurvey.atomic import atomic_write

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden" / "sbgcop" / "nhanes_erl.json"  # the same table through R's sbgcop

EPSILONS = (1.0, 3.0)
FORESEEN = {
    1.0: 0.93,
    3.0: 0.87,
}  # share of intervals with ERL's mean, worked out before these releases were made

VARIABLES = {
    "DR1TKCAL": "Kcal",
    "INDFMPIR": "Income",
    "DR1T_G_TOTAL": "Grain",
    "DR1T_D_TOTAL": "Dairy",
    "DR1T_V_TOTAL": "Veg",
    "DR1T_PF_TOTAL": "PF",  # protein foods
    "DR1T_ADD_SUGARS": "Sugar",
}
FOODS = ["Income", "Grain", "Dairy", "Veg", "PF", "Sugar"]  # what Kcal is regressed on

# Names under which each file may be found: as its publisher calls it, or rebuilt from its public values.
FILES = {
    "DEMO_J.xpt": ("DEMO_J.xpt", "DEMO_J.XPT", "DEMO_J_rebuilt.xpt"),
    "DR1TOT_J.xpt": ("DR1TOT_J.xpt", "DR1TOT_J.XPT", "DR1TOT_J_subset_rebuilt.xpt"),
    "fped_dr1tot_1718.sas7bdat": ("fped_dr1tot_1718.sas7bdat",),
}
SOURCES = {
    "DEMO_J.xpt": dps.nhanes.file_url("DEMO", "J"),
    "DR1TOT_J.xpt": dps.nhanes.file_url("DR1TOT", "J"),
    "fped_dr1tot_1718.sas7bdat": (
        "the Food Patterns Equivalents Database 2017-2018 of USDA's Food Surveys Research Group, "
        "https://www.ars.usda.gov/nea/bhnrc/fsrg"
    ),
}


def survey_files(folder: Path | str | None = None) -> list[Path]:
    """Return the paths of the three files, in `folder` or (None) in the first usual place that has them all."""
    usual = [
        ROOT.parent / "shared" / "nhanes",
        platformdirs.user_cache_path("dpsurvey", appauthor=False) / "nhanes",
    ]
    missing: list[str] = []
    for place in usual if folder is None else [Path(folder)]:
        found = {
            name: next((place / known for known in names if (place / known).is_file()), None)
            for name, names in FILES.items()
        }
        missing = [name for name, path in found.items() if path is None]
        if not missing:
            return [path for path in found.values() if path is not None]
    sources = "; ".join(f"{name} from {SOURCES[name]}" for name in missing)
    raise dps.errors.MissingFileError(
        "the diet table needs three public files, to be put into one folder",
        expected=", ".join(FILES),
        got=f"no {', no '.join(missing)}",
        hint=f"get {sources}. Then give the folder's name",
    )


def read_diet(files: Sequence[Path]) -> tuple[pd.DataFrame, dps.Codebook]:
    """Return the complete rows of the seven variables, and the codebook. Prints rows lost: confidential."""
    survey, codebook = dps.read_survey(
        *files,
        on="SEQN",
        columns=VARIABLES,
        where="DRDINT == 2 and DRABF == 2",  # both recall days, and no breast-fed infants: declared beforehand
        round_to=2,  # the files' own precision; FPED's sums carry floating-point noise, which would undo ties
        return_codebook=True,
    )
    return dps.nhanes.complete(survey), codebook


def draw(results: Sequence[dps.CorrelationPosterior]) -> Figure:
    """Return the figure: correlations on the left, the regression of Kcal on the right."""
    figure = Figure(figsize=(14, 10.5), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.15, h_pad=0.1, wspace=0.05)
    left, right = figure.subplots(1, 2)
    dps.plot_forest(*results, ax=left)
    dps.plot_regression(*(result.regress("Kcal", on=FOODS) for result in results), ax=right)
    n = next(result.release.n for result in results if result.release is not None)
    figure.suptitle(f"Diet of {n:,} people, NHANES 2017-18, one recall day, unweighted", fontsize="x-large")
    return figure


def repeat_releases(
    diet: pd.DataFrame, codebook: dps.Codebook, erl: dps.CorrelationPosterior, *, releases: int, draws: int
) -> pd.DataFrame:
    """Release the table afresh, many times, and set every interval against ERL's estimate. NOT PRIVATE.

    An experiment on public data: with confidential rows it would spend ``releases * sum(EPSILONS)``.

    Returns
    -------
    pandas.DataFrame
        One row per epsilon, release and pair: ``epsilon, release, var1, var2, estimate, lower, upper, erl,
        contains``.
    """
    from tqdm.auto import tqdm

    parts = []
    with TemporaryDirectory() as folder:
        with catch_warnings():
            simplefilter("ignore", dps.errors.LargeEpsilonWarning)  # so it is, and said above
            ledger = dps.Ledger.create(
                Path(folder) / "experiment.ledger.json",
                dataset="experiment",
                budget=releases * sum(EPSILONS),
            )
        runs = [(epsilon, number) for epsilon in EPSILONS for number in range(1, releases + 1)]
        for epsilon, number in tqdm(runs, desc="releases"):
            release = dps.release(
                diet, epsilon, statistic="quadrant", mechanism="geometric", codebook=codebook, ledger=ledger
            )
            posterior = dps.bayes_na(release, draws=draws, seed=number, progress=False)
            both = dps.compare(posterior, erl, names=["private", "erl"]).summary()
            both = both.rename(columns=lambda name: name.removeprefix("private "))
            both = both.rename(columns={"erl estimate": "erl"}).assign(epsilon=epsilon, release=number)
            parts.append(both)
    kept = ["epsilon", "release", "var1", "var2", "estimate", "lower", "upper", "erl", "contains"]
    return pd.concat(parts, ignore_index=True)[kept].astype({"contains": bool})


def share_with_error(intervals: pd.DataFrame, inside: pd.Series) -> pd.DataFrame:
    """Return, by epsilon, the share of intervals `inside`, and its Monte Carlo error over releases.

    Intervals of one release are drawn together; it is the releases that are independent of each other.
    """
    shares = inside.groupby([intervals["epsilon"], intervals["release"]]).mean().groupby("epsilon")
    return pd.DataFrame({"share": shares.mean(), "error": shares.std() / np.sqrt(shares.size())})


def without_noise(diet: pd.DataFrame) -> pd.DataFrame:
    """Return the correlations that the exact quadrant counts t say, -cos(2 pi t/n). NOT PRIVATE."""
    high = (diet.rank(method="first") > len(diet) / 2).astype(float)
    return -np.cos(2 * np.pi * (high.T @ high) / len(diet))


def pair_table(intervals: pd.DataFrame, epsilon: float) -> pd.DataFrame:
    """Return one row per pair, those that miss most often first."""
    part = intervals[intervals["epsilon"] == epsilon]
    table = (
        part.assign(missed=~part["contains"])
        .groupby(["var1", "var2"], sort=False)
        .agg(missed=("missed", "sum"), erl=("erl", "first"), private=("estimate", "mean"))
    )
    size = (table["private"] - table["erl"]).abs()
    return table.assign(size=size).sort_values(["missed", "size"], ascending=False).reset_index()


def first_two(intervals: pd.DataFrame, epsilon: float) -> pd.Series:
    """Return how many releases have which two variables, in order, as the closest to Kcal."""
    part = intervals[(intervals["epsilon"] == epsilon) & (intervals["var1"] == "Kcal")]
    ranked = part.sort_values("estimate", ascending=False).groupby("release")["var2"]
    return ranked.agg(lambda names: ", then ".join(names.iloc[:2])).value_counts()


def sbgcop_means(intervals: pd.DataFrame) -> pd.Series | None:
    """Return the means of R's sbgcop for every row, where the project's reference values are at hand."""
    if not GOLDEN.is_file():
        return None
    means = json.loads(GOLDEN.read_text())["correlations"]
    pairs = intervals["var1"] + "~~" + intervals["var2"]
    return pairs.map({pair: entry["mean"] for pair, entry in means.items()})


def write_report(intervals: pd.DataFrame, exact: pd.DataFrame, folder: Path, *, draws: int) -> str:
    """Write ``nhanes_diet.md`` and ``nhanes_diet.csv`` into a folder, and return the text."""
    releases = int(intervals["release"].max())
    reference = sbgcop_means(intervals)
    if reference is not None:
        intervals = intervals.assign(sbgcop=reference)
    native = share_with_error(intervals, intervals["contains"])
    rows = [
        "| epsilon | ERL, engine native | ERL, R's sbgcop | foreseen | mean length |",
        "|---|---|---|---|---|",
    ]
    for epsilon in EPSILONS:
        cells = [f"{epsilon:g}", _share(native.loc[epsilon]), "not at hand", f"about {FORESEEN[epsilon]:.0%}"]
        if reference is not None:
            inside = (intervals["lower"] <= reference) & (reference <= intervals["upper"])
            cells[2] = _share(share_with_error(intervals, inside).loc[epsilon])
        part = intervals[intervals["epsilon"] == epsilon]
        cells.append(f"{(part['upper'] - part['lower']).mean():.3f}")
        rows.append(f"| {' | '.join(cells)} |")
    misses = "\n\n".join(_misses(intervals, exact, epsilon) for epsilon in EPSILONS)
    orders = "\n".join(
        f"- epsilon {epsilon:g}: "
        + "; ".join(
            f"{order} in {count} of {releases}" for order, count in first_two(intervals, epsilon).items()
        )
        for epsilon in EPSILONS
    )
    text = REPORT.format(
        command=f"python examples/nhanes_diet.py FOLDER --releases {releases} --draws {draws}",
        versions=_versions(),
        releases=releases,
        pairs=len(intervals) // (releases * len(EPSILONS)),
        shares="\n".join(rows),
        misses=misses,
        orders=orders,
        spent=f"{releases * sum(EPSILONS):g}",
    )
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_write(folder / "nhanes_diet.md") as file:
        file.write(text)
    with atomic_write(folder / "nhanes_diet.csv") as file:
        intervals.to_csv(file, index=False, float_format="%.5f", lineterminator="\n")
    return text


REPORT = """# The diet table of NHANES 2017-18, released again and again

Made by `{command}`; {versions}. The noise is real, so another run gives other numbers.

**NOT PRIVATE**: everything here is set against an analysis of the rows. It is an experiment on public data, and would
have spent epsilon = {spent} on confidential ones.

Seven variables, n = 5820 (`DRDINT == 2 and DRABF == 2`, complete rows), {releases} fresh releases at each epsilon
(quadrant counts, geometric noise), one Bayes-NA posterior each. This share of the {pairs} x {releases} 95% intervals
contains the posterior mean of the non-private extended rank likelihood (± one Monte Carlo standard error over
releases):

{shares}

The shares fall short of 95%, the more so the shorter the intervals are, mostly not on account of the noise: the diet
data are not quite a Gaussian copula. Bayes-NA learns from how often two variables are both above their medians, ERL
from the whole order of the rows. Under a Gaussian copula both tend to the same correlation; here they do not.

## The pairs that miss most

"Without noise" is what the exact counts say, -cos(2 pi t/n). Where it is far from ERL, no epsilon helps: Dairy-PF and
Veg-PF are the pairs where it is farthest. "Bayes-NA" is the mean of posterior means over the releases.

{misses}

## What goes with energy

The two variables most correlated with Kcal, by posterior means:

{orders}

All intervals are in [nhanes_diet.csv](nhanes_diet.csv).
"""


def _share(row: pd.Series) -> str:
    return f"{100 * row['share']:.1f}% ± {100 * row['error']:.1f}"


def _misses(intervals: pd.DataFrame, exact: pd.DataFrame, epsilon: float) -> str:
    releases = intervals["release"].max()
    lines = [
        f"Epsilon {epsilon:g}:",
        "",
        "| pair | missed | ERL | without noise | Bayes-NA |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.var1}-{row.var2} | {row.missed} of {releases} | {row.erl:.3f} | "
        f"{exact.loc[row.var1, row.var2]:.3f} | {row.private:.3f} |"
        for row in pair_table(intervals, epsilon).head(5).itertuples()
    ]
    return "\n".join(lines)


def _versions() -> str:
    libraries = ("dpsurvey", "numpy", "scipy", "numba", "pandas", "opendp")
    return ", ".join(
        [f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in libraries)]
    )


def heading(text: str) -> None:
    """Print a heading."""
    print(f"\n\n{text}\n{'=' * len(text)}")


def analyse(
    diet: pd.DataFrame, codebook: dps.Codebook, out: Path, *, draws: int
) -> list[dps.CorrelationPosterior]:
    """Release at both epsilons, infer from the releases and from the rows, and tell what comes out."""
    heading("2. Release: epsilon 1 and then 3, from one ledger")
    # Both releases are of the same rows, so whoever has both knows what epsilon = 1 + 3 = 4 allows: the ledger
    # adds them up. A real ledger is kept; only an example may forget what it spent, so that it can run again.
    ledger_file = out / "diet.ledger.json"
    ledger_file.unlink(missing_ok=True)
    ledger = dps.Ledger.create(ledger_file, dataset="NHANES 2017-18 diet (example)", budget=sum(EPSILONS))
    releases = []
    for epsilon in EPSILONS:
        release = dps.release(
            diet, epsilon, statistic="quadrant", mechanism="geometric", codebook=codebook, ledger=ledger
        )
        release.save(out / f"diet.epsilon{epsilon:g}.release.json")
        releases.append(release)
        print(release)
    print(f"Spent {ledger.spent} of a budget of {ledger.budget}.\n")
    print(fill(releases[0].statement(), width=110))

    heading("3. Infer from the releases: private, at no further cost")
    posteriors = [dps.bayes_na(release, draws=draws, seed=1) for release in releases]
    for posterior in posteriors:
        print(f"\n{posterior.regress('Kcal', on=FOODS)}")

    heading("4. The yardstick: the extended rank likelihood, from the rows. NOT PRIVATE")
    erl = dps.erl(diet, engine="native", draws=draws, seed=1)
    print(erl.regress("Kcal", on=FOODS))
    both = dps.compare(*posteriors, erl, names=[*(f"ε = {epsilon:g}" for epsilon in EPSILONS), "ERL"])
    print(f"\n{both}\n")
    table = both.summary().round(2).set_index(["var1", "var2"])
    against = table.columns.str.contains("contains|overlap|ratio")
    print(f"{table.loc[:, ~against].to_string()}\n\n{table.loc[:, against].to_string()}")
    print(
        "\nHow to read it: 'contains' says whether a private interval holds ERL's estimate, 'ratio' how many times\n"
        "longer it is than ERL's. What privacy costs is length, and more of it at epsilon = 1. Not every miss is due\n"
        "to noise: Bayes-NA sees only who is above the medians, ERL the whole order of the rows, and where the data\n"
        "are not quite a Gaussian copula (Dairy-PF, Veg-PF) the two estimate different things."
    )
    return [*posteriors, erl]


def main() -> None:
    """Run the illustration from the command line."""
    parser = argparse.ArgumentParser(description="The diet table of NHANES 2017-18 at epsilon 1 and 3.")
    parser.add_argument("folder", nargs="?", type=Path, help="where the three files are")
    parser.add_argument("--draws", type=int, default=1000, help="posterior draws of each of four chains")
    parser.add_argument(
        "--releases", type=int, default=0, help="fresh releases at each epsilon; 0: no experiment"
    )
    parser.add_argument(
        "--results", type=Path, default=Path("out"), help="folder for the experiment's report"
    )
    parser.add_argument(
        "--figure", type=Path, default=Path("out", "nhanes_diet.png"), help="file of the figure"
    )
    options = parser.parse_args()
    if options.releases < 0 or options.releases == 1:
        parser.error("--releases must be 0, or at least 2: one release has no Monte Carlo error")
    try:
        files = survey_files(options.folder)
    except dps.errors.MissingFileError as error:
        sys.exit(str(error))
    out = Path("out")
    out.mkdir(exist_ok=True)

    heading("1. Read: demographics, energy and food groups, merged one-to-one on the id of a person")
    print("The counts of rows are exact and confidential; these data are public.\n")
    diet, codebook = read_diet(files)
    results = analyse(diet, codebook, out, draws=options.draws)

    heading("5. A picture. It holds ERL, so it is NOT PRIVATE, and says so")
    options.figure.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(options.figure, "wb") as file:
        draw(results).savefig(file, format="png", dpi=110)
    print(options.figure)

    if options.releases:
        heading(f"6. {options.releases} fresh releases at each epsilon. NOT PRIVATE")
        erl = results[-1]
        intervals = repeat_releases(diet, codebook, erl, releases=options.releases, draws=options.draws)
        print(write_report(intervals, without_noise(diet), options.results, draws=options.draws))

    heading("What this does not say")
    print(
        "Survey weights and the sampling design are not used: this describes the people in the files, not the US\n"
        "population. One recall day is not a habitual diet. The variables, the filters and the number of complete\n"
        "rows are published exactly and lie outside the privacy guarantee."
    )


if __name__ == "__main__":
    main()
