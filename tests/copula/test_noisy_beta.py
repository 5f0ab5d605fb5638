"""Beta laws seen through noise: every integral against a plain sum over a million points."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import betaln

from dpsurvey.copula.concordance import ConcordanceLaw
from dpsurvey.copula.noisy_beta import Panels, lay_panels, log_mixture
from dpsurvey.copula.quadrant import log_odds
from dpsurvey.privacy.mechanisms import NoiseLaw, build_mechanism
from dpsurvey.privacy.statistics import ConcordanceCounts

END = 16.0
CASES = [
    (50, 2, 1.0, "linf"), (1000, 2, 0.01, "linf"), (1000, 10, 5.0, "linf"), (500, 5, 100.0, "linf"),
    (300, 3, 1.0, "geometric"), (300, 3, 1.0, "gaussian"), (300, 3, 2.0, "rgm"), (5000, 20, 1.0, "linf"),
]  # fmt: skip


def parts(n: int, p: int, epsilon: float, name: str) -> tuple[ConcordanceLaw, NoiseLaw]:
    mechanism = build_mechanism(name, ConcordanceCounts(n, p), epsilon, 1e-6 if name == "gaussian" else 0.0)
    return ConcordanceLaw(n), mechanism.marginal(0)


def panels_of(law: ConcordanceLaw, noise: NoiseLaw, noisy: int) -> Panels:
    return lay_panels(noise, noisy, float(law.upper), END, law._logit_deviation)


def plain(law: ConcordanceLaw, noise: NoiseLaw, noisy: int, a: float, b: float) -> float:
    x = np.linspace(-END, END, 1_000_001)
    log_rest = np.logaddexp(0.0, x)
    log_noise = noise.log_pmf(float(noisy), law.upper * np.exp(-log_rest))
    logs = a * x - (a + b) * log_rest - betaln(a, b) + log_noise
    return float(np.logaddexp.reduce(logs) + math.log(x[1] - x[0]))


@pytest.mark.parametrize(("n", "p", "epsilon", "name"), CASES)
@pytest.mark.parametrize("share", [0.5, 0.07, 0.0])
def test_integrals_are_plain_sums(n: int, p: int, epsilon: float, name: str, share: float) -> None:
    law, noise = parts(n, p, epsilon, name)
    noisy = round(share * law.upper)
    near = max(share, 1.0 / n)
    R = np.cos(np.pi * np.clip(near * np.array([1.0, 1.3, 0.6]), 0.0, 1.0))  # where such counts come from
    a, b = law._beta(log_odds(R))
    found = log_mixture(panels_of(law, noise, noisy), a, b, betaln(a, b))
    expected = [plain(law, noise, noisy, *ab) for ab in zip(a, b, strict=True)]
    assert found == pytest.approx(np.array(expected), abs=2e-5, rel=1e-6)


@pytest.mark.parametrize("noisy", [-(10**6), -1, 0, 17, 600, 1225, 1226, 10**6])
def test_panels_cover_the_range_once_with_an_edge_at_the_kink(noisy: int) -> None:
    law, noise = parts(50, 2, 1.0, "linf")
    panels = panels_of(law, noise, noisy)
    half: NDArray[np.float64] = panels.weights.sum(axis=1) / 2.0
    edges = np.concatenate(([panels.x[0, 0] - half[0]], panels.x[:, 0] + half))
    assert (edges[0], edges[-1]) == (pytest.approx(-END), pytest.approx(END))
    assert edges[:-1] == pytest.approx(panels.x[:, 0] - half)
    assert np.all(half > 0.0)
    share = 1.0 - min(max(noisy / law.upper, 0.0), 1.0)
    kink = END * math.copysign(1.0, share - 0.5) if share in (0.0, 1.0) else math.log(share / (1.0 - share))
    assert np.abs(edges - kink).min() < 1e-9
    assert np.all(np.isfinite(panels.log_noise))


def test_steep_laws_far_from_the_count_stay_finite() -> None:
    law, noise = parts(5000, 5, 1e4, "linf")
    a, b = law._beta(np.array([-35.0, -20.0, 0.0, 20.0, 35.0]))
    values = log_mixture(panels_of(law, noise, 3_000_000), a, b, betaln(a, b))
    assert np.all(np.isfinite(values))
    assert np.argmax(values) == 2
