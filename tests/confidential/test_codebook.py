"""The codebook: documentation and declared choices in public, counts for the holder alone."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

import dpsurvey as dps
from dpsurvey.confidential.variables import unit_of
from dpsurvey.errors import ArgumentTypeError, FileFormatError


@pytest.fixture
def book(put, transport):
    labels = {"DR1TKCAL": b"Energy (kcal)", "AGE": b"Age in years"}
    left = transport("A", {"SEQN": [1.0, 2.0, 3.0], "DR1TKCAL": [1.0, "C", None]}, labels=labels)
    right = transport("B", {"SEQN": [3.0, 1.0], "AGE": [30.0, 10.0]}, labels=labels)
    _, book = dps.read_survey(
        put("left.xpt", left),
        put("right.xpt", right),
        on="SEQN",
        columns={"DR1TKCAL": "Kcal"},
        missing_codes={"AGE": [777]},
        where="AGE >= 20",
        round_to=3,
        return_codebook=True,
    )
    return book


def test_what_is_documented_and_declared(book):
    assert book.labels == {"Kcal": "Energy (kcal)"}
    assert book.units == {"Kcal": "kcal"}
    assert book.id == "SEQN"
    assert book.filters == ("AGE >= 20",)
    assert book.round_to == 3
    assert book.renames == {"DR1TKCAL": "Kcal"}
    assert book.missing_codes == {"AGE": (777,)}
    assert book.files == ("left.xpt", "right.xpt")


def test_what_is_confidential_is_apart(book):
    counts = book.confidential
    assert counts.rows == {"left.xpt": 3, "right.xpt": 2}
    assert (counts.merged, counts.kept) == (2, 1)
    assert counts.special_missing == {"Kcal": {"C": 1}}
    assert str(counts).startswith("Confidential")
    public = (repr(book), book._repr_html_(), repr(book.public()), book.to_frame().to_string())
    changed = dataclasses.replace(
        book,
        confidential=dataclasses.replace(
            counts, rows={"left.xpt": 99}, merged=98, kept=97, special_missing={}
        ),
    )
    assert public == (
        repr(changed),
        changed._repr_html_(),
        repr(changed.public()),
        changed.to_frame().to_string(),
    )
    assert set(book.public()) == {"labels", "filters", "round_to"}


def test_paths_are_kept_as_names_only(book, tmp_path):
    everything = repr(dataclasses.asdict(book))
    assert str(tmp_path) not in everything


def test_it_shows_itself(book):
    text = repr(book)
    for part in (
        "Kcal",
        "DR1TKCAL",
        "Energy (kcal)",
        "filter: AGE >= 20",
        "rounded to 3 decimals",
        "id: SEQN",
    ):
        assert part in text
    assert "<table" in book._repr_html_()
    assert "AGE &gt;= 20" in book._repr_html_()
    assert book.to_frame().loc["Kcal"].to_dict() == {
        "column": "DR1TKCAL",
        "label": "Energy (kcal)",
        "unit": "kcal",
        "format": "",
        "missing_codes": "",
        "file": "left.xpt",
    }


def test_filters_declared_later(book):
    more = book.with_filter("SMQ020 == 1")
    assert more.filters == ("AGE >= 20", "SMQ020 == 1")
    assert book.filters == ("AGE >= 20",)
    assert more.public()["filters"] == ["AGE >= 20", "SMQ020 == 1"]
    with pytest.raises(ArgumentTypeError):
        book.with_filter(3)


def test_it_is_frozen_and_travels(book):
    with pytest.raises(dataclasses.FrozenInstanceError):
        book.id = "other"
    assert pickle.loads(pickle.dumps(book)) == book == copy.deepcopy(book)


def test_metadata_only(root, put):
    book = dps.codebook(*dps.example_files())
    assert book.confidential is None
    assert book.labels["DR1TSFAT"] == "Total saturated fatty acids (gm)"
    assert [v.name for v in book.variables].count("SEQN") == 4
    assert book.to_frame().shape == (13, 6)
    assert len(dps.codebook(root / "data" / "DEMO_G.xpt").variables) == 48
    assert dps.codebook(put("a.csv", "A,B\n1,2\n")).labels == {}
    with pytest.raises(FileFormatError):
        dps.codebook(put("b.xpt", "<html>"))


def test_metadata_of_a_member(put, library):
    path = put("a.xpt", library(("ONE", {"A": [1.0]}), ("TWO", {"B": [1.0]})))
    assert [v.name for v in dps.codebook(path, member="TWO").variables] == ["B"]


def test_metadata_of_sas_data_sets(shared):
    book = dps.codebook(shared / "nhanes" / "fped_dr1tot_1718.sas7bdat")
    assert book.units["DR1T_G_TOTAL"] == "oz. eq."
    assert book.units["DR1T_ADD_SUGARS"] == "tsp. eq."
    assert "DRABF" not in book.units
    dates = dps.codebook(shared / "awkward" / "haven__datetime.sas7bdat").to_frame()
    names = [
        format.rstrip(".0123456789") for format in dates["format"]
    ]  # some releases of pyreadstat leave the width out
    assert names == ["DATETIME", "MMDDYY", "DATE", "WEEKDATE", "TIME"]


@pytest.mark.parametrize(
    ("label", "unit"),
    [
        ("Energy (kcal)", "kcal"),
        ("Direct HDL-Cholesterol (mg/dL)", "mg/dL"),
        ("Body Mass Index (kg/m**2)", "kg/m**2"),
        ("Vitamin A, RAE (mcg)", "mcg"),
        ("Folate, DFE (mcg)", "mcg"),
        ("Total milk (cup eq.)", "cup eq."),
        ("Alcoholic beverages (no. of drinks)", "no. of drinks"),
        ("White cells (1000 cells/uL)", "1000 cells/uL"),
        ("Oils (grams) ", "grams"),
        ("Weight [kg]", "kg"),
        ("Breast-fed infant (either day)", None),
        ("Days smoked (past 5 days)", None),
        ("Medication(s)", None),
        ("Ever told (yes/no)", None),
        ("Age in years at screening", None),
        ("Reading (1)", None),
        ("Energy (kcal) total", None),
        ("", None),
        ("(", None),
    ],
)
def test_units_at_the_end_of_labels(label, unit):
    assert unit_of(label) == unit
