"""Chains: where they start, determinism, interruption, progress, and posteriors on the edge of the set."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import pytest

from dpsurvey.copula import chains
from dpsurvey.copula.diagnostics import summarise
from dpsurvey.copula.inversion import build_inversion, draw_between
from dpsurvey.copula.likelihood import log_likelihood, tabulate
from dpsurvey.copula.quadrant import QuadrantLaw
from dpsurvey.privacy.release import Release

Maker = Callable[..., Release]
LKJ = Callable[[int, np.random.Generator], np.ndarray]


def pairs(draws: np.ndarray) -> np.ndarray:
    """Return the entries above the diagonal, shape (chain, draw, m)."""
    return draws[..., *np.triu_indices(draws.shape[-1], 1)]


def copies_release(
    which: list[int], n: int, epsilon: float, count_release: Maker, rng: np.random.Generator
) -> Release:
    """Return a release of variables that are exact copies of a few underlying ones, which correlate .5."""
    law = QuadrantLaw(n)
    true = [
        law.upper if which[j] == which[k] else round(float(law.mean(2 * np.log(2))))
        for j, k in zip(*np.triu_indices(len(which), 1), strict=True)
    ]
    noise = count_release(n, true, epsilon).noise_law()
    return count_release(n, noise.simulate(np.array(true), rng), epsilon)


def test_shape_and_validity(model_release: Maker, lkj: LKJ) -> None:
    for p in (2, 3, 20):
        rng = np.random.default_rng(p)
        table = tabulate(model_release(lkj(p, rng), 5820, 20.0, rng))
        sampled = chains.sample(table, p, draws=30, chains=3, seed=1)
        assert sampled.draws.shape == (3, 30, p, p)
        np.testing.assert_array_equal(sampled.draws, np.swapaxes(sampled.draws, -1, -2))
        np.testing.assert_array_equal(np.diagonal(sampled.draws, axis1=-2, axis2=-1), 1.0)
        assert np.linalg.eigvalsh(sampled.draws).min() > 0
        assert sampled[1:] == (chains.WARMUP_SWEEPS, (p + 3) // 4, False, 1.0)


def test_seed_alone_decides(model_release: Maker, lkj: LKJ, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    table = tabulate(model_release(lkj(4, rng), 500, 3.0, rng))
    one = chains.sample(table, 4, draws=50, chains=3, seed=7).draws
    np.testing.assert_array_equal(one, chains.sample(table, 4, draws=50, chains=3, seed=7).draws)
    monkeypatch.setattr(chains, "available_cores", lambda: 1)
    np.testing.assert_array_equal(one, chains.sample(table, 4, draws=50, chains=3, seed=7).draws)
    np.testing.assert_array_equal(one[:2], chains.sample(table, 4, draws=50, chains=2, seed=7).draws)
    monkeypatch.setattr(chains, "_LONGEST_BLOCK", 7)  # how often a chain looks up makes no difference
    np.testing.assert_array_equal(one, chains.sample(table, 4, draws=50, chains=3, seed=7).draws)
    for other in (one[1], chains.sample(table, 4, draws=50, chains=1, seed=8).draws[0]):
        assert not np.any(one[0][:, 0, 1] == other[:, 0, 1])
    free = [chains.sample(table, 4, draws=5, chains=1, seed=None).draws for _ in range(2)]
    assert not np.array_equal(*free)


def test_starts_lie_in_the_bulk_and_differ(model_release: Maker, lkj: LKJ) -> None:
    rng = np.random.default_rng(2)
    for p, n, epsilon in ((3, 200, 1.0), (7, 5820, 1.0), (12, 10**5, 50.0)):
        truth = lkj(p, rng)
        release = model_release(truth, n, epsilon, rng)
        table = tabulate(release)
        inversion = build_inversion(table)
        starts = np.array([chains.starting_matrix(table, inversion, p, rng) for _ in range(8)])
        assert np.linalg.eigvalsh(starts).min() > 0
        assert np.std(starts[:, 0, 1]) > 0
        shortfall = log_likelihood(release, truth) - log_likelihood(release, starts)
        assert np.median(shortfall) < 10 * release.m


def test_start_without_information_is_valid(count_release: Maker) -> None:
    table = tabulate(count_release(100, [25] * 45, 1e-6))
    start = chains.starting_matrix(table, build_inversion(table), 10, np.random.default_rng(1))
    assert np.linalg.eigvalsh(start)[0] > 1e-3


@pytest.mark.parametrize(
    ("n", "epsilon"), [(1000, 1.0), (5820, 10.0), (10**5, 1.0), (10**5, 10.0), (10**6, 10.0)]
)
@pytest.mark.parametrize("which", [[0, 0, 0], [0, 1, 0]], ids=["three copies", "two copies"])
def test_copies_at_p_3_against_exact_weights(
    which: list[int], n: int, epsilon: float, count_release: Maker
) -> None:
    # Columns that are copies of each other: correlations within 1e-10 of 1, and an identity start that would
    # never get there. Oracle: R01 and R02 from their own likelihoods, R12 uniform on its feasible interval,
    # weighted by its likelihood and the interval's length.
    rng = np.random.default_rng(n)
    release = copies_release(which, n, epsilon, count_release, rng)
    table = tabulate(release)
    sampled = chains.sample(table, 3, draws=1000, chains=4, seed=1)
    assert sampled.joint_moves
    assert np.isfinite(sampled.draws).all()
    assert np.linalg.eigvalsh(sampled.draws).min() > -1e-15
    found = summarise(pairs(sampled.draws), 0.95)
    assert found["r_hat"].max() < 1.03
    assert found["ess_bulk"].min() > 200
    inversion = build_inversion(table)
    a, b = (np.array([draw_between(inversion, i, -1.0, 1.0, v) for v in rng.random(100_000)]) for i in (0, 1))
    half = np.sqrt((1 - a) * (1 + a) * (1 - b) * (1 + b))
    c = a * b + half * rng.uniform(-1, 1, len(a))
    log_weight = table.pair_log_likelihood(2, c) + np.log(half)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    effective = 1 / np.sum(weight**2)
    assert effective > 500
    for i, values in enumerate((a, b, c)):
        distance = 1 - values  # keeps its digits where the correlation has none left
        mean = weight @ distance
        sd = np.sqrt(weight @ (distance - mean) ** 2)
        error = sd * np.sqrt(1 / effective + 1 / found["ess_bulk"][i])
        mine = 1 - pairs(sampled.draws)[..., i]
        assert abs(mine.mean() - mean) < 5 * error
        assert mine.std() / sd == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize(("n", "epsilon"), [(5820, 1.0), (10**5, 10.0)])
@pytest.mark.parametrize(
    "which", [[0, 0, 1, 1], [0, 1, 2, 3, 4, 0, 1], [0] * 7], ids=["2+2", "7 with 2+2", "7 alike"]
)
def test_copies_among_more_variables(which: list[int], n: int, epsilon: float, count_release: Maker) -> None:
    release = copies_release(which, n, epsilon, count_release, np.random.default_rng(n))
    sampled = chains.sample(tabulate(release), len(which), draws=1000, chains=4, seed=1)
    assert np.isfinite(sampled.draws).all()
    assert np.linalg.eigvalsh(sampled.draws).min() > -1e-15
    found = summarise(pairs(sampled.draws), 0.95)
    print(
        f"{which}, n = {n}, epsilon = {epsilon}: worst r_hat {found.r_hat.max():.3f}, ess {found.ess_bulk.min():.0f}"
    )
    assert found["r_hat"].max() < 1.1
    same = np.array([which[j] == which[k] for j, k in zip(*np.triu_indices(len(which), 1), strict=True)])
    # True correlations: 1 for copies, .5 for the others, but for noise of m / epsilon counts a pair.
    mean = found["mean"].to_numpy()
    assert mean[same].min() > 1 - 0.02
    noise = 8 * release.m / (epsilon * n) + 5 / np.sqrt(n)
    assert np.abs(mean[~same] - 0.5).max(initial=0.0) < noise


def test_near_copies_are_told_by_the_median(count_release: Maker) -> None:
    def near(n: int, count: int, epsilon: float) -> bool:
        return chains.has_near_copies(build_inversion(tabulate(count_release(n, [count, 20, 25], epsilon))))

    assert near(5820, 2910, 3.0)
    assert near(5820, 0, 3.0)
    assert not near(100, 50, 1.0)
    assert not near(5820, 10**6, 1e-3)  # the mode is +1, but the noise is wide


def test_interrupt_is_raised_within_a_second() -> None:
    # A run of a minute or more, SIGINT, and the time until the process is gone.
    # A shell's background jobs inherit an ignored SIGINT, which Python keeps: hence the handler.
    program = """
