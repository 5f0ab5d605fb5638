"""Posterior draws of a correlation matrix. Point estimates come along: both kinds of result in one place."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsurvey.copula import card
from dpsurvey.copula.correlation import (
    as_correlation,
    matrix_from_pairs,
    pair_values,
    prior_interval_length,
)
from dpsurvey.copula.diagnostics import equal_tailed, standard_deviation, summarise
from dpsurvey.copula.estimate import CorrelationEstimate as CorrelationEstimate
from dpsurvey.copula.fields import pair_frame, settle_common_fields, variable_pairs
from dpsurvey.errors import ArgumentError, ArgumentTypeError, WideIntervalWarning

if TYPE_CHECKING:
    from dpsurvey.copula.regression import RegressionPosterior
    from dpsurvey.privacy.release import Release

_DRAW_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CorrelationPosterior:
    """Posterior draws of a Gaussian-copula correlation matrix.

    Everything it says is on the latent standard normal scale: the correlations are those of normal scores,
    not Pearson correlations of the variables in their own units. Survey weights and design are not used.

    Parameters
    ----------
    draws : ndarray of float64, shape (chain, draw, p, p)
        Correlation matrices. They are copied, made exactly symmetric with unit diagonal, and read-only.
    variables : sequence of str, length p
        Names, in the order of the matrices.
    labels : mapping of str to str
        Variable to label; may be empty or partial.
    method : str
        The model and likelihood, for example ``"Bayes-NA"`` or ``"ERL"``.
    engine : str
        The machinery that drew it, for example ``"gibbs"``.
    private : bool
        Whether it follows from a private release alone. A result that has seen rows is not private.
    release : Release, optional
        The release it was computed from.
    seed : int, optional
        Seed of the sampler.
    info : mapping, optional
        Facts about the sampler (sweeps, warm-up, versions): JSON values only.
    joint : ndarray of float64, shape (chain, draw, p, p), optional
        Draws from the calibrated joint posterior, for functionals of several correlations (regressions). Means and
        intervals of single correlations come from `draws`.

    Raises
    ------
    ArgumentError
        If the draws are not finite correlation matrices of that shape, names repeat or do not match the
        release, or a result with a release says that it is not private.
    ArgumentTypeError
        If an argument has the wrong type, or `info` holds anything but JSON values.

    Examples
    --------
    >>> draws = np.broadcast_to([[1.0, 0.5], [0.5, 1.0]], (2, 4, 2, 2))
    >>> CorrelationPosterior(draws, ("x", "y"), {}, method="ERL", engine="native", private=False)
    ERL posterior: 2 variables, 1 correlation, 2 chains x 4 draws, engine native
      !!! NOT PRIVATE: computed from the confidential rows, without any noise; it carries no guarantee !!!
      scale: latent standard normal (correlations of normal scores), not the units of the variables
      survey weights and design are not used
      variables: x, y
    """

    draws: NDArray[np.float64]
    variables: tuple[str, ...]
    labels: dict[str, str]
    method: str
    engine: str
    private: bool
    release: Release | None = None
    seed: int | None = None
    info: dict[str, Any] = field(default_factory=dict)
    joint: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        draws = _checked_draws(self.draws, "draws")
        object.__setattr__(self, "draws", draws)
        if self.joint is not None:
            joint = _checked_draws(self.joint, "joint")
            if joint.shape[2:] != draws.shape[2:]:
                raise ArgumentError(
                    "joint draws are of another size",
                    expected=f"p = {draws.shape[-1]}",
                    got=f"p = {joint.shape[-1]}",
                )
            object.__setattr__(self, "joint", joint)
        if self.seed is not None and (isinstance(self.seed, bool) or not isinstance(self.seed, int)):
            raise ArgumentTypeError("seed is not an integer", expected="an int or None", got=repr(self.seed))
        settle_common_fields(self, draws.shape[-1], ("method", "engine"))

    @property
    def p(self) -> int:
        """Number of variables."""
        return len(self.variables)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Pairs of variables, row by row above the diagonal."""
        return variable_pairs(self.variables)

    def mean(self) -> NDArray[np.float64]:
        """Return the posterior mean, shape (p, p); itself a correlation matrix."""
        return matrix_from_pairs(pair_values(self.draws).mean(axis=(0, 1)), self.p)

    def sd(self) -> NDArray[np.float64]:
        """Return posterior standard deviations, shape (p, p), 0 on the diagonal; NaN for a single draw."""
        return matrix_from_pairs(standard_deviation(pair_values(self.draws)), self.p, diagonal=0.0)

    def interval(self, prob: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return equal-tailed posterior intervals.

        Parameters
        ----------
        prob : float, default 0.95
            Posterior probability of each interval.

        Returns
        -------
        lower, upper : ndarray, shape (p, p)
            1 on the diagonal.

        Raises
        ------
        ArgumentError
            If `prob` is not strictly between 0 and 1.
        """
        lower, upper = equal_tailed(pair_values(self.draws), prob)
        return matrix_from_pairs(lower, self.p), matrix_from_pairs(upper, self.p)

    def summary(self, prob: float = 0.95, *, labels: bool = False) -> pd.DataFrame:
        """Return one row per pair of variables.

        Parameters
        ----------
        prob : float, default 0.95
            Posterior probability of each equal-tailed interval.
        labels : bool, default False
            Whether to show labels in place of variable names where there are any.

        Returns
        -------
        pandas.DataFrame
            Columns ``var1, var2, mean, sd, lower, upper, ess_bulk, ess_tail, r_hat``; rows in the order of
            ``np.triu_indices(p, 1)``; latent standard normal scale.

        Raises
        ------
        ArgumentError
            If `prob` is not strictly between 0 and 1.

        Warns
        -----
        WideIntervalWarning
            If this is a private result and more than half of its intervals cover 0.
        """
        statistics = summarise(pair_values(self.draws), prob)
        advice = self._wide_advice(statistics["lower"], statistics["upper"], prob)
        if advice:
            warnings.warn(advice, WideIntervalWarning, stacklevel=2)
        return pd.concat([pair_frame(self.variables, self.labels if labels else {}), statistics], axis=1)

    def regress(
        self, y: str, *, on: Sequence[str], prob: float = 0.95, calibrated: bool = True
    ) -> RegressionPosterior:
        """Return the posterior of the regression of one variable on others; see :func:`dpsurvey.regress`."""
        from dpsurvey.copula.regression import regress

        return regress(self, y, on=on, prob=prob, calibrated=calibrated)

    def to_arviz(self) -> Any:
        """Return the draws as an ``xarray.DataTree`` for ArviZ.

        Returns
        -------
        xarray.DataTree
            Group ``posterior`` with the variable ``R``, dimensions ``chain, draw, pair``: each pair once,
            named like ``"Kcal ~ Grain"``, without the diagonal, which is constant. Attributes say the method,
            engine, scale and privacy.
        """
        from arviz_base import from_dict

        tree = from_dict(
            {"posterior": {"R": pair_values(self.draws)}},
            coords={"pair": [f"{first} ~ {second}" for first, second in self.pairs]},
            dims={"R": ["pair"]},
        )
        tree["posterior"].attrs.update(
            method=self.method,
            engine=self.engine,
            private=int(self.private),  # netCDF has no truth values
            privacy=card.privacy_note(self.private, self.release).text,
            scale=card.SCALE,
            weights=card.WEIGHTS,
            variables=list(self.variables),
        )
        return tree

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write an .npz file, exactly as named: a JSON header and the draws above the diagonal; no pickle.

        Raises
        ------
        MissingFileError
            If the folder does not exist or cannot be written.
        """
        from dpsurvey.copula.result_file import save_result

        return save_result(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CorrelationPosterior:
        """Read a posterior that :meth:`save` wrote; equal in every field.

        Raises
        ------
        MissingFileError
            If the file cannot be opened.
        ReleaseFormatError
            If it does not follow the schema, or holds an estimate.
        """
        from dpsurvey.copula.result_file import load_result

        return load_result(path, kind=cls)

    def _wide_advice(self, lower: Any, upper: Any, prob: float) -> str | None:
        """Return what to say when most intervals of a private result cover 0, else None."""
        covering = int(np.sum((np.asarray(lower) <= 0.0) & (np.asarray(upper) >= 0.0)))
        if not self.private or 2 * covering <= len(self.pairs):
            return None
        length = float(np.mean(np.asarray(upper) - np.asarray(lower)))
        size = "" if self.release is None else f"epsilon = {self.release.epsilon:g}, n = {self.release.n}, "
        return (
            f"{covering} of {len(self.pairs)} intervals cover 0: too little budget for this n and p, or weak "
            f"correlations ({size}p = {self.p}: mean {100 * prob:g}% interval length {length:.2f}; without "
            f"any data it would be {prior_interval_length(self.p, prob):.2f}). More rows, a larger epsilon "
            "or fewer variables give shorter intervals"
        )

    def _title(self) -> str:
        chains, draws = self.draws.shape[:2]
        return (
            f"{self.method} posterior: {card.size_text(self.p)}, {card.count_text(chains, 'chain')} x "
            f"{card.count_text(draws, 'draw')}, engine {self.engine}"
        )

    def _lines(self, prob: float) -> list[str]:
        advice = self._wide_advice(*equal_tailed(pair_values(self.draws), prob), prob)
        lines = [card.SCALE, card.WEIGHTS, card.names_line(self.variables, self.labels)]
        return lines + ([advice] if advice else [])

    def __repr__(self) -> str:
        return card.text_card(
            self._title(),
            card.privacy_note(self.private, self.release),
            self._lines(0.95),
        )

    def _repr_html_(self) -> str:
        lower, upper = equal_tailed(pair_values(self.draws), 0.95)
        table = pair_frame(self.variables, {}).assign(
            mean=pair_values(self.mean()), sd=pair_values(self.sd()), lower=lower, upper=upper
        )
        return card.html_card(
            self._title(),
            card.privacy_note(self.private, self.release),
            self._lines(0.95),
            table.rename(columns={"lower": "95% lower", "upper": "95% upper"}),
        )


def _checked_draws(draws: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """Return draws as clean read-only correlation matrices, or say what is wrong with them."""
    raw = np.asarray(draws)
    if raw.ndim != 4 or 0 in raw.shape:
        raise ArgumentError(
            f"{name} have the wrong shape",
            expected="shape (chain, draw, p, p), none of them 0",
            got=f"shape {raw.shape}",
        )
    clean = as_correlation(raw, tol=_DRAW_TOLERANCE, name=name)
    clean.setflags(write=False)
    return clean
