"""Named errors: one code each, the built-in kind a caller expects, and all of it across processes."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

import dpsurvey.errors as module
from dpsurvey.errors import (
    ArgumentError,
    DpsurveyError,
    DpsurveyWarning,
    MissingFileError,
)

CLASSES = [c for _, c in inspect.getmembers(module, inspect.isclass) if c.__module__ == module.__name__]
ERRORS = [c for c in CLASSES if issubclass(c, DpsurveyError)]
WARNINGS = [c for c in CLASSES if issubclass(c, Warning)]


def test_everything_in_the_module_is_an_error_or_a_warning() -> None:
    assert set(CLASSES) == {*ERRORS, *WARNINGS}
    assert len(ERRORS) > 10


def test_codes_are_unique_and_stable_in_form() -> None:
    codes = [error.code for error in ERRORS]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"DPS\d{3}", code) for code in codes)
    assert len({error.title for error in ERRORS}) == len(ERRORS)


@pytest.mark.parametrize("error", [e for e in ERRORS if e is not DpsurveyError], ids=lambda e: e.__name__)
def test_each_is_also_the_built_in_error_a_caller_expects(error: type[DpsurveyError]) -> None:
    assert issubclass(error, ValueError | TypeError | OSError | RuntimeError)
    assert error.__doc__
    with pytest.raises(DpsurveyError):
        raise error("what went wrong")


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: e.__name__)
def test_text_has_code_title_detail_and_what_else_is_known(error: type[DpsurveyError]) -> None:
    bare = error("it broke")
    assert str(bare) == f"[{error.code}] {error.title}: it broke"
    full = error("it broke", expected="this", got="that", hint="do so")
    assert str(full) == f"{bare}\n  expected: this\n  got: that\n  hint: do so"
    assert (full.detail, full.expected, full.got, full.hint) == ("it broke", "this", "that", "do so")


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: e.__name__)
def test_copies_and_pickles_lose_nothing(error: type[DpsurveyError]) -> None:
    original = error("it broke", expected="this", got="that", hint="do so")
    for twin in (pickle.loads(pickle.dumps(original)), copy.copy(original), copy.deepcopy(original)):
        assert type(twin) is error
        assert str(twin) == str(original)
        assert (twin.expected, twin.got, twin.hint) == ("this", "that", "do so")


def test_an_error_comes_back_from_a_worker_process() -> None:
    """As when a simulation runs in a pool: the worker's error is pickled and raised here."""
    from dpsurvey.privacy.budget import check_epsilon

    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        pytest.raises(ArgumentError) as caught,
    ):
        pool.submit(check_epsilon, -1.0).result()
    assert caught.value.code == "DPS101"
    assert (caught.value.got, caught.value.expected) == ("-1.0", "a number above 0, such as 1.0")


def test_file_errors_are_caught_as_os_errors() -> None:
    with pytest.raises(OSError) as caught:
        raise MissingFileError("no such file", got="there")
    assert "there" in str(caught.value)


@pytest.mark.parametrize("warning", WARNINGS, ids=lambda w: w.__name__)
def test_warnings_can_be_silenced_together(warning: type[Warning]) -> None:
    assert issubclass(warning, DpsurveyWarning)
    assert issubclass(warning, UserWarning)
    assert warning.__doc__
