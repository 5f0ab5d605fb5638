"""The Stan engine: command, cache, reading of output, errors and warnings; and Stan itself where there is a CmdStan.

CmdStan is in no package registry, so most of this drives cmdstanpy and make for real against a stand-in for
CmdStan: a folder whose makefile "compiles" a script that takes a model's arguments and writes Stan CSV.
"""

import json
import os
import stat
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from dpsurvey.copula import cmdstan
from dpsurvey.copula.bayes_na import bayes_na
from dpsurvey.copula.nuts import NutsFacts, energy_information, warn_of_trouble
from dpsurvey.copula.stan import collect, program, sampler_options, seed_for_stan
from dpsurvey.errors import (
    ConvergenceWarning,
    DivergenceWarning,
    DownloadError,
    EngineError,
    LowEnergyWarning,
    MissingDependencyError,
    MissingFileError,
    SlowMixingWarning,
)

cmdstanpy = pytest.importorskip("cmdstanpy", reason="the optional part `stan` is not installed")

MODEL = """#!{python}
import json, random, sys
here = {here!r}
arguments = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
with open(here + "/calls.jsonl", "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1:] == ["info"]:
    print("stan_version_major = 2\\nstan_version_minor = 36\\nstan_version_patch = 0")
    sys.exit()
words = sys.argv[1:]
after = lambda section: next(word[5:] for word in words[words.index(section):] if word.startswith("file="))
with open(after("data")) as file:
    data = json.load(file)
if {fails!r}:
    print("Exception: lkj_corr_cholesky_lpdf: no such thing")
    sys.exit(1)
p, generator = data["p"], random.Random(arguments["seed"] + arguments["id"])
pairs = [(j, k) for k in range(1, p + 1) for j in range(1, p + 1)]
with open(after("output"), "w") as file:
    file.write("# stan_version_major = 2\\n# stan_version_minor = 36\\n# stan_version_patch = 0\\n")
    file.write("# model = stand_in_model\\n# method = sample (Default)\\n#   sample\\n")
    for name in ("num_samples", "num_warmup"):
        file.write("#     " + name + " = " + arguments[name] + "\\n")
    file.write("#     save_warmup = false (Default)\\n#     thin = 1 (Default)\\n")
    file.write("#     algorithm = hmc (Default)\\n#       hmc\\n#             max_depth = 10\\n")
    file.write("#         metric = diag_e (Default)\\n")
    names = ["lp__", "accept_stat__", "stepsize__", "treedepth__", "n_leapfrog__", "divergent__", "energy__"]
    file.write(",".join(names + ["L.%d.%d" % pair for pair in pairs] + ["R.%d.%d" % pair for pair in pairs]) + "\\n")
    file.write("# Adaptation terminated\\n# Step size = 0.5\\n# Diagonal elements of inverse mass matrix:\\n# 1\\n")
    for _ in range(int(arguments["num_samples"])):
        r = generator.uniform(-0.5, 0.5) / p
        row = [generator.gauss(0, 1), 0.9, 0.5, 3, 7, 0, generator.gauss(0, 1)]
        row += [0.0] * len(pairs) + [1.0 if j == k else r for j, k in pairs]
        file.write(",".join(map(repr, row)) + "\\n")
    file.write("#\\n#  Elapsed Time: 0.1 seconds (Warm-up)\\n#                0.1 seconds (Sampling)\\n")
    file.write("#                0.2 seconds (Total)\\n#\\n")
"""


