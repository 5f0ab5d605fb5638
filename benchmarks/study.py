"""Table 1 in full: 49 cells of 1000 fits. What a fit costs in CPU time, and what that makes of the whole on two cores.

Claim: at most 45 minutes on two cores. Prints milliseconds a run (rows, counts, noise, posterior), the sum over the
table, and how much cheaper the batch path is than a release and `bayes_na` for each run at the same sweeps.
"""

import time
import warnings

import numpy as np

import dpsurvey as dps
from dpsurvey.study import batch
from dpsurvey.study.methods import answer, simulate
from dpsurvey.study.studies import STUDIES

RUNS = 16
CORES, CLAIM = 2, 45.0


def cpu_ms(work, runs):
    """Milliseconds of CPU a run, the smaller of two tries."""
    tries = []
    for _ in range(2):
        start = time.process_time()
        work()
        tries.append(time.process_time() - start)
    return 1000.0 * min(tries) / runs


def one_by_one(cell, runs):
    """The public path: a table, a release, and a posterior for each run, with as many sweeps in all."""
    draws = max(batch.SWEEPS.get(cell.p, 1000) // 4, 1)
    for run in range(runs):
        survey = simulate(cell, run, 1)
        table = cell.find_design().table(survey.latent)
        release = dps.release(
            table,
            cell.epsilon,
            statistic="quadrant",
            mechanism="geometric",
            insecure_rng=survey.streams.noise,
        )
        dps.bayes_na(release, draws=draws, seed=run, progress=False).interval()


def main():
    warnings.simplefilter("ignore")
    total = 0.0
    print(f"{'cell':>36}  ms a run")
    for cell in STUDIES["table1"].cells:
        answer(cell, range(2), 1)  # compiles, and fills part of the catalogue
        cost = cpu_ms(lambda cell=cell: answer(cell, range(RUNS), 1), RUNS)
        total += cost  # milliseconds a run are seconds for 1000 runs
        print(f"{cell.name:>36}  {cost:8.1f}")
    minutes = total / 60.0 / CORES
    print(
        f"\n49 x 1000 runs: {total:.0f} s of CPU, {minutes:.1f} minutes on {CORES} cores (claim: {CLAIM:g})"
    )
    print(f"claim / measured = {CLAIM / minutes:.2f}")
    for p in (2, 5, 10):
        cell = next(c for c in STUDIES["table1"].cells if (c.p, c.n, c.epsilon) == (p, 1000, 1.0))
        one_by_one(cell, 1)
        ours = cpu_ms(lambda cell=cell: answer(cell, range(RUNS), 1), RUNS)
        theirs = cpu_ms(lambda cell=cell: one_by_one(cell, 4), 4)
        print(f"p = {p}, n = 1000, epsilon 1: one release at a time / batch = {theirs / ours:.1f}")
    print(f"(numpy {np.__version__})")


if __name__ == "__main__":
    main()
