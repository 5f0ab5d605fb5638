"""The paragraph for a methods section: every number of a release, and what its guarantee leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsurvey.privacy.budget import written

if TYPE_CHECKING:
    from dpsurvey.privacy.release import Release

_UNWEIGHTED = (
    "Survey weights and the sampling design were not used. Correlations are those of a Gaussian copula, on the scale "
    "of latent standard normal variables (Wang, Feldman and Reiter, arXiv 2601.03497)."
)
_SIMULATED = "THE NOISE OF THIS RELEASE CAME FROM A SEEDED GENERATOR: it is a simulation and protects nobody."


def methods_statement(release: Release) -> str:
    """Return one paragraph with the release's own numbers.

    Examples
    --------
    >>> import numpy as np, pandas as pd, dpsurvey as dps
    >>> df = pd.DataFrame(np.arange(40.0).reshape(20, 2), columns=["x", "y"])
    >>> text = methods_statement(dps.release(df, epsilon=1.0, insecure_rng=np.random.default_rng(1)))
    >>> "n = 20 complete rows" in text, "protects nobody" in text
    (True, True)
    """
    return " ".join(
        part for part in (_source(release), _counting(release), _guarantee(release), _payment(release), _UNWEIGHTED,
                          "" if release.secure else _SIMULATED) if part
    )  # fmt: skip


def _source(release: Release) -> str:
    rules = f" after the declared filters {'; '.join(release.filters)}" if release.filters else ""
    rounded = (
        "" if release.rounding is None else f" Values were rounded to {release.rounding} decimals first."
    )
    return (
        f"Correlations of {release.p} variables ({', '.join(release.variables)}) were inferred from a single "
        f"differentially private release computed on n = {release.n} complete rows{rules}.{rounded}"
    )


def _counting(release: Release) -> str:
    noise = f"was released with {release.noise_law().description} noise."
    ties = (
        f"ties broken by fixed random keys of the row's id (seed {release.key_seed}, fingerprint "
        f"{release.key_fingerprint})"
    )
    if release.statistic == "quadrant":
        return (
            f"Each variable was split at its median, {ties}; for each of the {release.m} pairs the number of rows "
            f"in the upper half of both variables {noise}"
        )
    coarse = ""
    if release.coarse:
        coarse = (
            f" (or, for pairs with {', '.join(release.coarse)}, declared to have few levels, of rows in the upper "
            "half of both variables, each split at its median)"
        )
    return (
        f"Each variable ranked the rows, {ties}; for each of the {release.m} pairs the number of pairs of rows "
        f"that the two variables rank differently{coarse} {noise}"
    )


def _guarantee(release: Release) -> str:
    promise = "(epsilon, delta)" if release.delta else "epsilon"
    return (
        f"The release satisfies {promise}-differential privacy with epsilon = {written(release.epsilon)} "
        f"(delta = {written(release.delta)}) for the rule '{release.neighbours}' with n public; how many rows were "
        "complete, and the choice of variables and filters, are outside this guarantee, which holds where a row is a "
        "person and row ids (or positions, in a table without an index of ids) stay as they are when another row is "
        "substituted."
    )


def _payment(release: Release) -> str:
    if release.ledger is not None:
        receipt = release.ledger
        return (
            f"It is entry {receipt['sequence']} of the privacy ledger of '{receipt['dataset']}' (head "
            f"{str(receipt['head'])[:16]})."
        )
    return "No ledger kept count of what it spent." if release.secure else ""
