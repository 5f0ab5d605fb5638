"""The paper's own route to the posterior: its model in Stan, drawn from by NUTS through CmdStan."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsurvey.copula.cmdstan import WITHOUT_IT, executable, find_cmdstan, load_cmdstanpy
from dpsurvey.copula.likelihood import tabulate
from dpsurvey.copula.nuts import NutsFacts, nuts_facts, warn_of_trouble
from dpsurvey.copula.quadrant import QuadrantLaw
from dpsurvey.copula.threads import available_cores
from dpsurvey.errors import ArgumentError, EngineError
from dpsurvey.privacy.release import Release
from dpsurvey.resources import resource

PROGRAMS = {"stan": "bayes_na_tabulated.stan", "stan-direct": "bayes_na.stan"}
WARMUP = 1000  # iterations of each chain, Stan's own choice
MAX_DEPTH = 10  # of the trees of NUTS, likewise
_TAIL = 15  # lines of what a failed chain said that an error shows
_DIGITS = 17  # in Stan's output: as many as a double has


def sample(
    release: Release, *, engine: str, draws: int, chains: int, seed: int | None, progress: bool = False
) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """Draw correlation matrices from the posterior with Stan; chains run in processes side by side.

    Parameters
    ----------
    release : Release
    engine : {"stan", "stan-direct"}
        The likelihood from our tables, or summed over all true counts at every step, as the paper writes it:
        slower by a factor of hundreds.
    draws, chains : int
        Kept draws of each chain, after 1000 iterations of warm-up, and number of chains.
    seed : int or None
    progress : bool
        Show a progress bar for each chain.

    Returns
    -------
    draws : numpy.ndarray of float64, shape (chains, draws, p, p)
    info : dict
        ``program``, ``warmup``, ``stan_seed``, ``divergences``, ``deepest_trees``, ``e_bfmi``, ``leapfrogs``
        (each a number for each chain) and ``versions``.

    Raises
    ------
    MissingDependencyError
        If cmdstanpy or CmdStan is not installed.
    EngineError
        If the program does not compile, or a chain fails.

    Warns
    -----
    DivergenceWarning, LowEnergyWarning, ConvergenceWarning, SlowMixingWarning
        If the diagnostics of the chains give reason to; see :mod:`dpsurvey.copula.nuts`.
    """
    cmdstanpy, cmdstan = load_cmdstanpy(), find_cmdstan()
    model_file = executable(program(engine), cmdstan, progress=progress)
    stan_seed = seed_for_stan(seed)
    with tempfile.TemporaryDirectory(prefix="dpsurvey-stan-") as folder, cmdstanpy.disable_logging():
        data = Path(folder) / "data.json"
        cmdstanpy.write_stan_json(str(data), program_data(release, engine))
        try:
            fit = cmdstanpy.CmdStanModel(exe_file=str(model_file)).sample(
                data=str(data),
                output_dir=folder,
                seed=stan_seed,
                show_progress=progress,
                **sampler_options(draws, chains),
            )
            matrices, facts = collect(fit, release.p)
        except (RuntimeError, ValueError, OSError) as error:
            raise EngineError(
                "Stan stopped before its chains were done", got=_said(error, Path(folder)), hint=WITHOUT_IT
            ) from None
    warn_of_trouble(matrices, facts)
    info = {
        "program": PROGRAMS[engine],
        "warmup": WARMUP,
        "stan_seed": stan_seed,
        **facts.to_dict(),
        "versions": {"cmdstan": cmdstan.version, "cmdstanpy": cmdstanpy.__version__},
    }
    return matrices, info


def program(engine: str) -> Path:
    """Return the path of an engine's Stan program.

    Examples
    --------
    >>> program("stan-direct").name
    'bayes_na.stan'
    """
    return resource("stan", PROGRAMS[engine])


def program_data(release: Release, engine: str) -> dict[str, Any]:
    """Return the data of an engine's program, under the names of its data block.

    Parameters
    ----------
    release : Release
    engine : {"stan", "stan-direct"}

    Returns
    -------
    dict
        "stan-direct": ``n``, ``p`` and ``log_noise``, shape (m, floor(n/2) + 1), log Pr(t_tilde | t) for every
        possible true count t. "stan": ``p`` and the tables: ``N`` nodes in all, ``start``, shape (m + 1,), where
        each pair's begin, counted from 1, ``node``, shape (N,), and ``jet``, shape (N, 3).
    """
    if engine == "stan-direct":
        if release.statistic != QuadrantLaw.statistic:
            raise ArgumentError(
                "the paper's program sums over quadrant counts",
                expected="a release of quadrant counts for engine='stan-direct'",
                got=f"{release.statistic} counts",
                hint="engine='stan' or 'gibbs' takes any release",
            )
        law, noise = QuadrantLaw(release.n), release.noise_law()
        log_noise = [noise.marginal(i).log_pmf(float(t), law.support) for i, t in enumerate(release.counts)]
        return {"n": release.n, "p": release.p, "log_noise": np.array(log_noise)}
    table = tabulate(release)
    return {
        "p": release.p,
        "N": len(table.nodes),
        "start": table.offsets + 1,
        "node": table.nodes,
        "jet": table.jets,
    }


def sampler_options(draws: int, chains: int) -> dict[str, Any]:
    """Return what cmdstanpy is asked for besides data, seed and folder."""
    return {
        "chains": chains,
        "parallel_chains": min(chains, available_cores()),
        "iter_warmup": WARMUP,
        "iter_sampling": draws,
        "max_treedepth": MAX_DEPTH,
        "sig_figs": _DIGITS,
    }


def seed_for_stan(seed: int | None) -> int:
    """Return a seed that Stan takes, 1 to 2**31, as a function of `seed`; a random one for None.

    Examples
    --------
    >>> seed_for_stan(1) == seed_for_stan(1), seed_for_stan(1) == seed_for_stan(2)
    (True, False)
    """
    return int(np.random.SeedSequence(seed).generate_state(1)[0]) // 2 + 1


def collect(fit: Any, p: int) -> tuple[NDArray[np.float64], NutsFacts]:
    """Return draws and facts about the sampler from Stan's output.

    Parameters
    ----------
    fit : cmdstanpy.CmdStanMCMC
        Of a program that generates R.
    p : int

    Returns
    -------
    draws : numpy.ndarray of float64, shape (chains, draws, p, p)
    facts : NutsFacts
    """
    values = np.swapaxes(fit.draws(), 0, 1)  # chain, draw, column
    position = {name: i for i, name in enumerate(fit.column_names)}
    columns = [[position[f"R[{j},{k}]"] for k in range(1, p + 1)] for j in range(1, p + 1)]
    return np.ascontiguousarray(values[:, :, columns]), nuts_facts(values, position, MAX_DEPTH)


def _said(error: Exception, folder: Path) -> str:
    """Return the end of what a chain that failed has said, or else of the error."""
    said = [path.read_text(errors="replace").strip() for path in sorted(folder.glob("*stdout*.txt"))]
    text = next((chain for chain in said if chain), str(error).strip())
    return "\n" + "\n".join(text.replace(f"{folder}/", "").splitlines()[-_TAIL:])
