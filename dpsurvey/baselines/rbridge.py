"""R inside Python, through rpy2: whether it can be had, and calls that leave no trace in the session."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsurvey.errors import EngineError, MissingDependencyError
from dpsurvey.resources import resource

_GET_R = (
    "install R (Debian, Ubuntu: apt-get install r-base-core r-base-dev), then "
    'pip install "dpsurvey[r]"; with R older than 4.5: pip install rpy2 "rpy2-rinterface<3.6.6"'
)


class RSession:
    """R as dpsurvey uses it: local converters, captured printing, R's messages as Python errors.

    Nothing is activated globally, so other users of rpy2 in the process notice nothing. Get one by
    :func:`open_r`.
    """

    def __init__(self, robjects: Any) -> None:
        self._robjects = robjects
        with self._guarded():
            evaluate = robjects.r
            self._code = evaluate("function(path) { e <- new.env(); sys.source(path, e); e }")(
                str(resource("r_bridge", "R", "erl.R"))
            )
            self.version = str(evaluate("paste(R.version$major, R.version$minor, sep = '.')")[0])

    def package_version(self, package: str) -> str | None:
        """Return the version of an installed R package, None where it is not installed."""
        probe = (
            "function(x) if (requireNamespace(x, quietly = TRUE)) "
            "as.character(utils::packageVersion(x)) else ''"
        )
        with self._guarded():
            version = str(self._robjects.r(probe)(package)[0])
        return version or None

    def call(self, function: str, *args: Any) -> Any:
        """Call a function of r_bridge/R/erl.R.

        Parameters
        ----------
        function : str
        *args : float, int, str or ndarray of float64 with one or two axes
            Arrays cross as double vectors or matrices; nan is NA to the function.

        Returns
        -------
        ndarray
            The function's numeric result, copied out of R, with R's axes.

        Raises
        ------
        EngineError
            If R stops with an error; holds R's message.
        KeyboardInterrupt
            If the user interrupts; R has then unwound, and its generator's state is as before.
        """
        with self._guarded():
            result = self._code[function](*(self._to_r(arg) for arg in args))
            return np.array(result, dtype=np.float64)

    def _to_r(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        flat = self._robjects.FloatVector(np.asarray(value, dtype=np.float64).ravel(order="F"))
        if value.ndim == 2:
            return self._robjects.r.matrix(flat, nrow=value.shape[0], ncol=value.shape[1])
        return flat

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Convert locally, silence R's console, turn R errors into ours and Ctrl-C into an R interrupt."""
        from rpy2.rinterface_lib.embedded import RRuntimeError

        robjects = self._robjects
        with ExitStack() as stack:
            stack.enter_context(robjects.conversion.localconverter(robjects.default_converter))
            stack.enter_context(_silent_console())
            interrupted = stack.enter_context(_interruptible())
            try:
                yield
            except RRuntimeError as error:
                if not interrupted():
                    raise EngineError(
                        f"R stopped: {str(error).strip()}",
                        hint="the message is R's own; engine='native' needs no R",
                    ) from None
            if interrupted():
                raise KeyboardInterrupt


_session: RSession | None = None


def open_r() -> RSession:
    """Return the R session of this process, starting R on first use.

    Raises
    ------
    EngineError
        From any thread but the main one, since R has one stack and one interpreter state; and where Python
        runs inside R (reticulate), since R cannot be entered again from there.
    MissingDependencyError
        If rpy2 or R is not installed, or they do not fit each other.
    """
    global _session
    _refuse_second_thread()
    _refuse_python_in_r()
    if _session is None:
        with _same_loader_path():
            _session = RSession(_import_robjects())
    return _session


def best_engine() -> tuple[str, str]:
    """Return the engine that ``engine="auto"`` takes, and the reason in words.

    Examples
    --------
    >>> best_engine()[0] in {"sbgcop", "r", "native"}
    True
    """
    try:
        session = open_r()
    except (EngineError, MissingDependencyError) as error:
        return "native", f"R cannot be used here ({error.detail})"
    version = session.package_version("sbgcop")
    if version is not None:
        return "sbgcop", f"sbgcop {version} is installed in R {session.version}"
    return "r", f"R {session.version} is here, without the package sbgcop"


