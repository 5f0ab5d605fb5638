"""Processes killed at random moments, interrupted, or racing: files whole or absent, no privacy lost count of."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpsurvey as dps
from dpsurvey.errors import BudgetExceededError
from dpsurvey.privacy.ledger import Ledger

# One process imports everything and forks a worker for every job, so that a kill costs milliseconds. Workers write
# down what they were told; what is written survives their death.
NURSERY = """
import json, os, sys, time
from pathlib import Path
import numpy as np, pandas as pd
import dpsurvey as dps
from dpsurvey import nhanes

df = pd.DataFrame(np.random.default_rng(1).normal(size=(40, 2)), columns=["a", "b"])
options = {"statistic": "quadrant", "mechanism": "geometric", "again": True}

def create(folder, tell):
    i = len(list(folder.iterdir()))
    while True:
        dps.Ledger.create(folder / f"{i}.json", dataset="d", budget=9.0)
        tell(i)
        i += 1

def reserve(folder, tell):
    book = dps.Ledger.open(folder / "ledger")
    while True:
        tell(book.reserve(0.001, {"variables": ["x" * 200]}).sequence)

def release(folder, tell):
    while True:
        made = dps.release(df, 0.001, ledger=folder / "ledger", **options)
        tell(made.ledger["sequence"])
        made.save(folder / f"{made.ledger['sequence']}.json")

def save(folder, tell):
    made = dps.release(df, 0.001, ledger=folder / "ledger", **options)
    tell(made.ledger["sequence"])
    for i in range(10**9):
        made.save(folder / f"{made.ledger['sequence']}-{i % 60}.json")

def download(folder, tell):
    nhanes.BASE_URL = (folder / "address").read_text()
    while True:
        nhanes.download("DEMO", cycle="J", cache_dir=folder)
        tell(0)
        time.sleep(0.01)  # a kill may also find the file there
        (folder / "DEMO_J.xpt").unlink()

