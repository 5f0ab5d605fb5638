"""The budget file: exact sums, refusals that write nothing, and locks that every name of a file shares."""

from __future__ import annotations

import os
import tempfile
import threading
import time
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsurvey.errors import (
    ArgumentError,
    ArgumentTypeError,
    BudgetExceededError,
    LargeEpsilonWarning,
    LedgerError,
    MissingFileError,
)
from dpsurvey.privacy import ledger_file
from dpsurvey.privacy.ledger import Ledger, as_ledger
from dpsurvey.privacy.ledger_lines import line_hash
from dpsurvey.privacy.ledger_receipts import Receipt

SPEC = {"variables": ["Kcal", "Grain"], "n": 5820}


def filled(book: Ledger) -> bytes:
    for epsilon in (0.1, 0.2, 0.3):
        book.reserve(epsilon, SPEC)
    return book.path.read_bytes()


@pytest.fixture
def book(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "diet.ledger.json", dataset="diet", budget=1.0)


def test_a_new_ledger_has_its_whole_budget(book: Ledger) -> None:
    assert (book.dataset, book.budget, book.spent, book.remaining) == ("diet", 1, 0, 1)
    assert len(book.summary()) == 0
    assert list(book.summary().columns) == ["sequence", "epsilon", "delta", "remaining", "file"]
    assert (book.delta, book.accounting, book.neighbours) == (0, "pure", "substitute one row")
    assert book.status() == "ledger diet.ledger.json: 'diet', budget 1.0, spent 0, remaining 1.0"
    assert Ledger.open(book.path) == book
    assert not [name for name in os.listdir(book.path.parent) if name.endswith(".part")]


def test_reservations_add_up_and_are_listed(book: Ledger) -> None:
    first, second = book.reserve(0.25, SPEC), book.reserve(0.5, {"mechanism": "rgm"})
    assert (first.sequence, second.sequence) == (1, 2)
    assert first.dataset == second.dataset == "diet"
    lines = book.path.read_bytes().splitlines(keepends=True)
    assert (first.head, second.head) == (line_hash(lines[1]), line_hash(lines[2]))
    assert (book.spent, book.remaining) == (Decimal("0.75"), Decimal("0.25"))
    table = book.summary()
    assert table["sequence"].tolist() == [1, 2]
    assert table["epsilon"].tolist() == ["0.25", "0.5"]
    assert table["remaining"].tolist() == ["0.75", "0.25"]
    assert table["n"].tolist()[0] == "5820"
    assert table["mechanism"].tolist()[1] == "rgm"


def test_a_spec_cannot_pass_itself_off_as_an_amount(book: Ledger) -> None:
    book.reserve(0.5, {"remaining": "9", "epsilon": "0", "sequence": 7, "file": "x", "delta": "1"})
    expected = {"sequence": 1, "epsilon": "0.5", "delta": "0", "remaining": "0.5", "file": ""}
    assert book.summary().iloc[0].to_dict() == expected


def test_ten_tenths_of_one_pass_and_the_eleventh_is_refused(book: Ledger) -> None:
    for _ in range(10):
        book.reserve(0.1, SPEC)
    assert book.remaining == 0
    before = book.path.read_bytes()
    with pytest.raises(BudgetExceededError) as caught:
        book.reserve(0.1, SPEC)
    assert caught.value.code == "DPS301"
    assert book.path.read_bytes() == before


def test_overspending_shows_requested_remaining_and_difference(book: Ledger) -> None:
    book.reserve(0.9, SPEC)
    with pytest.raises(BudgetExceededError) as caught:
        book.reserve(0.3, SPEC)
    text = str(caught.value)
    assert "requested epsilon 0.3, remaining 0.1: 0.2 too much" in text
    assert "'diet'" in text
    assert book.spent == Decimal("0.9")


def test_not_even_a_hair_is_lost_to_rounding(book: Ledger) -> None:
    """Sums in 28 digits would forget 1e-40, and let more than the budget be spent."""
    book.reserve(1e-40, SPEC)
    with pytest.raises(BudgetExceededError):
        book.reserve(1.0, SPEC)
    assert book.spent == Decimal("1E-40")
    book.reserve(0.5, SPEC)
    assert Fraction(str(book.remaining)) == Fraction(1, 2) - Fraction("1e-40")


