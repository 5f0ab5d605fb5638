"""The exact likelihood of an L-infinity release, by carrying its secret radius K as an unknown.

Given K each count's noise is uniform on ``-reach..reach`` (:mod:`dpsurvey.privacy.linf`), so that
``Pr(K, t_tilde | R) = exp(-rate K) prod_i Pr(|T_i - t_tilde_i| <= reach_i(K) | R_i)`` but for a constant. The default
posterior takes the counts' marginal laws of noise for independent; here their common radius ties them together. It
serves as a check: K forgets slowly, over about 2m + 1 sweeps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.chains import WARMUP_SWEEPS, starting_matrix
from dpsurvey.copula.diagnostics import summarise
from dpsurvey.copula.inversion import InversionTable, draw_between, log_density
from dpsurvey.copula.jit import njit
from dpsurvey.copula.likelihood import LikelihoodTable, sampling_laws
from dpsurvey.copula.positive import feasible_margin
from dpsurvey.copula.quadrant import log_odds
from dpsurvey.errors import ArgumentError
from dpsurvey.privacy.linf import LInfinity
from dpsurvey.privacy.release import Release

_RADIUS_STEPS = 4  # Metropolis steps of K in a sweep

Array = NDArray[np.float64]


def sample_with_radius(
    release: Release,
    table: LikelihoodTable,
    inversion: InversionTable,
    *,
    draws: int,
    chains: int,
    seed: int | None,
    progress: bool,
) -> tuple[Array, dict[str, Any]]:
    """Draw R and the radius in turn, both by Metropolis steps; chains start as those of the Gibbs sampler.

    Parameters
    ----------
    release : Release
        With L-infinity noise.
    table : LikelihoodTable
        Of its counts' marginal laws.
    inversion : InversionTable
        Of `table`.
    draws, chains : int
        One sweep a draw; all chains are moved together.
    seed : int or None
    progress : bool

    Returns
    -------
    draws : numpy.ndarray, shape (chains, draws, p, p)
    facts : dict
        ``warmup_sweeps``; ``accepted``, the share of pairs' proposals; ``radius_ess``, effective draws of K.

    Raises
    ------
    ArgumentError
        If the noise of the release is another.
    """
    from tqdm.auto import trange

    mechanism = release.noise_law()
    if not isinstance(mechanism, LInfinity):
        raise ArgumentError(
            "only L-infinity noise has a radius", expected="mechanism 'linf', or engine='gibbs'",
            got=repr(release.mechanism),
        )  # fmt: skip
    rng = np.random.default_rng(seed)
    state = _State(release, mechanism, inversion, chains)
    state.R = np.stack([starting_matrix(table, inversion, release.p, rng) for _ in range(chains)])
    state.start_radius()
    kept, radii, accepted = np.empty((chains, draws, release.p, release.p)), np.empty((chains, draws)), 0.0
    for sweep in trange(
        WARMUP_SWEEPS + draws, desc="Bayes-NA", unit="sweep", disable=not progress, leave=False
    ):
        share = state.move_pairs(rng)
        state.move_radius(rng)
        if sweep >= WARMUP_SWEEPS:
            kept[:, sweep - WARMUP_SWEEPS], radii[:, sweep - WARMUP_SWEEPS] = state.R, state.radius
            accepted += share / draws
    ess = float(summarise(radii[..., None], 0.95)["ess_bulk"].iloc[0])
    return kept, {"warmup_sweeps": WARMUP_SWEEPS, "accepted": accepted, "radius_ess": ess}


class _State:
    """Where all chains are: R, shape (chains, p, p), and the radius, shape (chains,)."""

    def __init__(
        self, release: Release, mechanism: LInfinity, inversion: InversionTable, chains: int
    ) -> None:
        self.laws, self.noisy = sampling_laws(release), release.noisy
        self.pairs = [(j, k) for j in range(release.p) for k in range(j + 1, release.p)]
        self.inversion = inversion
        self.rate = mechanism.budget / mechanism.unit
        self.units = [mechanism.unit // sensitivity for sensitivity in mechanism.sensitivities]
        self.R = np.empty((chains, release.p, release.p))
        self.radius = np.zeros(chains, dtype=np.int64)

    def start_radius(self) -> None:
        """Start where every true count is likely to be within reach, and by the radius's own spread beyond."""
        for i, (j, k) in enumerate(self.pairs):
            eta = log_odds(self.R[:, j, k])
            far = np.abs(self.noisy[i] - self.laws[i].mean(eta)) + np.sqrt(self.laws[i].variance(eta))
            self.radius = np.maximum(self.radius, (self.units[i] * np.ceil(far + 1.0)).astype(np.int64))

    def log_within(self, i: int, r: Array, radius: NDArray[np.int64]) -> Array:
        """Return log Pr(|T_i - t_tilde_i| <= reach | R_i = r), one a chain."""
        reach = radius // self.units[i]
        return self.laws[i].log_between(self.noisy[i] - reach, self.noisy[i] + reach, r)

    def move_pairs(self, rng: np.random.Generator) -> float:
        """Update each pair twice given the radius; return the share of the first proposals accepted.

        First from the marginal laws' posterior; then, since that proposes too little where a large radius would
        let R go, by a reflected step of any size.
        """
        accepted = 0.0
        for i, (j, k) in enumerate(self.pairs):
            low, high = _feasible(self.R, j, k)
            r = self.R[:, j, k].copy()
            value = self.log_within(i, r, self.radius)
            for local in (False, True):
                if local:
                    scale = 10.0 ** -rng.uniform(0.0, 2.0, len(r)) * (high - low)
                    step = scale * rng.uniform(-1.0, 1.0, len(r))
                    new, gain = _reflected(r + step, low, high), np.zeros(len(r))
                else:
                    new, gain = _propose(self.inversion, i, low, high, r, rng.random(len(r)))
                proposed = self.log_within(i, new, self.radius)
                taken = np.log(rng.random(len(r))) < proposed - value + gain
                r, value = np.where(taken, new, r), np.where(taken, proposed, value)
                accepted += 0.0 if local else taken.mean() / len(self.pairs)
            self.R[:, j, k] = self.R[:, k, j] = r
        return accepted

    def move_radius(self, rng: np.random.Generator) -> None:
        """Walk on the integers, reflected at 0, by about the spread of the radius."""
        longest = max(1, int(2.0 * np.sqrt(len(self.pairs) + 1.0) / self.rate))
        current = self._log_radius(self.radius)
        for _ in range(_RADIUS_STEPS):
            step = rng.integers(1, longest, len(self.radius), endpoint=True)
            moved = self.radius + np.where(rng.random(len(step)) < 0.5, step, -step)
            proposed = np.where(moved < 0, -1 - moved, moved)  # 0 and -1 mirror each other: symmetric
            value = self._log_radius(proposed)
            taken = np.log(rng.random(len(step))) < value - current
            self.radius, current = np.where(taken, proposed, self.radius), np.where(taken, value, current)

    def _log_radius(self, radius: NDArray[np.int64]) -> Array:
        """Return log Pr(K = radius, t_tilde | R) but for a constant."""
        parts = [self.log_within(i, self.R[:, j, k], radius) for i, (j, k) in enumerate(self.pairs)]
        return np.asarray(np.sum(parts, axis=0) - self.rate * radius)


