"""Reading: the right frame or a named error, nothing silent, and no cell or id in any error."""

from __future__ import annotations

import datetime
import json
import struct
import traceback

import numpy as np
import pandas as pd
import pyreadstat
import pytest
from scipy.stats import norm

import dpsurvey as dps
from dpsurvey.errors import (
    ArgumentError,
    ArgumentTypeError,
    DpsurveyError,
    FileFormatError,
    MergeError,
    MissingFileError,
    UnknownNameError,
)

CANARY = 8675309  # an id or value that no error may show
PAPER = {
    "DR1TKCAL": "Kcal",
    "INDFMPIR": "Income",
    "DR1T_G_TOTAL": "Grain",
    "DR1T_D_TOTAL": "Dairy",
    "DR1T_V_TOTAL": "Veg",
    "DR1T_PF_TOTAL": "PF",
    "DR1T_ADD_SUGARS": "Sugar",
}


def story(error: BaseException) -> str:
    """Return all a user, a log or an error report could show: message, repr and chained errors."""
    return "".join(traceback.format_exception(error)) + repr(error) + repr(error.__context__)


# ---------------------------------------------------------------- transport files


def test_zero_is_zero_and_missing_is_missing(put, transport):
    path = put("a.xpt", transport("T", {"SEQN": [1.0, 2.0, 3.0], "X": [0.0, None, -1.5]}))
    survey = dps.read_survey(path, on="SEQN")
    assert survey["X"].tolist()[0] == 0.0
    assert np.isnan(survey["X"].to_numpy()[1])
    assert survey["X"].tolist()[2] == -1.5
    assert survey.index.dtype == np.int64
    assert survey.index.name == "SEQN"


@pytest.mark.parametrize("version", [5, 8])
def test_values_agree_with_an_independent_decoder(put, transport, ibm, version):
    rng = np.random.default_rng(1)
    values = [*(rng.standard_normal(200) * 10.0 ** rng.integers(-30, 30, 200)), 1e-70, 1e70, 1 / 3, -0.1]
    content = transport("T", {"X": values}, version=version)
    rows = content[content.index(b"OBS") - 20 + 80 :]
    expected = [ibm(rows[8 * i : 8 * i + 8]) for i in range(len(values))]
    got = dps.read_survey(put("a.xpt", content))["X"]
    np.testing.assert_allclose(got, values, rtol=2.0**-52)
    np.testing.assert_allclose(got, expected, rtol=2.0**-52)


def test_short_numeric_fields_and_text(put, transport):
    narrow = [None, 3.0, -16.0, 0.0, "D"]
    columns = {"A": [2.5, -7.0, 0.0, 1.0, None], "S": [b"x", b"yes", b"", b"", b""], "B": narrow}
    for width in (2, 3, 4, 7):
        path = put("a.xpt", transport("T", columns, widths={"A": 3, "B": width}))
        survey, book = dps.read_survey(path, return_codebook=True)
        np.testing.assert_array_equal(survey["A"], [2.5, -7.0, 0.0, 1.0, np.nan])
        assert survey["S"].tolist() == ["x", "yes", "", "", ""]
        np.testing.assert_array_equal(survey["B"], [np.nan, 3.0, -16.0, 0.0, np.nan])
        assert book.confidential.special_missing == {"B": {"D": 1}}


@pytest.mark.parametrize("version", [5, 8])
@pytest.mark.parametrize("widths", [{}, {"X": 5}])
def test_special_missing_values_are_counted_by_letter(put, transport, version, widths):
    cells = ["A", "A", "Z", "_", None, 0.0, 65.0, -65.0]
    path = put(
        "a.xpt",
        transport("T", {"SEQN": [float(i) for i in range(8)], "X": cells}, version=version, widths=widths),
    )
    survey, book = dps.read_survey(path, on="SEQN", columns={"X": "Iron"}, return_codebook=True)
    assert survey["Iron"].isna().sum() == 5
    assert book.confidential.special_missing == {"Iron": {"_": 1, "A": 2, "Z": 1}}


def test_special_missing_values_in_a_long_file_are_counted_in_blocks(put, transport, monkeypatch):
    from dpsurvey.confidential import xport

    cells = (["B", 1.0, 2.0] * 400)[:1000]
    path = put("a.xpt", transport("T", {"X": cells, "Y": [float(i) for i in range(1000)]}))
    (member,) = xport.read_members(path)
    monkeypatch.setattr(xport, "BLOCK_BYTES", 64)
    assert xport.special_missing(path, member, ["X", "Y"]) == {"X": {"B": 334}}


@pytest.mark.parametrize("version", [5, 8])
def test_zero_rows_give_an_empty_frame_with_columns(put, transport, version):
    path = put("a.xpt", transport("T", {"SEQN": [], "X": []}, version=version))
    survey = dps.read_survey(path, on="SEQN")
    assert survey.shape == (0, 1)
    assert survey["X"].dtype == np.float64
    assert survey.index.dtype == np.int64


