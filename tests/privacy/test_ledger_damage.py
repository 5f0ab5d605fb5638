"""A damaged or edited ledger is refused with the number of the line, whatever was done to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpsurvey.errors import LedgerError
from dpsurvey.privacy.ledger import Ledger
from dpsurvey.privacy.ledger_lines import line_hash, read_lines, split_lines, to_line

SPEC = {"variables": ["Kcal", "Grain"], "n": 5820}


@pytest.fixture
def book(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "diet.ledger.json", dataset="diet", budget=1.0)


def filled(book: Ledger) -> bytes:
    """Three reservations, the first of them completed: lines 2, 3 and 4, and then 5."""
    for epsilon in (0.1, 0.2, 0.3):
        book.reserve(epsilon, SPEC)
    content = book.path.read_bytes()
    note = {"record": "completed", "sequence": 1, "file": "r.json", "file_sha256": "0" * 64}
    content += to_line(note | {"previous": line_hash(content.splitlines(keepends=True)[-1])})
    book.path.write_bytes(content)
    return content


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_every_changed_byte_is_refused_with_its_line(book: Ledger, number: int) -> None:
    """Each byte of each line in turn, newlines included, turned into all that one flipped bit makes of it."""
    content = filled(book)
    assert len(read_lines(split_lines(content), "l").costs) == 3
    lines = content.splitlines(keepends=True)
    start = sum(map(len, lines[: number - 1]))
    for at in range(start, start + len(lines[number - 1])):
        for bit in range(8):
            changed = bytearray(content)
            changed[at] ^= 1 << bit
            with pytest.raises(LedgerError, match=rf"line {number} of l "):
                read_lines(split_lines(bytes(changed)), "l")


def test_every_byte_that_is_lost_or_added_is_refused(book: Ledger) -> None:
    """All but the very last newline, without which the last line, here a note, is one that never returned."""
    content = filled(book)
    for at in range(len(content)):
        for changed in (content[:at] + content[at + 1 :], content[:at] + b"x" + content[at:]):
            if changed == content[:-1]:
                assert len(read_lines(split_lines(changed), "l").costs) == 3
                continue
            with pytest.raises(LedgerError):
                read_lines(split_lines(changed), "l")


def test_a_crash_at_any_byte_of_a_write_leaves_what_was_there_before_or_all_of_it(book: Ledger) -> None:
    content = filled(book)
    lines = content.splitlines(keepends=True)
    for number in (2, 3, 4, 5):
        before, line = b"".join(lines[: number - 1]), lines[number - 1]
        for written in range(len(line) + 1):
            pages = read_lines(split_lines(before + line[:written]), "l")
            whole = written == len(line)
            assert pages.head == line_hash(lines[number - 1 if whole else number - 2])


def test_a_changed_byte_in_the_file_stops_every_use_and_the_file_stays_as_it_is(book: Ledger) -> None:
    changed = filled(book).replace(b'"epsilon": "0.2"', b'"epsilon": "0.1"')
    book.path.write_bytes(changed)
    for use in (
        lambda: Ledger.open(book.path), lambda: book.spent, lambda: book.reserve(0.1, SPEC), book.verify, book.status,
        book.summary, lambda: book.head,
    ):  # fmt: skip
        with pytest.raises(LedgerError, match=r"line 3 of diet\.ledger\.json was changed"):
            use()
    assert book.path.read_bytes() == changed


def damaged_files() -> dict[str, object]:
    def without(number: int):
        return lambda lines: lines[: number - 1] + lines[number:]

    return {
        "line 3 missing": (without(3), 3),
        "lines swapped": (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], 2),
        "line twice": (lambda lines: [*lines, lines[-1]], 6),
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
        {"delta": "0.1"}, {"delta": "0.0"}, {"delta": 0}, {"delta": None}, {"rho": "0.02"}, {"record": "header"},
        {"record": None}, {"sequence": True}, {"sequence": "2"}, {"sequence": None}, {"sequence": 7},
        {"epsilon": "0.05"}, {"epsilon": "0.50"}, {"epsilon": "5e-1"}, {"epsilon": "-1.0"}, {"epsilon": "NaN"},
        {"epsilon": "Infinity"}, {"epsilon": "1_0.0"}, {"epsilon": 0.5}, {"epsilon": None}, {"more": 1}, {"spec": []},
        {"previous": "0" * 64},
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
        {"budget": None}, {"dataset": 5}, {"dataset": "\udc80"}, {"more": 1}, {"accounting": "best"},
        {"accounting": ["pure"]}, {"accounting": None}, {"delta": "1.0"}, {"delta": "-1e-6"}, {"neighbours": 5},
    ],
    ids=str,
)  # fmt: skip
def test_a_header_of_another_kind_is_refused(book: Ledger, changes) -> None:
    rewrite(book, 1, **changes)
    with pytest.raises(LedgerError, match="line 1 "):
        Ledger.open(book.path)


@pytest.mark.parametrize(
    "changes",
    [
        {"sequence": 0}, {"sequence": 4}, {"sequence": True}, {"file": 5}, {"file": None}, {"file_sha256": "0" * 63},
        {"file_sha256": "G" * 64}, {"file_sha256": None}, {"more": 1}, {"previous": "0" * 64}, {"record": "voided"},
    ],
    ids=str,
)  # fmt: skip
def test_a_rewritten_note_of_a_saved_release_is_refused(book: Ledger, changes) -> None:
    filled(book)
    rewrite(book, 5, **changes)
    with pytest.raises(LedgerError, match="line 5 "):
        Ledger.open(book.path)


def test_a_chain_that_fits_but_spends_too_much_does_not_verify(book: Ledger) -> None:
    content = filled(book)
    header = to_line(
        {key: value for key, value in json.loads(content.splitlines()[0]).items() if key != "sha256"}
    )
    assert content.startswith(header)
    record = {"record": "reservation", "sequence": 4, "epsilon": "5.0", "delta": "0", "spec": {}}
    content += to_line(record | {"previous": line_hash(content.splitlines(keepends=True)[-1])})
    book.path.write_bytes(content)
    assert book.remaining < 0
    with pytest.raises(LedgerError, match="above its budget"):
        book.verify()


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
        read_lines([to_line({"a": 1})], "x")