import signal
import threading
import time
from dpsurvey.copula.chains import sample
from dpsurvey.copula.likelihood import tabulate_counts
from dpsurvey.copula.quadrant import QuadrantLaw
from dpsurvey.privacy.mechanisms import Geometric
signal.signal(signal.SIGINT, signal.default_int_handler)
table = tabulate_counts(QuadrantLaw(500), Geometric(3.0, 1.0), [130 + i for i in range(21)])
sample(table, 7, draws=10, chains=2, seed=1)  # compiled, or loaded
print("ready", flush=True)
start = time.monotonic()
try:
    sample(table, 7, draws=2_000_000, chains=2, seed=1, progress=True)
except KeyboardInterrupt:
    workers = [t for t in threading.enumerate() if "ThreadPool" in t.name]
    print(f"interrupted, {len(workers)} workers left", flush=True)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(1.5)
        start = time.monotonic()
        os.kill(process.pid, signal.SIGINT)
        said, progress = process.communicate(timeout=60)
        elapsed = time.monotonic() - start
    print(f"{elapsed:.2f} s from the signal to the end of the process")
    assert process.returncode == 0, progress
    assert said == "interrupted, 0 workers left\n"
    assert elapsed < 5  # a second, and slack for a loaded machine
    assert "Bayes-NA" in progress
    assert "draw" in progress


def test_progress_bar_counts_draws(
    model_release: Maker, lkj: LKJ, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(1)
    table = tabulate(model_release(lkj(3, rng), 500, 3.0, rng))
    chains.sample(table, 3, draws=20, chains=2, seed=1)
    assert capsys.readouterr().err == ""
    chains.sample(table, 3, draws=100_000, chains=2, seed=1, progress=True)
    counts = [int(found) for found in re.findall(r"(\d+)/200000", capsys.readouterr().err)]
    assert counts == sorted(counts)
    assert 0 < counts[-1] <= 200_000


def test_an_error_in_a_chain_stops_the_others(
    model_release: Maker, lkj: LKJ, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, calls = np.random.default_rng(1), []
    table = tabulate(model_release(lkj(3, rng), 500, 3.0, rng))
    genuine = chains.fill

    def failing(*arguments: object) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise MemoryError("no room")
        genuine(*arguments)

    monkeypatch.setattr(chains, "fill", failing)
    monkeypatch.setattr(chains, "_LONGEST_BLOCK", 5)
    with pytest.raises(MemoryError, match="no room"):
        chains.sample(table, 3, draws=100_000, chains=2, seed=1)
    assert len(calls) < 20_000  # of 40,000