def test_every_cut_of_a_version_8_file_is_refused(put, transport):
    content = transport("T", {"SEQN": [float(i) for i in range(40)], "X": [1.0] * 40}, version=8)
    for size in range(80, len(content), 80):
        with pytest.raises(FileFormatError, match="cut short"):
            dps.read_survey(put("a.xpt", content[:size]))
    for size in (1, 47, 81, len(content) - 1, len(content) - 79):
        with pytest.raises(FileFormatError):
            dps.read_survey(put("a.xpt", content[:size]))


def test_a_version_5_file_cut_inside_a_row_is_refused_with_the_numbers(put, transport):
    columns = {f"V{i}": [1.5] * 9 for i in range(7)}  # rows of 56 bytes: 504 bytes, 560 with filling
    content = transport("T", columns)
    data = content.index(b"OBS     ") - 20 + 80
    with pytest.raises(FileFormatError) as caught:
        dps.read_survey(put("a.xpt", content[: data + 320]))
    assert "whole rows of 56 bytes" in str(caught.value)
    assert "5 whole rows and 40 bytes more" in str(caught.value)
    with pytest.raises(FileFormatError, match="cut short"):  # no multiple of 80
        dps.read_survey(put("a.xpt", content[:-1]))


def test_a_cut_of_a_version_5_file_is_noticed_wherever_it_leaves_a_trace(put, transport):
    """At a record's border between two rows version 5 leaves none: the one cut that cannot be told."""
    columns = {f"V{i}": [1.5] * 30 for i in range(3)}
    content = transport("T", columns)
    data = content.index(b"OBS     ") - 20 + 80
    for size in range(data, len(content), 80):
        path = put("a.xpt", content[:size])
        if (size - data) % 24 == 0:
            assert len(dps.read_survey(path)) == (size - data) // 24
        else:
            with pytest.raises(FileFormatError, match="cut short"):
                dps.read_survey(path)


def test_more_rows_than_declared_are_refused(put, transport):
    content = transport("T", {"X": [1.0] * 40}, version=8, declared=20)
    with pytest.raises(FileFormatError, match="declares another number of rows"):
        dps.read_survey(put("a.xpt", content))


def test_rows_of_blanks_at_the_end_are_not_lost_in_silence(put, transport):
    content = transport("T", {"S": [b"a       "] + [b"        "] * 30})
    with pytest.raises(FileFormatError, match="another number of rows"):
        dps.read_survey(put("a.xpt", content))


def test_members_are_chosen_by_name(put, library):
    content = library(
        ("DEMO", {"SEQN": [1.0, 2.0, 3.0], "AGE": [20.0, 30.0, None]}),
        ("DIET", {"SEQN": [4.0, 5.0], "KCAL": [0.0, "C"]}),
    )
    path = put("both.xpt", content)
    with pytest.raises(ArgumentError, match="'DEMO', 'DIET'"):
        dps.read_survey(path)
    demo = dps.read_survey(path, member="DEMO", on="SEQN")
    assert demo["AGE"].tolist()[:2] == [20.0, 30.0]
    assert demo.index.tolist() == [1, 2, 3]
    diet, book = dps.read_survey(path, member="DIET", on="SEQN", return_codebook=True)
    assert diet.index.tolist() == [4, 5]
    assert diet["KCAL"].iloc[0] == 0.0
    assert book.confidential.special_missing == {"KCAL": {"C": 1}}
    with pytest.raises(UnknownNameError, match="did you mean 'DIET'"):
        dps.read_survey(path, member="diet")
    with pytest.raises(UnknownNameError):
        dps.read_survey(put("one.xpt", library(("DEMO", {"X": [1.0]}))), member="DIET")


def test_a_header_inside_a_cell_is_no_member(put, transport):
    cell = b"HEADER RECORD*******MEMBER  HEADER RECORD!!!!!!!" + b"0" * 32
    path = put("a.xpt", transport("T", {"S": [cell, cell]}))
    assert dps.read_survey(path)["S"].str.len().tolist() == [80, 80]


def test_labels_in_windows_1252_are_read(put, transport):
    content = transport("T", {"LBX": [1.0]}, labels={"LBX": b"Zinc (\xb5g/dL)"})
    path = put("a.xpt", content)
    _, book = dps.read_survey(path, return_codebook=True)
    assert book.labels == {"LBX": "Zinc (µg/dL)"}
    assert book.units == {"LBX": "µg/dL"}
    with pytest.raises(FileFormatError, match="encoding"):
        dps.read_survey(path, encoding="UTF-8")
    with pytest.raises(FileFormatError, match="encoding"):
        dps.read_survey(path, encoding="no-such-encoding")


def test_text_in_windows_1252_is_read_and_never_quoted(put, transport):
    path = put("a.xpt", transport("T", {"S": [b"caf\xe9 secret"]}))
    assert dps.read_survey(path)["S"].tolist() == ["café secret"]
    with pytest.raises(FileFormatError) as caught:
        dps.read_survey(path, encoding="UTF-8")
    assert "secret" not in story(caught.value)
    assert "0xe9" not in story(caught.value)