@settings(max_examples=30, deadline=None)
@given(
    st.floats(1e-300, 9.0),
    st.lists(st.floats(5e-324, 5.0), min_size=1, max_size=12),
)
def test_the_budget_is_never_exceeded_in_exact_numbers(budget: float, requests: list[float]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        book = Ledger.create(Path(folder) / "ledger", dataset="d", budget=budget)
        granted = Fraction(0)
        limit = Fraction(repr(budget))
        for epsilon in requests:
            fits = granted + Fraction(repr(epsilon)) <= limit
            if fits:
                book.reserve(epsilon, {})
                granted += Fraction(repr(epsilon))
            else:
                with pytest.raises(BudgetExceededError):
                    book.reserve(epsilon, {})
        assert Fraction(str(book.spent)) == granted
        assert Fraction(str(book.remaining)) == limit - granted


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), True, "1", None])
def test_amounts_that_are_none_are_refused_and_nothing_is_written(book: Ledger, epsilon) -> None:
    before = book.path.read_bytes()
    with pytest.raises((ArgumentError, ArgumentTypeError)):
        book.reserve(epsilon, SPEC)
    assert book.path.read_bytes() == before


@pytest.mark.parametrize(
    "spec",
    [{"x": object()}, {"x": float("nan")}, {("a", "b"): 1}, {"x": {1, 2}}],
    ids=["object", "NaN", "tuple", "set"],
)
def test_a_spec_that_fits_no_json_is_refused_and_nothing_is_written(book: Ledger, spec) -> None:
    before = book.path.read_bytes()
    with pytest.raises(ArgumentTypeError):
        book.reserve(0.1, spec)
    assert book.path.read_bytes() == before


def test_a_spec_too_long_to_be_read_again_is_refused_and_nothing_is_written(book: Ledger) -> None:
    before = book.path.read_bytes()
    with pytest.raises(ArgumentError, match="too long"):
        book.reserve(0.1, {"variables": ["x" * 1000] * 1100})
    assert book.path.read_bytes() == before
    book.reserve(0.1, {"variables": ["x" * 1000] * 1000})
    assert book.spent == Decimal("0.1")


def test_any_text_can_be_a_label_or_a_name(tmp_path: Path) -> None:
    """Line separators other than the newline, quotes, nulls."""
    odd = 'a\u2028b\x85c\nd"e\\\x00 é\x1c'
    book = Ledger.create(tmp_path / "odd", dataset=odd, budget=2.0)
    book.reserve(1.0, {"variables": [odd]})
    assert Ledger.open(book.path).dataset == odd
    assert book.spent == 1
    assert book.path.read_bytes().count(b"\n") == 2


# --- making one


def test_a_ledger_is_never_made_twice(book: Ledger) -> None:
    book.reserve(0.5, SPEC)
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(book.path, dataset="diet", budget=9.0)
    assert book.remaining == Decimal("0.5")


@pytest.mark.parametrize("budget", [0, -1, float("nan"), float("inf"), True, "3", None])
def test_a_budget_that_is_none_is_refused(tmp_path: Path, budget) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match="budget"):
        Ledger.create(tmp_path / "l", dataset="d", budget=budget)
    assert not (tmp_path / "l").exists()


@pytest.mark.parametrize("dataset", ["", "  ", None, 5, "\udc80"])
def test_a_data_set_needs_a_label(tmp_path: Path, dataset) -> None:
    with pytest.raises(ArgumentError, match="label"):
        Ledger.create(tmp_path / "l", dataset=dataset, budget=1.0)


def test_a_large_budget_warns_once_at_its_creation(tmp_path: Path) -> None:
    with pytest.warns(LargeEpsilonWarning, match="budget = 20"):
        book = Ledger.create(tmp_path / "l", dataset="d", budget=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # whoever reserves was warned when epsilon came in
        book.reserve(15, {})


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="folder"):
        Ledger.create(tmp_path / "nowhere" / "l", dataset="d", budget=1.0)
    with pytest.raises(MissingFileError, match="no ledger"):
        Ledger.open(tmp_path / "nowhere" / "l")


def test_a_missing_ledger_is_named_and_not_made(tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    with pytest.raises(MissingFileError, match=r"Ledger\.create"):
        Ledger.open(path)
    with pytest.raises(MissingFileError):
        Ledger(path).reserve(0.1, SPEC)
    assert not path.exists()


@pytest.mark.parametrize("path", [5, None, 1.5, ["x"]])
def test_what_is_no_path_is_refused(path) -> None:
    for use in (as_ledger, Ledger.open, Ledger, lambda p: Ledger.create(p, dataset="d", budget=1.0)):
        with pytest.raises(ArgumentTypeError, match="not a path"):
            use(path)


def test_a_ledger_is_a_ledger_or_its_path(book: Ledger) -> None:
    assert as_ledger(book) is book
    assert as_ledger(book.path) == as_ledger(str(book.path)) == book


def test_every_name_of_a_ledger_reaches_the_same_lock(book, tmp_path, monkeypatch) -> None:
    """Symbolic links, hard links, relative paths: the lock lies on the file itself."""
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "soft.json").symlink_to(book.path)
    (other / "hard.json").hardlink_to(book.path)
    monkeypatch.chdir(other)
    relative = Ledger.open(Path("..") / book.path.name)
    assert Ledger.open("soft.json") == relative == book
    hard = Ledger.open("hard.json")
    monkeypatch.chdir("/")
    monkeypatch.setattr(ledger_file, "LOCK_TIMEOUT", 0.05)
    for one, another in ((book, hard), (hard, relative)):
        with ledger_file.locked(one.path), pytest.raises(LedgerError, match="locked by another process"):
            another.reserve(0.1, SPEC)
    hard.reserve(0.5, SPEC)
    relative.reserve(0.5, SPEC)
    assert hard.remaining == book.remaining == 0
    assert sorted(path.name for path in tmp_path.rglob("*.json")) == [
        "diet.ledger.json", "hard.json", "soft.json",
    ]  # fmt: skip
    assert not list(tmp_path.rglob("*lock*"))


