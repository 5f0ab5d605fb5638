"""Public survey files fetched into a folder of the user, whole and unchanged or not at all."""

from __future__ import annotations

import hashlib
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, Any

from dpsurvey.atomic import atomic_write
from dpsurvey.confidential.sniff import look_at
from dpsurvey.errors import ArgumentError, ArgumentTypeError, DownloadError, MissingFileError

TIMEOUT = 30.0  # seconds without a byte
_BLOCK = 1 << 16


def fetch(url: str, target: Path, sha256: str | None = None) -> Path:
    """Return a local copy of a transport file, downloaded unless it is there and has its checksum.

    The checksum is `sha256` where it is given; else it is recorded beside the file the first time, and the
    file must have it from then on. A file that was put in place by hand is treated alike.

    Parameters
    ----------
    url : str
    target : pathlib.Path
        Where the copy goes.
    sha256 : str, optional
        Checksum that the file must have, in hexadecimal.

    Returns
    -------
    pathlib.Path
        `target`.

    Raises
    ------
    DownloadError
        If the address cannot be reached, answers with something other than a whole transport file, or the
        file has another checksum.
    ArgumentError, ArgumentTypeError
        If `sha256` is no checksum.
    """
    pinned = _checked(sha256)
    record = target.with_name(target.name + ".sha256")
    if not target.is_file():
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise MissingFileError(
                f"the folder {str(target.parent)!r} cannot be made: {error.strerror}",
                hint="name another folder with cache_dir=",
            ) from None
        record.unlink(missing_ok=True)  # it spoke of a file that is gone
        _download(url, target, pinned)
    found = _digest(target)
    wanted = pinned or (record.read_text(encoding="utf-8").split()[0] if record.is_file() else None)
    if wanted is not None and found != wanted:
        raise DownloadError(
            f"{target.name!r} has another checksum than it must have",
            expected=f"sha256 {wanted}",
            got=f"sha256 {found} of {str(target)!r}",
            hint=f"it was changed or damaged: delete it to download it again from {url}",
        )
    if not record.is_file():
        with atomic_write(record) as file:
            file.write(f"{found}  {target.name}\n")
    return target


def _download(url: str, target: Path, pinned: str | None) -> None:
    """Stream an address into a file that appears only when it is whole."""
    request = urllib.request.Request(url, headers={"User-Agent": "dpsurvey"})
    failure = ""
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer, atomic_write(target, "wb") as file:
            _copy(url, answer, file, target.name, pinned)
        return
    except urllib.error.HTTPError as error:
        failure = f"the server answered {error.code} ({error.reason})"
        error.close()
    except urllib.error.URLError as error:
        failure = f"it cannot be reached ({error.reason})"
    except DownloadError:
        raise
    except OSError as error:
        failure = f"the connection broke ({type(error).__name__})"
    raise DownloadError(
        f"{target.name!r} could not be downloaded from {url}: {failure}",
        expected="a connection, and a file at this address",
        hint=f"check the component and cycle, or fetch {url} elsewhere and put it at {str(target)!r}",
    )


def _copy(url: str, answer: Any, file: IO[bytes], name: str, pinned: str | None) -> None:
    """Copy an answer block by block, with a progress bar, and refuse what is no whole transport file."""
    from tqdm.auto import tqdm

    announced = answer.headers.get("Content-Length")
    total = int(announced) if announced else None
    digest, size = hashlib.sha256(), 0
    with tqdm(total=total, unit="B", unit_scale=True, desc=name, leave=False) as bar:
        while block := answer.read(_BLOCK):
            if size == 0:
                _check_start(url, block)
            file.write(block)
            digest.update(block)
            size += len(block)
            bar.update(len(block))
    if size != (size if total is None else total) or size % 80 or not size:
        raise DownloadError(
            f"{name!r} arrived incomplete from {url}",
            expected="a multiple of 80 bytes" if total is None else f"{total:,} bytes, a multiple of 80",
            got=f"{size:,} bytes",
            hint="try again",
        )
    if pinned is not None and digest.hexdigest() != pinned:
        raise DownloadError(
            f"what {url} sends is not the file that was asked for",
            expected=f"sha256 {pinned}",
            got=f"sha256 {digest.hexdigest()}, {size:,} bytes",
            hint="the publisher may have revised the file: look at its documentation before changing sha256=",
        )


def _check_start(url: str, block: bytes) -> None:
    reader, looks_like = look_at(block)
    if reader != "xpt":
        raise DownloadError(
            f"{url} sends no survey file",
            expected="a SAS transport (XPT) file",
            got=looks_like,
            hint="check the component's name and cycle",
        )


def _checked(sha256: str | None) -> str | None:
    if sha256 is None:
        return None
    if not isinstance(sha256, str):
        raise ArgumentTypeError("sha256 must be text", expected="str", got=type(sha256).__name__)
    if not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
        raise ArgumentError(
            "sha256 is no SHA-256 checksum", expected="64 hexadecimal digits", got=repr(sha256)
        )
    return sha256.lower()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
