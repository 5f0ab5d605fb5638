"""What is installed, what works, what is missing and how to get it."""

from __future__ import annotations

import io
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import metadata, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, cast

from packaging.requirements import Requirement

from dpsurvey.checks import Check, attempt, installed, library
from dpsurvey.outside import cmdstan, in_r, rpy2

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from dpsurvey.copula.posterior import CorrelationPosterior

_AGAIN = "install dpsurvey again: pip install --force-reinstall dpsurvey"


def examine() -> Iterator[Check]:
    """Yield one check after the other; none of them raises, spends epsilon or looks at anyone's rows.

    R is looked at from outside and not loaded into the process.
    """
    yield from _core_libraries()
    yield attempt("OpenDP noise", _AGAIN, _noise)
    yield attempt("survey files", _AGAIN, _files)
    yield compile_cache(_kernel_folder())
    posterior: list[CorrelationPosterior] = []
    yield attempt("Bayes-NA (embedded)", _AGAIN, lambda: _fit(posterior))
    if posterior:
        yield attempt("ArviZ", _AGAIN, lambda: _arviz(posterior[0]))
    yield attempt("ERL (embedded)", _AGAIN, _erl)
    yield from _extras()
    if posterior and installed("matplotlib"):
        yield attempt("figures", 'pip install "dpsurvey[plot]"', lambda: _figure(posterior[0]), needed=False)
    yield from in_r(shutil.which("Rscript"))
    yield rpy2()
    yield cmdstan(os.environ.get("CMDSTAN"), Path.home())


def works(checks: list[Check]) -> bool:
    """Return whether everything that the core needs is there and works."""
    return not any(check.needed and check.status in ("missing", "broken") for check in checks)


def to_frame(checks: list[Check]) -> pd.DataFrame:
    """Return the checks as a table, one row each."""
    import pandas as pd

    return pd.DataFrame([asdict(check) for check in checks])


def _core_libraries() -> Iterator[Check]:
    yield Check("Python", True, "ok", ".".join(map(str, sys.version_info[:3])))
    if not installed("dpsurvey"):  # its files lie on the path, and nothing says which libraries it needs
        yield Check(
            "dpsurvey", True, "missing", "not installed as a package", "in the checkout: pip install ."
        )
        return
    yield Check("dpsurvey", True, "ok", version("dpsurvey"))
    for requirement in _required(""):
        remedy = f"pip install '{requirement.name}{requirement.specifier}'"
        yield library(requirement, remedy, needed=True)


def _extras() -> Iterator[Check]:
    """Yield the libraries of every extra once; rpy2 is looked at from outside."""
    if not installed("dpsurvey"):
        return
    seen = {requirement.name for requirement in _required("")}
    extras = set(metadata("dpsurvey").get_all("Provides-Extra") or ()) - {"all"}
    for extra in sorted(extras):
        for requirement in _required(extra):
            if requirement.name not in seen and not requirement.name.startswith(("rpy2", "dpsurvey")):
                seen.add(requirement.name)
                yield library(requirement, f'pip install "dpsurvey[{extra}]"', needed=False)


def _required(extra: str) -> list[Requirement]:
    """Return what dpsurvey requires with an extra; "" stands for the core."""
    found = [Requirement(text) for text in requires("dpsurvey") or ()]
    return [item for item in found if item.marker is None or item.marker.evaluate({"extra": extra})]


def _noise() -> str:
    import numpy as np

    from dpsurvey.privacy.mechanisms import Geometric
    from dpsurvey.privacy.statistics import QuadrantCounts

    law = Geometric.build(QuadrantCounts(n=100, p=2), 1.0)
    noise = law.release(np.zeros(200, dtype=np.int64))
    if not noise.any() or law.privacy_map > 1.0:
        raise RuntimeError("the counts came back without noise, or cost more than epsilon")
    return f"200 draws at epsilon = 1, privacy map {law.privacy_map:g}"


def _files() -> str:
    from dpsurvey.confidential.files import read_survey
    from dpsurvey.examples import example_files

    paths = example_files()
    rows = len(read_survey(paths[0], on="SEQN"))
    return f"{len(paths)} example files; {rows:,} rows read from {paths[0].name}"


def _kernel_folder() -> str | None:
    """Return where numba keeps compiled kernels; None where it keeps none, or does not work at all."""
    try:
        from dpsurvey.copula.gibbs import advance
    except Exception:  # another check says what is wrong
        return None
    stats = getattr(advance, "stats", None)
    return None if stats is None else stats.cache_path


def compile_cache(folder: str | None) -> Check:
    """Return whether compiled kernels can be kept from one process to the next."""
    remedy = "set NUMBA_CACHE_DIR to a folder that can be written; without it every process compiles anew"
    if folder is None or not os.path.isdir(folder):
        return Check("compile cache", False, "note", "no folder for compiled code can be written", remedy)
    if not os.access(folder, os.W_OK):
        return Check("compile cache", False, "note", f"{folder} cannot be written", remedy)
    return Check("compile cache", False, "ok", folder)


def _fit(keep: list[CorrelationPosterior]) -> str:
    """Release simulated rows and fit them; the posterior goes into `keep`."""
    import numpy as np
    import pandas as pd

    from dpsurvey.confidential.disclose import release
    from dpsurvey.copula.bayes_na import bayes_na

    rng = np.random.default_rng(1)
    rows = pd.DataFrame(rng.multivariate_normal([0, 0, 0], np.eye(3) * 0.4 + 0.6, 1000), columns=list("xyz"))
    start = time.perf_counter()
    posterior = bayes_na(release(rows, 3.0, insecure_rng=rng), draws=250, seed=1, progress=False)
    if not (posterior.interval()[0][0, 1] > 0.2):
        raise RuntimeError("the correlation of simulated rows was not found")
    keep.append(posterior)
    return f"simulated release fitted in {time.perf_counter() - start:.1f} s"


def _arviz(posterior: CorrelationPosterior) -> str:
    worst = float(posterior.summary()["r_hat"].max())
    posterior.to_arviz()
    return f"diagnostics and DataTree; worst R-hat {worst:.3f}"


def _erl() -> str:
    import numpy as np
    import pandas as pd

    from dpsurvey.baselines.erl import erl

    rows = pd.DataFrame(np.random.default_rng(1).normal(size=(200, 2)), columns=list("xy"))
    start = time.perf_counter()
    erl(rows, engine="native", draws=50, chains=1, seed=1, progress=False)
    return f"simulated rows fitted in {time.perf_counter() - start:.1f} s"


def _figure(posterior: CorrelationPosterior) -> str:
    from dpsurvey.plots import plot_forest

    cast("Figure", plot_forest(posterior).figure).savefig(io.BytesIO(), format="png")
    return "a forest was drawn"
