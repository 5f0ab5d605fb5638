"""What the numbers say, in words: short Markdown texts made from the tables alone."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dpsurvey.study.tables import COVERAGE_TOLERANCE, EDGES, NOMINAL, PLAN_TOLERANCE, Results


def markdown(table: pd.DataFrame, digits: dict[str, int] | None = None) -> str:
    """Return a Markdown table; floats with three decimals unless `digits` says otherwise.

    Examples
    --------
    >>> print(markdown(pd.DataFrame({"n": [50], "mae": [0.12345]})))
    | n | mae |
    | --- | --- |
    | 50 | 0.123 |
    """

    def show(name: str, value: object) -> str:
        if isinstance(value, float):
            return f"{value:g}" if name == "epsilon" else f"{value:.{(digits or {}).get(name, 3)}f}"
        return str(value)

    lines = [
        "| " + " | ".join(map(str, table.columns)) + " |",
        "| " + " | ".join(["---"] * len(table.columns)) + " |",
    ]
    lines += [
        "| " + " | ".join(show(str(name), value) for name, value in row.items()) + " |"
        for row in table.to_dict("records")
    ]
    return "\n".join(lines)


def table1(table: pd.DataFrame) -> str:
    """Say how our Table 1 compares with the printed one, and list every cell that does not hold."""
    shown = table[
        [
            "p",
            "n",
            "epsilon",
            "coverage",
            "coverage_se",
            "paper_coverage",
            "length",
            "length_se",
            "paper_length",
        ]
    ]
    ratio = table["length_ratio"]
    bad = table[~(table["length_holds"] & table["coverage_holds"])]
    text = (
        f"Interval lengths are {ratio.min():.3f} to {ratio.max():.3f} times the paper's (median {ratio.median():.3f}). "
        f"{int(table['length_holds'].sum())} of {len(table)} lengths lie within 2% plus three standard errors of the "
        f"paper's, {int(table['coverage_holds'].sum())} of {len(table)} coverages within 3.5 standard errors of 95% or "
        "of the paper's (the unit of a standard error is the run; only ours counts, the paper's own Monte Carlo error "
        "is not allowed for).\n\n"
    )
    if bad.empty:
        text += "Exceptions: none.\n\n"
    else:
        columns = [
            "p",
            "n",
            "epsilon",
            "runs",
            "coverage",
            "coverage_se",
            "paper_coverage",
            "length",
            "length_se",
        ]
        text += (
            "Exceptions:\n\n" + markdown(bad[[*columns, "paper_length", "length_ratio"]], _COVERAGE) + "\n\n"
        )
        text += _BETWEEN + "\n\n"
    return text + "All cells:\n\n" + markdown(shown, _COVERAGE) + "\n"


def better(table: pd.DataFrame) -> str:
    """Say how lengths compare with the paper's method and the planned ones, and list every cell that does not hold."""
    lines = []
    for (statistic, mechanism), part in table.groupby(["statistic", "mechanism"], sort=False):
        share, planned = part["share"], part["planned_ratio"]
        against = (
            f"lengths {share.min():.3f} to {share.max():.3f} times those of the paper's method in the same runs "
            f"(median {share.median():.3f}), longer beyond 3 standard errors in {int((~part['not_longer']).sum())} of "
            f"{len(part)} cells; "
        )
        lines.append(
            f"- {statistic} counts, {mechanism} noise: {'' if mechanism == 'geometric' else against}coverage "
            f"{part['coverage'].min():.1f} to {part['coverage'].max():.1f}%, on average "
            f"{part['coverage'].mean():.2f}%; planned lengths {planned.min():.3f} to {planned.max():.3f} times the "
            "simulated ones.\n"
        )
    columns = [
        "p",
        "n",
        "epsilon",
        "statistic",
        "mechanism",
        "coverage",
        "coverage_se",
        "length",
        "length_se",
    ]
    columns += ["paper_length", "planned"]
    held = table[["coverage_holds", "not_longer", "plan_holds"]]
    bad = table[~held.all(axis=1)]
    exceptions = "none." if bad.empty else "\n\n" + markdown(bad[columns], _COVERAGE)
    return (
        "The paper's method is quadrant counts with geometric noise; `paper_length` is what it printed. Coverage "
        f"should be within 3 standard errors and {COVERAGE_TOLERANCE:g} points of 95%, lengths not above those of the "
        f"paper's method, and planned lengths (`dpsurvey plan`) within {PLAN_TOLERANCE:.0%}.\n\n"
        f"{''.join(lines)}\nExceptions: {exceptions}\n\nAll cells:\n\n{markdown(table[columns], _COVERAGE)}\n"
    )


