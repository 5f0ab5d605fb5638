"""NHANES conventions: addresses, downloads (from a server on this machine), codes, complete rows."""

from __future__ import annotations

import contextlib
import hashlib
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pandas as pd
import pytest

import dpsurvey as dps
from dpsurvey import nhanes
from dpsurvey.confidential import download as downloads
from dpsurvey.errors import (
    ArgumentError,
    ArgumentTypeError,
    DomainError,
    DownloadError,
    MissingFileError,
    UnknownNameError,
)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    """Servers of these tests are on this machine, whatever proxy it has for others."""
    monkeypatch.setenv("no_proxy", "*")


# ---------------------------------------------------------------- cycles and addresses


@pytest.mark.parametrize(
    ("name", "cycle", "end"),
    [
        ("DEMO", "A", "1999/DataFiles/DEMO.xpt"),
        ("DEMO", "B", "2001/DataFiles/DEMO_B.xpt"),
        ("DEMO", "2011-2012", "2011/DataFiles/DEMO_G.xpt"),
        ("demo", "h", "2013/DataFiles/DEMO_H.xpt"),
        ("DR1TOT", "J", "2017/DataFiles/DR1TOT_J.xpt"),
        ("DR1TOT_J", "J", "2017/DataFiles/DR1TOT_J.xpt"),
        ("DEMO_J.xpt", "J", "2017/DataFiles/DEMO_J.xpt"),
        ("DEMO", "P", "2017/DataFiles/P_DEMO.xpt"),
        ("P_DEMO", "P_", "2017/DataFiles/P_DEMO.xpt"),
        ("DEMO", "L", "2021/DataFiles/DEMO_L.xpt"),
        ("PAXRAW", "D", "2005/DataFiles/PAXRAW_D.xpt"),
        ("SSHSV1_A", "A", "1999/DataFiles/SSHSV1_A.xpt"),
    ],
)
def test_addresses(name, cycle, end):
    assert nhanes.file_url(name, cycle) == f"https://wwwn.cdc.gov/Nchs/Data/Nhanes/Public/{end}"


def test_letters_follow_the_years():
    two_year = [cycle for cycle in nhanes.CYCLES if cycle.letter not in "PL"]
    assert [cycle.start for cycle in two_year] == list(range(1999, 2018, 2))
    assert [cycle.letter for cycle in two_year] == list("ABCDEFGHIJ")
    assert all(cycle.years.startswith(str(cycle.start)) for cycle in two_year)
    assert nhanes.cycles().loc["G"].tolist() == ["2011-2012", "DEMO_G.xpt"]


def test_names_of_components_and_cycles_are_checked():
    with pytest.raises(UnknownNameError, match="did you mean '2017-2018'"):
        nhanes.file_url("DEMO", "2017-2019")
    with pytest.raises(UnknownNameError):
        nhanes.file_url("DEMO", "K")
    for cycle in (2017, None):
        with pytest.raises(ArgumentTypeError):
            nhanes.file_url("DEMO", cycle)
    for name in ("../DEMO", "", "DE MO", "dém"):
        with pytest.raises(ArgumentError):
            nhanes.file_url(name, "J")
    with pytest.raises(ArgumentTypeError):
        nhanes.file_url(3, "J")


# ---------------------------------------------------------------- downloads


class Server(BaseHTTPRequestHandler):
    """Serves what a test puts into `answers`: address -> (status, content, announced length)."""

    answers: ClassVar[dict[str, tuple[int, bytes, int | None]]] = {}
    asked: ClassVar[list[str]] = []

    def do_GET(self):
        self.asked.append(self.path)
        status, content, length = self.answers.get(self.path, (404, b"<html>not found</html>", None))
        self.send_response(status)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(content)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(monkeypatch):
    Server.answers, Server.asked = {}, []
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setattr(nhanes, "BASE_URL", f"http://127.0.0.1:{running.server_port}/Public")
        yield Server
        running.shutdown()
        thread.join()


DEMO = "/Public/2017/DataFiles/DEMO_J.xpt"


@pytest.fixture(scope="module")
def demo(transport):
    """A file of several blocks of a download."""
    return transport("DEMO_J", {"SEQN": [float(i) for i in range(9_000)], "RIDAGEYR": [20.0] * 9_000})


