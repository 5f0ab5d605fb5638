"""Files that are whole or absent: write beside the target, flush to disk, then rename over it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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
        If the folder does not exist or cannot be written.

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
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    except OSError as error:
        raise MissingFileError(
            f"cannot write {target.name!r}: {error.strerror}",
            expected="a folder that exists and can be written",
            got=str(target.parent),
            hint="create the folder, or choose another one",
        ) from None
    try:
        with os.fdopen(handle, mode, encoding="utf-8" if mode == "w" else None) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _umask() -> int:
    """Return the process's file mode mask; it can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """Make a rename durable where the system lets folders be opened (not on Windows)."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
