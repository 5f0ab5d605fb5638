"""The budget file: exact sums, refusals that write nothing, damage that shows, and one winner of every race."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
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
from dpsurvey.privacy import ledger as ledger_module
from dpsurvey.privacy.ledger import Ledger, as_ledger
from dpsurvey.privacy.ledger_lines import check_lines, line_hash, to_line

SPEC = {"variables": ["Kcal", "Grain"], "n": 5820}


@pytest.fixture
def book(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "diet.ledger.json", dataset="diet", budget=1.0)


def test_a_new_ledger_has_its_whole_budget(book: Ledger) -> None:
    assert (book.dataset, book.budget, book.spent, book.remaining) == ("diet", 1, 0, 1)
    assert len(book.summary()) == 0
    assert list(book.summary().columns) == ["sequence", "epsilon", "remaining"]
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
    book.reserve(0.5, {"remaining": "9", "epsilon": "0", "sequence": 7})
    assert book.summary().iloc[0].to_dict() == {"sequence": 1, "epsilon": "0.5", "remaining": "0.5"}


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


def test_links_and_relative_paths_reach_the_same_ledger_and_the_same_lock(
    book, tmp_path, monkeypatch
) -> None:
    link = tmp_path / "elsewhere" / "link.json"
    link.parent.mkdir()
    link.symlink_to(book.path)
    monkeypatch.chdir(tmp_path / "elsewhere")
    relative = Ledger.open(Path("..") / book.path.name)
    assert Ledger.open(link) == relative == book
    monkeypatch.chdir("/")
    relative.reserve(0.5, SPEC)
    Ledger.open(link).reserve(0.5, SPEC)
    assert book.remaining == 0
    assert [path.name for path in tmp_path.rglob("*.lock")] == [book.path.name + ".lock"]


# --- damage


def filled(book: Ledger) -> bytes:
    for epsilon in (0.1, 0.2, 0.3):
        book.reserve(epsilon, SPEC)
    return book.path.read_bytes()


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_every_changed_byte_is_refused_with_its_line(book: Ledger, number: int) -> None:
    """One changed byte anywhere, the last line's own included, but for a newline turned into something else."""
    content = filled(book)
    lines = content.splitlines(keepends=True)
    start = sum(map(len, lines[: number - 1]))
    for at in range(start, start + len(lines[number - 1]) - 1):
        changed = bytearray(content)
        changed[at] ^= 1
        if changed[at] == ord("\n"):
            continue
        book.path.write_bytes(changed)
        with pytest.raises(LedgerError, match=rf"line {number} of diet\.ledger\.json"):
            Ledger.open(book.path)
        with pytest.raises(LedgerError):
            book.reserve(0.1, SPEC)
        assert book.path.read_bytes() == changed


def damaged_files() -> dict[str, object]:
    def without(number: int):
        return lambda lines: lines[: number - 1] + lines[number:]

    return {
        "line 3 missing": (without(3), 3),
        "lines swapped": (lambda lines: [lines[0], lines[2], lines[1], lines[3]], 2),
        "line twice": (lambda lines: [*lines, lines[-1]], 5),
        "blank line": (lambda lines: [*lines[:2], b"\n", *lines[2:]], 3),
        "header missing": (without(1), 1),
        "not JSON": (lambda lines: [*lines[:3], b"{'epsilon': 1}\n"], 4),
        "not a record": (lambda lines: [*lines[:3], b"[1, 2]\n"], 4),
        "nested": (lambda lines: [*lines[:3], b"[" * 100_000 + b"\n"], 4),
        "huge number": (lambda lines: [*lines[:3], b"1" * 10_000 + b"\n"], 4),
        "not UTF-8": (lambda lines: [*lines[:3], b'{"a": "\xff"}\n'], 4),
        "spaces": (lambda lines: [*lines[:3], lines[3].replace(b": ", b":")], 4),
        "line ends of Windows": (lambda lines: [line.replace(b"\n", b"\r\n") for line in lines], 1),
    }


@pytest.mark.parametrize("kind", damaged_files())
def test_damage_is_refused_with_the_line_number(book: Ledger, kind: str) -> None:
    damage, number = damaged_files()[kind]  # type: ignore[misc]
    filled(book)
    content = b"".join(damage(book.path.read_bytes().splitlines(keepends=True)))
    book.path.write_bytes(content)
    for use in (
        lambda: Ledger.open(book.path),
        lambda: book.remaining,
        lambda: book.reserve(0.1, SPEC),
        book.summary,
    ):
        with pytest.raises(LedgerError, match=f"line {number} "):
            use()
    assert book.path.read_bytes() == content


def rewrite(book: Ledger, number: int, **changes: object) -> None:
    """Rewrite a line with a checksum that fits, as whoever knows the format could."""
    lines = book.path.read_bytes().splitlines(keepends=True)
    record = json.loads(lines[number - 1])
    record.pop("sha256")
    record |= changes
    lines[number - 1] = to_line({key: value for key, value in record.items() if value is not None})
    book.path.write_bytes(b"".join(lines))


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": "0.05"}, {"epsilon": "0.50"}, {"epsilon": "5e-1"}, {"epsilon": "-1.0"}, {"epsilon": "NaN"},
        {"epsilon": "Infinity"}, {"epsilon": "1_0.0"}, {"epsilon": 0.5}, {"epsilon": None}, {"more": 1}, {"spec": []},
        {"sequence": 7}, {"previous": "0" * 64},
    ],
    ids=str,
)  # fmt: skip
def test_a_rewritten_line_is_refused_by_what_follows_or_by_its_fields(book: Ledger, changes) -> None:
    filled(book)
    rewrite(book, 3, **changes)
    with pytest.raises(LedgerError, match=r"line [34] "):
        Ledger.open(book.path)


