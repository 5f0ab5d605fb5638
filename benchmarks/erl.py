"""The native rank-likelihood sampler against R, per iteration, in one run: n = 5820, p = 7.

Prints CPU seconds and ratios for columns that are all plug-in, one ranked column of 530 levels, and all ranked
(full rank likelihood); beside our R code also the package sbgcop where it is installed. One chain, warm, and CPU
time, so that other work on the machine does not count. Claims:

* native at least 100 times as fast per iteration as the R code, all plug-in and all ranked;
* 1000 fully ranked iterations under 15 s, 4000 plug-in draws under 1 s.

With one ranked column our R code loses less, for it has 530 steps an iteration and not 40,000; sbgcop searches
the column for each of them. Last, what the slides of many latents buy: effective draws of the latents' shape.

Run: ``python benchmarks/erl.py``. Without R it prints the native times alone.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings

import numpy as np
import pandas as pd

import dpsurvey as dps
from dpsurvey.baselines.erl import run_engine
from dpsurvey.baselines.erl_plan import make_plan
from dpsurvey.errors import EngineError, MissingDependencyError, SlowMixingWarning

N, P = 5820, 7
RATIO, RANKED_SECONDS, PLUGIN_SECONDS = 100.0, 15.0, 1.0


def tables() -> dict[str, tuple[pd.DataFrame, float | None]]:
    """Return the three cases: a table and its plug-in threshold."""
    rng = np.random.default_rng(2601)
    factor = rng.standard_normal((P, P)) + 2 * np.eye(P)
    smooth = pd.DataFrame(rng.standard_normal((N, P)) @ factor, columns=[f"x{j}" for j in range(P)])
    one = smooth.assign(x0=pd.qcut(smooth["x0"], 530, labels=False))
    return {"all plug-in": (smooth, 100), "one ranked (530 levels)": (one, 600), "all ranked": (smooth, None)}


def seconds(frame: pd.DataFrame, engine: str, threshold: float | None, iterations: int) -> float:
    """Return the CPU seconds in which an engine runs one chain without burn-in."""
    plan = make_plan(frame, None, draws=iterations, burn_in=0, chains=1, plugin_threshold=threshold, seed=1)
    began = time.process_time()
    run_engine(engine, plan.table, plan.sampling, False)
    return time.process_time() - began


def r_engines() -> list[str]:
    """Return the engines of R that can be had here."""
    from dpsurvey.baselines.rbridge import open_r

    try:
        session = open_r()
    except (EngineError, MissingDependencyError) as error:
        print(f"R is not to be had: {error.detail}")
        return []
    return ["r"] if session.package_version("sbgcop") is None else ["r", "sbgcop"]


def per_iteration(frame: pd.DataFrame, engine: str, threshold: float | None, few: int, many: int) -> float:
    """Return seconds per iteration, the fixed cost of a call taken out by a difference."""
    return (seconds(frame, engine, threshold, few + many) - seconds(frame, engine, threshold, few)) / many


def latent_ess(frame: pd.DataFrame) -> float:
    """Return the smallest effective number of draws of a column's shape in 1000 fully ranked iterations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SlowMixingWarning)
        posterior = dps.erl(
            frame, plugin_threshold=None, draws=1000, burn_in=200, chains=1, seed=2, progress=False
        )
    return min(posterior.info["latent_ess"].values())


def main() -> int:
    """Print the table; return 1 where a claim does not hold."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    cases = tables()
    for frame, threshold in cases.values():
        seconds(frame, "native", threshold, 10)  # compile, or load what was compiled; import arviz
    engines = r_engines()
    native_runs = {"all plug-in": (100, 100_000), "one ranked (530 levels)": (5, 300), "all ranked": (2, 100)}
    r_runs = {"all plug-in": (5, 300), "one ranked (530 levels)": (1, 6), "all ranked": (1, 2)}
    held = True
    print(f"n = {N}, p = {P}; CPU seconds per iteration")
    for case, (frame, threshold) in cases.items():
        native = per_iteration(frame, "native", threshold, *native_runs[case])
        line = f"{case:<24} native {native:.2e}"
        for engine in engines:
            slow = per_iteration(frame, engine, threshold, *r_runs[case])
            line += f"   {engine} {slow:.2e} (ratio {slow / native:.0f})"
            held &= slow / native >= RATIO or case.startswith("one")
        print(line, flush=True)
    plugin = seconds(*(cases["all plug-in"][0], "native", 100, 4000))
    ranked = seconds(*(cases["all ranked"][0], "native", None, 1000))
    held &= plugin < PLUGIN_SECONDS and ranked < RANKED_SECONDS
    print(f"4000 plug-in draws: {plugin:.2f} s (claim: under {PLUGIN_SECONDS:g} s)")
    print(f"1000 fully ranked iterations: {ranked:.1f} s (claim: under {RANKED_SECONDS:g} s)")
    slowest = latent_ess(cases["all ranked"][0])
    print(f"effective draws of the slowest latent shape in 1000 ranked iterations: {slowest:.0f}")
    print("all claims hold" if held else "A CLAIM DOES NOT HOLD")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
