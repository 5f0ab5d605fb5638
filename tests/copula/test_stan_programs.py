"""The Stan programs against our tabulated density: log density and gradient, in process, without CmdStan.

httpstan compiles a program with g++ alone, once for each version of the program, and keeps the result in the
user's cache directory.
"""

import subprocess
import sys
import warnings
from types import ModuleType

import numpy as np
import pandas as pd
import platformdirs
import pytest
from filelock import FileLock
from numpy.typing import NDArray
from scipy.special import logsumexp

from dpsurvey.confidential.disclose import release
from dpsurvey.copula.bayes_na import bayes_na
from dpsurvey.copula.hermite import interpolate
from dpsurvey.copula.likelihood import LikelihoodTable, tabulate
from dpsurvey.copula.quadrant import QuadrantLaw, log_odds
from dpsurvey.copula.stan import PROGRAMS, program, program_data
from dpsurvey.errors import ArgumentError
from dpsurvey.privacy.release import Release

Array = NDArray[np.float64]
POINTS = 200
NEAR = 50.0  # log units below the mode
BUILD = """
import asyncio, pathlib, sys
from httpstan.models import build_services_extension_module
print(asyncio.run(build_services_extension_module(pathlib.Path(sys.argv[1]).read_text())))
"""


class Compiled:
    """A compiled program. Its functions are taken at once: a second module of that name replaces the first."""

    def __init__(self, module: ModuleType) -> None:
        self._log_prob, self._gradient, self._constrain = (
            module.log_prob,
            module.log_prob_grad,
            module.write_array,
        )

    def log_density(self, data: dict[str, object], y: Array) -> float:
        return self._log_prob(data, y.tolist(), True)

    def gradient(self, data: dict[str, object], y: Array) -> Array:
        return np.array(self._gradient(data, y.tolist(), True))

    def constrain(self, data: dict[str, object], y: Array) -> Array:
        """Return the Cholesky factor and R, each by columns."""
        return np.array(self._constrain(data, y.tolist(), True, True))


