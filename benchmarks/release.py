"""Release of n = 10^6 rows and p = 20 variables: 190 counts with secure noise.

Claims: under 3 s, and at most 1 GiB of memory beyond the table. Time and memory are measured in processes of their
own; memory is what Python and numpy allocate at most beyond what is there before (tracemalloc, which slows things
down). Run: ``python benchmarks/release.py``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tracemalloc
import warnings

N, P, SECONDS, GIB = 1_000_000, 20, 3.0, 1.0


def child(ties: bool, memory: bool) -> None:
    """Make a table, release it, and print seconds, CPU seconds and peak memory as JSON."""
    import numpy as np
    import pandas as pd

    import dpsurvey as dps

    warnings.simplefilter("ignore", dps.errors.NoLedgerWarning)
    rng = np.random.default_rng(1)
    dps.release(pd.DataFrame(rng.standard_normal((100, P))).add_prefix("x"), 1.0)  # imports
    columns = {f"x{j}": rng.standard_normal(N) for j in range(P)}
    if ties:
        columns = {name: values.round(0) for name, values in columns.items()}
    frame = pd.DataFrame(columns, index=pd.Index(np.arange(N) + 100_000, name="SEQN"))
    if memory:
        tracemalloc.start()
    wall, cpu = time.perf_counter(), time.process_time()
    dps.release(frame, 1.0)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = tracemalloc.get_traced_memory()[1] if memory else 0
    print(json.dumps({"seconds": wall, "cpu": cpu, "gib": peak / 2**30}))


def measure(ties: bool, memory: bool) -> dict[str, float]:
    """Run :func:`child` in a fresh process."""
    command = [sys.executable, __file__, "child", str(int(ties)), str(int(memory))]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> int:
    """Print the figures; return 1 where a claim does not hold."""
    held = True
    for ties in (False, True):
        best = min((measure(ties, False) for _ in range(3)), key=lambda run: run["seconds"])
        gib = measure(ties, True)["gib"]
        print(
            f"n = {N:,}, p = {P}, {'38% of rows tied at each median' if ties else 'no ties'}: {best['seconds']:.2f} s, "
            f"{best['cpu']:.2f} s of CPU (claim: {SECONDS:g} s), {gib:.2f} GiB beyond the table (claim: {GIB:g})"
        )
        held &= best["seconds"] < SECONDS and gib < GIB
    return 0 if held else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(sys.argv[2] == "1", sys.argv[3] == "1")
    else:
        sys.exit(main())