def rpy2_version() -> str:
    """Return the installed version of rpy2."""
    from importlib.metadata import version

    return version("rpy2")


def _refuse_second_thread() -> None:
    if threading.current_thread() is not threading.main_thread():
        raise EngineError(
            "R was called from a second thread",
            expected="the main thread: R has one interpreter and checks its stack against that thread's",
            got=f"thread {threading.current_thread().name!r}",
            hint="call it from the main thread, or use engine='native', which runs in any thread",
        )


def _refuse_python_in_r() -> None:
    """Refuse where R runs this Python: reticulate loads the module ``rpycall`` and exports its process id."""
    exported = dict(item.split("=", 1) for item in _r_session_items() if "=" in item)
    if "rpycall" in sys.modules or exported.get("PID") == str(os.getpid()):
        raise EngineError(
            "this Python runs inside R, and R cannot be entered again from it",
            hint="in R call dpsurvey::dp_erl(), which runs sbgcop in R itself; engine='native' works here",
        )


def _r_session_items() -> list[str]:
    return os.environ.get("R_SESSION_INITIALIZED", "").split(":")


def _import_robjects() -> Any:
    try:
        with _silent_console():  # a user's .Rprofile may print
            import rpy2.robjects as robjects
            import rpy2.robjects.conversion  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingDependencyError(f"{error.name} is not installed", hint=_GET_R) from None
    except Exception as error:  # rpy2 raises many kinds when R is absent, too old or too new
        first_line = str(error).strip().split("\n")[0]
        raise MissingDependencyError(
            f"rpy2 cannot start R ({type(error).__name__}: {first_line})", hint=_GET_R
        ) from None
    return robjects


@contextmanager
def _same_loader_path() -> Iterator[None]:
    """Put LD_LIBRARY_PATH back as it was.

    rpy2 sets it to R's, too late for this process, whose libraries are loaded by then; but a Python started from
    here would inherit it and could load another Python's shared libraries.
    """
    name = "LD_LIBRARY_PATH"
    before = os.environ.get(name)
    try:
        yield
    finally:
        os.environ[name] = before or ""  # so that deleting it reaches what C code has set, too
        if before is None:
            del os.environ[name]


@contextmanager
def _silent_console() -> Iterator[None]:
    """Drop what R prints: sbgcop's progress, messages and warnings (these go to stderr in R)."""
    from rpy2.rinterface_lib import callbacks

    names = ("consolewrite_print", "consolewrite_warnerror")
    old = {name: getattr(callbacks, name) for name in names}
    for name in names:
        setattr(callbacks, name, _drop)
    try:
        yield
    finally:
        for name in names:
            setattr(callbacks, name, old[name])


def _drop(text: str) -> None:
    """Take the place of a console."""


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C reach R while R computes.

    A KeyboardInterrupt raised inside one of R's callbacks is lost, so a handler of our own asks R to unwind
    at its next check; the caller then raises it. Yields a function that tells whether that has happened.
    """
    from rpy2.rinterface_lib import openrlib

    seen = threading.Event()

    def ask_r_to_stop(signum: int, frame: Any) -> None:
        seen.set()
        openrlib.rlib.R_interrupts_pending = 1

    old = signal.signal(signal.SIGINT, ask_r_to_stop)
    try:
        yield seen.is_set
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if old is None else old)


def to_draws(psamp: NDArray[np.float64]) -> NDArray[np.float64]:
    """Move sbgcop's (p, p, draw) to (draw, p, p).

    Examples
    --------
    >>> to_draws(np.zeros((2, 2, 5))).shape
    (5, 2, 2)
    """
    return np.moveaxis(psamp, 2, 0).copy()
