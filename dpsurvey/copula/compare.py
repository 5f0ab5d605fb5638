"""Results side by side: estimates, intervals, and how they stand to the non-private one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsurvey.copula import card
from dpsurvey.copula.correlation import pair_values
from dpsurvey.copula.diagnostics import check_prob
from dpsurvey.copula.fields import pair_frame
from dpsurvey.copula.posterior import CorrelationEstimate, CorrelationPosterior
from dpsurvey.errors import ArgumentError, ArgumentTypeError

Result = CorrelationPosterior | CorrelationEstimate


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison:
    """Correlation results side by side, each set against one of them, the reference.

    The reference is the first non-private result, or the first result where all are private. A comparison
    that holds a non-private result is itself non-private.

    Parameters
    ----------
    frame : pandas.DataFrame
        Tidy: one row per pair and result. Columns ``var1, var2, result, estimate, lower, upper, length`` (NaN
        without intervals), and against the reference: ``contains_reference``, whether the interval holds the
        reference's estimate; ``overlap``, the length of the part that it shares with the reference's interval
        over the length of the shorter of the two (1 nested, 0 apart); ``length_ratio``, its length over that
        of the reference's interval. These three are missing for the reference itself.
    names : tuple of str
        The results, in order.
    reference : str
        Name of the reference.
    private : bool
        Whether every result follows from private releases alone.
    prob : float
        Posterior probability of the intervals.
    privacy : tuple of PrivacyNote
        What each result says about its privacy.

    Examples
    --------
    >>> from dpsurvey import CorrelationEstimate
    >>> truth = CorrelationEstimate([[1, 0.5], [0.5, 1]], ("x", "y"), {}, method="ERL", private=False)
    >>> other = CorrelationEstimate([[1, 0.4], [0.4, 1]], ("x", "y"), {}, method="MLE-NN", private=True)
    >>> both = compare(other, truth)
    >>> both.names, both.reference, both.private
    (('MLE-NN', 'ERL'), 'ERL', False)
    """

    frame: pd.DataFrame
    names: tuple[str, ...]
    reference: str
    private: bool
    prob: float
    privacy: tuple[card.PrivacyNote, ...]

    def summary(self) -> pd.DataFrame:
        """Return one row per pair, the results side by side.

        Returns
        -------
        pandas.DataFrame
            ``var1, var2``; for each result ``"<name> estimate", "<name> lower", "<name> upper"``; then, for
            each result but the reference, ``"<name> contains", "<name> overlap", "<name> ratio"``. Columns
            without any value are left out.
        """
        parts = {name: rows.reset_index(drop=True) for name, rows in self.frame.groupby("result", sort=False)}
        wide = parts[self.names[0]][["var1", "var2"]].copy()
        for name in self.names:
            for column in ("estimate", "lower", "upper"):
                if column == "estimate" or parts[name][column].notna().any():
                    wide[f"{name} {column}"] = parts[name][column]
        against = {"contains": "contains_reference", "overlap": "overlap", "ratio": "length_ratio"}
        for name in self.names:
            for short, column in against.items():
                if parts[name][column].notna().any():
                    wide[f"{name} {short}"] = parts[name][column]
        return wide

    def overview(self) -> pd.DataFrame:
        """Return one row per result: averages over the pairs.

        Returns
        -------
        pandas.DataFrame
            Index: the results. Columns ``mean_length, length_ratio, contains_reference`` (share of pairs),
            ``overlap, mean_difference, largest_difference`` (absolute, from the reference's estimate).
        """
        reference = self.frame.loc[self.frame["result"] == self.reference, "estimate"].to_numpy()
        rows = {}
        for name, part in self.frame.groupby("result", sort=False):
            difference = np.abs(part["estimate"].to_numpy() - reference)
            contains = part["contains_reference"]
            rows[name] = {
                "mean_length": part["length"].mean(),
                "length_ratio": part["length_ratio"].mean(),
                "contains_reference": float(contains.mean()) if contains.notna().any() else np.nan,
                "overlap": part["overlap"].mean(),
                "mean_difference": difference.mean(),
                "largest_difference": difference.max(),
            }
        return pd.DataFrame.from_dict(rows, orient="index").loc[list(self.names)]

    def _privacy(self) -> card.PrivacyNote:
        return card.joint_privacy(self.names, self.privacy)

    def _lines(self) -> list[str]:
        results = [f"{name}: {note.text}" for name, note in zip(self.names, self.privacy, strict=True)]
        measured = f"reference: {self.reference}; {100 * self.prob:g}% intervals"
        return [card.SCALE, card.WEIGHTS, *results, measured]

    def _title(self) -> str:
        return f"Comparison of {', '.join(self.names)}"

    def __repr__(self) -> str:
        table = self.overview().to_string(float_format=lambda value: f"{value:.3f}")
        return card.text_card(self._title(), self._privacy(), self._lines()) + "\n" + table

    def _repr_html_(self) -> str:
        return card.html_card(self._title(), self._privacy(), self._lines(), self.summary())


def compare(*results: Result, prob: float = 0.95, names: Sequence[str] | None = None) -> Comparison:
    """Set results about the same variables side by side.

    Parameters
    ----------
    *results : CorrelationPosterior or CorrelationEstimate
        Two or more, about the same variables; they are brought into the order of the first.
    prob : float, default 0.95
        Posterior probability of the intervals.
    names : sequence of str, optional
        What to call the results; by default their methods, with epsilon where there is one.

    Returns
    -------
    Comparison
        Non-private if any result is.

    Raises
    ------
    ArgumentTypeError
        If something is not a result.
    ArgumentError
        If there are fewer than two results, their variables differ, `names` does not fit, or `prob` is not
        strictly between 0 and 1.

    Examples
    --------
    >>> truth = CorrelationEstimate([[1, 0.5], [0.5, 1]], ("x", "y"), {}, method="ERL", private=False)
    >>> other = CorrelationEstimate([[1, 0.4], [0.4, 1]], ("y", "x"), {}, method="MLE-NN", private=True)
    >>> compare(other, truth).summary()
      var1 var2  MLE-NN estimate  ERL estimate
    0    y    x              0.4           0.5
    """
    check_prob(prob)
    if len(results) < 2:
        raise ArgumentError("nothing to compare", expected="two or more results", got=f"{len(results)}")
    called = name_results(results, names)
    tables = [pair_intervals(result, prob, like=results[0]) for result in results]
    which = next((place for place, result in enumerate(results) if not result.private), 0)
    rows = [
        _against(table, None if place == which else tables[which]).assign(result=name)
        for place, (name, table) in enumerate(zip(called, tables, strict=True))
    ]
    frame = pd.concat(rows, ignore_index=True)
    frame.insert(2, "result", frame.pop("result"))
    return Comparison(
        frame=frame,
        names=called,
        reference=called[which],
        private=all(result.private for result in results),
        prob=float(prob),
        privacy=tuple(card.privacy_note(result.private, result.release) for result in results),
    )


def name_results(results: Sequence[Result], names: Sequence[str] | None) -> tuple[str, ...]:
    """Return one distinct name per result.

    Parameters
    ----------
    results : sequence of CorrelationPosterior or CorrelationEstimate
    names : sequence of str or None
        The user's own; checked.

    Raises
    ------
    ArgumentTypeError
        If something is not a result.
    ArgumentError
        If the names are not one different text per result.
    """
    for result in results:
        if not isinstance(result, CorrelationPosterior | CorrelationEstimate):
            raise ArgumentTypeError(
                "not a correlation result",
                expected="CorrelationPosterior or CorrelationEstimate",
                got=type(result).__name__,
            )
    if names is None:
        return card.distinct_names([card.result_name(result.method, result.release) for result in results])
    return card.checked_names(names, len(results))


def pair_intervals(result: Result, prob: float, *, like: Result | None = None) -> pd.DataFrame:
    """Return the estimate and interval of every pair.

    Parameters
    ----------
    result : CorrelationPosterior or CorrelationEstimate
    prob : float
        Posterior probability of the equal-tailed interval.
    like : CorrelationPosterior or CorrelationEstimate, optional
        Another result, whose order of variables is taken.

    Returns
    -------
    pandas.DataFrame
        Columns ``var1, var2, estimate, lower, upper``. The estimate of a posterior is its mean; a point
        estimate has NaN for its interval.

    Raises
    ------
    ArgumentError
        If the two results are not about the same variables.
    """
    variables = result.variables if like is None else like.variables
    if set(variables) != set(result.variables):
        missing = sorted(set(variables) - set(result.variables))
        extra = sorted(set(result.variables) - set(variables))
        raise ArgumentError(
            "the results are not about the same variables",
            expected=", ".join(variables),
            got=", ".join(result.variables),
            hint=f"missing: {', '.join(missing) or 'none'}; only there: {', '.join(extra) or 'none'}",
        )
    order = [result.variables.index(name) for name in variables]
    if isinstance(result, CorrelationPosterior):
        centre, (lower, upper) = result.mean(), result.interval(prob)
    else:
        centre = result.R
        lower = upper = np.full_like(centre, np.nan)
    columns = {"estimate": centre, "lower": lower, "upper": upper}
    values = {name: pair_values(matrix[np.ix_(order, order)]) for name, matrix in columns.items()}
    return pair_frame(variables, {}).assign(**values)


def _against(table: pd.DataFrame, reference: pd.DataFrame | None) -> pd.DataFrame:
    """Return the table with its lengths and how it stands to the reference (None: it is the reference)."""
    length = table["upper"] - table["lower"]
    if reference is None:
        nothing = pd.array([pd.NA] * len(table), dtype="boolean")
        return table.assign(length=length, contains_reference=nothing, overlap=np.nan, length_ratio=np.nan)
    inside = (table["lower"] <= reference["estimate"]) & (reference["estimate"] <= table["upper"])
    contains = inside.astype("boolean").mask(length.isna())
    reference_length = reference["upper"] - reference["lower"]
    return table.assign(
        length=length,
        contains_reference=contains,
        overlap=_overlap(table, reference),
        length_ratio=length / reference_length.where(reference_length > 0),
    )


def _overlap(table: pd.DataFrame, reference: pd.DataFrame) -> NDArray[np.float64]:
    """Return the shared part of two intervals over the length of the shorter; a point is inside or not."""
    (low1, high1), (low2, high2) = (
        frame[["lower", "upper"]].to_numpy(np.float64).T for frame in (table, reference)
    )
    shared = np.minimum(high1, high2) - np.maximum(low1, low2)
    shorter = np.minimum(high1 - low1, high2 - low2)
    overlap = np.where(np.isnan(shared), np.nan, (shared >= 0).astype(np.float64))
    np.divide(np.maximum(shared, 0.0), shorter, out=overlap, where=shorter > 0)
    return overlap