class StandIn:
    """A folder that cmdstanpy takes for CmdStan, and what was asked of it."""

    def __init__(self, path: Path) -> None:
        self.path, self.outside = path, path.parent / "outside"
        self.outside.mkdir()
        (path / "bin").mkdir(parents=True)
        self.write(version="2.36.0")

    def write(self, *, version: str, compiles: bool = True, fails: bool = False) -> None:
        model = self.outside / "model"
        model.write_text(MODEL.format(python=sys.executable, here=str(self.outside), fails=fails))
        model.chmod(0o755)
        recipe = f"cp {model} $@" if compiles else "echo 'fatal error: Eigen/Dense: No such file'; exit 1"
        (self.path / "makefile").write_text(
            f"CMDSTAN_VERSION := {version}\n% : %.stan\n\t@echo $@ >> {self.outside}/builds\n\t@{recipe}\n"
        )

    @property
    def builds(self) -> int:
        log = self.outside / "builds"
        return len(log.read_text().splitlines()) if log.exists() else 0

    @property
    def runs(self) -> list[list[str]]:
        calls = map(json.loads, (self.outside / "calls.jsonl").read_text().splitlines())
        return [call for call in calls if call != ["info"]]


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """A stand-in for CmdStan, and empty cache and temporary folders of the test's own."""
    monkeypatch.setenv("CMDSTAN", str(tmp_path / "cmdstan"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return StandIn(tmp_path / "cmdstan")


@pytest.fixture
def release(make_release):
    return make_release(("x", "y", "z"))


def fit(release, engine="stan", **options):
    return bayes_na(
        release, engine=engine, **{"draws": 300, "chains": 2, "seed": 1, "progress": False} | options
    )


def test_draws_come_back_as_a_posterior(release, stand_in):
    posterior = fit(release)
    assert posterior.draws.shape == (2, 300, 3, 3)
    assert posterior.engine == "stan"
    assert posterior.private
    facts = posterior.info
    assert facts["program"] == "bayes_na_tabulated.stan"
    assert facts["divergences"] == facts["deepest_trees"] == [0, 0]
    assert facts["leapfrogs"] == [2100, 2100]
    assert facts["versions"] == {"cmdstan": "2.36.0", "cmdstanpy": cmdstanpy.__version__}
    assert (posterior.draws[0] != posterior.draws[1]).any()


def test_the_command_says_what_was_asked(release, stand_in):
    facts = fit(release, draws=400, chains=3).info
    assert len(stand_in.runs) == 3
    for chain, words in enumerate(sorted(stand_in.runs), start=1):
        assert f"id={chain}" in words
        assert f"seed={facts['stan_seed']}" in words
        assert {"num_samples=400", "num_warmup=1000", "max_depth=10", "sig_figs=17"} <= set(words)


@pytest.mark.parametrize("engine", ["stan", "stan-direct"])
def test_each_engine_runs_its_program(release, stand_in, engine):
    assert fit(release, engine).info["program"] == program(engine).name
    assert (stand_in.outside / "builds").read_text().strip().endswith(program(engine).stem)


def test_the_seed_makes_draws_reproducible(release, stand_in):
    first, again, other = fit(release), fit(release), fit(release, seed=2)
    assert np.array_equal(first.draws, again.draws)
    assert not np.array_equal(first.draws, other.draws)
    unseeded = fit(release, seed=None)
    assert unseeded.seed is None
    assert unseeded.info["stan_seed"] != first.info["stan_seed"]


def test_seeds_are_those_that_stan_takes():
    seeds = [seed_for_stan(seed) for seed in (0, 1, 2**70, None)]
    assert all(1 <= seed <= 2**31 for seed in seeds)


def test_no_output_file_stays(release, stand_in, tmp_path):
    fit(release)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_programs_are_compiled_once_for_each_code_and_cmdstan(release, stand_in):
    fit(release)
    fit(release)
    assert stand_in.builds == 1
    stand_in.write(version="2.37.0")
    fit(release)
    assert stand_in.builds == 2


def test_the_cache_depends_on_code_version_and_folder(tmp_path, stand_in):
    text = program("stan").read_text()
    other = tmp_path / "bayes_na_tabulated.stan"
    other.write_text(text + "\n")
    found = cmdstan.find_cmdstan()
    assert found == cmdstan.CmdStan(stand_in.path, "2.36.0")
    elsewhere = cmdstan.CmdStan(tmp_path, "2.36.0")
    newer = cmdstan.CmdStan(stand_in.path, "2.36.1")
    paths = {
        cmdstan.cached_path(source, installed)
        for source in (program("stan"), other)
        for installed in (found, elsewhere, newer)
    }
    assert len(paths) == 6
    assert all(path.is_relative_to(tmp_path / "cache") for path in paths)


def test_neither_cmdstan_nor_the_package_is_written_to(release, stand_in):
    def contents(folder):
        return {path: path.stat().st_mtime_ns for path in [folder, *folder.rglob("*")]}

    folders = stand_in.path, program("stan").parent
    before = [contents(folder) for folder in folders]
    mode = stat.S_IMODE(stand_in.path.stat().st_mode)
    stand_in.path.chmod(0o555)
    try:
        fit(release)
    finally:
        stand_in.path.chmod(mode)
    assert [contents(folder) for folder in folders] == before


def test_a_program_that_does_not_compile(release, stand_in, tmp_path):
    stand_in.write(version="2.36.0", compiles=False)
    with pytest.raises(EngineError, match=r"could not compile bayes_na_tabulated.stan") as caught:
        fit(release)
    assert "Eigen/Dense: No such file" in str(caught.value)
    assert "engine='gibbs'" in caught.value.hint
    assert list((tmp_path / "tmp").iterdir()) == []
    stand_in.write(version="2.36.0")  # mended: nothing of the failure was kept
    assert fit(release).p == 3


def test_a_cache_that_cannot_be_written(release, stand_in, tmp_path):
    (tmp_path / "cache").write_text("a file, not a folder")
    with pytest.raises(MissingFileError, match="compiled programs cannot be kept") as caught:
        fit(release)
    assert "XDG_CACHE_HOME" in caught.value.hint


def test_a_chain_that_fails(release, stand_in, tmp_path):
    stand_in.write(version="2.36.0", fails=True)
    with pytest.raises(EngineError, match="Stan stopped") as caught:
        fit(release)
    assert "no such thing" in str(caught.value)
    assert str(tmp_path / "tmp") not in str(caught.value)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_no_cmdstan(release, tmp_path, monkeypatch):
    monkeypatch.delenv("CMDSTAN", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(MissingDependencyError, match="CmdStan is not installed") as caught:
        fit(release)
    assert "dpsurvey doctor --install-cmdstan" in caught.value.hint
    assert "engine='gibbs' needs no installation and draws from the same posterior" in caught.value.hint


def test_a_variable_that_names_no_cmdstan(release, tmp_path, monkeypatch):
    monkeypatch.setenv("CMDSTAN", str(tmp_path / "nowhere"))
    with pytest.raises(MissingDependencyError, match="the folder that CMDSTAN names is no CmdStan") as caught:
        fit(release)
    assert caught.value.got == f"CMDSTAN={tmp_path / 'nowhere'}"


def test_no_cmdstanpy(release, monkeypatch):
    monkeypatch.setitem(sys.modules, "cmdstanpy", None)
    with pytest.raises(MissingDependencyError, match="cmdstanpy is not installed") as caught:
        fit(release)
    assert "pip install 'dpsurvey[stan]'" in caught.value.expected


def test_an_installation_without_a_network(tmp_path, monkeypatch):
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nothing answers there
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DownloadError, match="CmdStan was not installed") as caught:
        cmdstan.install_cmdstan(progress=False, version="2.36.0", dir=str(tmp_path / "into"))
    assert "engine='gibbs'" in caught.value.hint
    assert Path.cwd() == tmp_path


def write_chain(path: Path, rows: list[list[float]]) -> None:
    """Write what a chain of a program with R, p = 2, would write: columns by columns."""
    header = (
        "lp__,accept_stat__,stepsize__,treedepth__,n_leapfrog__,divergent__,energy__,R.1.1,R.2.1,R.1.2,R.2.2"
    )
    lines = [
        "# stan_version_major = 2",
        "# stan_version_minor = 36",
        "# stan_version_patch = 0",
        "# model = bayes_na_model",
        "# method = sample (Default)",
        "#   sample",
        f"#     num_samples = {len(rows)}",
        "#     num_warmup = 1000 (Default)",
        "#     save_warmup = false (Default)",
        "#     thin = 1 (Default)",
        "#     algorithm = hmc (Default)",
        "#       hmc",
        "#         engine = nuts (Default)",
        "#           nuts",
        "#             max_depth = 10 (Default)",
        "#         metric = diag_e (Default)",
        header,
        "# Adaptation terminated",
        "# Step size = 0.8",
        "# Diagonal elements of inverse mass matrix:",
        "# 0.9",
        *(",".join(f"{value:.17g}" for value in row) for row in rows),
        "# ",
        "#  Elapsed Time: 0.01 seconds (Warm-up)",
        "#                0.01 seconds (Sampling)",
        "#                0.02 seconds (Total)",
        "# ",
    ]
    path.write_text("\n".join(lines) + "\n")


def test_output_is_read_column_by_column(tmp_path):
    third = 1 / 3
    chains = [
        [[-1, 0.9, 0.8, 2, 3, 0, 1.0, 1, third, third, 1], [-2, 0.9, 0.8, 10, 1023, 1, 2.0, 1, 0.5, 0.5, 1]],
        [[-3, 0.9, 0.8, 1, 1, 0, 3.0, 1, -0.5, -0.5, 1], [-4, 0.9, 0.8, 2, 3, 0, 3.0, 1, 0.0, 0.0, 1]],
    ]
    files = [tmp_path / f"chain_{chain}.csv" for chain in (1, 2)]
    for path, rows in zip(files, chains, strict=True):
        write_chain(path, rows)
    with cmdstanpy.disable_logging():
        draws, facts = collect(cmdstanpy.from_csv([str(path) for path in files]), 2)
    assert draws[..., 0, 1].tolist() == [[third, 0.5], [-0.5, 0.0]]  # to the last digit
    np.testing.assert_array_equal(draws, np.swapaxes(draws, -1, -2))
    assert facts == NutsFacts(
        divergences=[1, 0], deepest_trees=[1, 0], e_bfmi=[2.0, None], leapfrogs=[1026, 4]
    )


def test_options_never_ask_for_more_chains_at_once_than_there_are_cores():
    assert sampler_options(10, 1)["parallel_chains"] == 1
    assert sampler_options(10, 10_000)["parallel_chains"] <= (os.cpu_count() or 1)


GOOD = NutsFacts(divergences=[0, 0], deepest_trees=[0, 0], e_bfmi=[1.0, 0.9], leapfrogs=[7, 7])


def independent_draws(chains=2, draws=1000, shift=0.0):
    rng = np.random.default_rng(1)
    r = 0.3 * rng.uniform(-1, 1, (chains, draws)) + shift * np.arange(chains)[:, None]
    R = np.broadcast_to(np.eye(2), (chains, draws, 2, 2)).copy()
    R[..., 0, 1] = R[..., 1, 0] = r
    return R


def test_good_chains_pass_in_silence():
    warn_of_trouble(independent_draws(), GOOD)  # warnings are errors here


@pytest.mark.parametrize(
    ("facts", "kind", "words"),
    [
        ({"divergences": [0, 3]}, DivergenceWarning, "3 of 2000 transitions diverged.*engine='gibbs'"),
        ({"e_bfmi": [0.9, 0.12]}, LowEnergyWarning, "E-BFMI of a chain is 0.12, below 0.3.*more draws"),
        ({"deepest_trees": [5, 0]}, SlowMixingWarning, "5 of 2000 trajectories reached the greatest length"),
    ],
)
def test_trajectories_in_trouble(facts, kind, words):
    with pytest.warns(kind, match=words):
        warn_of_trouble(independent_draws(), NutsFacts(**(GOOD.to_dict() | facts)))


def test_chains_that_disagree():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_trouble(independent_draws(shift=0.5), GOOD)
    assert {warning.category for warning in caught} == {ConvergenceWarning, SlowMixingWarning}
    assert "R-hat of a correlation is" in str(caught[0].message)


@pytest.mark.parametrize("draws", [3, 60])
def test_too_few_draws(draws):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_trouble(independent_draws(chains=1, draws=draws), NutsFacts([0], [0], [None], [7]))
    assert SlowMixingWarning in {warning.category for warning in caught}


def test_chains_that_stand_still():
    still = np.broadcast_to(np.array([[1, 0.5], [0.5, 1]]), (2, 500, 2, 2))
    with pytest.warns(SlowMixingWarning, match="0 effective draws"):
        warn_of_trouble(still, GOOD)


def test_a_warning_points_at_the_call(release, stand_in):
    with pytest.warns(SlowMixingWarning) as caught:
        bayes_na(release, engine="stan", draws=20, chains=1, seed=1, progress=False)
    assert caught[0].filename == __file__


def test_energy_information_of_independent_energies_is_2():
    assert energy_information(np.random.default_rng(1).standard_normal(100_000)) == pytest.approx(
        2.0, abs=0.03
    )
    assert energy_information(np.ones(5)) is None
    assert energy_information(np.ones(1)) is None


@pytest.mark.real_cmdstan
@pytest.mark.parametrize("engine", ["stan", "stan-direct"])
def test_stan_draws_from_the_same_posterior_as_gibbs(make_release, engine):
    try:
        cmdstan.find_cmdstan()
    except MissingDependencyError as error:
        pytest.skip(f"{error.detail}; it is in no package registry")
    release = make_release(("x", "y", "z"), n=101, counts=(42, 36, 38), epsilon=3.0)
    drawn, expected = (
        bayes_na(release, engine=name, draws=1000, chains=4, seed=1, progress=False)
        for name in (engine, "gibbs")
    )
    a, b = drawn.summary(), expected.summary()
    error = np.sqrt(a["sd"] ** 2 / a["ess_bulk"] + b["sd"] ** 2 / b["ess_bulk"])
    assert (np.abs(a["mean"] - b["mean"]) < 4 * error).all()
    np.testing.assert_allclose(a["sd"], b["sd"], rtol=0.08)
    assert drawn.info["divergences"] == [0, 0, 0, 0]
