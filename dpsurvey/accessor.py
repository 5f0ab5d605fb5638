"""The pandas accessor ``df.dpcopula``: a thin, stateless door to the functions of the package."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dpsurvey.confidential.preflight import Preflight
    from dpsurvey.copula.estimate import CorrelationEstimate
    from dpsurvey.copula.posterior import CorrelationPosterior
    from dpsurvey.privacy.release import Release


@pd.api.extensions.register_dataframe_accessor("dpcopula")
class DpCopulaAccessor:
    """Private Gaussian-copula correlations of a table's columns.

    pandas makes a new accessor at each ``df.dpcopula``, so nothing is kept on it: a release is a value to hold
    and to save.

    Examples
    --------
    >>> import numpy as np, pandas as pd, dpsurvey
    >>> rng = np.random.default_rng(1)
    >>> df = pd.DataFrame(rng.normal(size=(500, 3)), columns=["Kcal", "Grain", "Sugar"])
    >>> df.dpcopula.release(epsilon=1.0, insecure_rng=rng)  # a simulation: the generator is seeded
    <Release: 3 variables, 3 noisy concordance counts, n = 500, linf, epsilon = 1, INSECURE noise (simulation)>
    """

    def __init__(self, df: pd.DataFrame) -> None:
        self._df = df

    def preflight(self, columns: list[str] | None = None) -> Preflight:
        """List all problems of the table at once: see :func:`dpsurvey.preflight`."""
        from dpsurvey.confidential.preflight import preflight

        return preflight(self._df, columns)

    def release(self, epsilon: float, **options: Any) -> Release:
        """Spend epsilon once and return noisy counts: see :func:`dpsurvey.release`."""
        from dpsurvey.confidential.disclose import release

        return release(self._df, epsilon, **options)

    def bayes_na(
        self,
        epsilon: float,
        *,
        draws: int = 1000,
        chains: int = 4,
        seed: int | None = None,
        engine: str = "gibbs",
        progress: bool = True,
        **options: Any,
    ) -> CorrelationPosterior:
        """Release and fit in one go; the release is on ``posterior.release``.

        `options` are those of :func:`dpsurvey.release`, the rest those of :func:`dpsurvey.bayes_na`, which are
        checked before epsilon is spent. If the fit is interrupted, the exception carries the release as its
        attribute ``release``, since what was spent on it stays spent.
        """
        from dpsurvey.copula.bayes_na import bayes_na, check_options

        check_options(draws, chains, engine, seed)
        with _kept(self.release(epsilon, **options)) as fresh:
            return bayes_na(fresh, draws=draws, chains=chains, seed=seed, engine=engine, progress=progress)

    def mle_nn(self, epsilon: float, *, adjust: str = "btgm", **options: Any) -> CorrelationEstimate:
        """Release and estimate in one go; the release is on ``estimate.release``.

        `options` are those of :func:`dpsurvey.release`, `adjust` that of :func:`dpsurvey.mle_nn`, which is
        checked before epsilon is spent.
        """
        from dpsurvey.copula.mle_nn import check_adjustment, mle_nn

        check_adjustment(adjust)
        with _kept(self.release(epsilon, **options)) as fresh:
            return mle_nn(fresh, adjust=adjust)

    def erl(self, columns: list[str] | None = None, **options: Any) -> CorrelationPosterior:
        """Draw under the extended rank likelihood, NOT PRIVATE: see :func:`dpsurvey.erl`."""
        from dpsurvey.baselines.erl import erl

        return erl(self._df, columns, **options)


@contextmanager
def _kept(release: Release) -> Iterator[Release]:
    """Hand the release over with whatever stops its analysis: the epsilon spent on it cannot be had back."""
    try:
        yield release
    except BaseException as error:
        error.release = release  # type: ignore[attr-defined]
        error.add_note("Epsilon was spent: save the release, `sys.last_value.release`, and go on from there.")
        raise
