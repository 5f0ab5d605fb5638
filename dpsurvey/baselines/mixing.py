"""Whether the chains of the extended rank likelihood have moved enough to be believed."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from dpsurvey.errors import SlowMixingWarning

Array = NDArray[np.float64]

_R_THRESHOLD = 100.0  # sbgcop's plugin.threshold
_REMEDY = "Take more iterations (draws=, odens=, burn_in=)"
_FEW = 100  # effective draws below which nothing can be called explored


def latent_ess(shape: Array) -> list[float | None]:
    """Return, for each ranked column, the smaller effective sample size of its two shape components.

    None where it does not exist: fewer than four draws, or a column with too few levels to have a shape.
    """
    from dpsurvey.copula.diagnostics import summarise

    if shape.shape[2] == 0:
        return []
    flat = summarise(shape.reshape(*shape.shape[:2], -1), 0.95)["ess_bulk"].to_numpy()
    pairs = flat.reshape(-1, shape.shape[3])
    known = np.isfinite(pairs)
    smallest = np.where(known, pairs, np.inf).min(axis=1)
    return [round(float(ess), 1) if np.isfinite(ess) else None for ess in smallest]


def warn_if_native_crawls(ess_of: dict[str, float | None], matrices: Array) -> None:
    """Warn where the latents of a column, or a correlation, have few effective draws."""
    slow = {name: ess for name, ess in ess_of.items() if ess is not None and ess < _FEW}
    if slow:
        told = ", ".join(f"{name!r} {ess:.0f}" for name, ess in slow.items())
        _warn_slow(
            f"the latent values of {len(slow)} column(s) mix slowly; effective draws of their shape, out of "
            f"{_size(matrices)}: {told}. The diagnostics of the correlations themselves are then too hopeful. "
            f"{_REMEDY}, or keep columns with many levels plug-in (plugin_threshold=100)"
        )
    elif ess_of:
        _warn_of_correlations(matrices, _REMEDY)


def warn_if_r_crawls(plug_in: NDArray[np.bool_], threshold: float | None, matrices: Array) -> None:
    """Warn where R's sampler, which moves one latent value at a time, cannot be trusted.

    It keeps no trace of its latents, so only the correlations can be looked at, and these look converged long
    before they are.
    """
    if plug_in.all():
        return
    if threshold is None or threshold > _R_THRESHOLD:
        _warn_slow(
            "R's sampler moves one latent value at a time: with this plugin_threshold, columns with many "
            "levels need tens of thousands of iterations, and the effective sample sizes of the correlations "
            "do not show it. engine='native' also moves many values together"
        )
    else:
        _warn_of_correlations(matrices, f"{_REMEDY}, or engine='native', which mixes better")


def _warn_of_correlations(matrices: Array, remedy: str) -> None:
    worst = _smallest_ess(matrices)
    if worst < _FEW:
        _warn_slow(
            f"a correlation has only {worst:.0f} effective draws out of {_size(matrices)}. {remedy}", deeper=1
        )


def _size(matrices: Array) -> int:
    return int(matrices.shape[0] * matrices.shape[1])


def _smallest_ess(matrices: Array) -> float:
    """Return the smallest bulk effective sample size of the correlations; infinite for too few draws."""
    from dpsurvey.copula.correlation import pair_values
    from dpsurvey.copula.diagnostics import summarise

    ess = summarise(pair_values(matrices), 0.95)["ess_bulk"].to_numpy()
    return float(np.min(ess[np.isfinite(ess)], initial=np.inf))


def _warn_slow(message: str, *, deeper: int = 0) -> None:
    """Warn at the line that called erl()."""
    warnings.warn(message + ".", SlowMixingWarning, stacklevel=5 + deeper)
