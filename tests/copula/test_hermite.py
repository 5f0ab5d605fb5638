"""The piecewise quintic: exact for quintics, and within its tolerance of what it tabulates everywhere."""

from __future__ import annotations

import numpy as np
import pytest

from dpsurvey.copula.hermite import adaptive_nodes, interpolate, quintic
from dpsurvey.copula.quadrant import LARGEST_ETA, QuadrantLaw
from dpsurvey.copula.tilting import noise_jet
from dpsurvey.privacy.mechanisms import build_mechanism
from dpsurvey.privacy.statistics import make_statistic


def test_quintics_are_reproduced() -> None:
    curve = np.polynomial.Polynomial([0.3, -1.2, 0.7, 2.0, -0.4, 0.9])
    slope, bend = curve.deriv(), curve.deriv(2)
    left, right = (np.array([f(x) for f in (curve, slope, bend)]) for x in (-0.5, 1.7))
    for s in np.linspace(0, 1, 11):
        x = -0.5 + 2.2 * s
        assert quintic(s, 2.2, left, right) == (pytest.approx(curve(x)), pytest.approx(slope(x)))


def test_ends_are_held_constant() -> None:
    nodes, jets = np.array([-1.0, 1.0]), np.array([[2.0, 1.0, 0.0], [4.0, 1.0, 0.0]])
    assert interpolate(-3.0, nodes, jets) == (2.0, 0.0)
    assert interpolate(np.inf, nodes, jets) == (4.0, 0.0)
    assert interpolate(0.0, nodes, jets) == (pytest.approx(3.0), pytest.approx(1.0))


@pytest.mark.parametrize("mechanism", ["geometric", "rgm"])
@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 3.0, 500.0])
@pytest.mark.parametrize("n", [4, 5, 101, 5820, 10**6])
def test_table_follows_likelihood_and_score_everywhere(n: int, epsilon: float, mechanism: str) -> None:
    law, rng = QuadrantLaw(n), np.random.default_rng(n)
    noise = build_mechanism(mechanism, make_statistic("quadrant", n, 2), epsilon)
    counts = [law.lower, law.upper, (law.lower + law.upper) // 2, int(0.93 * law.upper)]
    if mechanism == "geometric":
        counts += [law.lower - 40, law.upper + 25]
    for noisy in counts:
        log_noise = noise.log_pmf(noisy, law.support.astype(float))
        log_noise -= log_noise.max()
        nodes, jets = adaptive_nodes(law.log_weights, log_noise, LARGEST_ETA, 2e-10, 2e-11)
        assert len(nodes) < 1000
        mode, best = nodes[np.argmax(jets[:, 0])], jets[:, 0].max()
        near = mode + 4 / np.sqrt(n) * rng.standard_cauchy(100)
        for eta in np.concatenate(
            (rng.uniform(-LARGEST_ETA, LARGEST_ETA, 30), near[np.abs(near) < LARGEST_ETA])
        ):
            value, slope = interpolate(eta, nodes, jets)
            exact = noise_jet(law.log_weights, log_noise, eta)
            assert abs(value - exact[0]) < 2e-9 + 1e-10 * (best - exact[0])
            assert abs(slope - exact[1]) < 2e-5 * (1 + abs(exact[1]))