def test_positions_stated_in_headers_are_not_positions_in_rows(put, transport):
    """SAS states places in its own data set there; values follow each other in the order of the headers."""
    content = bytearray(transport("T", {"A": [1.0, "B"], "B": [2.0, 4.0]}, version=8))
    first = content.index(b"NAMSTV8") - 20 + 80
    content[first + 84 : first + 88], content[first + 224 : first + 228] = (
        struct.pack(">ii", 8, 0)[:4],
        bytes(4),
    )
    survey, book = dps.read_survey(put("a.xpt", bytes(content)), return_codebook=True)
    assert survey["B"].tolist() == [2.0, 4.0]
    assert survey["A"].isna().tolist() == [False, True]
    assert book.confidential.special_missing == {"A": {"B": 1}}


def test_two_variables_of_one_name_are_refused(put, transport):
    content = transport("T", {"AB": [1.0], "AC": [2.0]}).replace(b"AC      ", b"AB      ")
    with pytest.raises(FileFormatError, match="several variables have one name"):
        dps.read_survey(put("a.xpt", content))


def test_impossible_widths_are_refused(put, transport):
    content = bytearray(transport("T", {"A": [1.0, 3.0]}))
    first = content.index(b"NAMESTR") - 20 + 80
    for width in (0, 9, -8):
        content[first + 4 : first + 6] = struct.pack(">h", width)
        with pytest.raises(FileFormatError, match="impossible width"):
            dps.read_survey(put("a.xpt", bytes(content)))


@pytest.mark.parametrize("place", ["NAMESTR", "DSCRPTR", "OBS     "])
def test_damaged_headers_are_refused(put, transport, place):
    content = transport("T", {"A": [1.0, 3.0]})
    with pytest.raises(FileFormatError):
        dps.read_survey(put("a.xpt", content.replace(place.encode(), b"X" * len(place))))
    with pytest.raises(FileFormatError, match="no number"):
        dps.read_survey(put("b.xpt", content.replace(b"!!!!!!!0000000001", b"!!!!!!!00000zz001")))


# ---------------------------------------------------------------- names that say something else


@pytest.mark.parametrize(
    ("name", "content", "looks_like"),
    [
        ("a.xpt", b"", "empty"),
        ("a.xpt", b"\n <!DOCTYPE html><html></html>", "web page"),
        ("a.xpt", b"\xef\xbb\xbf<html>", "web page"),
        ("a.xpt", b"SEQN,X\n1,2\n", "CSV"),
        ("a.xpt", b"**COMPRESSED** **COMPRESSED** ", "CPORT"),
        ("a.xpt", b"PK\x03\x04....", "zip"),
        ("a.csv", b"\x1f\x8b\x08\x00", "gzip"),
        ("a.sas7bdat", b"$FL2@(#) SPSS", "SPSS"),
        ("a.csv", b"PAR1....PAR1", "Parquet"),
        ("a.parquet", b"a,b\n1,2\n", "CSV"),
        ("a.csv", b"\x00\x01\x02\x03", "binary"),
        ("a.csv", b"\xff\xfea\x00", "UTF-16"),
        ("a.xpt", b"\x00" * 200, "zero bytes"),
        ("a.dat", b"a,b\n1,2\n", "CSV"),
        ("a.xpt", b"version https://git-lfs.github.com/spec/v1\n", "LFS"),
    ],
)
def test_files_are_named_for_what_they_are(put, name, content, looks_like):
    with pytest.raises(FileFormatError, match=looks_like):
        dps.read_survey(put(name, content))


def test_files_that_are_not_there(put, tmp_path):
    put("DEMO_J.xpt", b"")
    with pytest.raises(MissingFileError, match=r"'DEMO_J\.xpt'"):
        dps.read_survey(tmp_path / "demo_j.xpt")
    with pytest.raises(MissingFileError, match="folder"):
        dps.read_survey(tmp_path)
    with pytest.raises(MissingFileError):
        dps.read_survey(tmp_path / "nowhere" / "a.xpt")
    with pytest.raises(ArgumentTypeError):
        dps.read_survey(pd.DataFrame())
    with pytest.raises(ArgumentError, match="no file"):
        dps.read_survey()


# ---------------------------------------------------------------- sas7bdat


def test_special_missing_values_of_sas7bdat(shared, put):
    content = bytearray((shared / "awkward" / "haven__datetime.sas7bdat").read_bytes())
    raw, _ = pyreadstat.read_sas7bdat(
        str(shared / "awkward" / "haven__datetime.sas7bdat"), disable_datetime_conversion=True
    )
    for name, row, letter in (("VAR1", 1, 0xFC), ("VAR2", 0, 0xFD), ("VAR5", 2, 0xFF)):
        at = content.index(struct.pack("<d", raw[name].iloc[row]))
        content[at : at + 8] = bytes([0, 0, 0, 0, 0, letter, 0xFF, 0xFF])
    survey, book = dps.read_survey(put("a.sas7bdat", bytes(content)), return_codebook=True)
    assert book.confidential.special_missing == {"VAR1": {"B": 1}, "VAR2": {"A": 1}, "VAR5": {"_": 1}}
    assert survey["VAR1"].dtype == "datetime64[us]"
    assert survey["VAR2"].dtype == "datetime64[s]"
    assert survey["VAR2"].isna().tolist() == [True, False, False, False]
    assert survey["VAR5"].iloc[0] == datetime.time(14, 42, 12)


