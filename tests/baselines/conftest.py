"""Data for the tests of the extended rank likelihood, and the R session where there is one."""

import os

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def r_session():
    """R through rpy2; without it the test skips, except in continuous integration, where that fails."""
    from dpsurvey.baselines.rbridge import open_r
    from dpsurvey.errors import MissingDependencyError

    try:
        return open_r()
    except MissingDependencyError as error:
        message = f"R through rpy2 is not to be had here: {error.detail}; {error.hint}"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)


ODD_NAMES = ("body mass", "Kcal vs Fat", "a*b", "y ~ x", "Größe (cm)", "`tick`", 'say "so"', "_1", "if")


@pytest.fixture
def random_frame():
    """A function of a seed: odd names, ties, ordinal, boolean and nullable columns, missing cells."""

    def build(seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(12, 26)), int(rng.integers(2, 5))
        latent = rng.standard_normal((n, p)) @ rng.standard_normal((p, p))
        names = rng.permutation(ODD_NAMES)[:p]
        frame = pd.DataFrame({str(name): _column(rng, latent[:, j]) for j, name in enumerate(names)})
        return frame.mask(rng.random(frame.shape) < 0.1 * rng.integers(0, 3))

    return build


def _column(rng, z):
    kind = rng.integers(0, 5)
    if kind == 0:
        return z
    if kind == 1:
        return pd.array(np.round(2 * z).astype(int), dtype="Int64")
    if kind == 2:
        return pd.array(z > np.median(z), dtype="boolean")
    if kind == 3:
        codes = np.digitize(z, np.quantile(z, [0.3, 0.6]))
        return pd.Categorical.from_codes(codes, ["low", "mid", "high"], ordered=True)
    return np.exp(np.round(z, 1))
