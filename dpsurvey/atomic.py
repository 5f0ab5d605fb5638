"""Files that are whole or absent: write beside the target, flush to disk, then rename over it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal

from dpsurvey.errors import MissingFileError


@contextmanager
def atomic_write(path: str | os.PathLike[str], mode: Literal["w", "wb"] = "w") -> Iterator[IO[Any]]:
    """Open a temporary file that replaces `path` only when the block ends without an error.

    Parameters
    ----------
    path : path-like
        The file to write. Its folder must exist.
    mode : {"w", "wb"}
        Text (UTF-8) or bytes.

    Yields
    ------
    file
        The open temporary file.

    Raises
    ------
    MissingFileError
        If the folder does not exist or cannot be written, or `path` is a folder.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "hello.txt"
    >>> with atomic_write(target) as file:
    ...     _ = file.write("hello")
    >>> target.read_text()
    'hello'
    """
    target = Path(path)
    part = target.parent / f".{target.name}.{secrets.token_hex(8)}.part"
    try:  # a new file with the mode that the process's mask gives, which cannot be read without changing it
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    except OSError as error:
        raise _not_writable(target, error) from None
    try:
        with os.fdopen(handle, mode, encoding="utf-8" if mode == "w" else None) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        try:
            os.replace(part, target)
        except OSError as error:
            raise _not_writable(target, error) from None
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def _not_writable(target: Path, error: OSError) -> MissingFileError:
    return MissingFileError(
        f"cannot write {target.name!r}: {error.strerror}",
        expected="a folder that exists and can be written",
        got=str(target.parent),
        hint="create the folder, or choose another one",
    )


def sync_folder(folder: Path) -> None:
    """Make a rename durable where the system lets folders be opened and synced; the file is whole either way."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows
        return
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