def test_every_cut_of_a_sas7bdat_file_is_refused_with_the_numbers(shared, put):
    content = (shared / "nhanes" / "fped_dr1tot_1718.sas7bdat").read_bytes()
    for size in (len(content) - 1, len(content) // 2, 2 * 65536, 65537, 65536, 300, 100, 40):
        with pytest.raises(FileFormatError, match="cut short") as caught:
            dps.read_survey(put("a.sas7bdat", content[:size]))
        assert f"{size:,} bytes" in caught.value.got
        if size >= 2 * 65536:
            assert caught.value.expected == "2,228,224 bytes, 33 pages, 8,704 rows"


def test_a_small_sas7bdat_file_that_was_cut_states_its_rows(shared, put):
    """The narrow (32-bit) layout keeps the number of rows in another place."""
    content = (shared / "awkward" / "parso__mix_and_missing.sas7bdat").read_bytes()
    with pytest.raises(FileFormatError) as caught:
        dps.read_survey(put("a.sas7bdat", content[:-1]))
    assert caught.value.expected == "9,216 bytes, 2 pages, 48 rows"


def test_an_impossible_number_of_rows_is_refused_before_memory_is_reserved(shared, put):
    content = bytearray((shared / "awkward" / "haven__datetime.sas7bdat").read_bytes())
    content[4667] = 81
    with pytest.raises(FileFormatError, match="number of rows it declares"):
        dps.read_survey(put("a.sas7bdat", bytes(content)))


# ---------------------------------------------------------------- csv and parquet


def test_csv(put):
    path = put("a.csv", "SEQN,AGE,BMI,S\n3,20,21.5,a\n1,.,0.1,b\n2,77,,\n")
    survey = dps.read_survey(path, on="SEQN")
    assert survey.index.tolist() == [3, 1, 2]
    assert survey["AGE"].dtype == np.float64
    assert survey["BMI"].tolist()[1] == 0.1
    assert dps.read_survey(path, columns=["SEQN"]).dtypes["SEQN"] == np.int64
    assert dps.read_survey(path, columns=["S", "AGE"]).columns.tolist() == ["S", "AGE"]


def test_csv_encodings(put):
    assert dps.read_survey(put("a.csv", "﻿é,b\n1,2\n".encode())).columns.tolist() == ["é", "b"]
    assert dps.read_survey(put("b.csv", "é,b\n1,2\n".encode("cp1252"))).columns.tolist() == ["é", "b"]
    assert dps.read_survey(put("c.csv", "é,b\n1,2\n".encode("cp437")), encoding="cp437").columns[0] == "é"
    with pytest.raises(ArgumentError, match="encoding"):
        dps.read_survey(put("d.csv", "a,b\n1,2\n"), encoding="no-such")
    with pytest.raises(FileFormatError, match="encoded"):
        dps.read_survey(put("e.csv", b"a,b\n1,\x81\n"))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (f"SEQN,X\n{CANARY},1\n{CANARY}\n", "do not fit"),
        (f"SEQN,X\n{CANARY},1,2\n{CANARY},1,2\n", "do not fit"),
        (f'SEQN,X\n{CANARY},"1\n', "cannot be split"),
        (f'SEQN,X\n{CANARY},"a"{CANARY}\n', "cannot be split"),
        (f"{CANARY},1\n{CANARY},2\n", "holds no names"),
        (",,\n1,2,3\n", "holds no names"),
        (f"SEQN;X\n{CANARY};1\n", "not separated by commas"),
        (f"SEQN,X,X\n{CANARY},1,2\n", "more than one column called 'X'"),
    ],
)
def test_csv_files_that_pandas_would_read_wrong(put, content, problem):
    with pytest.raises(FileFormatError, match=problem) as caught:
        dps.read_survey(put("a.csv", content))
    assert str(CANARY) not in story(caught.value)


def test_csv_column_without_a_name(put):
    """R's write.csv leaves the column of row names without one."""
    path = put("a.csv", '"","SEQN","X"\n"1",5,2\n')
    assert dps.read_survey(path, on="SEQN", columns=["X"])["X"].tolist() == [2]
    assert dps.read_survey(path).columns.tolist() == ["Unnamed: 0", "SEQN", "X"]


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow", reason="Parquet is an optional extra")
    frame = pd.DataFrame(
        {"SEQN": [2, 1], "X": [1.5, np.nan], "N": pd.array([1, None], dtype="Int64"), "C": ["a", "b"]}
    )
    frame["C"] = pd.Categorical(frame["C"], categories=["b", "a"], ordered=True)
    path = tmp_path / "a.parquet"
    frame.to_parquet(path)
    survey = dps.read_survey(path, on="SEQN")
    assert survey.index.tolist() == [2, 1]
    assert survey["N"].dtype == np.float64
    assert survey["C"].cat.ordered
    frame.set_index("SEQN").to_parquet(path)
    assert dps.read_survey(path, on="SEQN", columns=["N"]).columns.tolist() == ["N"]
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(FileFormatError, match="damaged"):
        dps.read_survey(path)