def test_a_file_is_downloaded_once_and_verified_afterwards(server, demo, tmp_path):
    server.answers[DEMO] = (200, demo, len(demo))
    path = nhanes.download("DEMO", cycle="J", cache_dir=tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / "DEMO_J.xpt"
    assert path.read_bytes() == demo
    record = path.with_name("DEMO_J.xpt.sha256")
    assert record.read_text() == f"{hashlib.sha256(demo).hexdigest()}  DEMO_J.xpt\n"
    assert nhanes.download("DEMO", cycle="J", cache_dir=path.parent) == path
    assert server.asked == [DEMO]
    assert dps.read_survey(path, on="SEQN").shape == (9_000, 1)
    assert sorted(p.name for p in path.parent.iterdir()) == ["DEMO_J.xpt", "DEMO_J.xpt.sha256"]


def test_a_file_that_changed_since_is_refused(server, demo, tmp_path):
    server.answers[DEMO] = (200, demo, len(demo))
    path = nhanes.download("DEMO", cycle="J", cache_dir=tmp_path)
    path.write_bytes(demo + b" " * 80)
    with pytest.raises(DownloadError, match="delete it"):
        nhanes.download("DEMO", cycle="J", cache_dir=tmp_path)
    path.unlink()  # and then it comes again, with a new record
    assert nhanes.download("DEMO", cycle="J", cache_dir=tmp_path).read_bytes() == demo


def test_a_pinned_checksum_is_held(server, demo, tmp_path):
    server.answers[DEMO] = (200, demo, len(demo))
    right, wrong = hashlib.sha256(demo).hexdigest(), "0" * 64
    with pytest.raises(DownloadError, match=wrong):
        nhanes.download("DEMO", cycle="J", sha256=wrong, cache_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []
    path = nhanes.download("DEMO", cycle="J", sha256=right.upper(), cache_dir=tmp_path)
    with pytest.raises(DownloadError, match=wrong):
        nhanes.download("DEMO", cycle="J", sha256=wrong, cache_dir=tmp_path)
    assert path.is_file()
    with pytest.raises(ArgumentError):
        nhanes.download("DEMO", cycle="J", sha256="abc", cache_dir=tmp_path)
    with pytest.raises(ArgumentTypeError):
        nhanes.download("DEMO", cycle="J", sha256=b"abc", cache_dir=tmp_path)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((404, b"<html>gone</html>", None), "404"),
        ((500, b"", 0), "500"),
        ((200, b"<!DOCTYPE html><html>Page Not Found</html>", None), "web page"),
        ((200, b"", 0), "incomplete"),
    ],
)
def test_what_is_no_survey_file_never_reaches_the_cache(server, tmp_path, answer, message):
    server.answers[DEMO] = answer
    with pytest.raises(DownloadError, match=message) as caught:
        nhanes.download("DEMO", cycle="J", cache_dir=tmp_path)
    assert DEMO in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_an_incomplete_file_never_reaches_the_cache(server, demo, tmp_path):
    for content, announced in ((demo[:-80], len(demo)), (demo[:-7], None), (demo[:-7], len(demo) - 7)):
        server.answers[DEMO] = (200, content, announced)
        with pytest.raises(DownloadError, match="incomplete"):
            nhanes.download("DEMO", cycle="J", cache_dir=tmp_path)
        assert list(tmp_path.iterdir()) == []


def test_offline_says_which_file_from_where_and_where_to_put_it(monkeypatch, tmp_path, demo):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setattr(nhanes, "BASE_URL", f"http://127.0.0.1:{port}/Public")
    with pytest.raises(DownloadError) as caught:
        nhanes.download("DEMO", cycle="J", cache_dir=tmp_path)
    text = str(caught.value)
    assert f"http://127.0.0.1:{port}{DEMO}" in text
    assert str(tmp_path / "DEMO_J.xpt") in text
    assert isinstance(caught.value, OSError)
    # put there by hand, it is taken and recorded
    (tmp_path / "DEMO_J.xpt").write_bytes(demo)
    assert nhanes.download("DEMO", cycle="J", cache_dir=tmp_path).read_bytes() == demo
    assert (tmp_path / "DEMO_J.xpt.sha256").is_file()


