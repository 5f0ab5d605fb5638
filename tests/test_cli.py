"""The command line, run for real on the example files: what it writes, what it refuses, what it never says."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pandas as pd
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import dpsurvey as dps
from dpsurvey.cli import app
from dpsurvey.copula.bayes_na import ENGINES
from dpsurvey.privacy.mechanisms import MECHANISMS

RUNNER = CliRunner()
FILES = [str(path) for path in dps.example_files()]
COLUMNS = "DR1TKCAL=Kcal,INDFMPIR=Income,BMXBMI=BMI,LBDHDD=HDL"
NAMES = ("Kcal", "Income", "BMI", "HDL")
ADULTS = ["--on", "SEQN", "--columns", COLUMNS, "--where", "RIDAGEYR >= 20", "--complete"]
CANARY = "98765432123"


def commands(group, path=()):
    """Yield the words of every command there is, so that new ones are held to the same."""
    for name, command in group.commands.items():
        yield from commands(command, (*path, name)) if hasattr(command, "commands") else [[*path, name]]


COMMANDS = list(commands(get_command(app)))


def run(*arguments):
    """Run the command line in this process."""
    return RUNNER.invoke(app, [str(argument) for argument in arguments])


def run_python(*arguments, cwd=None):
    """Run it in a process of its own."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=cwd)


def refused(result, text, code=1):
    """Assert that a command ended in words: the code, a reason on stderr, and no traceback."""
    assert result.exit_code == code, result.output
    assert text in result.stderr
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)