# ---------------------------------------------------------------- columns, codes, rules, rounding


@pytest.fixture
def adults(put, transport):
    columns = {
        "SEQN": [1.0, 2.0, 3.0, 4.0],
        "AGE": [77.0, 19.0, 20.0, None],
        "SMD650": [777.0, 10.0, 999.0, 77.0],
        "X": [0.82000000000000006, 0.1234567, None, 0.0],
    }
    return put("a.xpt", transport("T", columns))


def test_columns_are_kept_in_order_and_renamed(adults):
    assert dps.read_survey(adults, columns=["X", "AGE"]).columns.tolist() == ["X", "AGE"]
    survey, book = dps.read_survey(adults, on="SEQN", columns={"X": "x", "AGE": "Age"}, return_codebook=True)
    assert survey.columns.tolist() == ["x", "Age"]
    assert book.renames == {"X": "x", "AGE": "Age"}
    renamed = dps.read_survey(adults, on="SEQN", columns={"SEQN": "person", "X": "x"})
    assert (renamed.index.name, renamed.columns.tolist()) == ("person", ["x"])


@pytest.mark.parametrize("name", ["age", "Age", "AGEE"])
def test_unknown_columns_are_named_with_near_matches(adults, name):
    for arguments in (
        {"columns": [name, "X"]},
        {"missing_codes": {name: [7]}},
        {"where": f"{name} > 1"},
        {"on": name},
    ):
        with pytest.raises(UnknownNameError, match="did you mean 'AGE'"):
            dps.read_survey(adults, **arguments)


def test_missing_codes_are_stripped_in_their_own_column_alone(adults):
    survey, book = dps.read_survey(
        adults, missing_codes=dps.nhanes.missing_codes("SMD650"), return_codebook=True
    )
    assert survey["SMD650"].isna().tolist() == [True, False, True, False]
    assert survey["AGE"].tolist()[0] == 77.0
    assert book.missing_codes == {"SMD650": (777, 999)}


def test_missing_codes_of_integers_and_text(put):
    path = put("a.csv", "A,S\n7,NN\n1,x\n")
    survey = dps.read_survey(path, missing_codes={"A": [7], "S": ["NN"]})
    assert survey["A"].dtype == np.float64
    assert survey.isna().sum().tolist() == [1, 1]
    with pytest.raises(ArgumentTypeError, match="do not fit its type"):
        dps.read_survey(path, missing_codes={"A": ["7"]})
    # the type does not depend on whether a code is found
    assert dps.read_survey(path, missing_codes={"A": [9]})["A"].dtype == np.float64


def test_where_keeps_rows_by_a_column_that_is_not_kept(adults):
    survey, book = dps.read_survey(adults, on="SEQN", columns=["X"], where="AGE >= 20", return_codebook=True)
    assert survey.index.tolist() == [1, 3]
    assert survey.columns.tolist() == ["X"]
    assert book.filters == ("AGE >= 20",)
    assert (book.confidential.merged, book.confidential.kept) == (4, 2)


@pytest.mark.parametrize(
    ("rule", "ids"),
    [
        ("20 <= AGE < 70", [3]),
        ("AGE < 20 or AGE > 70", [1, 2]),
        ("(AGE < 20) | (AGE > 70)", [1, 2]),
        ("AGE in [19, 20]", [2, 3]),
        ("AGE not in [19, 20]", [1, 4]),
        ("not AGE >= 20", [2, 4]),
        ("AGE.isna()", [4]),
        ("AGE.notna() and X.notna()", [1, 2]),
        ("AGE.isin([77])", [1]),
        ("AGE.between(19, 20)", [2, 3]),
        ("AGE * 2 - SMD650 > 0", [2]),
        ("AGE != 19", [1, 3, 4]),
        ("X == -0.0", [4]),
        ("SMD650 < 100", [2, 4]),
    ],
)
def test_rules(adults, rule, ids):
    assert dps.read_survey(adults, on="SEQN", where=rule).index.tolist() == ids


def test_rules_see_missing_codes_as_missing(adults):
    codes = dps.nhanes.missing_codes("SMD650")
    assert dps.read_survey(adults, on="SEQN", where="SMD650 >= 0", missing_codes=codes).index.tolist() == [
        2,
        4,
    ]


def test_rules_with_names_in_backticks(put):
    path = put("a.csv", "id,blood pressure\n1,120\n2,140\n")
    assert dps.read_survey(path, on="id", where="`blood pressure` > 130").index.tolist() == [2]


@pytest.mark.parametrize(
    "rule",
    [
        "AGE > AGE.mean()",
        "AGE.rank() < 3",
        "AGE in X",
        "AGE not in X",
        "AGE.isin(X)",
        "AGE == @cutoff",
        "AGE[0] > 1",
        "max(AGE) > 1",
        "AGE.values > 1",
        "AGE.between(X, 3)",
        "AGE.isin(values=[1])",
        "__import__('os').system('true')",
        "AGE > (lambda: 1)()",
        "AGE = 3",
        "AGE >",
        "1 == 1",
        "AGE == None",
        "AGE + 1",
        "AGE",
        "'text' in S",
        "AGE is X",
    ],
)
def test_rules_that_could_look_across_rows_or_mean_nothing_are_refused(adults, rule):
    with pytest.raises(ArgumentError, match="rule in where"):
        dps.read_survey(adults, on="SEQN", where=rule)


