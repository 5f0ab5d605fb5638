"""`python -m dpsurvey fit` on a saved release in a fresh process, compiled kernels cached. Claim: under 8 s.

n = 5820, p = 7, 4 x 1000 draws, with the summary that the command prints. Run: ``python benchmarks/fit_cli.py``.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import dpsurvey as dps

N, P, TRIES, SECONDS = 5820, 7, 3, 8.0


def fit(folder: Path) -> tuple[float, float]:
    """Return the seconds from start to end of the process, and its CPU seconds."""
    command = [sys.executable, "-m", "dpsurvey", "fit", str(folder / "r.json"), "-o", str(folder / "out.npz")]
    (folder / "out.npz").unlink(missing_ok=True)
    wall, cpu = time.perf_counter(), children_cpu()
    subprocess.run(command, check=True, capture_output=True)
    wall, cpu = time.perf_counter() - wall, children_cpu() - cpu
    assert dps.CorrelationPosterior.load(folder / "out.npz").draws.shape == (4, 1000, P, P)
    return wall, cpu


def children_cpu() -> float:
    """Return the CPU seconds of all processes that this one has started."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> int:
    """Print the figures; return 1 if the claim does not hold."""
    rng = np.random.default_rng(2601)
    loading = np.linspace(0.3, 0.85, P)
    rows = rng.standard_normal((N, 1)) * loading + rng.standard_normal((N, P)) * np.sqrt(1 - loading**2)
    release = dps.release(pd.DataFrame(rows).add_prefix("x"), 1.0, insecure_rng=rng)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        release.save(folder / "r.json")
        first = fit(folder)
        later = [fit(folder) for _ in range(TRIES)]
    print("first call: {:.1f} s, {:.1f} s of CPU (it may have to compile)".format(*first))
    print(
        "later calls: {:.1f} s, {:.1f} s of CPU, best of {} (claim: {:g} s)".format(
            *min(later), TRIES, SECONDS
        )
    )
    return 0 if min(later)[0] < SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