def test_a_server_that_hangs_is_given_up(monkeypatch, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        monkeypatch.setattr(nhanes, "BASE_URL", f"http://127.0.0.1:{deaf.getsockname()[1]}")
        monkeypatch.setattr(downloads, "TIMEOUT", 0.1)
        with pytest.raises(DownloadError):
            nhanes.download("DEMO", cycle="J", cache_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_default_folder_is_in_the_users_cache(server, demo, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    server.answers[DEMO] = (200, demo, len(demo))
    path = nhanes.download("DEMO", cycle="J")
    assert tmp_path in path.parents
    assert path.parent.parts[-2:] == ("dpsurvey", "nhanes")


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MissingFileError, match="cache_dir="):
        nhanes.download("DEMO", cycle="J", cache_dir=tmp_path / "file")


# ---------------------------------------------------------------- missing codes


def test_codes_are_looked_up_variable_by_variable():
    assert nhanes.missing_codes("SMD650", "PAD680") == {"SMD650": (777, 999), "PAD680": (7777, 9999)}
    assert nhanes.missing_codes("DIQ010", "DMDMARTL", "BPXDI1") == {
        "DIQ010": (7, 9), "DMDMARTL": (77, 99), "BPXDI1": (0,),
    }  # fmt: skip
    assert nhanes.missing_codes() == {}
    with pytest.raises(UnknownNameError, match="did you mean 'SMD650'"):
        nhanes.missing_codes("smd650")


def test_measurements_have_no_codes():
    for name in ("RIDAGEYR", "BMXBMI", "DR1TKCAL", "INDFMPIR", "LBDHDD", "SEQN", "BPXSY1"):
        assert name not in nhanes.MISSING_CODES


def test_codes_do_not_collide_with_answers_in_genuine_files(root):
    """Every code of the table that occurs in the 2011-2012 demographics lies above all answers."""
    survey = dps.read_survey(root / "data" / "DEMO_G.xpt", on="SEQN")
    found = [name for name in survey if name in nhanes.MISSING_CODES]
    assert {"DMDEDUC2", "DMDMARTL", "DMDCITZN", "INDHHIN2"} <= set(found)
    for name in found:
        codes = nhanes.MISSING_CODES[name]
        answers = survey[name][~survey[name].isin(codes)]
        assert answers.max() < min(codes)
        assert survey[name].max() <= max(codes)


# ---------------------------------------------------------------- complete rows


@pytest.fixture
def table():
    return pd.DataFrame(
        {
            "a": [1.0, None, 3.0, None, 5.0],
            "b": [1.0, 2.0, None, None, 5.0],
            "c": [None, None, None, None, 1.0],
        },
        index=pd.Index([11, 12, 13, 14, 15], name="SEQN"),
    )


def test_complete_keeps_complete_rows_and_tells_the_holder(table, capsys):
    kept = nhanes.complete(table, ["a", "b"])
    assert kept.index.tolist() == [11, 15]
    assert kept.columns.tolist() == ["a", "b"]
    printed = capsys.readouterr().out
    assert "confidential" in printed
    assert "2 of 5 rows are complete" in printed
    assert nhanes.complete(table).index.tolist() == [15]
    assert len(nhanes.complete(table.iloc[:0])) == 0


def test_rows_lost_are_counted_per_column(table):
    lost = nhanes.rows_lost(table)
    assert lost["missing"].to_dict() == {"a": 2, "b": 2, "c": 4}
    assert lost["only_here"].to_dict() == {"a": 0, "b": 0, "c": 1}
    assert nhanes.rows_lost(table, ["a", "b"])["only_here"].to_dict() == {"a": 1, "b": 1}


def test_complete_declares_itself_where_the_codebook_is(table, capsys):
    assert nhanes.complete(table).attrs == {}
    table.attrs["dpsurvey_codebook"] = {"labels": {}, "filters": ["AGE >= 20"], "round_to": None}
    kept = nhanes.complete(table, ["a", "b"])
    assert kept.attrs["dpsurvey_codebook"]["filters"] == ["AGE >= 20", "complete rows on a, b"]
    assert table.attrs["dpsurvey_codebook"]["filters"] == ["AGE >= 20"]
    assert capsys.readouterr().out.count("confidential") == 2


def test_complete_does_not_change_its_argument(table, capsys):
    before = table.copy(deep=True)
    kept = nhanes.complete(table, ["a"])
    kept.loc[11, "a"] = 99.0
    pd.testing.assert_frame_equal(table, before)
    assert capsys.readouterr().out


def test_complete_treats_kinds_of_missing_alike(capsys):
    table = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [1.0, 2.0, float("inf")]})
    assert len(nhanes.complete(table)) == 2  # infinite is not missing
    assert capsys.readouterr().out


def test_complete_checks_its_arguments(table):
    with pytest.raises(UnknownNameError, match="did you mean 'a'"):
        nhanes.complete(table, ["A"])
    with pytest.raises(ArgumentTypeError, match="list"):
        nhanes.complete(table, "a")
    with pytest.raises(ArgumentTypeError):
        nhanes.complete([1])
    with pytest.raises(DomainError):
        nhanes.complete(pd.DataFrame([[1, 2]], columns=["x", "x"]))