def test_a_rule_that_fails_shows_no_cell(put):
    path = put("a.csv", f"id,S,X\n1,secret{CANARY},1\n2,b,2\n")
    with pytest.raises(ArgumentError, match="cannot be applied") as caught:
        dps.read_survey(path, on="id", where="S > 3")
    assert str(CANARY) not in story(caught.value)
    with pytest.raises(ArgumentError, match="uses the id"):
        dps.read_survey(path, on="id", where="id == 1")


def test_rounding_is_explicit_and_recorded(adults):
    survey, book = dps.read_survey(adults, round_to=2, return_codebook=True)
    assert survey["X"].tolist()[:2] == [0.82, 0.12]
    assert book.round_to == 2
    assert dps.read_survey(adults)["X"].tolist()[1] == pytest.approx(0.1234567, abs=1e-15)
    # the rule sees what is in the file
    assert len(dps.read_survey(adults, round_to=0, where="X > 0.1")) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        {"columns": "AGE"},
        {"columns": []},
        {"columns": [1]},
        {"columns": ["AGE", "AGE"]},
        {"columns": {"AGE": "a", "X": "a"}},
        {"columns": ["SEQN"], "on": "SEQN"},
        {"missing_codes": [7, 9]},
        {"missing_codes": {"AGE": "7"}},
        {"missing_codes": {"AGE": 7}},
        {"missing_codes": {"AGE": [None]}},
        {"missing_codes": {"SEQN": [1]}, "on": "SEQN"},
        {"round_to": True},
        {"round_to": -1},
        {"round_to": 2.0},
        {"where": 3},
        {"on": 3},
        {"member": 3},
        {"encoding": 3},
    ],
)
def test_arguments_are_checked(adults, arguments):
    with pytest.raises((ArgumentError, ArgumentTypeError)):
        dps.read_survey(adults, **arguments)


# ---------------------------------------------------------------- ids and merging


def test_files_are_merged_one_to_one_on_ids_in_all_of_them(put, transport):
    left = put("l.xpt", transport("L", {"SEQN": [3.0, 1.0, 2.0], "A": [30.0, 10.0, 20.0]}))
    right = put("r.xpt", transport("R", {"SEQN": [2.0, 3.0, 4.0], "B": [200.0, 300.0, 400.0]}))
    third = put("t.csv", "SEQN,C\n2,5\n3,6\n")
    survey, book = dps.read_survey(left, right, third, on="SEQN", return_codebook=True)
    assert survey.index.tolist() == [3, 2]
    assert survey.to_numpy().tolist() == [[30.0, 300.0, 6.0], [20.0, 200.0, 5.0]]
    assert book.confidential.rows == {"l.xpt": 3, "r.xpt": 3, "t.csv": 2}
    assert book.confidential.merged == 2


def test_files_without_an_id_are_refused(put, transport):
    paths = [put(f"{n}.xpt", transport("T", {"SEQN": [1.0], n: [1.0]})) for n in ("A", "B")]
    with pytest.raises(ArgumentError, match="'SEQN'"):
        dps.read_survey(*paths)


def test_repeated_and_missing_ids_are_refused_by_count(put, transport):
    x = [1.0, 2.0, 3.0, 4.0]
    for ids, message in (
        ([float(CANARY), float(CANARY), 5.0, 6.0], "2 rows share an id"),
        ([float(CANARY), None, "A", 6.0], "missing in 2 rows"),
        ([float(CANARY), CANARY + 0.5, 5.0, 6.0], "1 ids that are no whole numbers"),
        ([float(CANARY), 2.0**54, 5.0, 6.0], "1 ids that are no whole numbers"),
    ):
        path = put("a.xpt", transport("T", {"SEQN": ids, "X": x}))
        with pytest.raises(MergeError, match=message) as caught:
            dps.read_survey(path, on="SEQN")
        assert str(CANARY) not in story(caught.value)


def test_text_ids_stay_text(put, transport):
    path = put("a.xpt", transport("T", {"ID": [b"007", b"7"], "X": [1.0, 2.0]}))
    assert dps.read_survey(path, on="ID").index.tolist() == ["007", "7"]
    blank = put("b.xpt", transport("T", {"ID": [b"007", b"   "], "X": [1.0, 2.0]}))
    with pytest.raises(MergeError, match="missing in 1 rows"):
        dps.read_survey(blank, on="ID")
    numbers = put("c.xpt", transport("T", {"ID": [7.0], "Y": [1.0]}))
    with pytest.raises(MergeError, match="different types"):
        dps.read_survey(path, numbers, on="ID")


