"""Files are whole or absent."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dpsurvey.atomic import atomic_write
from dpsurvey.errors import MissingFileError


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "result.json"


def test_text_and_bytes_are_written_as_given(target: Path) -> None:
    with atomic_write(target) as file:
        file.write("é\n")
    assert target.read_bytes() == "é\n".encode()
    with atomic_write(str(target), "wb") as file:
        file.write(b"\x00\xff\n")
    assert target.read_bytes() == b"\x00\xff\n"
    assert os.listdir(target.parent) == [target.name]


def test_the_old_file_stays_until_the_new_one_is_whole(target: Path) -> None:
    target.write_text("old")
    with atomic_write(target) as file:
        file.write("new")
        file.flush()
        assert target.read_text() == "old"
        assert len(os.listdir(target.parent)) == 2
    assert target.read_text() == "new"


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt, SystemExit])
def test_an_error_leaves_the_old_file_and_nothing_else(target: Path, error: type[BaseException]) -> None:
    def spoil() -> None:
        with atomic_write(target) as file:
            file.write("half")
            raise error

    for before in (None, "old"):
        if before is not None:
            target.write_text(before)
        with pytest.raises(error):
            spoil()
        assert (target.read_text() if target.exists() else None) == before
        assert os.listdir(target.parent) == ([target.name] if before else [])


def test_a_file_that_cannot_be_flushed_is_not_put_in_place(target: Path, monkeypatch) -> None:
    target.write_text("old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"), atomic_write(target) as file:
        file.write("new")
    assert target.read_text() == "old"
    assert os.listdir(target.parent) == [target.name]


@pytest.mark.parametrize("path", ["nowhere/result.json", "file/result.json", "x" * 300, "folder"])
def test_places_that_cannot_be_written_are_named(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").write_text("a file")
    (tmp_path / "folder").mkdir()
    with pytest.raises(MissingFileError) as caught, atomic_write(tmp_path / path) as file:
        file.write("lost")
    assert caught.value.code == "DPS203"
    assert Path(path).name in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_files_have_the_mode_that_the_mask_gives(target: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        with atomic_write(target) as file:
            file.write("x")
        assert os.umask(mask) == mask  # never changed
    finally:
        os.umask(before)
    assert stat.S_IMODE(target.stat().st_mode) == mode


def test_threads_that_write_the_same_file_leave_one_of_their_versions(target: Path) -> None:
    versions = [str(i) * 100_000 for i in range(6)]

    def write(text: str) -> None:
        for _ in range(10):
            with atomic_write(target) as file:
                file.write(text)

    threads = [threading.Thread(target=write, args=(text,)) for text in versions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert target.read_text() in versions
    assert os.listdir(target.parent) == [target.name]


WRITER = """
import sys
from dpsurvey.atomic import atomic_write
print("ready", flush=True)
i = 0
while True:
    i += 1
    with atomic_write(sys.argv[1]) as file:
        file.write(str(i % 10) * 200_000)
"""


def test_a_killed_writer_leaves_a_whole_file(target: Path) -> None:
    for wait in (0.01, 0.03, 0.08, 0.15):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(target)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(wait)
            process.send_signal(signal.SIGKILL)
        if target.exists():
            content = target.read_text()
            assert len(content) == 200_000
            assert len(set(content)) == 1
