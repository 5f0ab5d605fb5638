"""Mutated survey files: a named error or the right number of rows, and never a crash, a hang or a flood of memory.

Files are read in worker processes that take many files each, since a crash inside the C library would end the
process; a worker that crashes or hangs is replaced, and the file that did it fails the test.
"""

from __future__ import annotations

import json
import os
import random
import re
import select
import signal
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

SECONDS = 20.0  # a file may take; the slowest takes a fraction of one on a quiet machine
FLOOD = 200_000  # kB of memory beyond what reading a whole file of 200 kB takes
WORKER = """
import json, resource, sys, traceback, warnings
import pyreadstat
import dpsurvey as dps
from dpsurvey.errors import DpsurveyError

warnings.simplefilter("ignore")
dps.read_survey
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print("ready", flush=True)
for line in sys.stdin:
    before = peak()
    try:
        table = dps.read_survey(line.rstrip("\\n"))
        answer = {"outcome": "frame", "rows": len(table)}
    except DpsurveyError as error:
        answer = {"outcome": "named", "error": type(error).__name__, "text": str(error)}
    except BaseException:
        answer = {"outcome": "unnamed", "text": traceback.format_exc()}
    print(json.dumps(answer | {"grown": peak() - before}), flush=True)
"""


class Reader:
    """A worker process that reads files, replaced when it crashes or hangs."""

    def __init__(self) -> None:
        self.restarts = -1
        self._start()

    def _start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.restarts += 1
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()

    def read(self, path: Path, seconds: float = SECONDS) -> dict[str, Any]:
        """Return what came of reading a file."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(f"{path}\n")
            self.process.stdin.flush()
            answered = bool(select.select([self.process.stdout], [], [], seconds)[0])
            line = self.process.stdout.readline() if answered else ""
        except BrokenPipeError:
            answered, line = True, ""
        if line:
            return json.loads(line)
        self.stop()
        code = self.process.returncode
        self._start()
        return {"outcome": "crash", "code": code} if answered else {"outcome": "hang"}


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    worker = Reader()
    yield worker
    worker.stop()


def test_a_reader_that_dies_or_hangs_is_noticed_and_replaced(reader: Reader, root: Path) -> None:
    path, before = root / "data" / "nhanes_2017" / "HDL_J.xpt", reader.restarts
    good = reader.read(path)
    assert good["outcome"] == "frame"
    os.kill(reader.process.pid, signal.SIGSTOP)
    assert reader.read(path, seconds=0.5) == {"outcome": "hang"}
    os.kill(reader.process.pid, signal.SIGSEGV)
    assert reader.read(path) == {"outcome": "crash", "code": -signal.SIGSEGV}
    assert reader.restarts == before + 2
    assert reader.read(path)["rows"] == good["rows"]


# ---------------------------------------------------------------- mutations

EDGES = (0, 1, 2, 3, 7, 8, 16, 24, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 2**24, 2**31 - 1, 2**31, 2**32 - 1,
         2**40, 2**63 - 1, 2**64 - 1)  # fmt: skip
Mutation = Callable[[random.Random, bytearray, bytes], None]


def flip_anywhere(draw: random.Random, data: bytearray, _: bytes) -> None:
    for _ in range(draw.randint(1, 16)):
        data[draw.randrange(len(data))] = draw.randrange(256)


def flip_in_headers(draw: random.Random, data: bytearray, _: bytes) -> None:
    for _ in range(draw.randint(1, 4)):
        data[draw.randrange(min(len(data), 2048))] = draw.randrange(256)


def cut(draw: random.Random, data: bytearray, _: bytes) -> None:
    del data[draw.randrange(len(data)) :]


def insert(draw: random.Random, data: bytearray, _: bytes) -> None:
    at, size = draw.randrange(len(data)), draw.choice([1, 2, 3, 8, 79, 80, 81, 512, 4096])
    data[at:at] = draw.choice([bytes(size), b" " * size, draw.randbytes(size), data[at : at + size]])


def delete(draw: random.Random, data: bytearray, _: bytes) -> None:
    at = draw.randrange(len(data))
    del data[at : at + draw.choice([1, 4, 8, 80, 512, 4096])]


def edit_number(draw: random.Random, data: bytearray, _: bytes) -> None:
    """Put extreme numbers where numbers are: aligned places that are neither zero nor blank, most of them early."""
    for _ in range(draw.randint(1, 3)):
        size = draw.choice([1, 2, 4, 8])
        end = min(len(data), draw.choice([400, 2048, 8192, len(data)]))
        places = [at for at in range(0, end - size, size) if data[at : at + size].strip(b"\0 ")]
        if places:
            at = draw.choice(places)
            number = draw.choice([*EDGES, *(data[at] + step for step in (1, 2, 255))]) % 256**size
            data[at : at + size] = number.to_bytes(size, draw.choice(["little", "big"]))


def edit_digits(draw: random.Random, data: bytearray, _: bytes) -> None:
    places = [at for at, byte in enumerate(data[:4000]) if 48 <= byte <= 57]
    for _ in range(draw.randint(1, 4) if places else 0):
        data[draw.choice(places)] = 48 + draw.randrange(10)


def splice(draw: random.Random, data: bytearray, other: bytes) -> None:
    data[draw.randrange(len(data)) :] = other[draw.randrange(len(other)) :]


def copy_block(draw: random.Random, data: bytearray, _: bytes) -> None:
    size = draw.choice([8, 24, 80, 140, 512, 4096])
    blocks = len(data) // size
    if blocks > 1:
        source, target = draw.randrange(blocks) * size, draw.randrange(blocks) * size
        data[target : target + size] = data[source : source + size]


MUTATIONS: tuple[Mutation, ...] = (
    flip_anywhere, flip_in_headers, cut, insert, delete, edit_number, edit_number, edit_digits, splice, copy_block,
)  # fmt: skip


def mutant(seed: int, originals: list[bytes]) -> bytes:
    """Return the mutated file of a seed: one to three mutations of one of the originals."""
    draw = random.Random(seed)
    data, other = bytearray(draw.choice(originals)), draw.choice(originals)
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        if data:
            draw.choice(MUTATIONS)(draw, data, other)
    return bytes(data)


# ---------------------------------------------------------------- how many rows a header allows, read once more


def rows_agree(data: bytes, suffix: str, rows: int) -> bool:
    """Whether a number of rows is what the headers say, by a reading of the format of its own."""
    return rows in _sas_rows(data) if suffix == ".sas7bdat" else _xpt_agrees(data, rows)


def _sas_rows(data: bytes) -> set[int]:
    """Return the row counts in all that looks like a row-size block."""
    order, wide = "<" if data[37] == 1 else ">", data[32] == 0x33
    counts = set()
    for match in re.finditer(rb"(?=\xf7\xf7\xf7\xf7)", data):
        at = match.start() - (4 if wide and order == ">" else 0)
        place, kind = (at + 48, "Q") if wide else (at + 24, "I")
        if at >= 0 and place + 8 <= len(data):
            counts.add(struct.unpack_from(order + kind, data, place)[0])
    return counts


def _xpt_agrees(data: bytes, rows: int) -> bool:
    """Whether rows of the width of all variables fill the bytes after the headers, but for less than a record."""
    starts = [at for at in range(0, len(data), 80) if data[at : at + 24] == b"HEADER RECORD*******NAMS"
              or data[at : at + 24] == b"HEADER RECORD*******NAME"]  # fmt: skip
    at = starts[0]
    block, count = int(data[at - 4 * 80 :][74:78]), int(data[at + 54 : at + 58])
    width = sum(struct.unpack_from(">h", data, at + 80 + i * block + 4)[0] for i in range(count))
    start = data.index(b"HEADER RECORD*******OBS", at + 80 + count * block)
    if data[start + 20 : start + 28] == b"OBSV8   " and data[start + 48 : start + 78].strip():
        return rows == int(data[start + 48 : start + 78])
    found = len(data) - start - 80
    return (-(-rows * width // 80) * 80 == found) if width else rows == 0


# ---------------------------------------------------------------- the test


@pytest.fixture(scope="module")
def originals(root: Path, transport: Callable[..., bytes]) -> dict[str, list[bytes]]:
    """Return small whole files by suffix: ours and, where they are, the odd and genuine ones beside the project."""
    shipped = (root / "data" / "nhanes_2017" / "HDL_J.xpt").read_bytes()
    columns = {
        "SEQN": [float(i) for i in range(30)],
        "X": ["A", None, 1.5] * 10,
        "S": [b"text", b"", b"more"] * 10,
    }
    xpt = [
        shipped,
        transport("T", columns),
        transport("T", columns, version=8),
        transport("T", columns, widths={"X": 3}),
    ]
    folder = root.parent / "shared"
    beside = [*folder.glob("awkward/*"), *folder.glob("nhanes/[Sp]*.xpt")]
    small = [path for path in sorted(beside) if 600 < path.stat().st_size < 200_000]
    return {
        ".xpt": xpt + [path.read_bytes() for path in small if path.suffix == ".xpt"],
        ".sas7bdat": [path.read_bytes() for path in small if path.suffix == ".sas7bdat"],
    }  # fmt: skip


def fuzz(reader: Reader, originals: list[bytes], suffix: str, seeds: range, folder: Path) -> Counter[str]:
    """Read the mutants of some seeds and return how often each outcome came; stop at the first that is wrong."""
    outcomes: Counter[str] = Counter()
    path = folder / f"mutant{suffix}"
    for seed in seeds:
        data = mutant(seed, originals)
        path.write_bytes(data)
        answer = reader.read(path)
        outcomes[answer["outcome"]] += 1
        assert answer["outcome"] in ("frame", "named"), (seed, suffix, answer)
        assert answer["grown"] < FLOOD, (seed, suffix, answer)
        if answer["outcome"] == "frame":
            assert rows_agree(data, suffix, answer["rows"]), (seed, suffix, answer)
        else:
            assert len(answer["text"]) < 2000, (seed, suffix)
    return outcomes


def run(
    reader: Reader, originals: dict[str, list[bytes]], suffix: str, seeds: range, folder: Path
) -> Counter[str]:
    if not originals[suffix]:
        pytest.skip("sas7bdat files to mutate (a folder `shared` beside the project) are not on this machine")
    restarts = reader.restarts
    outcomes = fuzz(reader, originals[suffix], suffix, seeds, folder)
    assert reader.restarts == restarts
    assert min(outcomes["frame"], outcomes["named"]) > len(seeds) / 20, (
        "the mutations are too mild or too wild"
    )
    return outcomes


@pytest.mark.parametrize("suffix", [".xpt", ".sas7bdat"])
def test_mutated_files(suffix: str, reader: Reader, originals, tmp_path: Path) -> None:
    run(reader, originals, suffix, range(300), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".xpt", ".sas7bdat"])
def test_ten_thousand_mutated_files_of_each_kind(
    suffix: str, reader: Reader, originals, tmp_path: Path
) -> None:
    print(suffix, dict(run(reader, originals, suffix, range(1_000, 11_000), tmp_path)))