@pytest.fixture(scope="session")
def programs() -> dict[str, Compiled]:
    """Both programs, compiled, by engine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # httpstan calls what setuptools will remove
        models = pytest.importorskip(
            "httpstan.models",
            reason="httpstan, which compiles Stan programs, is not to be had for this Python",
        )
    names = {engine: models.calculate_model_name(program(engine).read_text()) for engine in PROGRAMS}
    with FileLock(platformdirs.user_cache_path("dpsurvey", ensure_exists=True) / "httpstan.lock"):
        builds = [start_build(engine) for engine, name in names.items() if not is_built(models, name)]
        for build in builds:
            output, _ = build.communicate()
            assert build.returncode == 0, output
    return {engine: Compiled(models.import_services_extension_module(name)) for engine, name in names.items()}


def is_built(models: ModuleType, name: str) -> bool:
    return any(models.httpstan.cache.model_directory(name).glob("*.so"))


def start_build(engine: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-W", "ignore", "-c", BUILD, str(program(engine))]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def stan_data(release: Release, engine: str) -> dict[str, object]:
    return {name: np.asarray(value).tolist() for name, value in program_data(release, engine).items()}


def simulated_release(
    p: int, n: int, *, epsilon: float, statistic: str = "quadrant", mechanism: str = "geometric"
) -> Release:
    """Return a release of normal rows with correlations of all sizes."""
    rng = np.random.default_rng([p, n])
    rows = rng.standard_normal((n, p)) @ rng.standard_normal((p, p))
    df = pd.DataFrame(rows, columns=list("abcdefg"[:p]))
    return release(df, epsilon, statistic=statistic, mechanism=mechanism, insecure_rng=rng)


def unfold(y: Array, p: int) -> tuple[Array, Array, float, Array]:
    """Return Stan's Cholesky factor of unconstrained y, its derivatives, log Jacobian and that one's gradient.

    Row i of the factor takes the next i of y: z = tanh(y), L[i, j] = z[j] sqrt(w[j]) with w[j] the product of
    1 - z[l]^2 over l < j, and the diagonal is the sqrt(w) that is left.
    """
    L, dL = np.eye(p, dtype=y.dtype), np.zeros((p, p, len(y)), dtype=y.dtype)
    slopes, log_jacobian = np.zeros_like(y), y.dtype.type(0)
    for i in range(1, p):
        own = slice(i * (i - 1) // 2, i * (i + 1) // 2)
        z = np.tanh(y[own])
        log_rest = np.concatenate(([0.0], np.cumsum(-2 * np.log(np.cosh(y[own])))))
        L[i, : i + 1] = np.exp(log_rest / 2) * np.append(z, 1.0)
        earlier = np.arange(i)[None, :] < np.arange(i + 1)[:, None]
        rows = np.where(earlier, -z * L[i, : i + 1, None], 0.0)
        rows[np.arange(i), np.arange(i)] = np.exp(log_rest[1:] - log_rest[:-1] / 2)
        dL[i, : i + 1, own] = rows
        log_jacobian += log_rest[-1] + log_rest[:-1].sum() / 2
        slopes[own] = -2 * z - z * np.arange(i - 1, -1, -1)
    return L, dL, log_jacobian, slopes


def log_density(y: Array, p: int, table: LikelihoodTable) -> tuple[float, Array]:
    """Return the log posterior density of unconstrained y, but for the constant of the prior, and its gradient.

    In extended precision: near R = +-1 a double holds few digits of 1 - R, on which all depends.
    """
    L, dL, value, gradient = unfold(y.astype(np.longdouble), p)
    power = p - np.arange(1, p + 1)  # LKJ(1) on the Cholesky factor
    diagonal = np.diagonal(L)
    value += power @ np.log(diagonal)
    gradient = gradient + (power / diagonal) @ dL[np.arange(p), np.arange(p)]
    for i, (j, k) in enumerate(zip(*np.triu_indices(p, 1), strict=True)):
        r = L[j] @ L[k]
        upper, lower = np.arccos(-r), np.arccos(r)
        term, slope = interpolate(float(2 * np.log(upper / lower)), *table.pair(i))
        value += term
        gradient = gradient + slope * 2 / np.sqrt(1 - r * r) * (1 / upper + 1 / lower) * (
            L[j] @ dL[k] + L[k] @ dL[j]
        )
    return float(value), gradient.astype(float)


def unconstrain(R: Array) -> Array:
    """Return the y whose factor is that of R."""
    L = np.linalg.cholesky(R)
    z = [
        L[i, :i] / np.sqrt(1 - np.concatenate(([0.0], np.cumsum(L[i, : i - 1] ** 2))))
        for i in range(1, len(R))
    ]
    return np.arctanh(np.concatenate(z))


def points(release: Release) -> Array:
    """Return unconstrained points: half around the posterior, half where Stan starts its chains."""
    draws = bayes_na(release, draws=POINTS // 2, chains=1, seed=1, progress=False).draws[0]
    near = np.array([unconstrain(R) for R in draws])
    anywhere = np.random.default_rng(release.n).uniform(-2.0, 2.0, near.shape)
    return np.concatenate([near, anywhere])


def assert_same_density(found: Array, expected: Array) -> None:
    """Compare as they are: no constant is free."""
    allowed = np.where(expected >= expected.max() - NEAR, 1e-6, 1e-9 * np.abs(expected))
    worst = float(np.max(np.abs(found - expected) / allowed))
    assert worst <= 1.0, f"{worst:.3g} times the error that is allowed"


def assert_same_gradient(found: Array, expected: Array) -> None:
    worst = float(np.max(np.abs(found - expected) / (1.0 + np.abs(expected))))
    assert worst <= 1e-6, f"relative error {worst:.3g}"


def compare(program: Compiled, release: Release, engine: str, y: Array) -> None:
    data = stan_data(release, engine)
    expected, gradients = reference(release, y)
    assert_same_density(np.array([program.log_density(data, row) for row in y]), expected)
    assert_same_gradient(np.array([program.gradient(data, row) for row in y]), gradients)


def reference(release: Release, y: Array) -> tuple[Array, Array]:
    """Return our log densities and gradients at the rows of y; computed once for both programs."""
    key = release, y.tobytes()
    if key not in REFERENCES:
        table = tabulate(release)
        values, gradients = zip(*[log_density(row, release.p, table) for row in y], strict=True)
        REFERENCES[key] = np.array(values), np.array(gradients)
    return REFERENCES[key]


REFERENCES: dict[tuple[Release, bytes], tuple[Array, Array]] = {}


@pytest.mark.parametrize("n", [200, 501])
@pytest.mark.parametrize("p", [2, 3, 5, 7])
@pytest.mark.parametrize("engine", list(PROGRAMS))
def test_density_and_gradient_are_ours(programs, engine, p, n):
    release = simulated_release(p, n, epsilon=1.2 * p)
    compare(programs[engine], release, engine, points(release))


@pytest.mark.parametrize(("statistic", "mechanism"), [("quadrant", "linf"), ("concordance", "linf")])
def test_tables_of_any_statistic_and_mechanism_give_our_density(
    programs, statistic: str, mechanism: str
) -> None:
    release = simulated_release(3, 200, epsilon=2.0, statistic=statistic, mechanism=mechanism)
    compare(programs["stan"], release, "stan", points(release))


def test_the_papers_program_takes_quadrant_counts_alone() -> None:
    release = simulated_release(3, 60, epsilon=2.0, statistic="concordance", mechanism="linf")
    with pytest.raises(ArgumentError, match="quadrant counts"):
        program_data(release, "stan-direct")


@pytest.mark.parametrize("engine", list(PROGRAMS))
def test_any_noise_law_can_be_passed(programs, engine):
    release = simulated_release(3, 101, epsilon=3.0, mechanism="rgm")
    compare(programs[engine], release, engine, points(release))


@pytest.mark.parametrize("n", [200, 201])
@pytest.mark.parametrize("engine", list(PROGRAMS))
def test_near_perfect_correlation(programs, engine, n):
    release = simulated_release(2, n, epsilon=2.0)
    far = np.array([3.0, 6.0, 9.0])  # 1 - R down to 3e-8
    compare(programs[engine], release, engine, np.concatenate([-far, far])[:, None])
    data = stan_data(release, engine)
    for y in (-18.0, 18.0):  # one step of a double away from R = +-1
        assert np.isfinite(programs[engine].log_density(data, np.array([y])))
        assert np.isfinite(programs[engine].gradient(data, np.array([y]))).all()


@pytest.mark.parametrize("engine", list(PROGRAMS))
def test_the_constrained_values_are_the_factor_and_R(programs, engine):
    release = simulated_release(5, 50, epsilon=2.0)
    data = stan_data(release, engine)
    for y in points(release)[::20]:
        L, R = programs[engine].constrain(data, y).reshape(2, 5, 5).swapaxes(1, 2)
        np.testing.assert_allclose(L, unfold(y, 5)[0], atol=1e-12)
        np.testing.assert_allclose(R, L @ L.T, atol=1e-14)


def test_the_reference_gradient_is_that_of_the_reference_density():
    release = simulated_release(4, 60, epsilon=4.0)
    table = tabulate(release)
    y, step = np.random.default_rng(3).uniform(-1, 1, 6), 1e-5
    expected = [
        (log_density(y + step * side, 4, table)[0] - log_density(y - step * side, 4, table)[0]) / (2 * step)
        for side in np.eye(6)
    ]
    np.testing.assert_allclose(log_density(y, 4, table)[1], expected, rtol=1e-6)


@pytest.mark.parametrize("p", [2, 5])
def test_forgetting_the_constant_of_equation_11_would_be_seen(p):
    """Without it the likelihood is sum_t Pr(t_tilde | t) C(h, t)^2 exp(eta t): another posterior, not a constant."""
    release = simulated_release(p, 200, epsilon=1.2 * p)
    law, table = QuadrantLaw(release.n), tabulate(release)
    y = points(release)
    correct = np.array([log_density(row, p, table)[0] for row in y])
    constants = np.array([forgotten(row, p, law) for row in y])
    with pytest.raises(AssertionError, match="times the error that is allowed"):
        assert_same_density(correct + constants, correct)
    near = correct > correct.max() - NEAR
    assert np.std(constants[near]) > 1.0  # so no constant mends it


def forgotten(y: Array, p: int, law: QuadrantLaw) -> float:
    L = unfold(y, p)[0]
    r = (L @ L.T)[np.triu_indices(p, 1)]
    return sum(
        float(logsumexp(law.log_weights + log_odds(value) * np.arange(len(law.support)))) for value in r
    )
