"""The file of a ledger: made once, locked by itself, and only ever appended to.

The lock lies on the file, not on its name, so that links and mounts of every kind share it. A line is written
together with its newline and flushed to disk before anything is computed on the strength of it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from dpsurvey.atomic import sync_folder
from dpsurvey.errors import LedgerError, MissingFileError

LOCK_TIMEOUT = 60.0  # seconds
_POLL = 0.005  # seconds
_BEYOND = 2**40  # bytes


def make_file(path: Path, content: bytes) -> None:
    """Make a file that must not exist yet: whole or absent, and never over another.

    Raises
    ------
    LedgerError
        If there is something at `path`.
    MissingFileError
        If its folder does not exist or cannot be written.
    """
    if not path.parent.is_dir():
        raise MissingFileError(
            f"the folder of {path.name} does not exist", got=str(path.parent), hint="create it first"
        )
    part = path.with_name(f".{path.name}.{os.urandom(8).hex()}.part")
    try:
        with part.open("xb", buffering=0) as file:
            _write_through(file, content)
        _link(part, path, content)
    except FileExistsError:
        raise LedgerError(
            f"{path.name} exists already, and what was spent must not be forgotten",
            hint="open it with Ledger.open(path), or choose another file for another data set",
        ) from None
    except OSError as error:
        raise MissingFileError(
            f"{path.name} cannot be made: {error.strerror}", got=str(path.parent)
        ) from None
    finally:
        part.unlink(missing_ok=True)
    sync_folder(path.parent)


def _link(part: Path, path: Path, content: bytes) -> None:
    """Give a whole file its name, which unlike renaming fails where the name is taken."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        with path.open("xb", buffering=0) as file:
            _write_through(file, content)


def read_file(path: Path) -> bytes:
    """Return the content of a ledger's file.

    Raises
    ------
    MissingFileError, LedgerError
        If it is not there, or cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise _not_opened(path, error, "read") from None


@contextmanager
def locked(path: Path) -> Iterator[FileIO]:
    """Open a ledger's file for reading and writing while no other process or thread has it open so.

    Yields
    ------
    file
        The open file, at its start.

    Raises
    ------
    MissingFileError, LedgerError
        If it is not there, cannot be written, or stays locked.
    """
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            file = path.open("r+b", buffering=0)
        except OSError as error:
            raise _not_opened(path, error, "written") from None
        with file:  # closing it gives the lock back
            _lock(file, path, deadline)
            if _is_at(file, path):  # it was not replaced while we waited
                yield file
                return


def append(file: FileIO, end: int, content: bytes, name: str) -> None:
    """Write after byte `end`, which drops what is there, and wait until it is on disk.

    Raises
    ------
    LedgerError
        If the disk refuses.
    """
    try:
        file.truncate(end)
        file.seek(end)
        _write_through(file, content)
    except OSError as error:
        raise LedgerError(
            f"{name} cannot be written: {error.strerror}", hint="nothing was released"
        ) from None


def _write_through(file: FileIO, content: bytes) -> None:
    while content:
        content = content[file.write(content) :]
    os.fsync(file.fileno())


def _lock(file: FileIO, path: Path, deadline: float) -> None:
    while True:
        try:
            _try_lock(file)
            return
        except (BlockingIOError, PermissionError):  # the latter from Windows
            if time.monotonic() > deadline:
                raise LedgerError(
                    f"{path.name} is locked by another process",
                    hint="wait until its release is made, then try again",
                ) from None
            time.sleep(_POLL)
        except OSError as error:
            raise LedgerError(
                f"{path.name} cannot be locked: {error.strerror}", expected="a file system with locks"
            ) from None


def _try_lock(file: FileIO) -> None:
    """Lock the file or raise OSError at once."""
    if sys.platform == "win32":
        import msvcrt

        file.seek(_BEYOND)  # a byte that is locked cannot be read: one that never is there
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        finally:
            file.seek(0)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_at(file: FileIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _not_opened(path: Path, error: OSError, verb: str) -> MissingFileError | LedgerError:
    if isinstance(error, FileNotFoundError):
        return MissingFileError(
            f"no ledger at {path}",
            expected="a file made with Ledger.create",
            hint="Ledger.create(path, dataset=..., budget=...) fixes the total once for the data set",
        )
    return LedgerError(f"{path.name} cannot be {verb}: {error.strerror}")
