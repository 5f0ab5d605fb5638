"""From survey files to private correlations: the main job, end to end, on genuine NHANES data.

Run it with ``make demo``, or ``python examples/demo.py``. It takes some ten seconds and writes into ``out/``.
"""

from pathlib import Path
from textwrap import fill

import pandas as pd
from matplotlib.figure import Figure

import dpsurvey as dps

pd.set_option("display.width", 120, "display.max_columns", 20)
out = Path("out")
out.mkdir(exist_ok=True)


def heading(text: str) -> None:
    """Print a heading."""
    print(f"\n\n{text}\n{'=' * len(text)}")


heading("1. Read: four transport files, merged one-to-one on the id of a person")
# `columns` says what to keep and how to call it; `where` declares the subpopulation. Both are chosen without
# looking at the rows: body mass index means something else in children, so the analysis is about adults.
survey, codebook = dps.read_survey(
    *dps.example_files(),
    on="SEQN",
    columns={
        "DR1TKCAL": "Kcal",
        "DR1TSUGR": "Sugar",
        "DR1TFIBE": "Fibre",
        "DR1TSFAT": "SatFat",
        "INDFMPIR": "Income",
        "BMXBMI": "BMI",
        "LBDHDD": "HDL",
    },
    where="RIDAGEYR >= 20",
    return_codebook=True,
)
print(codebook.to_frame()[["column", "label", "file"]])

heading("2. Keep complete rows, and see what they cost")
# What follows are exact counts of confidential rows. They are printed here ONLY because these data are public:
# with data of your own they are for the data holder's eyes, and belong in no report.
print(f"{codebook.confidential}\n")
adults = dps.nhanes.complete(survey)
# A preflight lists everything that would make a release refuse the table, before anything is spent.
print(f"\n{dps.preflight(adults, list(adults.columns))}")

heading("3. Release: spend epsilon once, in a ledger")
# A real ledger is made once for a data set, and kept: it is what stops a second, third and tenth analysis
# from adding up to no privacy at all. Only a demo may forget what it spent, so that it can run again.
ledger_file = out / "adults.ledger.json"
ledger_file.unlink(missing_ok=True)
ledger = dps.Ledger.create(ledger_file, dataset="NHANES 2017-18 adults (demo)", budget=1.5)
release = dps.release(adults, epsilon=1.0, ledger=ledger)
release.save(out / "adults.release.json")
print(release)
print(f"Of a budget of {ledger.budget}, {ledger.spent} is spent and {ledger.remaining} remains.")
print(f"Saved as {out / 'adults.release.json'}: the only thing that may leave, {release.m} noisy counts.")
print("\nPrivacy statement, for a methods section:\n")
print(fill(release.statement(), width=110))

heading("4. Infer: from here on nothing sees a row, and nothing costs privacy")
release = dps.Release.load(out / "adults.release.json")
posterior = dps.bayes_na(release, seed=1)  # the seed is that of the sampler; the noise has none
estimate = dps.mle_nn(release)
posterior.save(out / "adults.posterior.npz")
print(posterior)
table = posterior.summary().rename(columns={"mean": "Bayes-NA"})
table.insert(3, "MLE-NN", estimate.summary()["estimate"])
print(f"\n{table.round({'ess_bulk': 0, 'ess_tail': 0}).round(3).to_string(index=False)}")

heading("5. How to read an interval")
line = table.set_index(["var1", "var2"]).loc[("BMI", "HDL")]
print(
    f"BMI ~ HDL: given the release, and with its noise accounted for, the correlation lies between\n"
    f"{line['lower']:.2f} and {line['upper']:.2f} with posterior probability 95%; its posterior mean is "
    f"{line['Bayes-NA']:.2f}.\n"
    "It is the correlation of normal scores: a heavier person tends to rank lower in HDL cholesterol. It is not\n"
    "in kg/m2 or mg/dL, and it is no statement about causes. An interval that covers 0 says that this budget\n"
    "cannot tell the sign; more rows, a larger epsilon or fewer variables make intervals shorter."
)

heading("6. A regression, from the same release")
print(posterior.regress("HDL", on=["BMI", "Sugar", "Fibre", "SatFat", "Income"]))

heading("7. A picture")
figure = Figure(figsize=(14, 8.2), layout="constrained")
figure.get_layout_engine().set(w_pad=0.15, h_pad=0.1, wspace=0.05)
figure.suptitle(
    f"{release.p} variables of {release.n:,} adults, NHANES 2017-18, unweighted", fontsize="x-large"
)
left, right = figure.subplots(1, 2, width_ratios=[1.15, 1])
dps.plot_forest(posterior, estimate, ax=left)
dps.plot_heatmap(posterior, ax=right)
figure.savefig(out / "adults.png", dpi=150)
print(f"Intervals and heat map: {out / 'adults.png'}")

heading("What this does not say")
print(
    "The analysis is unweighted: survey weights and the sampling design are not used, so it describes the people\n"
    "in the files and not the US population. It is also unfiltered for the quality of dietary recalls: these\n"
    "example files carry no recall status (DR1DRSTZ), which a real analysis would declare in `where`."
)
