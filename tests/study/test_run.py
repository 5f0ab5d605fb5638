"""The runner: same results whatever the order, the workers, or how often it was killed."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from filelock import FileLock

from dpsurvey.errors import ArgumentError, FileFormatError
from dpsurvey.study import run as runner
from dpsurvey.study.run import run_cells


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


@pytest.fixture
def reference(small_cells, tmp_path):
    """Results of one undisturbed call, and the bytes of its files."""
    folder = tmp_path / "reference"
    results = run_cells(small_cells, runs=40, folder=folder, seed=5, progress=False)
    return results, contents(folder)


def test_results_do_not_depend_on_order_pieces_or_workers(reference, small_cells, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "_PIECE", 7)
    run_cells(small_cells[::-1], runs=40, folder=tmp_path / "a", seed=5, jobs=2, progress=False)
    assert contents(tmp_path / "a") == reference[1]


def test_more_runs_are_added_and_fewer_are_read(reference, small_cells, tmp_path):
    run_cells(small_cells, runs=9, folder=tmp_path / "a", seed=5, progress=False)
    results = run_cells(small_cells, runs=40, folder=tmp_path / "a", seed=5, progress=False)
    assert contents(tmp_path / "a") == reference[1]
    fewer = run_cells(small_cells, runs=9, folder=tmp_path / "a", seed=5, progress=False)
    for cell, frame in fewer.items():
        assert frame["run"].nunique() == 9
        pd.testing.assert_frame_equal(frame, results[cell][results[cell]["run"] < 9].reset_index(drop=True))
    assert contents(tmp_path / "a") == reference[1]


def test_finished_cells_are_not_run_again(small_cells, tmp_path, monkeypatch):
    first = run_cells(small_cells[:1], runs=3, folder=tmp_path, progress=False)

    def refuse(*_):
        raise AssertionError("ran again")

    monkeypatch.setattr(runner, "answer", refuse)
    again = run_cells(small_cells[:1], runs=3, folder=tmp_path, progress=False)
    pd.testing.assert_frame_equal(again[small_cells[0]], first[small_cells[0]])


def test_other_seed_or_settings_are_refused(small_cells, tmp_path, monkeypatch):
    run_cells(small_cells[:1], runs=2, folder=tmp_path, seed=1, progress=False)
    with pytest.raises(ArgumentError, match="other settings"):
        run_cells(small_cells[:1], runs=2, folder=tmp_path, seed=2, progress=False)
    monkeypatch.setattr(runner.batch, "WARMUP", 1)
    with pytest.raises(ArgumentError, match="other settings"):
        run_cells(small_cells[:1], runs=2, folder=tmp_path, seed=1, progress=False)


@pytest.mark.parametrize("junk", [b"", b"not parquet", b"PAR1" + b"\0" * 60])
def test_a_file_that_is_no_cell_is_named(small_cells, tmp_path, junk):
    (tmp_path / f"{small_cells[0].name}.parquet").write_bytes(junk)
    with pytest.raises(FileFormatError, match=small_cells[0].name.replace(".", r"\.")):
        run_cells(small_cells[:1], runs=2, folder=tmp_path, progress=False)


def test_one_study_at_a_time_in_a_folder(small_cells, tmp_path):
    with FileLock(tmp_path / ".lock"), pytest.raises(ArgumentError, match="another study"):
        run_cells(small_cells[:1], runs=2, folder=tmp_path, progress=False)


def test_no_runs_are_refused(small_cells, tmp_path):
    with pytest.raises(ArgumentError, match="runs is below 1"):
        run_cells(small_cells, runs=0, folder=tmp_path)


KILLED = """
import sys
from pathlib import Path
from dpsurvey.study.cells import Cell
from dpsurvey.study.run import run_cells
from dpsurvey.study.tables import absolute_error, by_bins

folder = Path(sys.argv[1])
cells = [Cell("continuous", p, n, e, "MLE-NN") for p in (2, 5) for n in (50, 200) for e in (0.1, 0.5, 1.0, 5.0)]
print("ready", flush=True)
results = run_cells(cells, runs=64, folder=folder, seed=3, progress=False)
by_bins(results, absolute_error, "mae").to_csv(folder / "table.csv", index=False)
"""


def test_killed_ten_times_and_resumed_gives_the_same_bytes(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(KILLED)

    def start(folder):
        process = subprocess.Popen(
            [sys.executable, str(script), str(folder)],
            stdout=subprocess.PIPE,
            text=True,
            env=dict(os.environ),
        )
        assert process.stdout.readline() == "ready\n"
        return process

    whole, broken = tmp_path / "whole", tmp_path / "broken"
    began = time.monotonic()
    with start(whole) as process:
        assert process.wait() == 0
    usual = time.monotonic() - began
    rng, kills = random.Random(1), 0
    for _ in range(10):
        with start(broken) as process:
            try:
                process.wait(timeout=rng.uniform(0.0, 0.25 * usual))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                kills += process.wait() == -signal.SIGKILL
    assert kills >= 5  # it may have finished before the last ones
    with start(broken) as process:
        assert process.wait() == 0
    assert contents(broken) == contents(whole)
    assert (broken / "table.csv").read_bytes() == (whole / "table.csv").read_bytes()
    assert not list(broken.glob(".*.part"))
