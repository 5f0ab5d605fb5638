"""The embedded sampler and our tables against the paper's Stan program, in one run and in CPU seconds.

Effective draws: p = 5, n = 1000; ``stan/bayes_na.stan`` with Stan's NUTS (one chain, 1000 iterations of warm-up,
1000 kept) and ``bayes_na`` with its defaults but ``joint=False``, since the program knows nothing of the second,
calibrated posterior (what that costs is printed too). Both draw from the same posterior of the same release, and are
measured alike: bulk effective draws (Vehtari et al., 2021) of the pair where they are fewest, per CPU second of the
whole fit, warm-up and tables included, compilation not.

Gradients: p = 7, n = 5820; the log posterior density of unconstrained parameters and its gradient, by the programs
within NUTS (CPU seconds over leapfrog steps) and by a numba kernel on our tables, after checking that they agree.

Claims:

* at least 300 times as many effective draws per CPU second;
* a gradient at least 2000 times as cheap.

Stan comes from httpstan, a development dependency that compiles programs with g++ alone, about a minute each at the
first run. Its ``log_prob_grad`` is not what is timed, since each call reads the data anew, which costs as much as the
gradient. Run: ``python benchmarks/stan.py``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import select
import socket
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpsurvey as dps
from dpsurvey.copula.correlation import pair_values
from dpsurvey.copula.diagnostics import summarise
from dpsurvey.copula.jit import njit
from dpsurvey.copula.likelihood import LikelihoodTable, tabulate
from dpsurvey.copula.stan import PROGRAMS, program, program_data

DRAWS_RATIO, GRADIENT_RATIO = 300.0, 2000.0
TRIES = 3  # of our fit, which takes a fraction of a second: their median
NUTS = {
    "init": {}, "random_seed": 1, "chain": 1, "init_radius": 2.0, "num_thin": 1, "save_warmup": False, "refresh": 0,
    "stepsize": 1.0, "stepsize_jitter": 0.0, "max_depth": 10, "delta": 0.8, "gamma": 0.05, "kappa": 0.75, "t0": 10.0,
    "init_buffer": 75, "term_buffer": 50, "window": 25,
}  # fmt: skip


def simulated_release(p: int, n: int, epsilon: float) -> dps.Release:
    """Return a release, by the paper's mechanism, of normal rows with correlations drawn from LKJ(1)."""
    rng = np.random.default_rng([2601, p, n])
    factor = rng.standard_normal((p, p + 1))
    rows = rng.standard_normal((n, p + 1)) @ factor.T
    df = pd.DataFrame(rows, columns=[f"x{j}" for j in range(p)])
    return dps.release(df, epsilon, statistic="quadrant", mechanism="geometric", insecure_rng=rng)


def stan_data(release: dps.Release, engine: str) -> dict[str, Any]:
    """Return the data of a program as plain lists."""
    return {name: np.asarray(value).tolist() for name, value in program_data(release, engine).items()}


def compiled(engine: str) -> Any:
    """Return the module of a program, compiled at the first run."""
    from httpstan import models

    code = program(engine).read_text()
    name = models.calculate_model_name(code)
    try:
        return models.import_services_extension_module(name)
    except KeyError:
        print(f"compiling {program(engine).name} ...", flush=True)
        asyncio.run(models.build_services_extension_module(code))
        return models.import_services_extension_module(name)


def run_chain(address: str, engine: str, data: dict[str, Any], options: dict[str, Any], answer: Any) -> None:
    """Run one chain, its output going to a socket, and answer with its CPU seconds."""
    warnings.simplefilter("ignore")
    module = compiled(engine)
    began = time.process_time()
    module.hmc_nuts_diag_e_adapt_wrapper(socket_filename=address, data=data, **options)
    answer.send(time.process_time() - began)


def nuts(
    release: dps.Release, engine: str, *, warmup: int, draws: int, **options: Any
) -> tuple[pd.DataFrame, float]:
    """Return the output of one chain of Stan's sampler, a column for each quantity, and its CPU seconds."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    settings = {**NUTS, "num_warmup": warmup, "num_samples": draws, **options}
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        address = str(Path(folder) / "stan.sock")
        server.bind(address)
        server.listen(8)
        arguments = address, engine, stan_data(release, engine), settings, sender
        chain = context.Process(target=run_chain, args=arguments)
        chain.start()
        output = read_all(server, chain)
        chain.join()
    if chain.exitcode != 0:
        raise RuntimeError("Stan's sampler stopped with an error")
    return sample_table(output), receiver.recv()


def read_all(server: socket.socket, chain: Any) -> list[bytes]:
    """Return what each of Stan's writers sends, until all have closed."""
    output: dict[socket.socket, bytearray] = {}
    sources = [server]
    while chain.is_alive() or len(sources) > 1:
        for source in select.select(sources, [], [], 0.05)[0]:
            if source is server:
                connection = server.accept()[0]
                sources.append(connection)
                output[connection] = bytearray()
            elif block := source.recv(65536):
                output[source] += block
            else:
                sources.remove(source)
                source.close()
    return [bytes(text) for text in output.values()]