def test_other_ids_are_refused(put):
    with pytest.raises(MergeError, match="beyond"):
        dps.read_survey(put("b.csv", f"id,X\n{2**63 + 5},1\n2,2\n"), on="id")
    with pytest.raises(MergeError, match="dtype bool"):
        dps.read_survey(put("a.csv", "id,X\nTrue,1\nFalse,2\n"), on="id")


def test_files_about_other_people_are_refused(put, transport):
    paths = [put(f"{i}.xpt", transport("T", {"SEQN": [CANARY + i], f"V{i}": [1.0]})) for i in (0.0, 1.0)]
    with pytest.raises(MergeError, match=r"1 rows in 0\.0\.xpt") as caught:
        dps.read_survey(*paths, on="SEQN")
    assert str(CANARY) not in story(caught.value)


def test_merging_with_an_empty_file_is_empty(put, transport):
    full = put("a.xpt", transport("T", {"SEQN": [1.0], "A": [1.0]}))
    empty = put("b.xpt", transport("T", {"SEQN": [], "B": []}))
    assert dps.read_survey(full, empty, on="SEQN").shape == (0, 2)


def test_a_column_in_two_files_must_agree(put, transport):
    value = float(CANARY)
    left = put("l.xpt", transport("L", {"SEQN": [1.0, 2.0, 3.0], "A": [value, None, 3.0]}))
    same = put(
        "s.xpt", transport("S", {"SEQN": [2.0, 1.0], "A": [None, value * (1 + 1e-15)], "B": [1.0, 2.0]})
    )
    survey, book = dps.read_survey(left, same, on="SEQN", return_codebook=True)
    assert survey.columns.tolist() == ["A", "B"]
    assert survey["A"].iloc[0] == value
    assert book.to_frame().loc["A", "file"] == "l.xpt"
    other = put(
        "o.xpt", transport("O", {"SEQN": [1.0, 2.0, 3.0], "A": [value + 1, 5.0, 3.0], "B": [1.0, 2.0, 3.0]})
    )
    with pytest.raises(MergeError, match=r"'A' \(l.xpt and o.xpt: 2 rows\)") as caught:
        dps.read_survey(left, other, on="SEQN")
    assert str(CANARY) not in story(caught.value)
    assert dps.read_survey(left, other, on="SEQN", columns=["B"]).columns.tolist() == ["B"]


def test_attrs_carry_the_public_part_alone(adults):
    survey, book = dps.read_survey(adults, where="AGE > 1", round_to=1, return_codebook=True)
    assert survey.attrs == {"dpsurvey_codebook": book.public()}
    assert book.public() == {"labels": {}, "filters": ["AGE > 1"], "round_to": 1}
    json.dumps(book.public())


# ---------------------------------------------------------------- the large real files


EXPECTED_SHAPES = {
    "haven__datetime.sas7bdat": (4, 5),
    "haven__tagged-na.sas7bdat": (8, 1),
    "parso__charset_cyrl.sas7bdat": (150, 5),
    "parso__charset_sjis.sas7bdat": (150, 5),
    "parso__charset_utf8.sas7bdat": (150, 5),
    "parso__mix_and_missing.sas7bdat": (48, 5),
    "pyreadstat__dates_xpt_v8.xpt": (19, 9),
    "pyreadstat__missing_test.sas7bdat": (1, 9),
    "pyreadstat__sample.xpt": (5, 7),
    "pyreadstat__sample_bincompressed.sas7bdat": (5, 7),
    "xport__known_values.xpt": (2123, 1),
    "xport__multi.xpt": (20, 2),
    "zero_rows_v5.xpt": (0, 2),
}
EXPECTED_ERRORS = {
    "cport_magic.xpt": "CPORT",
    "empty.xpt": "empty",
    "html_404.xpt": "web page",
    "trunc_in_header.xpt": "3,000 bytes",
}


def test_every_awkward_file_gives_the_right_frame_or_a_named_error(shared):
    folder = shared / "awkward"
    entries = json.loads((folder / "manifest.json").read_text())
    assert {entry["file"] for entry in entries} == {*EXPECTED_SHAPES, *EXPECTED_ERRORS}
    for entry in entries:
        path = folder / entry["file"]
        if path.name in EXPECTED_ERRORS:
            with pytest.raises(FileFormatError, match=EXPECTED_ERRORS[path.name]):
                dps.read_survey(path)
        else:
            survey = dps.read_survey(path)
            assert survey.shape == EXPECTED_SHAPES[path.name] == (entry["rows"], entry["cols"])


