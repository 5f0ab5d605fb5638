"""What every engine of the extended rank likelihood starts from, and the result it ends in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpsurvey.baselines.mixing import warn_if_native_crawls, warn_if_r_crawls
from dpsurvey.baselines.ranks import RankTable, rank_table
from dpsurvey.baselines.sampling import (
    Sampling,
    checked_count,
    checked_prior,
    checked_seed,
    checked_threshold,
)
from dpsurvey.confidential.variables import ATTRIBUTE

if TYPE_CHECKING:
    from dpsurvey.copula.posterior import CorrelationPosterior

DEFAULT_BURN_IN = 500


@dataclass(frozen=True, slots=True)
class Plan:
    """A table that can be ranked, and checked settings.

    Attributes
    ----------
    table : RankTable
        Confidential.
    sampling : Sampling
    plug_in : ndarray of bool, shape (p,)
        Columns that keep their normal scores.
    labels : dict
        Variable to label, where pandas kept those of :func:`dpsurvey.read_survey`.
    """

    table: RankTable
    sampling: Sampling
    plug_in: NDArray[np.bool_]
    labels: dict[str, str]

    @property
    def independent(self) -> bool:
        """Whether the draws are independent: every column plug-in and complete."""
        return _is_independent(self.table, self.plug_in)

    def posterior(
        self, engine: str, matrices: NDArray[np.float64], facts: dict[str, Any]
    ) -> CorrelationPosterior:
        """Return the result of an engine, after a warning where its chains crawl.

        Parameters
        ----------
        engine : str
        matrices : ndarray, shape (chain, draw, p, p)
        facts : dict
            What the engine has to say: ``versions``, ``latent_ess`` ("native"), ``chain_seeds`` (R).
        """
        from dpsurvey.copula.posterior import CorrelationPosterior

        sampling, names = self.sampling, self.table.names
        if engine == "native":
            warn_if_native_crawls(facts["latent_ess"], matrices)
        else:
            warn_if_r_crawls(self.plug_in, sampling.plugin_threshold, matrices)
        settings = {
            "n": self.table.n,
            "draws": sampling.draws,
            "burn_in": sampling.burn_in,
            "odens": sampling.odens,
            "nsamp": sampling.nsamp,
            "n0": sampling.n0,
            "S0": sampling.S0.tolist(),
            "plugin_threshold": sampling.plugin_threshold,
            "plug_in": [name for name, fixed in zip(names, self.plug_in, strict=True) if fixed],
            "independent": self.independent,
        }
        from dpsurvey import __version__  # also where the package runs from a clone

        ours = {"dpsurvey": __version__, "numpy": np.__version__}
        return CorrelationPosterior(
            draws=matrices,
            variables=names,
            labels=self.labels,
            method="ERL",
            engine=engine,
            private=False,
            seed=sampling.seed,
            info={**settings, **facts, "versions": ours | facts.get("versions", {})},
        )


def make_plan(
    df: pd.DataFrame,
    columns: Sequence[str] | None,
    *,
    draws: int = 1000,
    burn_in: int | None = None,
    chains: int = 4,
    prior: tuple[ArrayLike | None, float | None] | None = None,
    plugin_threshold: float | None = 100,
    odens: int = 1,
    seed: int | None = None,
) -> Plan:
    """Check the table and the settings; see :func:`dpsurvey.erl` for their meaning and errors."""
    table = rank_table(df, columns)
    threshold = checked_threshold(plugin_threshold)
    plug_in = table.plug_in(threshold)
    S0, n0 = checked_prior(prior, table.p)
    if burn_in is None:
        burn_in = 0 if _is_independent(table, plug_in) else DEFAULT_BURN_IN
    sampling = Sampling(
        draws=checked_count("draws", draws, 1),
        burn_in=checked_count("burn_in", burn_in, 0),
        odens=checked_count("odens", odens, 1),
        chains=checked_count("chains", chains, 1),
        S0=S0,
        n0=n0,
        plugin_threshold=threshold,
        seed=checked_seed(seed),
    )
    labels = df.attrs.get(ATTRIBUTE, {}).get("labels", {})
    return Plan(table, sampling, plug_in, {name: labels[name] for name in table.names if labels.get(name)})


def _is_independent(table: RankTable, plug_in: NDArray[np.bool_]) -> bool:
    return bool(plug_in.all() and (table.observed == table.n).all())