def sample_table(output: list[bytes]) -> pd.DataFrame:
    """Return the draws among the messages, which are JSON values, one a line."""
    messages = [json.loads(line) for text in output for line in text.decode().splitlines() if line.strip()]
    values = [message["values"] for message in messages if message["topic"] == "sample"]
    return pd.DataFrame([value for value in values if isinstance(value, dict)])


def worst_ess(R: np.ndarray) -> float:
    """Return the smallest bulk effective sample size of a pair, from draws of shape (chain, draw, p, p)."""
    return float(summarise(pair_values(R), 0.95)["ess_bulk"].min())


def stan_rate(release: dps.Release) -> tuple[float, float]:
    """Return effective draws and CPU seconds of one chain of the direct program."""
    table, seconds = nuts(release, "stan-direct", warmup=1000, draws=1000)
    p = release.p
    names = [f"R.{j}.{k}" for j in range(1, p + 1) for k in range(1, p + 1)]
    return worst_ess(table[names].to_numpy().reshape(1, -1, p, p)), seconds


def our_rate(release: dps.Release, joint: bool = False) -> tuple[float, float]:
    """Return effective draws and CPU seconds of the embedded sampler, warm."""
    dps.bayes_na(release, draws=10, seed=0, joint=joint, progress=False)
    seconds, effective = [], []
    for seed in range(TRIES):
        began = time.process_time()
        posterior = dps.bayes_na(release, seed=seed, joint=joint, progress=False)
        seconds.append(time.process_time() - began)
        effective.append(worst_ess(posterior.draws))
    return float(np.median(effective)), float(np.median(seconds))


def cells_of(table: LikelihoodTable) -> np.ndarray:
    """Return for each cell its left end, its width and its quintic's coefficients, lowest first; shape (N, 8).

    The row of a pair's last node belongs to no cell.
    """
    node, width = table.nodes, np.append(np.diff(table.nodes), 1.0)
    left, right = table.jets, np.roll(table.jets, -1, axis=0)
    rise = right[:, 0] - left[:, 0]
    a1, b1 = left[:, 1] * width, right[:, 1] * width
    a2, b2 = left[:, 2] * width**2 / 2, right[:, 2] * width**2 / 2
    c3 = 10 * rise - 6 * a1 - 4 * b1 - 3 * a2 + b2
    c4 = -15 * rise + 8 * a1 + 7 * b1 + 3 * a2 - 2 * b2
    c5 = 6 * rise - 3 * a1 - 3 * b1 - a2 + b2
    return np.column_stack([node, width, left[:, 0], a1, a2, c3, c4, c5])


@njit
def log_density(y, cells, offsets, work, gradient):
    """Return our log posterior density at unconstrained y (Stan's transform, LKJ(1)), and write its gradient.

    Stan's factor has rows L[i, j] = z[j] sqrt(w[j]), z = tanh(y), w[j] the product of 1 - z[l]^2 over l < j. The
    slopes in L are collected pair by pair, then carried back to y row by row.
    """
    L, bar, z, root = work[0], work[1], work[2], work[3]
    p = L.shape[0]
    value, place = 0.0, 0
    L[0, 0] = 1.0
    bar[:] = 0.0
    for i in range(1, p):
        rest, rests = 1.0, 1.0
        for j in range(i):
            z[i, j] = np.tanh(y[place])
            root[i, j] = np.sqrt(rest)
            L[i, j] = z[i, j] * root[i, j]
            rests *= rest
            rest *= 1.0 - z[i, j] * z[i, j]
            place += 1
        L[i, i] = np.sqrt(rest)
        value += 0.5 * np.log(rests) + (1.0 + 0.5 * (p - 1 - i)) * np.log(rest)
        bar[i, i] = (p - 1 - i) / L[i, i]
    pair = 0
    for j in range(p):
        for k in range(j + 1, p):
            r = 0.0
            for a in range(j + 1):
                r += L[j, a] * L[k, a]
            lower = np.arccos(r)
            upper = np.pi - lower
            eta = 2.0 * np.log(upper / lower)
            low, high = offsets[pair], offsets[pair + 1] - 1
            while high - low > 1:
                middle = (low + high) // 2
                if cells[middle, 0] <= eta:
                    low = middle
                else:
                    high = middle
            s = (eta - cells[low, 0]) / cells[low, 1]
            c1, c2, c3, c4, c5 = cells[low, 3], cells[low, 4], cells[low, 5], cells[low, 6], cells[low, 7]
            value += cells[low, 2] + s * (c1 + s * (c2 + s * (c3 + s * (c4 + s * c5))))
            slope = (c1 + s * (2.0 * c2 + s * (3.0 * c3 + s * (4.0 * c4 + s * 5.0 * c5)))) / cells[low, 1]
            slope *= 2.0 * np.pi / (np.sqrt(1.0 - r * r) * lower * upper)
            for a in range(j + 1):
                bar[j, a] += slope * L[k, a]
                bar[k, a] += slope * L[j, a]
            pair += 1
    place = 0
    for i in range(1, p):
        later = bar[i, i] * L[i, i]
        for j in range(i - 1, -1, -1):
            own = bar[i, j] * (1.0 - z[i, j] * z[i, j]) * root[i, j]
            gradient[place + j] = own - z[i, j] * (later + i + 1 - j)
            later += bar[i, j] * L[i, j]
        place += i
    return value