# --- crashes


@pytest.mark.parametrize("kept", [1, 40, -2, -10])
def test_a_last_line_that_breaks_off_never_returned_and_is_voided_by_the_next_writer(
    book: Ledger, kept: int
) -> None:
    filled(book)
    lines = book.path.read_bytes().splitlines(keepends=True)
    book.path.write_bytes(b"".join(lines[:3]) + lines[3][:kept])
    assert book.spent == Decimal("0.3")
    receipt = book.reserve(0.7, SPEC)
    assert receipt.sequence == 3
    assert (book.spent, book.remaining) == (1, 0)
    assert book.path.read_bytes().splitlines(keepends=True)[:3] == lines[:3]


def test_a_last_line_without_its_newline_is_voided_by_the_next_writer(book: Ledger) -> None:
    filled(book)
    lines = book.path.read_bytes().splitlines(keepends=True)
    book.path.write_bytes(b"".join(lines)[:-1])
    assert (book.spent, book.remaining) == (Decimal("0.3"), Decimal("0.7"))
    assert book.reserve(0.25, SPEC).sequence == 3
    assert book.path.read_bytes().startswith(b"".join(lines[:3]))
    assert book.remaining == Decimal("0.45")


def test_a_refusal_leaves_a_part_line_where_it_is(book: Ledger) -> None:
    filled(book)
    content = book.path.read_bytes() + b'{"epsilon": "0.4", '
    book.path.write_bytes(content)
    with pytest.raises(BudgetExceededError):
        book.reserve(0.5, SPEC)
    assert book.path.read_bytes() == content


def test_a_disk_that_refuses_gives_a_named_error_and_no_receipt(book: Ledger, monkeypatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ledger_file.os, "fsync", full)
    with pytest.raises(LedgerError, match="No space left"):
        book.reserve(0.4, SPEC)
    monkeypatch.undo()
    assert book.spent in (0, Decimal("0.4"))  # spent where the line reached the file
    book.reserve(0.1, SPEC)
    Ledger.open(book.path)


def test_a_lock_that_is_held_gives_a_named_error(book: Ledger, monkeypatch) -> None:
    monkeypatch.setattr(ledger_file, "LOCK_TIMEOUT", 0.05)
    with ledger_file.locked(book.path), pytest.raises(LedgerError, match="locked by another process"):
        book.reserve(0.1, SPEC)
    assert book.spent == 0


def test_whoever_waited_for_a_file_that_was_replaced_spends_from_the_new_one(book: Ledger) -> None:
    """An editor saves by renaming: the lock of the old file must not let two writers in."""
    content = book.path.read_bytes()
    receipts: list[Receipt] = []
    waiting = threading.Thread(target=lambda: receipts.append(book.reserve(0.25, SPEC)))
    with ledger_file.locked(book.path):
        waiting.start()
        time.sleep(0.05)
        new = book.path.with_name("new")
        new.write_bytes(content)
        new.replace(book.path)
    waiting.join()
    assert [receipt.sequence for receipt in receipts] == [1]
    assert book.spent == Decimal("0.25")


def test_a_disk_without_locks_gives_a_named_error(book: Ledger, monkeypatch) -> None:
    import fcntl

    def unsupported(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with pytest.raises(LedgerError, match="cannot be locked: Operation not supported"):
        book.reserve(0.1, SPEC)
    assert book.spent == 0


def test_a_ledger_can_be_made_where_there_are_no_hard_links(tmp_path: Path, monkeypatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(ledger_file.os, "link", refused)
    book = Ledger.create(tmp_path / "l.json", dataset="d", budget=1.0)
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(book.path, dataset="d", budget=2.0)
    assert (book.budget, os.listdir(tmp_path)) == (1, ["l.json"])


def test_threads_wait_for_each_other(book: Ledger) -> None:
    outcomes: list[bool] = []

    def spend() -> None:
        for _ in range(4):
            try:
                book.reserve(0.1, SPEC)
                outcomes.append(True)
            except BudgetExceededError:
                outcomes.append(False)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count(True) == 10
    assert len(outcomes) == 16
    assert book.remaining == 0