def test_what_the_awkward_files_hold(shared):
    folder = shared / "awkward"
    known = dps.read_survey(folder / "xport__known_values.xpt")["X"]
    np.testing.assert_array_equal(known.iloc[:2001], np.arange(-1000.0, 1001.0))
    _, book = dps.read_survey(folder / "pyreadstat__missing_test.sas7bdat", return_codebook=True)
    letters = {f"var{i}": {letter: 1} for i, letter in enumerate("ABCXYZ_", start=1)}
    assert book.confidential.special_missing == letters
    tagged, book = dps.read_survey(folder / "haven__tagged-na.sas7bdat", return_codebook=True)
    assert tagged["x"].dtype == np.float64
    assert book.confidential.special_missing == {"x": {"A": 1, "H": 1, "Z": 1}}
    species = [dps.read_survey(folder / f"parso__charset_{c}.sas7bdat") for c in ("cyrl", "sjis", "utf8")]
    pd.testing.assert_frame_equal(species[0], species[2])
    dates = dps.read_survey(folder / "pyreadstat__dates_xpt_v8.xpt")
    seconds = (dates["dt"] - pd.Timestamp("1960-01-01")).dt.total_seconds()
    np.testing.assert_array_equal(seconds, dates["seconds"])
    assert dates["dates"].dt.strftime("%Y-%m-%d").tolist() == dates["string_dates"].tolist()
    multi = dps.read_survey(folder / "xport__multi.xpt")
    np.testing.assert_array_equal(multi["Y"], np.arange(1.0, 21.0))


def test_types_do_not_depend_on_the_rows(shared):
    """Years before 1678 do not fit the nanoseconds of older pandas; the type is the same without them."""
    for name in ("pyreadstat__sample.xpt", "pyreadstat__sample_bincompressed.sas7bdat"):
        survey = dps.read_survey(shared / "awkward" / name)
        survey.columns = survey.columns.str.upper()
        assert survey["MYDATE"].dtype == "datetime64[s]"
        assert survey["DTIME"].dtype == "datetime64[us]"
        assert survey["DTIME"].dt.year.tolist()[:4] == [2018, 1880, 1960, 1583]
        assert survey["MYTIME"].iloc[0] == datetime.time(10, 10, 10)
    survey = dps.read_survey(shared / "awkward" / "haven__datetime.sas7bdat")
    assert survey.dtypes.map(str).tolist() == ["datetime64[us]", *["datetime64[s]"] * 3, "object"]


def test_genuine_transport_files_against_an_independent_decoder(root, ibm):
    content = (root / "data" / "DEMO_G.xpt").read_bytes()
    data, width = 7440, 48 * 8
    survey = dps.read_survey(root / "data" / "DEMO_G.xpt")
    assert survey.shape == (9756, 48)
    for row in range(0, 9756, 97):
        cells = content[data + row * width : data + (row + 1) * width]
        expected = [ibm(cells[8 * i : 8 * i + 8]) for i in range(48)]
        np.testing.assert_array_equal(survey.iloc[row].to_numpy(), expected)
    assert (survey["INDFMPIR"] == 0).any()


def test_a_genuine_file_cut_short_is_refused(root, put):
    content = (root / "data" / "DEMO_G.xpt").read_bytes()
    for size in (3_000_000, len(content) // 2, len(content) - 80, 7440 + 80, 3000):
        with pytest.raises(FileFormatError, match="cut short"):
            dps.read_survey(put("a.xpt", content[:size]))


def test_genuine_files_of_other_cycles_do_not_merge(root):
    with pytest.raises(MergeError, match="cycles"):
        dps.read_survey(root / "data" / "DEMO_G.xpt", dps.example_files()[1], on="SEQN", columns=["RIDAGEYR"])


def test_files_with_several_rows_a_person_are_refused(shared):
    with pytest.raises(MergeError, match="100 rows share an id"):
        dps.read_survey(shared / "nhanes" / "paxraw_d_short.xpt", on="SEQN")


def test_the_papers_table(shared, capsys):
    """n of the paper, and the Kcal row of correlations of normal scores, made in another program."""
    folder = shared / "nhanes"
    files = [
        folder / "DEMO_J_rebuilt.xpt",
        folder / "DR1TOT_J_subset_rebuilt.xpt",
        folder / "fped_dr1tot_1718.sas7bdat",
    ]
    every = dps.read_survey(*files, on="SEQN", columns=PAPER)
    assert dps.nhanes.complete(every).shape == (6656, 7)
    survey = dps.read_survey(*files, on="SEQN", columns=PAPER, where="DRDINT == 2 and DRABF == 2")
    diet = dps.nhanes.complete(survey)
    assert diet.shape == (5820, 7)
    assert diet.columns.tolist() == list(PAPER.values())
    assert "confidential" in capsys.readouterr().out
    scores = norm.ppf(diet.rank() / (len(diet) + 1))
    row = np.corrcoef(scores, rowvar=False)[0, 1:]
    np.testing.assert_allclose(row, [0.0802, 0.6988, 0.4348, 0.3957, 0.5741, 0.6191], atol=1e-3)


def test_every_error_is_one_of_ours(put, transport):
    """Random damage to a good file: a frame, or a named error; never another exception."""
    rng = np.random.default_rng(5)
    columns = {"SEQN": [float(i) for i in range(30)], "X": [0.5] * 30, "S": [b"text"] * 30}
    for version in (5, 8):
        content = transport("T", columns, version=version)
        for _ in range(60):
            damaged = bytearray(content)
            for at in rng.integers(0, 1100, 3):
                damaged[at] = rng.integers(256)
            try:
                survey = dps.read_survey(put("a.xpt", bytes(damaged)))
            except DpsurveyError:
                continue
            assert isinstance(survey, pd.DataFrame)