@njit
def repeat(points, times, cells, offsets, work, gradient):
    """Evaluate density and gradient at all points, several times over."""
    total = 0.0
    for _ in range(times):
        for i in range(points.shape[0]):
            total += log_density(points[i], cells, offsets, work, gradient)
    return total


def our_gradient(points: np.ndarray, release: dps.Release, times: int = 1000) -> float:
    """Return CPU seconds of one density and gradient by the numba kernel."""
    table = tabulate(release)
    arguments = cells_of(table), table.offsets, np.zeros((4, release.p, release.p)), np.empty(release.m)
    repeat(points, 1, *arguments)
    began = time.process_time()
    repeat(points, times, *arguments)
    return (time.process_time() - began) / (times * len(points))


def stan_gradient(release: dps.Release, engine: str) -> float:
    """Return CPU seconds of a program's run over its leapfrog steps, each of which is one gradient."""
    table, seconds = nuts(release, engine, warmup=50, draws=50, save_warmup=True, max_depth=4)
    return seconds / table["n_leapfrog__"].sum()


def check_agreement(points: np.ndarray, release: dps.Release, engine: str) -> None:
    """Raise unless the program and the kernel have the same density and gradient."""
    module, data, table = compiled(engine), stan_data(release, engine), tabulate(release)
    work, gradient = np.zeros((4, release.p, release.p)), np.empty(release.m)
    for y in points[:5]:
        value = log_density(y, cells_of(table), table.offsets, work, gradient)
        np.testing.assert_allclose(module.log_prob(data, y.tolist(), True), value, rtol=1e-8)
        np.testing.assert_allclose(
            module.log_prob_grad(data, y.tolist(), True), gradient, rtol=1e-6, atol=1e-6
        )


def compare_draws() -> float:
    """Print effective draws per CPU second of both, and return their ratio."""
    release = simulated_release(5, 1000, 1.0)
    rates = {}
    for name, run in (
        ("stan/bayes_na.stan, NUTS", stan_rate),
        ("bayes_na, joint=False", our_rate),
        ("bayes_na, both posteriors", partial(our_rate, joint=True)),
    ):
        ess, seconds = run(release)
        rates[name] = ess / seconds
        print(f"  {name:26} {ess:6.0f} in {seconds:6.3f} s: {ess / seconds:8.0f} a second", flush=True)
    theirs, ours, _ = rates.values()
    return ours / theirs


def compare_gradients() -> float:
    """Print the cost of a gradient by both programs and by the kernel; return direct program over kernel."""
    release = simulated_release(7, 5820, 1.0)
    points = np.random.default_rng(1).uniform(-0.5, 0.5, (30, release.m))
    seconds = {}
    for engine, name in PROGRAMS.items():
        check_agreement(points, release, engine)
        seconds[f"stan/{name}"] = stan_gradient(release, engine)
    seconds["numba kernel on our tables"] = our_gradient(points, release)
    for name, each in seconds.items():
        print(f"  {name:30} {1e6 * each:8.1f} microseconds", flush=True)
    return seconds[f"stan/{PROGRAMS['stan-direct']}"] / seconds["numba kernel on our tables"]


def main() -> int:
    """Print both comparisons; return 1 where a claim does not hold."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    warnings.simplefilter("ignore", DeprecationWarning)  # httpstan calls what setuptools will remove
    try:
        for engine in PROGRAMS:
            compiled(engine)
    except ImportError:
        print("httpstan is not installed; it is in the development group of pyproject.toml")
        return 0
    held = True
    for title, compare, claim in (
        ("effective draws of the worst pair, p = 5, n = 1000", compare_draws, DRAWS_RATIO),
        ("one log density with its gradient, p = 7, n = 5820", compare_gradients, GRADIENT_RATIO),
    ):
        print(title)
        ratio = compare()
        held &= ratio >= claim
        print(f"  ratio {ratio:.0f} (claim: {claim:.0f}): {'holds' if ratio >= claim else 'DOES NOT HOLD'}")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