@pytest.mark.parametrize(
    "changes",
    [
        {"dpsurvey_ledger": 2}, {"dpsurvey_ledger": None}, {"budget": "3"}, {"budget": 3}, {"budget": "0.0"},
        {"budget": None}, {"dataset": 5}, {"dataset": "\udc80"}, {"more": 1},
    ],
    ids=str,
)  # fmt: skip
def test_a_header_of_another_kind_is_refused(book: Ledger, changes) -> None:
    rewrite(book, 1, **changes)
    with pytest.raises(LedgerError, match="line 1 "):
        Ledger.open(book.path)


def test_another_neighbour_rule_is_refused(book: Ledger) -> None:
    rewrite(book, 1, neighbours="add or remove one row")
    with pytest.raises(LedgerError, match="neighbour rule"):
        Ledger.open(book.path)


@pytest.mark.parametrize("content", [b"", b"half a header"])
def test_an_empty_file_is_no_ledger(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "l"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="empty"):
        Ledger.open(path)


def test_a_folder_is_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be read"):
        Ledger.open(tmp_path)


def test_the_lines_alone_can_be_checked() -> None:
    with pytest.raises(LedgerError, match="line 1 "):
        check_lines([to_line({"a": 1})], "x")


# --- crashes


@pytest.mark.parametrize("kept", [1, 40, -1])
def test_a_last_line_without_its_newline_never_returned_and_is_voided_by_the_next_writer(
    book, kept: int
) -> None:
    filled(book)
    lines = book.path.read_bytes().splitlines(keepends=True)
    book.path.write_bytes(b"".join(lines[:3]) + lines[3][:kept])
    assert book.spent == Decimal("0.3")
    receipt = book.reserve(0.7, SPEC)
    assert receipt.sequence == 3
    assert (book.spent, book.remaining) == (1, 0)
    assert book.path.read_bytes().splitlines(keepends=True)[:3] == lines[:3]


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

    monkeypatch.setattr(ledger_module.os, "fsync", full)
    with pytest.raises(LedgerError, match="No space left"):
        book.reserve(0.4, SPEC)
    monkeypatch.undo()
    assert book.spent in (0, Decimal("0.4"))  # spent where the line reached the file
    book.reserve(0.1, SPEC)
    Ledger.open(book.path)


def test_a_lock_that_is_held_gives_a_named_error(book: Ledger, monkeypatch) -> None:
    from filelock import FileLock

    monkeypatch.setattr(ledger_module, "_LOCK_TIMEOUT", 0.05)
    with FileLock(f"{book.path}.lock"), pytest.raises(LedgerError, match="locked by another process"):
        book.reserve(0.1, SPEC)
    assert book.spent == 0


def test_a_lock_that_cannot_be_made_gives_a_named_error(book: Ledger) -> None:
    (book.path.parent / f"{book.path.name}.lock").unlink(missing_ok=True)
    (book.path.parent / f"{book.path.name}.lock").mkdir()
    with pytest.raises(MissingFileError, match="cannot be locked"):
        book.reserve(0.1, SPEC)


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


RACER = """
import sys, time
from dpsurvey.errors import BudgetExceededError
from dpsurvey.privacy.ledger import Ledger
print("ready", flush=True)
for line in sys.stdin:
    start, epsilon, path = line.rstrip("\\n").split(" ", 2)
    while time.time() < float(start):
        pass
    try:
        print(Ledger.open(path).reserve(float(epsilon), {}).sequence, flush=True)
    except BudgetExceededError:
        print("refused", flush=True)
"""


@pytest.fixture(scope="module")
def racers():
    """Two processes that wait to reserve at the same moment."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RACER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 2
    yield processes
    for process in processes:
        process.communicate()
        assert process.returncode == 0


def test_of_two_processes_that_race_for_the_last_of_a_budget_exactly_one_wins(racers, tmp_path: Path) -> None:
    for race in range(20):
        book = Ledger.create(tmp_path / f"{race}.json", dataset="d", budget=1.0)
        start = time.time() + 0.02
        for process in racers:
            process.stdin.write(f"{start} 0.6 {book.path}\n")
            process.stdin.flush()
        outcomes = sorted(process.stdout.readline().strip() for process in racers)
        assert outcomes == ["1", "refused"]
        assert book.spent == Decimal("0.6")


KILLED = """
import sys
from dpsurvey.privacy.ledger import Ledger
book = Ledger.open(sys.argv[1])
print("ready", flush=True)
while True:
    print(book.reserve(0.001, {"variables": ["x" * 200]}).sequence, flush=True)
"""


def test_a_killed_process_leaves_a_ledger_that_counts_all_it_was_told(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "l.json", dataset="d", budget=9.0)
    for wait in (0.01, 0.05, 0.11):
        with subprocess.Popen(
            [sys.executable, "-c", KILLED, str(book.path)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(wait)
            process.send_signal(signal.SIGKILL)
            told = [int(line) for line in process.stdout.read().splitlines() if line]
        assert book.spent >= Decimal("0.001") * max(told, default=0)
        receipt = book.reserve(0.001, SPEC)  # no lock is left behind
        assert receipt.sequence > max(told, default=0)
    Ledger.open(book.path)
