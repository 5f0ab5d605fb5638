"""Point estimates of a correlation matrix."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsurvey.copula import card
from dpsurvey.copula.correlation import as_correlation, pair_values
from dpsurvey.copula.fields import pair_frame, settle_common_fields, variable_pairs
from dpsurvey.errors import ArgumentError

if TYPE_CHECKING:
    from dpsurvey.privacy.release import Release


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CorrelationEstimate:
    """A point estimate of a Gaussian-copula correlation matrix, without uncertainty.

    It speaks on the latent standard normal scale; survey weights and design are not used.

    Parameters
    ----------
    R : ndarray of float64, shape (p, p)
        Correlation matrix; copied, made exactly symmetric with unit diagonal, and read-only.
    variables : sequence of str, length p
        Names, in the order of the matrix.
    labels : mapping of str to str
        Variable to label; may be empty or partial.
    method : str
        For example ``"MLE-NN"``.
    private : bool
        Whether it follows from a private release alone.
    release : Release, optional
        The release it was computed from.
    info : mapping, optional
        Facts about the fit: JSON values only. Values that are lists of p(p-1)/2 numbers or truth values, in
        the order of the pairs, become columns of the summary.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        As :class:`CorrelationPosterior`.

    Examples
    --------
    >>> CorrelationEstimate([[1, 0.5], [0.5, 1]], ("x", "y"), {}, method="MLE-NN", private=False).summary()
      var1 var2  estimate
    0    x    y       0.5
    """

    R: NDArray[np.float64]
    variables: tuple[str, ...]
    labels: dict[str, str]
    method: str
    private: bool
    release: Release | None = None
    info: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        raw = np.asarray(self.R)
        if raw.ndim != 2:
            raise ArgumentError("R has the wrong shape", expected="shape (p, p)", got=f"shape {raw.shape}")
        R = as_correlation(raw)
        R.setflags(write=False)
        object.__setattr__(self, "R", R)
        settle_common_fields(self, len(R), ("method",))

    @property
    def p(self) -> int:
        """Number of variables."""
        return len(self.variables)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Pairs of variables, row by row above the diagonal."""
        return variable_pairs(self.variables)

    def summary(self, *, labels: bool = False) -> pd.DataFrame:
        """Return one row per pair of variables.

        Parameters
        ----------
        labels : bool, default False
            Whether to show labels in place of variable names where there are any.

        Returns
        -------
        pandas.DataFrame
            Columns ``var1, var2, estimate``, then the flags that the method records for each pair.
        """
        frame = pair_frame(self.variables, self.labels if labels else {})
        return frame.assign(estimate=pair_values(self.R), **self._pair_facts())

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write an .npz file, exactly as named: a JSON header and the entries above the diagonal; no pickle.

        Raises
        ------
        MissingFileError
            If the folder does not exist or cannot be written.
        """
        from dpsurvey.copula.result_file import save_result

        return save_result(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CorrelationEstimate:
        """Read an estimate that :meth:`save` wrote; equal in every field.

        Raises
        ------
        MissingFileError
            If the file cannot be opened.
        ReleaseFormatError
            If it does not follow the schema, or holds a posterior.
        """
        from dpsurvey.copula.result_file import load_result

        return load_result(path, kind=cls)

    def _pair_facts(self) -> dict[str, list[Any]]:
        """Return the facts that hold one number or truth value for each pair."""
        return {
            name: value
            for name, value in self.info.items()
            if name not in ("var1", "var2", "estimate")
            and isinstance(value, list)
            and len(value) == len(self.pairs)
            and all(isinstance(item, int | float) for item in value)
        }

    def _title(self) -> str:
        return f"{self.method} estimate: {card.size_text(self.p)}"

    def _lines(self) -> list[str]:
        facts = [
            f"{name.replace('_', ' ')}: {value}"
            for name, value in self.info.items()
            if isinstance(value, bool | int | float)
        ]
        flagged = [
            f"{name.replace('_', ' ')}: {sum(value)} of {len(value)} pairs"
            for name, value in self._pair_facts().items()
            if all(isinstance(item, bool) for item in value)
        ]
        names = card.names_line(self.variables, self.labels)
        return [card.SCALE, card.WEIGHTS, "a point estimate: no intervals", names, *facts, *flagged]

    def __repr__(self) -> str:
        return card.text_card(
            self._title(),
            card.privacy_note(self.private, self.release),
            self._lines(),
        )

    def _repr_html_(self) -> str:
        return card.html_card(
            self._title(),
            card.privacy_note(self.private, self.release),
            self._lines(),
            self.summary(),
        )