dps.release(df, 1.0, insecure_rng=np.random.default_rng(1), **options)
print("ready", flush=True)
for line in sys.stdin:
    job, folder = json.loads(line)
    child = os.fork()
    if child == 0:
        told = os.open(Path(folder) / "told", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            globals()[job](Path(folder), lambda number: os.write(told, b"%d\\n" % number))
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def nursery() -> Iterator[subprocess.Popen[str]]:
    """A process that starts jobs."""
    environment = os.environ | {"no_proxy": "*"}
    with subprocess.Popen(
        [sys.executable, "-c", NURSERY],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.communicate()
        assert process.returncode == 0


def kill_one(nursery: subprocess.Popen[str], job: str, folder: Path, wait: float, *, at_work: bool) -> None:
    """Start a job, and kill it some seconds after its start, or after it first was told something."""
    before = told(folder)
    assert nursery.stdin is not None
    assert nursery.stdout is not None
    print(json.dumps([job, str(folder)]), file=nursery.stdin, flush=True)
    child = int(nursery.stdout.readline())
    deadline = time.monotonic() + 60.0
    while at_work and told(folder) == before:
        assert time.monotonic() < deadline, "the worker never came to work"
        time.sleep(0.001)
    time.sleep(wait)
    os.kill(child, signal.SIGKILL)
    assert int(nursery.stdout.readline()) == -signal.SIGKILL  # it did not end by itself


def told(folder: Path) -> list[int]:
    """Return the numbers that workers were told before they died."""
    path = folder / "told"
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


def check_ledger(folder: Path, job: str) -> None:
    """Everything that returned counts, at most one more reservation than that a kill, and the next one is served."""
    book = Ledger.open(folder / "ledger")
    book.verify()
    returned, entries = told(folder), book.summary()
    assert sorted(set(returned)) == sorted(returned)
    assert set(returned) <= set(entries["sequence"])
    assert book.spent == Decimal("0.001") * len(entries)
    assert book.remaining == 9 - book.spent <= 9 - Decimal("0.001") * len(returned)
    for path in folder.glob("*.json"):  # whole, and paid for
        release = dps.Release.load(path)
        assert release.ledger["sequence"] in returned
        book.check_release(release)
    noted = set(entries["file"]) - {""}
    assert noted <= set(os.listdir(folder)), job  # a file is there before it is noted
    receipt = book.reserve(0.001, {})  # no lock is left behind, no part of a line in the way
    assert receipt.sequence == len(entries) + 1
    with (folder / "told").open("a") as file:
        file.write(f"{receipt.sequence}\n")


KILLS = [8, pytest.param(50, marks=pytest.mark.slow)]  # 4 x 50 = 200, and 50 more of making ledgers


@pytest.mark.parametrize("kills", KILLS)
@pytest.mark.parametrize("job", ["reserve", "release", "save"])
def test_after_kills_the_ledger_verifies_and_overstates_nothing(
    nursery: subprocess.Popen[str], tmp_path: Path, job: str, kills: int
) -> None:
    moment = random.Random(kills)
    Ledger.create(tmp_path / "ledger", dataset="d", budget=9.0)
    for i in range(kills):
        kill_one(nursery, job, tmp_path, moment.uniform(0.0, 0.05), at_work=i % 3 > 0)
        check_ledger(tmp_path, job)
    print(f"{job}: {kills} kills, {len(told(tmp_path))} reservations")


@pytest.mark.parametrize("kills", KILLS)
def test_after_kills_a_new_ledger_is_whole_or_absent(
    nursery: subprocess.Popen[str], tmp_path: Path, kills: int
) -> None:
    moment = random.Random(kills)
    for i in range(kills):
        kill_one(nursery, "create", tmp_path, moment.uniform(0.0, 0.02), at_work=i % 3 > 0)
    books = [Ledger.open(path) for path in tmp_path.glob("*.json")]
    assert len(books) >= len(told(tmp_path))
    print(f"create: {kills} kills, {len(books)} ledgers")
    assert {book.remaining for book in books} == {Decimal(9)}


@pytest.fixture
def address() -> Iterator[str]:
    """A server that sends an example file in pieces."""
    content = next(path for path in dps.example_files() if path.suffix == ".xpt").read_bytes()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            try:
                for start in range(0, len(content), 1 << 16):
                    self.wfile.write(content[start : start + (1 << 16)])
                    time.sleep(0.001)
            except OSError:
                return  # the other side was killed

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("kills", KILLS)
def test_after_kills_a_download_is_whole_or_absent(
    nursery: subprocess.Popen[str], address: str, tmp_path: Path, kills: int
) -> None:
    expected = next(path for path in dps.example_files() if path.suffix == ".xpt").read_bytes()
    (tmp_path / "address").write_text(address)
    moment, found = random.Random(kills), []
    target, record = tmp_path / "DEMO_J.xpt", tmp_path / "DEMO_J.xpt.sha256"
    for i in range(kills):
        kill_one(nursery, "download", tmp_path, moment.uniform(0.0, 0.03), at_work=i % 3 > 0)
        found.append(target.exists())
        assert not found[-1] or target.read_bytes() == expected
        assert not record.exists() or record.read_text().split()[0] == hashlib.sha256(expected).hexdigest()
    print(f"download: {kills} kills, {sum(found)} with a file after it, {len(told(tmp_path))} that returned")


# --- races

RACER = """
import sys, time
from dpsurvey.errors import BudgetExceededError
from dpsurvey.privacy.ledger import Ledger
print("ready", flush=True)
for line in sys.stdin:
    start, epsilon, path = line.rstrip("\\n").split(" ", 2)
    while time.time() < float(start):
        pass
    try:
        print(Ledger.open(path).reserve(float(epsilon), {}).sequence, flush=True)
    except BudgetExceededError:
        print("refused", flush=True)
"""


@pytest.fixture(scope="module")
def racers() -> Iterator[list[subprocess.Popen[str]]]:
    """Two processes that wait to reserve at the same moment."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RACER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 2
    yield processes
    for process in processes:
        process.communicate()
        assert process.returncode == 0


def test_of_two_processes_that_race_for_the_last_of_a_budget_exactly_one_wins(racers, tmp_path: Path) -> None:
    """100 times out of 100; every other time they know the ledger by different names."""
    for race in range(100):
        book = Ledger.create(tmp_path / f"{race}.json", dataset="d", budget=1.0)
        other = tmp_path / f"{race}.link.json"
        other.hardlink_to(book.path)
        start = time.time() + 0.01
        for process, path in zip(racers, (book.path, other if race % 2 else book.path), strict=True):
            process.stdin.write(f"{start} 0.6 {path}\n")
            process.stdin.flush()
        outcomes = sorted(process.stdout.readline().strip() for process in racers)
        assert outcomes == ["1", "refused"]
        assert book.spent == Decimal("0.6")


def test_the_last_of_a_budget_is_shared_out_exactly_by_many_writers(tmp_path: Path) -> None:
    """Threads of one process, each with a handle of its own."""
    book = Ledger.create(tmp_path / "l.json", dataset="d", budget=1.0)
    outcomes: list[str] = []

    def spend() -> None:
        for _ in range(20):
            try:
                outcomes.append(str(Ledger.open(book.path).reserve(0.03, {}).sequence))
            except BudgetExceededError:
                outcomes.append("refused")

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    granted = sorted(int(outcome) for outcome in outcomes if outcome != "refused")
    assert granted == list(range(1, 34))
    assert (book.spent, book.remaining) == (Decimal("0.99"), Decimal("0.01"))


# --- Ctrl-C

# A shell's background jobs inherit an ignored SIGINT, which Python keeps: hence the handler.
FIT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from dpsurvey.cli import app, main
from dpsurvey import Release, bayes_na
bayes_na(Release.load("r.json"), draws=10, chains=2, seed=1, progress=False)  # compiled, or loaded
print("ready", flush=True)
sys.argv = ["dpsurvey", "fit", "r.json", "--draws", "2000000", "-o", "out.npz"]
main()
"""


def test_an_interrupted_fit_ends_at_once_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    df = pd.DataFrame(rng.normal(size=(500, 6)), columns=list("abcdef"))
    dps.release(df, 5.0, insecure_rng=rng).save(tmp_path / "r.json")
    before = (tmp_path / "r.json").read_bytes()
    with subprocess.Popen(
        [sys.executable, "-c", FIT],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(1.5)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        said, progress = process.communicate(timeout=60)
        elapsed = time.monotonic() - start
    print(f"{elapsed:.2f} s from the signal to the end of the process")
    assert process.returncode == 130, progress
    assert elapsed < 5  # a second, and slack for a loaded machine
    assert said == ""
    assert os.listdir(tmp_path) == ["r.json"]
    assert (tmp_path / "r.json").read_bytes() == before