def regression(table: pd.DataFrame) -> str:
    """Compare coverage of regression quantities under the product likelihood and the calibrated joint one."""
    keys = ["p", "n", "epsilon", "statistic", "quantity"]
    wide = table.pivot_table(
        index=keys, columns="likelihood", values=["coverage", "coverage_se", "length"], sort=False
    )
    shown = pd.DataFrame(
        {
            "product": wide["coverage", "product"], "joint": wide["coverage", "joint"],
            "joint_se": wide["coverage_se", "joint"],
            "length ratio": wide["length", "joint"] / wide["length", "product"],
        }
    ).reset_index()  # fmt: skip
    shown["epsilon"] = shown["epsilon"].map("{:g}".format)
    barred = shown[shown["quantity"] != "R squared"]
    lines = ""
    for p, low, high in ((3, 93.0, 97.0), (5, 92.0, 98.0)):
        part = barred[barred["p"] == p]
        inside = part["joint"].between(low, high)
        lines += (
            f"- p = {p}, coefficients and partial correlations: product {part['product'].min():.1f} to "
            f"{part['product'].max():.1f}%, calibrated joint {part['joint'].min():.1f} to {part['joint'].max():.1f}%; "
            f"within {low:g} to {high:g}% in {int(inside.sum())} of {len(part)} rows.\n"
        )
    decimals = {"product": 1, "joint": 1, "joint_se": 2}
    return (
        "Regression of the first variable on all others, R ~ LKJ(1), L-infinity noise; coverage of 95% intervals in "
        "percent, averaged over coefficients and over partial correlations; epsilon inf: no noise. The last column is "
        f"the mean length of the joint posterior's intervals as a share of the product's.\n\n{lines}\n"
        f"{markdown(shown, decimals)}\n"
    )


_TIE = 0.0005  # mean absolute errors that print alike
_COVERAGE = {"coverage": 1, "coverage_se": 2, "paper_coverage": 1}
_BETWEEN = (
    "Coverage between the paper's and 95% where little noise is added (epsilon 5, p = 5 and 10) comes from the "
    "composite likelihood: what is left is the sampling error of counts, which is correlated between pairs, and "
    "equation (18) takes it for independent. Counts drawn independently from the model itself are covered at 95%: "
    "94.9% +- 0.1 at p = 10, n = 1000, epsilon 5 (tests/study/test_batch.py)."
)


def errors(overall: pd.DataFrame) -> str:
    """Compare the methods' mean absolute errors over all correlations."""
    keys = ["p", "n", "epsilon"]
    mae = overall.pivot_table(index=keys, columns="method", values="mae", sort=False)
    se = overall.pivot_table(index=keys, columns="method", values="mae_se", sort=False, dropna=False)
    lines = []
    gap = (mae["MLE-NN"] - mae["Bayes-NA"]).abs()
    apart = int(gap.to_numpy().argmax())
    lines.append(
        f"Bayes-NA and MLE-NN: mean absolute errors differ by {gap.median():.4f} in the median cell and by at most "
        f"{gap.max():.4f} ({_where(mae.index[apart])}: "
        f"{mae['Bayes-NA'].iloc[apart]:.3f} against {mae['MLE-NN'].iloc[apart]:.3f}); "
        f"Bayes-NA's is the smaller in {int((mae['Bayes-NA'] < mae['MLE-NN']).sum())} of {len(mae)} cells."
    )
    edge = (mae["Bayes-NA"] - mae["Li-Kendall"]).xs(1.0, level="epsilon")
    lines.append(
        "Li-Kendall's edge over Bayes-NA at epsilon 1 (positive: Li-Kendall has the smaller error): "
        + ", ".join(
            f"{value:+.3f} (p = {p}, n = {n})" for p, n, value in edge.reset_index().itertuples(index=False)
        )
        + "."
    )
    best = mae.idxmin(axis=1)
    counted = best.value_counts()
    lines.append(
        "Smallest error: " + ", ".join(f"{name} in {count} cells" for name, count in counted.items()) + "."
    )
    table = mae.reset_index()
    table["largest standard error"] = se.max(axis=1).to_numpy()
    table["largest standard error"] = table["largest standard error"].map("{:.4f}".format)
    bullets = "\n".join(f"- {line}" for line in lines)
    return f"{bullets}\n\nMean absolute error over all correlations:\n\n{markdown(table)}\n\n"


def asghar_spike(results: Results) -> str:
    """Say how often Asghar-dpc gives exactly -1 and +1, over all cells and at each epsilon."""
    rows = []
    for cell, frame in results.items():
        if cell.method == "Asghar-dpc":
            at = [100.0 * float((frame["estimate"] * sign > 0.999).mean()) for sign in (-1, 1)]
            rows.append({"p": cell.p, "epsilon": cell.epsilon, "at -1": at[0], "at +1": at[1]})
    shares = pd.DataFrame(rows).groupby(["p", "epsilon"], as_index=False).mean()
    return (
        "Asghar-dpc's estimates within .001 of -1 and of +1, percent of pairs, average over n (cells emptied by noise "
        "give -1 before +1 is considered, hence the spike at -1):\n\n"
        + markdown(shares, {"at -1": 1, "at +1": 1})
        + "\n"
    )


