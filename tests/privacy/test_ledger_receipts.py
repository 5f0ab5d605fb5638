"""What releases carry of their ledger, and what the ledger knows of them: no release is paid twice by mistake."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpsurvey as dps
from dpsurvey.errors import BudgetExceededError, DpsurveyError, LedgerError, MissingFileError, ReleaseExists
from dpsurvey.privacy import ledger as ledger_module
from dpsurvey.privacy.ledger import Ledger
from dpsurvey.privacy.ledger_lines import line_hash


@pytest.fixture
def df() -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(1).normal(size=(60, 3)), columns=["a", "b", "c"])


@pytest.fixture
def book(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "diet.ledger.json", dataset="diet", budget=3.0)


def make(df: pd.DataFrame, book: Ledger, epsilon: float = 0.5, **options) -> dps.Release:
    settings = {"statistic": "quadrant", "mechanism": "geometric", **options}
    return dps.release(df, epsilon, ledger=book, **settings)


# --- notes of saved releases


def test_saving_is_noted_and_the_same_release_is_then_refused_at_no_cost(df, book, tmp_path) -> None:
    release = make(df, book)
    assert book.summary()["file"].tolist() == [""]
    path = release.save(tmp_path / "r.json")
    assert book.summary()["file"].tolist() == ["r.json"]
    before = book.path.read_bytes()
    for use in (lambda: make(df, book), lambda: df.dpcopula.release(0.5, ledger=book.path, statistic="quadrant",
                mechanism="geometric")):  # fmt: skip
        with pytest.raises(ReleaseExists) as caught:
            use()
        assert caught.value.path == path
        assert isinstance(caught.value, DpsurveyError)
        assert pickle.loads(pickle.dumps(caught.value)).path == path
        assert "again=True" in str(caught.value)
    assert book.path.read_bytes() == before
    second = make(df, book, again=True)
    assert second.ledger["sequence"] == 2
    assert book.spent == 1
    with pytest.raises(ReleaseExists):  # the first is still there
        make(df, book)


def test_the_refusal_depends_on_public_facts_alone(df, book, tmp_path) -> None:
    """Other rows of the same shape are refused all the same; the message is the same to the letter."""
    make(df, book).save(tmp_path / "r.json")
    messages = set()
    for other in (
        df,
        df * 0.0,
        pd.DataFrame(np.random.default_rng(2).normal(size=(60, 3)), columns=["a", "b", "c"]),
    ):
        with pytest.raises(ReleaseExists) as caught:
            make(other, book)
        messages.add(str(caught.value))
    assert len(messages) == 1


@pytest.mark.parametrize(
    "change",
    [
        "epsilon",
        "columns",
        "order",
        "n",
        "statistic",
        "mechanism",
        "key seed",
        "rounding",
        "filters",
        "simulated",
    ],
)
def test_another_request_is_another_release(df, book, tmp_path, change: str) -> None:
    make(df, book).save(tmp_path / "r.json")
    attrs = {"labels": {}, "filters": (), "round_to": None}
    if change == "epsilon":
        make(df, book, 0.25)
    elif change == "columns":
        make(df[["a", "b"]], book)
    elif change == "order":
        make(df[["b", "a", "c"]], book)
    elif change == "n":
        make(df.iloc[:-1], book)
    elif change == "statistic":
        make(df, book, statistic="concordance")
    elif change == "mechanism":
        make(df, book, mechanism="linf")
    elif change == "key seed":
        make(df, book, keys=dps.TieKeys(seed=5))
    elif change == "simulated":
        make(df, book, insecure_rng=np.random.default_rng(1))
    else:
        df.attrs["dpsurvey_codebook"] = attrs | (
            {"round_to": 2} if change == "rounding" else {"filters": ("age >= 20",)}
        )
        make(df, book)
    assert len(book.summary()) == 2


@pytest.mark.parametrize("happens", ["removed", "changed", "replaced by a folder", "never saved"])
def test_a_file_that_is_not_as_it_was_saved_no_longer_counts(df, book, tmp_path, happens: str) -> None:
    release, path = make(df, book), tmp_path / "r.json"
    if happens != "never saved":
        release.save(path)
        path.unlink() if happens != "changed" else path.write_text(path.read_text() + " ")
    if happens == "replaced by a folder":
        path.mkdir()
    assert make(df, book).ledger["sequence"] == 2


def test_copies_are_noted_once_each_and_any_of_them_counts(df, book, tmp_path) -> None:
    release = make(df, book)
    (tmp_path / "sub").mkdir()
    for path in ("r.json", "r.json", "sub/copy.json"):
        release.save(tmp_path / path)
    assert len(book.path.read_bytes().splitlines()) == 1 + 1 + 2
    assert book.summary()["file"].tolist() == ["sub/copy.json"]
    (tmp_path / "sub" / "copy.json").unlink()
    with pytest.raises(ReleaseExists) as caught:
        make(df, book)
    assert caught.value.path == tmp_path / "r.json"


def test_ledger_and_releases_may_move_together(df, tmp_path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "out").mkdir(parents=True)
    book = Ledger.create(here / "l.json", dataset="d", budget=3.0)
    make(df, book).save(here / "out" / "r.json")
    here.rename(there)
    with pytest.raises(ReleaseExists) as caught:
        make(df, Ledger.open(there / "l.json"))
    assert caught.value.path == there / "out" / "r.json"


def test_a_refused_repeat_comes_before_a_refused_budget(df, tmp_path) -> None:
    book = Ledger.create(tmp_path / "l.json", dataset="d", budget=0.5)
    make(df, book).save(tmp_path / "r.json")
    with pytest.raises(ReleaseExists):
        make(df, book)
    with pytest.raises(BudgetExceededError):
        make(df, book, again=True)


def test_twins_of_a_release_are_noted_too_and_loaded_ones_where_the_ledger_is_named(
    df, book, tmp_path, monkeypatch
) -> None:
    release = make(df, book)
    copy.deepcopy(dps.Release.from_dict(release.to_dict())).save(tmp_path / "twin.json")
    assert book.summary()["file"].tolist() == ["twin.json"]
    monkeypatch.setattr(ledger_module, "_PAID_HERE", {})  # as in another process
    loaded = dps.Release.load(tmp_path / "twin.json")
    loaded.save(tmp_path / "plain.json")
    assert book.summary()["file"].tolist() == ["twin.json"]
    loaded.save(tmp_path / "named.json", ledger=book.path)
    assert book.summary()["file"].tolist() == ["named.json"]


def test_a_path_of_any_bytes_can_be_noted_and_shown(df, book, tmp_path) -> None:
    target = tmp_path / "r\udcff\n'\".json"
    make(df, book).save(target)
    assert book.summary()["file"].tolist() == ["r\\udcff\n'\".json"]
    book.summary().to_string().encode()
    with pytest.raises(ReleaseExists) as caught:
        make(df, book)
    assert caught.value.path == target


def test_only_the_ledger_that_paid_can_note_a_release(df, book, tmp_path) -> None:
    free = dps.release(df, 0.5, insecure_rng=np.random.default_rng(1))
    with pytest.raises(LedgerError, match="no receipt"):
        free.save(tmp_path / "r.json", ledger=book)
    other = Ledger.create(tmp_path / "other.json", dataset="other", budget=1.0)
    with pytest.raises(LedgerError, match="another data set"):
        make(df, book).save(tmp_path / "r.json", ledger=other)
    assert not (tmp_path / "r.json").exists()
    with pytest.raises(LedgerError, match="is not there"):
        book.complete(make(df, book), tmp_path / "r.json")


@pytest.mark.parametrize("happens", ["gone", "damaged", "rolled back"])
def test_a_ledger_that_cannot_note_a_release_says_so_and_the_file_is_saved(
    df, book, tmp_path, happens
) -> None:
    old = book.path.read_bytes()
    release = make(df, book)
    if happens == "gone":
        book.path.unlink()
    else:
        book.path.write_bytes(old if happens == "rolled back" else b"x" + old)
    with pytest.raises(LedgerError, match=r"r\.json is saved, but its ledger cannot note it"):
        release.save(tmp_path / "r.json")
    assert dps.Release.load(tmp_path / "r.json") == release


# --- receipts


def test_a_ledger_bears_out_all_releases_it_paid_for(df, book, tmp_path) -> None:
    releases = [make(df, book, epsilon) for epsilon in (0.5, 0.25, 0.125)]
    for i, release in enumerate(releases):
        release.save(tmp_path / f"{i}.json")
    for release in [*releases, *(dps.Release.load(tmp_path / f"{i}.json") for i in range(3))]:
        book.check_release(release)
    book.verify()
    assert book.head == line_hash(book.path.read_bytes().splitlines(keepends=True)[-1])


def test_an_old_copy_put_back_is_found_out_by_a_release(df, book) -> None:
    first = make(df, book)
    old = book.path.read_bytes()
    second = make(df, book, 0.25)
    book.path.write_bytes(old)
    book.verify()  # consistent by itself
    book.check_release(first)
    with pytest.raises(LedgerError, match="rolled back"):
        book.check_release(second)
    make(df, book, 0.125)  # spent from again: now the sequence number is there, and the hash is not
    with pytest.raises(
        LedgerError, match=r"line 3 of diet\.ledger\.json is not what the release was paid with"
    ):
        book.check_release(second)


def test_a_rewritten_ledger_is_found_out_by_a_release(df, book, tmp_path) -> None:
    """Whoever writes the whole chain anew, with a smaller amount."""
    release = make(df, book, 1.0)
    book.path.unlink()
    forged = Ledger.create(book.path, dataset="diet", budget=3.0)
    forged.reserve(0.01, release.spec())
    forged.verify()
    with pytest.raises(LedgerError, match=r"line 2 .* rewritten"):
        forged.check_release(release)


@pytest.mark.parametrize("name", ["n", "filters", "key_seed", "rounding", "secure", "variables"])
def test_a_release_that_says_something_else_than_was_reserved_is_found_out(df, book, name: str) -> None:
    release = make(df, book)
    changes = {"n": 61, "filters": ("age >= 20",), "key_seed": 9, "rounding": 2, "secure": False,
               "variables": ("x", "b", "c")}  # fmt: skip
    with pytest.raises(LedgerError, match="does not say what line 2"):
        book.check_release(dataclasses.replace(release, **{name: changes[name]}))


def test_an_editor_that_takes_the_last_newline_of_a_saved_release_takes_only_its_note(
    df, book, tmp_path
) -> None:
    release = make(df, book)
    release.save(tmp_path / "r.json")
    book.path.write_bytes(book.path.read_bytes()[:-1])
    book.check_release(release)
    assert (book.spent, book.summary()["file"].tolist()) == (release.epsilon, [""])


@pytest.mark.parametrize("lost", [1, 5])
def test_a_last_line_that_is_cut_off_after_it_returned_is_found_out_by_its_release(
    df, book, lost: int
) -> None:
    """Such a file looks like a crash before the reservation returned: the next writer would void it."""
    release = make(df, book)
    book.path.write_bytes(book.path.read_bytes()[:-lost])
    assert book.spent == 0
    with pytest.raises(LedgerError, match="rolled back"):
        book.check_release(release)


def test_a_missing_ledger_is_named(df, book, tmp_path) -> None:
    release = make(df, book)
    shutil.move(book.path, tmp_path / "moved.json")
    with pytest.raises(MissingFileError, match="no ledger"):
        book.check_release(release)
    Ledger.open(tmp_path / "moved.json").check_release(release)
