"""Whether Stan's sampler, NUTS, can be trusted: what it reports of itself, and warnings with advice."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.correlation import pair_values
from dpsurvey.copula.diagnostics import summarise
from dpsurvey.errors import ConvergenceWarning, DivergenceWarning, LowEnergyWarning, SlowMixingWarning

LOWEST_E_BFMI = 0.3
LARGEST_R_HAT = 1.01
FEWEST_DRAWS = 100  # effective, a chain
_COMPARE = "engine='gibbs' draws from the same posterior without gradients: compare the two"


@dataclass(frozen=True, slots=True)
class NutsFacts:
    """What the sampler reports of the kept draws, a number for each chain.

    Parameters
    ----------
    divergences : list of int
        Trajectories that left the true one, so that part of the posterior may have been missed.
    deepest_trees : list of int
        Trajectories cut short at the greatest length allowed.
    e_bfmi : list of float or None
        Estimated fraction of missing information about the energy (Betancourt, arXiv 1604.00695); None where
        it does not exist.
    leapfrogs : list of int
        Gradient evaluations.
    """

    divergences: list[int]
    deepest_trees: list[int]
    e_bfmi: list[float | None]
    leapfrogs: list[int]

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as JSON values."""
        return asdict(self)


def nuts_facts(values: NDArray[np.float64], position: Mapping[str, int], max_depth: int) -> NutsFacts:
    """Return the facts in Stan's output.

    Parameters
    ----------
    values : numpy.ndarray, shape (chain, draw, column)
    position : mapping of str to int
        Name of a column to its position.
    max_depth : int
        Greatest depth of a tree that was allowed.
    """
    divergent, depth = values[:, :, position["divergent__"]], values[:, :, position["treedepth__"]]
    return NutsFacts(
        divergences=[int(count) for count in divergent.sum(axis=1)],
        deepest_trees=[int(count) for count in (depth >= max_depth).sum(axis=1)],
        e_bfmi=[energy_information(chain) for chain in values[:, :, position["energy__"]]],
        leapfrogs=[int(count) for count in values[:, :, position["n_leapfrog__"]].sum(axis=1)],
    )


def energy_information(energy: NDArray[np.float64]) -> float | None:
    """Return E-BFMI: mean squared step of the energy over its variance; None for a constant or a single value.

    Parameters
    ----------
    energy : numpy.ndarray, shape (draw,)

    References
    ----------
    Betancourt, M. (2016). Diagnosing suboptimal cotangent disintegrations in Hamiltonian Monte Carlo. arXiv
    1604.00695.

    Examples
    --------
    >>> energy_information(np.array([1.0, 2.0, 1.0, 2.0]))
    3.0
    """
    spread = float(np.sum((energy - energy.mean()) ** 2))
    return float(np.sum(np.diff(energy) ** 2)) / spread if spread > 0.0 else None


def warn_of_trouble(draws: NDArray[np.float64], facts: NutsFacts) -> None:
    """Warn where the chains give reason to doubt their draws.

    Parameters
    ----------
    draws : numpy.ndarray, shape (chain, draw, p, p)
    facts : NutsFacts

    Warns
    -----
    DivergenceWarning
        If a trajectory diverged.
    LowEnergyWarning
        If E-BFMI of a chain is below 0.3.
    ConvergenceWarning
        If R-hat of a correlation is above 1.01.
    SlowMixingWarning
        If a correlation has fewer than 100 effective draws a chain, or trajectories were cut short.
    """
    for kind, message in [
        *_trajectory_troubles(facts, draws.shape[0] * draws.shape[1]),
        *_chain_troubles(draws),
    ]:
        warnings.warn(message, kind, stacklevel=4)  # at the call of bayes_na


Trouble = tuple[type[UserWarning], str]


def _trajectory_troubles(facts: NutsFacts, total: int) -> Iterator[Trouble]:
    if diverged := sum(facts.divergences):
        yield (
            DivergenceWarning,
            f"{diverged} of {total} transitions diverged: part of the posterior may have been missed. {_COMPARE}",
        )
    lowest = min((value for value in facts.e_bfmi if value is not None), default=np.inf)
    if lowest < LOWEST_E_BFMI:
        yield (
            LowEnergyWarning,
            f"E-BFMI of a chain is {lowest:.2f}, below {LOWEST_E_BFMI}: it hardly moves between energies and may "
            f"miss the tails. Ask for more draws; {_COMPARE}",
        )
    if cut := sum(facts.deepest_trees):
        yield (
            SlowMixingWarning,
            f"{cut} of {total} trajectories reached the greatest length: the draws are right but cost more than "
            "they need to. engine='gibbs' is faster here",
        )


def _chain_troubles(draws: NDArray[np.float64]) -> Iterator[Trouble]:
    table = summarise(pair_values(draws), 0.95)
    r_hat = float(table["r_hat"].max())  # NaN, which compares as False, for a single chain
    if r_hat > LARGEST_R_HAT:
        yield (
            ConvergenceWarning,
            f"R-hat of a correlation is {r_hat:.3f}, above {LARGEST_R_HAT}: the chains have not come to agree. "
            f"Ask for more draws; {_COMPARE}",
        )
    fewest = float(
        table[["ess_bulk", "ess_tail"]].fillna(0.0).to_numpy().min()
    )  # none where a chain stands still
    if fewest < FEWEST_DRAWS * draws.shape[0]:
        yield (
            SlowMixingWarning,
            f"a correlation has {fewest:.0f} effective draws, fewer than {FEWEST_DRAWS} for each of "
            f"{draws.shape[0]} chain(s): its interval is uncertain. Ask for more draws",
        )