def mechanism_laws(table: pd.DataFrame) -> str:
    """Say what the laws of the mechanisms look like, in two numbers each."""
    moments = []
    keys: Any
    for keys, part in table[table["mechanism"] != "Geometric"].groupby(
        ["epsilon", "true_count", "mechanism"], sort=False
    ):
        mean = float((part["value"] * part["probability"]).sum())
        second = float(((part["value"] - keys[1]) ** 2 * part["probability"]).sum())
        moments.append(
            {
                "epsilon": keys[0],
                "true_count": keys[1],
                "mechanism": keys[2],
                "mean": mean,
                "rmse": second**0.5,
            }
        )
    return (
        "n = 50, so true counts run from 0 to 25; epsilon is that of the one count. The laws are exact, without Monte "
        "Carlo error. Mean and root mean squared error of what is released:\n\n"
        + markdown(pd.DataFrame(moments))
        + "\n"
    )


def coverage_by_bins(table: pd.DataFrame) -> str:
    """Say where coverage departs from 95% by the true correlation."""
    bins = table[(table["bin_high"] - table["bin_low"]) < 1.0]
    outer = bins[(bins["bin_low"] == EDGES[0]) | (bins["bin_high"] == EDGES[-1])]
    columns = ["p", "n", "epsilon", "bin_low", "bin_high", "pairs", "coverage", "coverage_se"]
    lowest = pd.concat([part.nsmallest(5, "coverage")[columns] for _, part in outer.groupby("p")])
    inner = bins.drop(outer.index)
    return (
        f"Coverage within bins of the true correlation, {len(bins)} bins. A posterior is calibrated on average over "
        f"its prior ({NOMINAL:g}% over all bins), not at each correlation: where noise drowns the counts intervals sit "
        "near the middle, and correlations near +-1, rare under the prior at p = 5 and 10, fall outside. Average over "
        f"the two outermost bins {_weighted(outer):.1f}%, over the others {_weighted(inner):.1f}%. Lowest coverage in "
        f"the outermost bins:\n\n{markdown(lowest, {'coverage': 1, 'coverage_se': 1, 'bin_low': 1, 'bin_high': 1})}\n"
    )


def _weighted(part: pd.DataFrame) -> float:
    return float((part["coverage"] * part["pairs"]).sum() / part["pairs"].sum())


def mechanisms(overall: pd.DataFrame, names: dict[str, str]) -> str:
    """Compare the mechanisms inside MLE-NN."""
    keys = ["p", "n", "epsilon"]
    mae = overall.pivot_table(index=keys, columns="method", values="mae", sort=False).rename(columns=names)
    se = overall.pivot_table(index=keys, columns="method", values="mae_se", sort=False, dropna=False).rename(
        columns=names
    )
    others = mae.drop(columns="BTGM").min(axis=1)
    margin = 3.0 * se.max(axis=1).fillna(0.0)
    worse = mae[mae["BTGM"] > others + _TIE]
    clearly = mae[mae["BTGM"] > others + margin]
    where = "; ".join(
        f"{_where(key)}: {row['BTGM']:.3f} against {row.drop('BTGM').min():.3f}"
        for key, row in worse.iterrows()
    )
    return (
        f"BTGM has the smallest mean absolute error, alone or within {_TIE:g}, in {len(mae) - len(worse)} of "
        f"{len(mae)} cells"
        + (f"; another has in {where}" if where else "")
        + f". Beyond three standard errors another is ahead in {len(clearly)} cells.\n\n"
        + markdown(mae.reset_index())
        + "\n"
    )


def joint(table: pd.DataFrame) -> str:
    """Compare the composite with the full joint likelihood."""
    keys = ["n", "epsilon", "quantity"]
    wide = table.pivot_table(index=keys, columns="likelihood", values=["coverage", "length"], sort=False)
    shown = pd.DataFrame(
        {
            "composite coverage": wide["coverage", "Composite"], "joint coverage": wide["coverage", "Joint"],
            "composite length": wide["length", "Composite"], "joint length": wide["length", "Joint"],
        }
    ).reset_index()  # fmt: skip
    pairs = shown[shown["quantity"].str.fullmatch("R[0-9]+")]
    whole = shown[~shown["quantity"].str.fullmatch("R[0-9]+")]

    def mean(part: pd.DataFrame, name: str) -> float:
        return float(part[name].mean())

    def said(part: pd.DataFrame, what: str) -> str:
        ratio = float((part["joint length"] / part["composite length"]).mean())
        return (
            f"- {what}: coverage {mean(part, 'composite coverage'):.1f}% (composite) and "
            f"{mean(part, 'joint coverage'):.1f}% (joint), the joint's intervals {ratio:.3f} times as long.\n"
        )

    budgets = sorted(table["epsilon"].unique())
    lines = said(pairs, "single correlations, all cells")
    for budget in budgets:
        lines += said(
            whole[whole["epsilon"] == budget],
            f"regression, partial correlation and R squared, epsilon {budget:g}",
        )
    decimals = {"composite coverage": 1, "joint coverage": 1}
    return (
        "Averages over quantities and n (epsilon 100 is nearly without noise). The joint likelihood is a "
        f"reconstruction from the multinomial law of the eight octants:\n\n{lines}\n{markdown(shown, decimals)}\n"
    )


def _where(key: Any) -> str:
    p, n, epsilon = key
    return f"p = {p}, n = {n}, epsilon {epsilon:g}"
