"""Fixtures for results: a release made by hand, so that no rows are needed."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from dpsurvey.copula.quadrant import QuadrantLaw
from dpsurvey.privacy.mechanisms import build_mechanism
from dpsurvey.privacy.release import Release
from dpsurvey.privacy.statistics import make_statistic


@pytest.fixture(scope="session")
def make_release() -> Callable[..., Release]:
    """Return a maker of releases with geometric noise."""

    def make(variables: tuple[str, ...], **changes: object) -> Release:
        m = len(variables) * (len(variables) - 1) // 2
        epsilon = float(changes.pop("epsilon", 1.0))  # type: ignore[arg-type]
        fields: dict[str, object] = {
            "variables": variables,
            "n": 500,
            "counts": tuple(range(150, 150 + m)),
            "statistic": "quadrant",
            "mechanism": "geometric",
            "parameters": {"scale": m / epsilon, "privacy_map": epsilon},
            "epsilon": epsilon,
            "delta": 0.0,
            "neighbours": "substitute one row",
            "key_seed": 2**64 - 1,
            "key_fingerprint": "0123456789abcdef",
            "secure": True,
        }
        return Release(**{**fields, **changes})

    return make


@pytest.fixture(scope="session")
def count_release(make_release: Callable[..., Release]) -> Callable[..., Release]:
    """Return a maker of releases with given noisy counts: (n, counts, epsilon, mechanism)."""

    def make(n: int, counts: Sequence[int], epsilon: float, mechanism: str = "geometric") -> Release:
        p = round((1 + (1 + 8 * len(counts)) ** 0.5) / 2)
        noise = build_mechanism(mechanism, make_statistic("quadrant", n, p), epsilon)
        return make_release(
            tuple(f"x{i}" for i in range(p)),
            n=n,
            counts=tuple(int(count) for count in counts),
            epsilon=epsilon,
            mechanism=mechanism,
            parameters=noise.parameters,
        )

    return make


@pytest.fixture(scope="session")
def model_release(count_release: Callable[..., Release]) -> Callable[..., Release]:
    """Return a maker of releases drawn from the model itself: (R, n, epsilon, rng, mechanism).

    Each true count comes from its own tilted law, independently of the others, so that a composite likelihood
    is the likelihood.
    """

    def make(
        R: np.ndarray, n: int, epsilon: float, rng: np.random.Generator, mechanism: str = "geometric"
    ) -> Release:
        law, p = QuadrantLaw(n), len(R)
        noise = build_mechanism(mechanism, make_statistic("quadrant", n, p), epsilon)
        true = []
        for r in R[np.triu_indices(p, 1)]:
            cdf = np.cumsum(np.exp(law.log_pmf(law.support, r)))
            true.append(law.support[np.searchsorted(cdf, rng.random() * cdf[-1], side="right")])
        counts = noise.simulate(np.array(true, dtype=np.int64), rng)
        return count_release(n, counts, epsilon, mechanism)

    return make


@pytest.fixture(scope="session")
def lkj() -> Callable[[int, np.random.Generator], np.ndarray]:
    """Return a drawer of correlation matrices from LKJ(1): a Wishart(p + 1, I) matrix scaled."""

    def draw(p: int, rng: np.random.Generator) -> np.ndarray:
        rows = rng.normal(size=(p + 1, p))
        S = rows.T @ rows
        scale = np.sqrt(np.diag(S))
        return S / np.outer(scale, scale)

    return draw
