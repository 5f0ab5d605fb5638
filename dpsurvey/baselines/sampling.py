"""Settings of a sampler for the extended rank likelihood, checked before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsurvey.errors import ArgumentError, ArgumentTypeError
from dpsurvey.texts import shown_setting

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sampling:
    """What a sampler is asked for: checked settings, the same for every engine.

    Attributes
    ----------
    draws, burn_in, odens, chains : int
        Kept draws a chain, iterations dropped first, iterations between kept draws, chains.
    S0 : ndarray, shape (p, p)
    n0 : float
        Prior: S ~ inverse-Wishart(n0, n0 S0).
    plugin_threshold : float or None
    seed : int
    """

    draws: int
    burn_in: int
    odens: int
    chains: int
    S0: Array
    n0: float
    plugin_threshold: float | None
    seed: int

    @property
    def nsamp(self) -> int:
        """Iterations of one chain, R's name; the burn-in is rounded up to a multiple of `odens`."""
        return (-(-self.burn_in // self.odens) + self.draws) * self.odens


def checked_count(name: str, value: Any, least: int) -> int:
    """Return a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ArgumentTypeError(f"{name} is not a whole number", expected="an int", got=shown_setting(value))
    if value < least:
        raise ArgumentError(f"{name} is too small", expected=f"at least {least}", got=shown_setting(value))
    return int(value)


def checked_seed(seed: Any) -> int:
    """Return the seed, a fresh one where it is None."""
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    return checked_count("seed", seed, 0)


def checked_threshold(threshold: Any) -> float | None:
    """Return the plug-in threshold, None for none."""
    if threshold is None:
        return None
    if isinstance(threshold, bool) or not isinstance(threshold, int | float | np.number):
        raise ArgumentTypeError(
            "plugin_threshold is not a number", expected="a number or None", got=shown_setting(threshold)
        )
    if not 0 <= threshold < float("inf"):
        raise ArgumentError(
            "plugin_threshold is out of range",
            expected="0 or more, finite",
            got=shown_setting(threshold),
            hint="None asks for the rank likelihood of every column (R's Inf)",
        )
    return float(threshold)


def checked_prior(prior: Any, p: int) -> tuple[Array, float]:
    """Return S0 (p, p) and n0, the defaults where they are None."""
    if prior is not None and (not isinstance(prior, tuple | list) or len(prior) != 2):
        raise ArgumentTypeError("prior is not a pair", expected="(S0, n0) or None", got=type(prior).__name__)
    S0, n0 = (None, None) if prior is None else prior
    if n0 is None:
        n0 = p + 2
    if isinstance(n0, bool) or not isinstance(n0, int | float | np.number):
        raise ArgumentTypeError("n0 is not a number", expected="a number above p - 1", got=shown_setting(n0))
    if not p - 1 < n0 < float("inf"):
        raise ArgumentError(
            "n0 is out of range", expected=f"a finite number above p - 1 = {p - 1}", got=shown_setting(n0)
        )
    return (np.eye(p) if S0 is None else _checked_scale(S0, p)), float(n0)


def _checked_scale(S0: ArrayLike, p: int) -> Array:
    scale: Array | None
    try:
        scale = np.array(S0, dtype=np.float64)
    except (TypeError, ValueError):
        scale = None  # raised below, out of reach of numpy's message, which quotes what it was given
    if scale is None:
        raise ArgumentTypeError("S0 is not numeric", expected=f"a {p} x {p} matrix", got=type(S0).__name__)
    if scale.shape != (p, p) or not np.isfinite(scale).all():
        raise ArgumentError(
            "S0 has the wrong shape or is not finite", expected=f"({p}, {p})", got=str(scale.shape)
        )
    if not np.allclose(scale, scale.T) or np.linalg.eigvalsh(scale)[0] <= 0:
        raise ArgumentError("S0 is not symmetric and positive definite", hint="None takes the identity")
    return (scale + scale.T) / 2
