"""How much the positive definite set narrows intervals: where `plan` has its constants from.

    python benchmarks/planning.py [--runs 60]

R is drawn from LKJ(1), and u = (2/pi) asin R of every pair observed with an independent error of known law: normal,
two-sided exponential, or uniform with a softened edge, as noise of many counts has. The mean length of 95% intervals
of the joint posterior is set against that of each pair by itself under its marginal prior. With x the latter as a
share of the prior's length, the loss is printed as a multiple of ``(1 - 1.3/p) 4 x (1 - x)``.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np

from dpsurvey.copula.correlation import pair_values, prior_interval_length
from dpsurvey.copula.inversion import build_inversion
from dpsurvey.copula.likelihood import LikelihoodTable
from dpsurvey.study import batch
from dpsurvey.study.designs import draw_correlation

U = np.concatenate(([-1.0 + 1e-9], np.linspace(-1.0, 1.0, 801)[1:-1], [1.0 - 1e-9]))
SPREADS = {3: (0.06, 0.14, 0.28), 5: (0.05, 0.1, 0.2), 10: (0.03, 0.07, 0.14), 20: (0.03, 0.1)}
EDGE = 0.05  # softness of the uniform law's edge, as a share of its half width


def normal(z):
    return -0.5 * z * z


def exponential(z):
    return -np.sqrt(2.0) * np.abs(z)


def box(z):
    half = np.sqrt(3.0)
    return -np.logaddexp(0.0, (np.abs(z) - half) / (EDGE * half))


DRAWS = {
    normal: lambda rng, m: rng.standard_normal(m),
    exponential: lambda rng, m: rng.laplace(scale=np.sqrt(0.5), size=m),
    box: lambda rng, m: rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), m),
}


def jets(law, observed, sd):
    """Log-likelihood over U and its derivatives in eta, numerically: laws may have a kink."""
    eta = 4.0 * np.arctanh(U)
    value = law((observed - U) / sd)
    first = np.gradient(value, eta)
    return np.stack([value, first, np.gradient(first, eta)], axis=1)


def one_pair(law, observed, sd, p):
    """Length of the 95% interval of one pair under its marginal prior."""
    u = np.linspace(-1.0, 1.0, 8001)[1:-1]
    R = np.sin(np.pi / 2 * u)
    log_density = law((observed - u) / sd) + (p / 2 - 0.5) * np.log1p(-R * R)  # dR/du goes with sqrt(1 - R^2)
    cdf = np.cumsum(np.exp(log_density - log_density.max()))
    low, high = np.interp([0.025, 0.975], cdf / cdf[-1], R)
    return high - low


def lengths(law, p, sd, run):
    rng = np.random.default_rng([p, run])
    R = draw_correlation(p, rng)
    m = p * (p - 1) // 2
    observed = 2.0 / np.pi * np.arcsin(pair_values(R)) + sd * DRAWS[law](rng, m)
    nodes = np.tile(4.0 * np.arctanh(U), m)
    parts = np.concatenate([jets(law, value, sd) for value in observed])
    table = build_inversion(LikelihoodTable(nodes, parts, np.arange(m + 1) * len(U)))
    kept = np.empty((2000, p, p))
    batch.fill_product(table, 150, rng, kept)
    low, high = np.quantile(pair_values(kept), [0.025, 0.975], axis=0)
    return (high - low).mean(), np.mean([one_pair(law, value, sd, p) for value in observed])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=60, help="at p = 5; others in proportion to 1/m")
    runs = parser.parse_args().runs
    for p, law in itertools.product(SPREADS, DRAWS):
        for sd in SPREADS[p]:
            found = np.array([lengths(law, p, sd, run) for run in range(max(3, 20 * runs // (p * (p - 1))))])
            joint, alone = found.mean(axis=0)
            x = alone / prior_interval_length(p)
            shape = (1.0 - 1.3 / p) * 4.0 * x * (1.0 - x)
            error = np.std(found[:, 0] - joint / alone * found[:, 1]) / np.sqrt(len(found)) / alone
            print(
                f"p = {p:2d}, {law.__name__:11s} sd {sd:.2f}: x {x:.2f}, length kept {joint / alone:.4f} "
                f"({error:.4f}), loss {(1 - joint / alone) / shape:.3f} ({error / shape:.3f})", flush=True,
            )  # fmt: skip


if __name__ == "__main__":
    main()