def _feasible(R: Array, j: int, k: int) -> tuple[Array, Array]:
    """Return the ends between which R_jk leaves each matrix positive definite, with a margin for rounding."""
    rest = [v for v in range(R.shape[1]) if v not in (j, k)]
    cross = R[:, [j, k]][:, :, rest]
    given = R[:, [j, k]][:, :, [j, k]] - cross @ np.linalg.solve(
        R[:, rest][:, :, rest], cross.transpose(0, 2, 1)
    )
    centre = R[:, j, k] - given[:, 0, 1]
    variances = np.maximum(given[:, 0, 0] * given[:, 1, 1], 0.0)
    half = np.sqrt(variances) * (1.0 - np.array([feasible_margin(v) for v in variances]))
    return np.maximum(centre - half, -1.0), np.minimum(centre + half, 1.0)


def _reflected(x: Array, low: Array, high: Array) -> Array:
    """Fold steps of at most the length of low..high back into it at its ends."""
    x = np.where(x < low, 2.0 * low - x, x)
    return np.asarray(np.where(x > high, 2.0 * high - x, x))


@njit
def _propose(
    table: InversionTable, pair: int, low: Array, high: Array, old: Array, v: Array
) -> tuple[Array, Array]:
    """Return draws of one pair from the marginal laws' posterior, and the log ratio that unweights them."""
    new, gain = np.empty(low.shape), np.empty(low.shape)
    for chain in range(low.shape[0]):
        new[chain] = draw_between(table, pair, low[chain], high[chain], v[chain])
        gain[chain] = log_density(table, pair, old[chain]) - log_density(table, pair, new[chain])
    return new, gain
