"""CmdStan: where it is, and programs compiled with it, kept in the user's cache directory."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsurvey.errors import DownloadError, EngineError, MissingDependencyError, MissingFileError

_LOCK_TIMEOUT = 1800.0  # seconds; another process may be compiling the same program
_TAIL = 15  # lines of a compiler's output that an error shows
WITHOUT_IT = "engine='gibbs' needs no installation and draws from the same posterior"


@dataclass(frozen=True, slots=True)
class CmdStan:
    """An installation of CmdStan.

    Parameters
    ----------
    path : pathlib.Path
        Its folder; never written to here.
    version : str
        As its makefile says, for example "2.36.0".
    """

    path: Path
    version: str


def load_cmdstanpy() -> Any:
    """Return the module cmdstanpy, or say how to get it.

    Raises
    ------
    MissingDependencyError
    """
    try:
        import cmdstanpy
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"{error.name} is not installed",
            expected="cmdstanpy, the optional part `stan` of dpsurvey: pip install 'dpsurvey[stan]'",
            hint=WITHOUT_IT,
        ) from None
    return cmdstanpy


def find_cmdstan() -> CmdStan:
    """Return the CmdStan that the variable CMDSTAN names, else the newest in ~/.cmdstan.

    Raises
    ------
    MissingDependencyError
        If there is none, or cmdstanpy is not installed.
    """
    cmdstanpy = load_cmdstanpy()
    named = os.environ.get("CMDSTAN")
    try:
        path = Path(cmdstanpy.cmdstan_path())
    except ValueError:
        raise MissingDependencyError(
            "the folder that CMDSTAN names is no CmdStan" if named else "CmdStan is not installed",
            expected="CmdStan, from its makers' site, in ~/.cmdstan or in the folder that CMDSTAN names",
            got=f"CMDSTAN={named}" if named else None,
            hint="`dpsurvey doctor --install-cmdstan` downloads and builds it (it needs make and a C++ compiler); "
            + WITHOUT_IT,
        ) from None
    return CmdStan(path, _version(path))


def _version(path: Path) -> str:
    """Return the version in CmdStan's makefile, where cmdstanpy looks for it too."""
    for line in (path / "makefile").read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, value = line.partition(":=")
        if name.strip() == "CMDSTAN_VERSION":
            return value.strip()
    return "unknown"


def executable(program: Path, cmdstan: CmdStan, *, progress: bool = False) -> Path:
    """Return the compiled program, from the cache where it is there.

    Parameters
    ----------
    program : pathlib.Path
        A .stan file without includes; its folder may be read-only.
    cmdstan : CmdStan
    progress : bool, default False
        Say so while it compiles.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    EngineError
        If the compiler fails, with the end of what it said.
    MissingFileError
        If the cache cannot be written.
    """
    from filelock import FileLock
    from tqdm.auto import tqdm

    target = cached_path(program, cmdstan)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MissingFileError(
            f"compiled programs cannot be kept in {target.parent}: {error.strerror}",
            hint=f"set XDG_CACHE_HOME to a folder that can be written; {WITHOUT_IT}",
        ) from None
    with FileLock(target.parent / "lock", timeout=_LOCK_TIMEOUT):
        if not os.access(target, os.X_OK):
            title = f"compiling {program.name}: once, about a minute"
            with tqdm(desc=title, bar_format="{desc}", leave=False, disable=not progress):
                _compile(program, target)
    return target


def cached_path(program: Path, cmdstan: CmdStan) -> Path:
    """Return where the executable of a program is kept: a folder for each code, CmdStan and kind of machine.

    CmdStan's folder counts beside its version, since an executable loads libraries from there.
    """
    from platformdirs import user_cache_path

    parts = (
        program.read_text(encoding="utf-8"),
        cmdstan.version,
        str(cmdstan.path.resolve()),
        platform.system(),
        platform.machine(),
    )
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    suffix = ".exe" if platform.system() == "Windows" else ""
    return user_cache_path("dpsurvey") / "stan" / key / (program.stem + suffix)


def _compile(program: Path, target: Path) -> None:
    """Compile in a folder of our own, then move the executable to its place in one step."""
    cmdstanpy = load_cmdstanpy()
    with tempfile.TemporaryDirectory(prefix="dpsurvey-stan-") as folder, cmdstanpy.disable_logging():
        source = Path(shutil.copyfile(program, Path(folder) / program.name))
        try:
            model = cmdstanpy.CmdStanModel(stan_file=str(source))
        except (ValueError, RuntimeError, OSError) as error:
            raise EngineError(
                f"CmdStan could not compile {program.name}",
                expected="make and a C++ compiler that this CmdStan works with",
                got="\n" + "\n".join(str(error).strip().splitlines()[-_TAIL:]),
                hint=f"`dpsurvey doctor` shows which CmdStan is used; {WITHOUT_IT}",
            ) from None
        part = target.with_name(f".{target.name}.part")
        shutil.copy2(model.exe_file, part)
        part.replace(target)


def install_cmdstan(*, progress: bool = True, **options: Any) -> CmdStan:
    """Download CmdStan from its makers' site and build it, with cmdstanpy's installer.

    Parameters
    ----------
    progress : bool, default True
        Show a progress bar of the download.
    **options
        For ``cmdstanpy.install_cmdstan``: ``version``, ``dir``, ``overwrite``, ``cores``.

    Returns
    -------
    CmdStan

    Raises
    ------
    MissingDependencyError
        If cmdstanpy is not installed.
    DownloadError
        If it could not be downloaded or built.
    """
    cmdstanpy = load_cmdstanpy()
    try:
        done = cmdstanpy.install_cmdstan(progress=progress, **options)
    except Exception as error:  # its installer raises whatever its parts raise
        done, reason = False, f"{type(error).__name__}: {str(error)[:300]}"
    else:
        reason = "its installer says that it failed"
    if not done:
        raise DownloadError(
            f"CmdStan was not installed: {reason}",
            expected="a network that reaches its makers' site, make and a C++ compiler",
            hint=f"unpack and build a release by hand and set CMDSTAN to its folder; or do without: {WITHOUT_IT}",
        )
    return find_cmdstan()