def new_ledger(path, budget=2):
    result = run("ledger", "create", path, "--dataset", "adults", "--budget", budget)
    assert result.exit_code == 0, result.output
    return path


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with a ledger, a release, a posterior and an estimate, all made by the command line."""
    folder = tmp_path_factory.mktemp("cli")
    new_ledger(folder / "l.json")
    made = run(
        "release", *FILES, *ADULTS, "--epsilon", 1, "--ledger", folder / "l.json", "-o", folder / "r.json"
    )
    assert made.exit_code == 0, made.output
    (folder / "release.stdout").write_text(made.stdout)
    (folder / "release.stderr").write_text(made.stderr)
    for name, estimator in (("out.npz", "bayes-na"), ("mle.npz", "mle-nn")):
        fitted = run("fit", folder / "r.json", "--estimator", estimator, "-o", folder / name)
        assert fitted.exit_code == 0, fitted.output
    return folder


# --- help, version, usage


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself_with_an_example(command):
    result = run(*command, "--help")
    assert result.exit_code == 0
    examples = result.stdout.split("For example:\n")[1]
    assert (
        f"    dpsurvey {' '.join(command)}" in examples
    )  # on a line of its own, not wrapped into a paragraph


def test_help_lists_the_commands_and_exit_codes():
    text = run("--help").stdout
    assert all(f"\n  {command[0]} " in text for command in COMMANDS)
    assert "Exit codes: 0 done; 1 refused or failed" in text


@pytest.mark.parametrize(("command", "names"), [("release", tuple(MECHANISMS)), ("fit", ENGINES)])
def test_help_names_every_mechanism_and_engine(command, names):
    text = " ".join(run(command, "--help").stdout.split())
    assert all(name in text for name in names)


def test_help_imports_nothing_heavy():
    heavy = [
        "scipy",
        "numba",
        "opendp",
        "statsmodels",
        "pyreadstat",
        "matplotlib",
        "arviz_stats",
        "xarray",
        "rpy2",
    ]
    code = (
        "import sys; from dpsurvey.cli import app; sys.argv = ['dpsurvey', 'release', '--help']\n"
        f"try: app()\nexcept SystemExit: print('loaded:', [name for name in {heavy} if name in sys.modules])"
    )
    assert "loaded: []" in run_python("-c", code).stdout


def test_version():
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"dpsurvey {dps.__version__}\n")


def test_module_and_script_are_the_same_door():
    module = run_python("-m", "dpsurvey", "--version")
    script = subprocess.run(
        [Path(sys.executable).with_name("dpsurvey"), "--version"], capture_output=True, text=True, check=True
    )
    assert module.stdout == script.stdout == f"dpsurvey {dps.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["relase"],
        ["fit"],
        ["fit", "r.json", "--estimator", "mle"],
        ["fit", "r.json", "--draws", "many"],
        ["release", "a.csv", "-o", "r.json"],
        ["release", "a.csv", "--epsilon", "1"],
        ["release", "a.csv", "--epsilon", "one", "-o", "r.json"],
        ["release", "a.csv", "--epsilon", "1", "-o", "r.json", "--columns", "A,,B"],
        ["release", "a.csv", "--epsilon", "1", "-o", "r.json", "--columns", "A=x,A=y"],
        ["release", "a.csv", "--epsilon", "1", "-o", "r.json", "--column", "A="],
        ["inspect", "a.csv", "--missing", "A=7,,9"],
        ["inspect", "a.csv", "--format", "xml"],
        ["plot", "a.npz", "-o", "f.png", "--kind", "pie"],
        ["ledger", "create", "l.json", "--dataset", "d"],
    ],
    ids=lambda arguments: " ".join(arguments) or "nothing",
)
def test_wrong_usage_is_exit_code_2(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(run(*arguments), "Usage: ", code=2)
    assert list(tmp_path.iterdir()) == []


# --- inspect


def test_inspect_shows_the_codebook_and_nothing_of_the_rows():
    result = run("inspect", *FILES)
    assert result.exit_code == 0
    assert "Ratio of family income to poverty" in result.stdout
    assert "kg/m**2" in result.stdout
    assert "onfidential" not in result.output


def test_inspect_writes_csv_and_json():
    book = dps.codebook(*FILES)
    as_csv = pd.read_csv(io.StringIO(run("inspect", *FILES, "--format", "csv").stdout), keep_default_na=False)
    assert as_csv["label"].tolist() == [variable.label for variable in book.variables]
    as_json = json.loads(run("inspect", *FILES, "--format", "json").stdout)
    assert [row["variable"] for row in as_json] == [variable.name for variable in book.variables]


def test_inspect_preflights_chosen_columns_and_says_that_this_is_confidential():
    result = run("inspect", *FILES, "--on", "SEQN", "--columns", COLUMNS, "--where", "RIDAGEYR >= 20")
    assert result.exit_code == 0
    assert "Confidential: for the data holder, outside the privacy guarantee" in result.stdout
    assert "problem [missing] column 'Income': 697 of 5,265 cells are missing" in result.stdout
    assert "rows kept by the rule: 5,265" in result.stdout


def test_inspect_warns_of_columns_nobody_named():
    result = run("inspect", *FILES, "--on", "SEQN")
    assert "warning [nominal] column 'RIAGENDR'" in result.stdout
    named = run("inspect", *FILES, "--on", "SEQN", "--columns", "RIAGENDR,BMXBMI")
    assert "[nominal]" not in named.stdout


def test_inspect_preflight_in_csv_and_json():
    chosen = ["inspect", *FILES, *ADULTS]
    as_csv = run(*chosen, "--format", "csv")
    table = pd.read_csv(io.StringIO(as_csv.stdout)).set_index("variable")
    assert table.index.tolist() == list(NAMES)
    assert table["missing"].tolist() == [0, 0, 0, 0]
    assert table.loc["BMI", "unit"] == "kg/m**2"
    assert "confidential: exact counts of rows" in as_csv.stderr
    assert "3,934 of 5,265 rows are complete" in as_csv.stderr
    answer = json.loads(run(*chosen, "--format", "json").stdout)
    assert answer["preflight"]["ok"] is True
    assert answer["preflight"]["rows"] == 3934
    assert "confidential" in answer["preflight"]["note"]
    assert answer["variables"][0]["label"] == "Energy (kcal)"


def test_inspect_csv_puts_findings_on_stderr():
    result = run("inspect", *FILES, "--on", "SEQN", "--columns", COLUMNS, "--format", "csv")
    assert "problem [missing] Income: 1,034 of 8,366 cells are missing" in result.stderr
    assert len(list(csv.reader(io.StringIO(result.stdout)))) == 5


def test_missing_codes_and_rounding_reach_the_reader(tmp_path):
    rows = {
        "id": [1, 2, 3, 4, 5],
        "DIQ010": [1, 2, 9, 7, 1],
        "SMD650": [1, 777, 3, 4, 5],
        "x": [0.1234, 1, 2, 3, 4],
    }
    pd.DataFrame(rows).to_csv(tmp_path / "a.csv", index=False)
    options = [
        "--on",
        "id",
        "--missing",
        "DIQ010=7,9",
        "--missing",
        "SMD650",
        "--round-to",
        2,
        "--format",
        "json",
    ]
    answer = json.loads(run("inspect", tmp_path / "a.csv", *options).stdout)
    missing = {row["variable"]: row["missing"] for row in answer["preflight"]["columns"]}
    assert missing == {"DIQ010": 2, "SMD650": 1, "x": 0}
    assert {row["variable"]: row["missing_codes"] for row in answer["variables"]}["DIQ010"] == "7.0, 9.0"
    refused(run("inspect", tmp_path / "a.csv", "--missing", "x"), "[DPS103] unknown name")


# --- release


def test_release_writes_a_release_with_everything_declared(work):
    release = dps.Release.load(work / "r.json")
    assert release.variables == NAMES
    assert (release.n, release.epsilon, release.secure, release.mechanism) == (3934, 1.0, True, "linf")
    assert release.filters == ("RIDAGEYR >= 20", f"complete rows on {', '.join(NAMES)}")
    assert release.labels["BMI"] == "Body Mass Index (kg/m**2)"
    assert release.ledger["dataset"] == "adults"


def test_release_keeps_public_and_confidential_text_apart(work):
    public, confidential = (work / "release.stdout").read_text(), (work / "release.stderr").read_text()
    assert dps.Release.load(work / "r.json").statement() in public
    assert "remaining 1" in public
    assert "Rows lost" not in public
    assert "3,934 of 5,265 rows are complete" in confidential
    assert "confidential: for the data holder" in confidential
    assert "5265" not in public.replace(",", "")


def test_release_takes_columns_one_by_one_and_another_mechanism(tmp_path):
    pd.DataFrame({"id": range(8), "Fat, total": range(8), "y": [3, 1, 2, 5, 4, 7, 6, 0]}).to_csv(
        tmp_path / "a.csv", index=False
    )
    new_ledger(tmp_path / "l.json")
    options = ["--on", "id", "--column", "Fat, total=Fat", "--column", "y", "--mechanism", "rgm"]
    target = tmp_path / "r.json"
    result = run(
        "release",
        tmp_path / "a.csv",
        *options,
        "--epsilon",
        0.5,
        "--ledger",
        tmp_path / "l.json",
        "-o",
        target,
    )
    assert result.exit_code == 0, result.output
    release = dps.Release.load(target)
    assert (release.variables, release.mechanism, release.epsilon) == (("Fat", "y"), "rgm", 0.5)


def test_release_without_a_ledger_warns_in_one_line(tmp_path):
    result = run("release", *FILES, *ADULTS, "--epsilon", 1, "-o", tmp_path / "r.json")
    assert result.exit_code == 0
    lines = [line for line in result.stderr.splitlines() if "warning" in line]
    assert len(lines) == 1
    assert lines[0].startswith("warning: no ledger: nothing keeps count")


def test_a_large_epsilon_warns(tmp_path):
    new_ledger(tmp_path / "l.json", 100)
    target = tmp_path / "r.json"
    result = run("release", *FILES, *ADULTS, "--epsilon", 11, "--ledger", tmp_path / "l.json", "-o", target)
    assert result.exit_code == 0
    assert "warning: epsilon = 11 is above 10" in result.stderr


REFUSALS = {
    "over budget": ([*ADULTS, "--epsilon", "3"], "requested epsilon 3.0, remaining 2"),
    "epsilon 0": ([*ADULTS, "--epsilon", "0"], "epsilon must be finite and above 0"),
    "epsilon nan": ([*ADULTS, "--epsilon", "nan"], "epsilon must be finite and above 0"),
    "epsilon negative": ([*ADULTS, "--epsilon", "-1"], "epsilon must be finite and above 0"),
    "mechanism": ([*ADULTS, "--epsilon", "1", "--mechanism", "gauss"], "no such mechanism"),
    "unknown column": (
        ["--on", "SEQN", "--columns", "bmxbmi,LBDHDD", "--epsilon", "1"],
        "did you mean 'BMXBMI'?",
    ),
    "unknown id": (
        ["--on", "SEQ", "--columns", "BMXBMI,LBDHDD", "--epsilon", "1"],
        "1 column not in DEMO_J.xpt: 'SEQ'",
    ),
    "no id": (["--columns", "BMXBMI,LBDHDD", "--epsilon", "1"], "several files are merged on an id"),
    "one column": (["--on", "SEQN", "--columns", "BMXBMI", "--complete", "--epsilon", "1"], "[DPS"),
    "missing cells": (
        ["--on", "SEQN", "--columns", COLUMNS, "--epsilon", "1"],
        "column 'Income': 1034 missing cell(s)",
    ),
    "rule": ([*ADULTS[:4], "--where", "RIDAGEYR >=", "--epsilon", "1"], "the rule in where cannot be parsed"),
    "rule across rows": (
        [*ADULTS[:4], "--where", "BMXBMI > BMXBMI.mean()", "--epsilon", "1"],
        "a function that may look across rows",
    ),
    "nobody named them": (
        ["--on", "SEQN", "--complete", "--epsilon", "1"],
        "'RIAGENDR': its codes have no order",
    ),
    "rounding": ([*ADULTS, "--round-to", "99", "--epsilon", "1"], "round_to is out of range"),
    "member": ([*ADULTS, "--member", "DEMOX", "--epsilon", "1"], "[DPS103] unknown name"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_release_refuses_costs_nothing(case, tmp_path):
    options, reason = REFUSALS[case]
    ledger = new_ledger(tmp_path / "l.json")
    before = ledger.read_text()
    refused(run("release", *FILES, *options, "--ledger", ledger, "-o", tmp_path / "r.json"), reason)
    assert ledger.read_text() == before
    assert not (tmp_path / "r.json").exists()


def test_a_file_that_is_not_there_is_named_with_its_neighbours(tmp_path):
    shutil.copy(FILES[2], tmp_path / "BMX_J.xpt")
    result = run("release", tmp_path / "BMX.xpt", "--epsilon", 1, "-o", tmp_path / "r.json")
    refused(result, "did you mean 'BMX_J.xpt'?")


def test_a_ledger_that_is_not_there_stops_the_release(tmp_path):
    result = run(
        "release",
        *FILES,
        *ADULTS,
        "--epsilon",
        1,
        "--ledger",
        tmp_path / "no.json",
        "-o",
        tmp_path / "r.json",
    )
    refused(result, "no ledger at")
    assert not (tmp_path / "r.json").exists()


@pytest.mark.parametrize("kind", ["release", "other file", "dangling link", "folder", "no such folder"])
def test_an_output_that_cannot_be_written_is_refused_before_anything_is_spent(kind, work, tmp_path):
    ledger = new_ledger(tmp_path / "l.json")
    target = tmp_path / "r.json"
    if kind == "release":
        shutil.copy(work / "r.json", target)
    elif kind == "other file":
        target.write_text("mine")
    elif kind == "dangling link":
        target.symlink_to(tmp_path / "nowhere")
    elif kind == "folder":
        target.mkdir()
    else:
        target = tmp_path / "none" / "r.json"
    before, content = ledger.read_text(), target.read_bytes() if target.is_file() else None
    result = run("release", *FILES, *ADULTS, "--epsilon", 1, "--ledger", ledger, "-o", target)
    refused(result, "cannot write" if kind == "no such folder" else "exists already and is not overwritten")
    assert ledger.read_text() == before
    assert "complete" not in result.output  # it did not even read the rows
    assert content is None or target.read_bytes() == content
    assert not [path for path in tmp_path.iterdir() if path.name.endswith((".part", ".probe"))]


@pytest.mark.parametrize("happens", ["folder goes", "file comes"])
def test_a_release_that_cannot_be_saved_after_all_is_printed(happens, tmp_path, monkeypatch):
    from dpsurvey.confidential import disclose

    ledger, target = new_ledger(tmp_path / "l.json"), tmp_path / "sub" / "r.json"
    target.parent.mkdir()
    count = disclose.discordant_counts

    def disturbed(*arguments, **options):
        if happens == "folder goes":
            shutil.rmtree(target.parent)
        else:
            target.write_text("another process's release")
        return count(*arguments, **options)

    monkeypatch.setattr(disclose, "discordant_counts", disturbed)
    result = run("release", *FILES, *ADULTS, "--epsilon", 1, "--ledger", ledger, "-o", target)
    refused(result, "could not be saved as 'r.json', and epsilon is spent")
    rescued = dps.Release.from_dict(json.loads(result.stdout))
    assert rescued.variables == NAMES
    assert "remaining 1" in run("ledger", "show", ledger).stdout
    assert happens == "folder goes" or target.read_text() == "another process's release"


# --- no values


def canary_tables(folder):
    """Files whose confidential rows hold the canary, each with something wrong."""
    good = {"id": [1, 2, 3, 4, 5], "x": [1.0, 2, 3, 4, int(CANARY)], "y": [2.0, 1, 4, 3, 5]}
    tables = {
        "text": good | {"y": ["1", "2", "3", "4", f"v{CANARY}"]},
        "repeated id": good | {"id": [1, 2, 3, int(CANARY), int(CANARY)]},
        "fraction of an id": good | {"id": [1, 2, 3, 4, float(f"{CANARY}.5")]},
        "missing cell": good | {"y": [int(CANARY), 1.0, None, 4, 5]},
        "infinite": good | {"y": [int(CANARY), 1.0, float("inf"), 4, 5]},
        "repeated text id": good | {"id": ["a", "b", "c", f"p{CANARY}", f"p{CANARY}"]},
        "dates": good | {"y": ["2020-01-01", "2020-01-02", CANARY, "x", "y"]},
        "too few rows": {name: values[-2:] for name, values in good.items()},
    }
    for name, table in tables.items():
        path = folder / f"{name}.csv"
        pd.DataFrame(table).to_csv(path, index=False)
        yield path
    broken = folder / "bytes.csv"
    broken.write_bytes(f"id,x,y\n1,2,3\n2,{CANARY},\xff\n".encode("latin-1"))
    yield broken
    ragged = folder / "ragged.csv"
    ragged.write_text(f"id,x,y\n1,2,3\n2,3,4,{CANARY},5\n")
    yield ragged


def test_no_message_holds_a_value(tmp_path):
    ledger = new_ledger(tmp_path / "l.json")
    for path in canary_tables(tmp_path):
        target = tmp_path / f"{path.stem}.json"
        rules = ([], ["--where", "x > 'a'"], ["--missing", "x=a,b"], ["--encoding", "ascii"])
        for rule in rules:
            options = ["--on", "id", "--columns", "x,y", *rule]
            seen = run("inspect", path, *options)
            tried = run("release", path, *options, "--epsilon", 0.01, "--ledger", ledger, "-o", target)
            assert CANARY not in seen.output + tried.output, path.name
            refused(tried, "[DPS")
            assert seen.exit_code == 0 or "[DPS" in seen.stderr
    assert "spent 0," in run("ledger", "show", ledger).stdout


def bug_in_counting(monkeypatch, problem):
    from dpsurvey.confidential import disclose

    def buggy(df, *_):
        problem(f"the cell {CANARY}")
        raise AssertionError

    monkeypatch.setattr(disclose, "discordant_counts", buggy)


def test_an_unexpected_error_tells_its_type_and_place_and_not_its_message(tmp_path, monkeypatch):
    def fail(text):
        raise LookupError(text)

    bug_in_counting(monkeypatch, fail)
    result = run("release", *FILES, *ADULTS, "--epsilon", 1, "-o", tmp_path / "r.json")
    refused(result, "unexpected error: LookupError at dpsurvey/confidential/disclose.py, line ")
    assert "in _count" in result.stderr
    assert CANARY not in result.output


def test_an_unexpected_error_ends_a_real_process_without_values(tmp_path):
    code = (
        "import sys; from dpsurvey.confidential import disclose; from dpsurvey.cli import main\n"
        f"def buggy(df, *_): secret = {CANARY}; raise ValueError(f'the cell {{secret}}')\n"
        "disclose.discordant_counts = buggy; sys.argv[0] = 'dpsurvey'; main()"
    )
    done = run_python("-c", code, "release", *FILES, *ADULTS, "--epsilon", 1, "-o", tmp_path / "r.json")
    assert done.returncode == 1
    assert "unexpected error: ValueError at dpsurvey/confidential/disclose.py" in done.stderr
    assert CANARY not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_another_librarys_warning_is_shown_without_its_text(tmp_path, monkeypatch):
    def warn(text):
        warnings.warn(text, RuntimeWarning, stacklevel=1)
        raise dps.errors.DomainError("stopped on purpose")

    bug_in_counting(monkeypatch, warn)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        result = run("release", *FILES, *ADULTS, "--epsilon", 1, "-o", tmp_path / "r.json")
    refused(result, "warning: RuntimeWarning (its text is withheld, since it may quote a row)")
    assert CANARY not in result.output


def test_errors_where_no_rows_are_read_keep_their_traceback(work, monkeypatch):
    import dpsurvey.copula.mle_nn as module

    def buggy(release):
        raise LookupError("a bug")

    monkeypatch.setattr(module, "mle_nn", buggy)
    result = run("fit", work / "r.json", "--estimator", "mle-nn")
    assert isinstance(result.exception, LookupError)


# --- fit


def test_fit_saves_what_it_prints(work, tmp_path):
    target = tmp_path / "out.npz"
    options = ["--seed", 7, "--draws", 200, "--chains", 2, "-o", target]
    result = run("fit", work / "r.json", *options, "--format", "csv")
    assert result.exit_code == 0, result.output
    posterior = dps.CorrelationPosterior.load(target)
    assert posterior.draws.shape == (2, 200, 4, 4)
    assert posterior.release == dps.Release.load(work / "r.json")
    printed = pd.read_csv(io.StringIO(result.stdout))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dps.errors.WideIntervalWarning)
        pd.testing.assert_frame_equal(printed, posterior.summary(), check_dtype=False, rtol=1e-12)
    assert "private: epsilon = 1, n = 3934" in result.stderr
    again = run("fit", work / "r.json", *options, "--format", "csv")  # an earlier result is replaced
    assert again.stdout == result.stdout


def test_fit_prints_a_readable_table(work):
    text = run("fit", work / "r.json", "--seed", 7, "--draws", 200, "--labels", "--prob", 0.5).stdout
    assert "Bayes-NA posterior: 4 variables, 6 correlations" in text
    assert "scale: latent standard normal" in text
    table = text.split("\n\n")[1].splitlines()
    assert table[0].split() == [
        "var1",
        "var2",
        "mean",
        "sd",
        "lower",
        "upper",
        "ess_bulk",
        "ess_tail",
        "r_hat",
    ]
    assert len(table) == 7
    assert table[1].startswith("Energy (kcal)")


def test_fit_mle_nn(work):
    rows = json.loads(run("fit", work / "r.json", "--estimator", "mle-nn", "--format", "json").stdout)
    expected = dps.mle_nn(dps.Release.load(work / "r.json")).summary()
    assert [row["estimate"] for row in rows] == pytest.approx(expected["estimate"].tolist(), abs=1e-12)
    assert [row["boundary"] for row in rows] == [False] * 6


def test_fit_says_once_that_intervals_are_wide(tmp_path):
    new_ledger(tmp_path / "l.json")
    target = tmp_path / "r.json"
    options = ["--epsilon", 0.001, "--ledger", tmp_path / "l.json", "-o", target]
    assert run("release", *FILES, *ADULTS, *options).exit_code == 0
    result = run("fit", target, "--draws", 100)
    assert result.output.count("intervals cover 0") == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--draws", "0"], "draws is below 1"),
        (["--chains", "-1"], "chains is below 1"),
        (["--engine", "nuts"], "no such engine"),
        (["--prob", "95"], "for 95% intervals give prob=0.95"),
        (["-o", "none/out.npz"], "cannot write 'out.npz'"),
    ],
)
def test_what_fit_refuses(options, reason, work, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(run("fit", work / "r.json", *options), reason)


def test_fit_refuses_what_is_no_release(work, tmp_path):
    refused(run("fit", tmp_path / "none.json"), "[DPS203] file not available")
    (tmp_path / "x.json").write_text("{}")
    refused(run("fit", tmp_path / "x.json"), "this is not a dpsurvey release")
    refused(run("fit", work / "out.npz"), "the file is not JSON")


def test_fit_and_plot_never_overwrite_another_kind_of_file(work, tmp_path):
    for name in ("r.json", "l.json"):
        shutil.copy(work / name, tmp_path / name)
    disguised = tmp_path / "r.npz"
    shutil.copy(work / "r.json", disguised)
    for target in (tmp_path / "r.json", tmp_path / "l.json", disguised):
        before = target.read_bytes()
        refused(run("fit", work / "r.json", "-o", target), "no file of the kind to be written")
        assert target.read_bytes() == before
    figure = tmp_path / "r.png"
    shutil.copy(work / "out.npz", figure)
    refused(run("plot", work / "out.npz", "-o", figure), "no file of the kind to be written")


def test_an_interrupted_fit_saves_nothing(work, tmp_path, monkeypatch):
    import dpsurvey.copula.bayes_na as module

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "bayes_na", interrupted)
    result = run("fit", work / "r.json", "-o", tmp_path / "out.npz")
    assert result.exit_code == 130
    assert list(tmp_path.iterdir()) == []


def test_fit_in_a_fresh_process_is_quiet_where_nobody_watches(work, tmp_path):
    done = run_python("-m", "dpsurvey", "fit", work / "r.json", "-o", "out.npz", "--seed", 1, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "saved to out.npz\n")
    assert len(done.stdout.split("\n\n")[1].splitlines()) == 7


# --- regress


def test_regress_prints_the_regression_of_the_saved_draws(work):
    expected = dps.CorrelationPosterior.load(work / "out.npz").regress("HDL", on=["BMI", "Income"])
    assert run("regress", work / "out.npz", "--y", "HDL", "--on", "BMI,Income").stdout == f"{expected!r}\n"
    result = run(
        "regress", work / "out.npz", "--y", "HDL", "--on", "BMI", "--on", "Income", "--format", "csv"
    )
    printed = pd.read_csv(io.StringIO(result.stdout))
    pd.testing.assert_frame_equal(printed, expected.summary(), check_dtype=False, rtol=1e-12)
    assert "latent standard normal" in result.stderr
    options = ["--y", "HDL", "--on", "BMI", "--labels", "--prob", 0.8, "--format", "json"]
    rows = json.loads(run("regress", work / "out.npz", *options).stdout)
    assert rows[0]["term"] == "Body Mass Index (kg/m**2)"
    narrow = dps.CorrelationPosterior.load(work / "out.npz").regress("HDL", on=["BMI"]).summary(0.8)
    assert rows[0]["lower"] == pytest.approx(narrow["lower"][0])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--y", "HDL", "--on", "Incom"], "did you mean 'Income'?"),
        (["--y", "HDLC", "--on", "BMI"], "did you mean 'HDL'?"),
        (["--y", "HDL", "--on", "HDL"], "[DPS101] bad argument"),
        (["--y", "HDL", "--on", "BMI,BMI"], "[DPS101] bad argument"),
        (["--y", "HDL", "--on", "BMI", "--prob", "1"], "prob is not a probability"),
    ],
)
def test_what_regress_refuses(options, reason, work):
    refused(run("regress", work / "out.npz", *options), reason)


def test_regress_needs_draws(work):
    options = ["--y", "HDL", "--on", "BMI"]
    refused(run("regress", work / "mle.npz", *options), "holds a point estimate, which has no draws")
    refused(run("regress", work / "r.json", *options), "[DPS303] saved file does not follow its schema")
    refused(run("regress", work / "none.npz", *options), "[DPS203] file not available")


# --- plot


@pytest.mark.parametrize(("name", "start"), [("f.png", b"\x89PNG"), ("f.pdf", b"%PDF"), ("F.SVG", b"<?xml")])
@pytest.mark.parametrize("kind", ["forest", "heatmap"])
def test_plot_writes_figures(kind, name, start, work, tmp_path):
    for _ in range(2):  # the second replaces the first
        result = run("plot", work / "out.npz", "-o", tmp_path / name, "--kind", kind, "--labels")
        assert (result.exit_code, result.stdout) == (0, "")
    assert (tmp_path / name).read_bytes().startswith(start)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_plot_sets_results_side_by_side(work, tmp_path):
    assert run("plot", work / "out.npz", work / "mle.npz", "-o", tmp_path / "f.svg").exit_code == 0
    assert (tmp_path / "f.svg").stat().st_size > 10_000


def test_what_plot_refuses(work, tmp_path):
    out, mle = work / "out.npz", work / "mle.npz"
    refused(
        run("plot", out, mle, "-o", tmp_path / "f.png", "--kind", "heatmap"), "a heat map shows one result"
    )
    refused(run("plot", out, "-o", tmp_path / "f.gif"), "a name ending in .png, .pdf, .svg")
    refused(run("plot", out, "-o", tmp_path / "f.png", "--prob", "0"), "prob is not a probability")
    refused(run("plot", work / "r.json", "-o", tmp_path / "f.png"), "[DPS303]")
    refused(run("plot", out, "-o", tmp_path / "none" / "f.png"), "cannot write 'f.png'")
    assert list(tmp_path.iterdir()) == []


def test_plot_without_matplotlib_says_how_to_get_it(work, tmp_path):
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.modules['matplotlib.figure'] = None\n"
        "from dpsurvey.cli import main; sys.argv[0] = 'dpsurvey'; main()"
    )
    done = run_python("-c", code, "plot", work / "out.npz", "-o", tmp_path / "f.png")
    assert done.returncode == 1
    assert 'pip install "dpsurvey[plot]"' in done.stderr
    assert "Traceback" not in done.stderr


# --- ledger


def test_ledger_show_lists_what_was_spent(work):
    result = run("ledger", "show", work / "l.json")
    assert result.exit_code == 0
    assert "'adults', budget 2" in result.stdout
    rows = json.loads(run("ledger", "show", work / "l.json", "--format", "json").stdout)
    assert [(float(row["epsilon"]), float(row["remaining"])) for row in rows] == [(1.0, 1.0)]
    table = pd.read_csv(io.StringIO(run("ledger", "show", work / "l.json", "--format", "csv").stdout))
    assert table["sequence"].tolist() == [1]


def test_what_ledger_refuses(tmp_path):
    ledger = new_ledger(tmp_path / "l.json")
    before = ledger.read_text()
    again = run("ledger", "create", ledger, "--dataset", "adults", "--budget", 9)
    refused(again, "what was spent must not be forgotten")
    assert ledger.read_text() == before
    other = ["ledger", "create", tmp_path / "m.json"]
    refused(run(*other, "--dataset", "d", "--budget", "0"), "finite and above 0")
    refused(run(*other, "--dataset", " ", "--budget", "1"), "the data set has no label")
    refused(run("ledger", "show", tmp_path / "m.json"), "no ledger at")
    ledger.write_text(before.replace("adults", "others") + "{}\n")
    refused(run("ledger", "show", ledger), "[DPS302] ledger cannot be used")


def test_a_ledger_by_zcdp_takes_gaussian_releases(tmp_path):
    options = ["--dataset", "adults", "--budget", 2, "--delta", "1e-6", "--accounting", "zcdp"]
    made = run("ledger", "create", tmp_path / "l.json", *options)
    assert "budget 2.0 at delta 0.000001 by zCDP, spent 0" in made.stdout
    noise = ["--epsilon", 1, "--mechanism", "gaussian", "--delta", "1e-6"]
    done = run("release", *FILES, *ADULTS, *noise, "--ledger", tmp_path / "l.json", "-o", tmp_path / "r.json")
    assert done.exit_code == 0, done.output
    row = json.loads(run("ledger", "show", tmp_path / "l.json", "--format", "json").stdout)[0]
    assert float(row["rho"]) == dps.Release.load(tmp_path / "r.json").parameters["rho"]
    pure = new_ledger(tmp_path / "pure.json")
    tried = run("release", *FILES, *ADULTS, *noise, "--ledger", pure, "-o", tmp_path / "s.json")
    refused(tried, "the ledger keeps count of pure epsilon")
    other = ["ledger", "create", tmp_path / "m.json", "--dataset", "d", "--budget", 1]
    refused(run(*other, "--accounting", "zcdp"), "at a delta above 0")
    refused(run(*other, "--accounting", "renyi"), "no such accounting")


def test_a_release_that_is_there_is_not_paid_twice_unless_asked(work, tmp_path):
    ledger = tmp_path / "l.json"
    shutil.copy(work / "l.json", ledger)
    shutil.copy(work / "r.json", tmp_path / "r.json")
    before = ledger.read_bytes()
    same = ["release", *FILES, *ADULTS, "--epsilon", 1, "--ledger", ledger, "-o", tmp_path / "s.json"]
    result = run(*same)
    refused(result, "[DPS304] release exists already")
    assert str(tmp_path / "r.json") in result.stderr
    assert ledger.read_bytes() == before
    assert not (tmp_path / "s.json").exists()
    again = run(*same, "--again")
    assert again.exit_code == 0, again.output
    rows = json.loads(run("ledger", "show", ledger, "--format", "json").stdout)
    assert [row["file"] for row in rows] == ["r.json", "s.json"]


def test_a_release_that_its_ledger_cannot_note_is_saved(tmp_path, monkeypatch):
    from dpsurvey.privacy.release import Release

    ledger, to_dict = new_ledger(tmp_path / "l.json"), Release.to_dict

    def disturbed(release):
        ledger.write_bytes(b"x" + ledger.read_bytes())
        return to_dict(release)

    monkeypatch.setattr(Release, "to_dict", disturbed)
    result = run("release", *FILES, *ADULTS, "--epsilon", 1, "--ledger", ledger, "-o", tmp_path / "r.json")
    refused(result, "r.json is saved, but its ledger cannot note it")
    assert result.stdout == ""
    assert dps.Release.load(tmp_path / "r.json").variables == NAMES


def test_ledger_verify_says_which_release_does_not_fit(work, tmp_path):
    good = run("ledger", "verify", work / "l.json", work / "r.json")
    assert good.exit_code == 0, good.output
    assert f"head {dps.Ledger.open(work / 'l.json').head}" in good.stdout
    assert "r.json: fits" in good.stdout
    other = tmp_path / "other.json"
    values = json.loads((work / "r.json").read_text())
    other.write_text(json.dumps(values | {"ledger": values["ledger"] | {"sequence": 2}}))
    bad = run("ledger", "verify", work / "l.json", work / "r.json", other, tmp_path / "none.json")
    refused(bad, "other.json: DOES NOT FIT\n[DPS302]")
    assert "rolled back" in bad.stderr
    assert "none.json: DOES NOT FIT\n[DPS203]" in bad.stderr
    assert "r.json: fits" in bad.stdout
    damaged = tmp_path / "l.json"
    damaged.write_bytes((work / "l.json").read_bytes().replace(b"1.0", b"0.5"))
    refused(run("ledger", "verify", damaged), "line 2 of l.json was changed after it was written")


# --- end to end, as a user types it


def test_the_whole_way_in_processes_of_their_own(tmp_path):
    def shell(*arguments):
        done = run_python("-m", "dpsurvey", *arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    shell("ledger", "create", "l.json", "--dataset", "adults", "--budget", 1)
    shell("release", *FILES, *ADULTS, "--epsilon", 1, "--ledger", "l.json", "-o", "r.json")
    assert "r.json: fits" in shell("ledger", "verify", "l.json", "r.json")
    shell("fit", "r.json", "-o", "out.npz")
    assert "HDL                 R^2" in shell("regress", "out.npz", "--y", "HDL", "--on", "BMI,Income")
    shell("plot", "out.npz", "-o", "f.png")
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    assert "remaining 0" in shell("ledger", "show", "l.json")


def test_plan_needs_no_data_and_draws(tmp_path):
    told = run("plan", "--n", 300, "--p", 3, "--epsilon", 1)
    assert told.exit_code == 0, told.output
    assert "concordance counts with linf noise" in told.stdout
    assert "looked at no data" in told.stdout
    figure = tmp_path / "plan.png"
    compared = run("plan", "--n", 300, "--p", 3, "--epsilon", 1, "--compare", "--format", "csv", "-o", figure)
    rows = list(csv.DictReader(io.StringIO(compared.stdout)))
    assert [row["statistic"] for row in rows].count("quadrant") == 3
    assert float(rows[0]["length"]) == min(float(row["length"]) for row in rows)
    assert figure.read_bytes().startswith(b"\x89PNG")
    wanted = run("plan", "--p", 3, "--epsilon", 1, "--length", 0.2, "--format", "json")
    assert json.loads(wanted.stdout)[0]["n"] > 300


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--p", 3, "--n", 300], "two of n, epsilon and length"),
        (["--p", 1, "--n", 300, "--epsilon", 1], "p is too small"),
        (["--p", 3, "--n", 300, "--epsilon", 0], "epsilon"),
        (["--p", 3, "--n", 300, "--epsilon", 1, "--mechanism", "laplace"], "no such mechanism"),
        (["--p", 3, "--n", 300, "--length", 3], "length is out of range"),
        (["--p", 3, "--n", 300, "--epsilon", 1, "-o", "plan.doc"], "does not say its kind"),
    ],
)
def test_plans_that_cannot_be_made(arguments, text):
    refused(run("plan", *arguments), text)
