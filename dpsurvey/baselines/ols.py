"""Ordinary least squares on normal scores: the non-private yardstick for regression coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsurvey.confidential.domain import as_array, check_domain, select_columns
from dpsurvey.copula import card
from dpsurvey.copula.diagnostics import check_prob
from dpsurvey.copula.regression import checked_predictors
from dpsurvey.errors import DomainError

YARDSTICK = "the yardstick that private regressions are measured against, not a private result"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OlsBenchmark:
    """Least squares coefficients on normal scores. Not private: it has seen the rows.

    Parameters
    ----------
    y : str
        The outcome.
    on : tuple of str, length k
        The predictors.
    coefficients, standard_errors : ndarray of float64, shape (k,)
        On the scale of standardised normal scores, the scale of :func:`dpsurvey.regress`.
    r_squared : float
        Share of the variance of the outcome's scores that the predictors account for.
    n : int
        Number of rows.
    prob : float
        Confidence of intervals where none is asked for.
    """

    y: str
    on: tuple[str, ...]
    coefficients: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    r_squared: float
    n: int
    prob: float

    def __post_init__(self) -> None:
        self.coefficients.setflags(write=False)
        self.standard_errors.setflags(write=False)

    @property
    def method(self) -> str:
        """What it is, for tables and figures."""
        return "OLS on normal scores"

    @property
    def private(self) -> bool:
        """Always False."""
        return False

    def summary(self, prob: float | None = None) -> pd.DataFrame:
        """Return one row per coefficient.

        Parameters
        ----------
        prob : float, optional
            Confidence of the t intervals; by default the one given to ``ols_benchmark``.

        Returns
        -------
        pandas.DataFrame
            Columns ``term, estimate, se, lower, upper``.

        Raises
        ------
        ArgumentError
            If `prob` is not strictly between 0 and 1.
        """
        frame = self.intervals(prob)
        frame.insert(2, "se", self.standard_errors)
        return frame

    def intervals(self, prob: float | None = None) -> pd.DataFrame:
        """Return the coefficients and their intervals: what figures show.

        Parameters
        ----------
        prob : float, optional
            As in :meth:`summary`.

        Returns
        -------
        pandas.DataFrame
            Columns ``term, estimate, lower, upper``.
        """
        from scipy.special import stdtrit

        level = self.prob if prob is None else check_prob(prob)
        half = stdtrit(self.n - len(self.on) - 1, (1.0 + level) / 2.0) * self.standard_errors
        return pd.DataFrame(
            {
                "term": list(self.on),
                "estimate": self.coefficients,
                "lower": self.coefficients - half,
                "upper": self.coefficients + half,
            }
        )

    def _title(self) -> str:
        return f"OLS of {self.y} on {', '.join(self.on)}, normal scores of {self.n} rows"

    def _lines(self) -> list[str]:
        return [YARDSTICK, card.COEFFICIENT_SCALE, card.WEIGHTS, f"R^2: {self.r_squared:.3f}"]

    def __repr__(self) -> str:
        table = self.summary().to_string(index=False, float_format=lambda value: f"{value:.3f}")
        return card.text_card(self._title(), card.privacy_note(False, None), self._lines()) + "\n" + table

    def _repr_html_(self) -> str:
        return card.html_card(self._title(), card.privacy_note(False, None), self._lines(), self.summary())


def ols_benchmark(df: pd.DataFrame, y: str, *, on: Sequence[str], prob: float = 0.95) -> OlsBenchmark:
    """Return least squares on normal scores, the non-private yardstick for :func:`dpsurvey.regress`.

    Every variable is replaced by its normal scores qnorm(rank/(n+1)), ties at their average rank, and
    standardised; statsmodels fits the outcome's on the predictors'. The coefficients are R_XX^-1 R_Xy of the
    correlation matrix R of the scores. It reads the rows and adds no noise: NOT private.

    Parameters
    ----------
    df : pandas.DataFrame
        Complete rows, real columns, a unique index.
    y : str
        The outcome.
    on : sequence of str
        The predictors, one or more.
    prob : float, default 0.95
        Confidence of the intervals in the result's repr, and of its summary by default.

    Returns
    -------
    OlsBenchmark

    Raises
    ------
    DomainError
        If rows are incomplete or too few, a column is not real or is constant, or the predictors are
        collinear; the error names columns and counts, never values.
    UnknownNameError
        If a name is not a column.
    ArgumentError, ArgumentTypeError
        If `on` is not a sequence of different names without `y`, or `prob` is not strictly between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(20.0)
    >>> benchmark = ols_benchmark(pd.DataFrame({"x": x, "y": np.exp(x)}), "y", on=["x"])
    >>> benchmark.summary().round(3)
      term  estimate   se  lower  upper
    0    x       1.0  0.0    1.0    1.0
    """
    check_prob(prob)
    predictors = checked_predictors(y, on)
    names = select_columns(df, [y, *predictors])
    check_domain(df, names)
    scores = _standard_scores(df, names)
    if len(df) < len(names) + 1 or np.linalg.matrix_rank(scores[:, 1:], tol=1e-8 * len(df)) < len(predictors):
        raise DomainError(
            "the predictors are collinear, or there are not enough rows",
            expected=f"more than {len(names)} rows, and predictors of which none follows from the others",
            got=f"{len(df)} rows, {len(predictors)} predictor(s)",
        )
    import statsmodels.api as sm

    fit = sm.OLS(scores[:, 0], sm.add_constant(scores[:, 1:])).fit()
    return OlsBenchmark(
        y, predictors, np.array(fit.params[1:]), np.array(fit.bse[1:]), float(fit.rsquared), len(df), prob
    )


def _standard_scores(df: pd.DataFrame, names: tuple[str, ...]) -> NDArray[np.float64]:
    """Return standardised normal scores, shape (n, p)."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    ranks = np.column_stack([rankdata(as_array(df[name])) for name in names])
    constant = [repr(name) for name, column in zip(names, ranks.T, strict=True) if np.ptp(column) == 0]
    if constant:
        raise DomainError(
            f"column(s) without any variation: {', '.join(constant)}",
            expected="columns with two or more different values",
        )
    scores: NDArray[np.float64] = ndtri(ranks / (len(df) + 1))
    scores -= scores.mean(axis=0)
    scores /= scores.std(axis=0)
    return scores
