"""Releases: what they hold, that they come back the same, and that no file can pass for one that is not."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsurvey.errors import MissingFileError, ReleaseFormatError
from dpsurvey.privacy.mechanisms import build_mechanism
from dpsurvey.privacy.release import FORMAT, SCHEMA_VERSION, Release
from dpsurvey.privacy.statistics import NEIGHBOURS, QuadrantCounts

MECHANISMS = ["geometric", "rgm"]


def make_release(
    variables: tuple[str, ...] = ("Kcal", "Grain", "Sugar"),
    *,
    n: int = 501,
    epsilon: float = 1.0,
    mechanism: str = "geometric",
    **changes: Any,
) -> Release:
    p = len(variables)
    law = QuadrantCounts(n, p)
    noise = build_mechanism(mechanism, law, epsilon)
    fields: dict[str, Any] = {
        "variables": variables,
        "n": n,
        "counts": tuple(int(c) for c in noise.simulate(np.full(law.m, n // 4), np.random.default_rng(1))),
        "statistic": "quadrant",
        "mechanism": mechanism,
        "parameters": noise.parameters,
        "epsilon": epsilon,
        "delta": 0.0,
        "neighbours": NEIGHBOURS,
        "key_seed": 1,
        "key_fingerprint": "0123456789abcdef",
        "secure": True,
    }
    return Release(**{**fields, **changes})


@pytest.fixture(params=MECHANISMS)
def release(request) -> Release:
    return make_release(
        mechanism=request.param,
        labels={"Kcal": "Energy (kcal)"},
        filters=("RIDAGEYR >= 20", "DRABF == 2"),
        rounding=3,
        versions={"dpsurvey": "0.1.0"},
        ledger={"dataset": "diet", "sequence": 4, "head": "ab" * 32},
    )


# --- what it is


def test_shape_pairs_and_frame(release: Release) -> None:
    assert (release.p, release.m) == (3, 3)
    assert release.pairs == (("Kcal", "Grain"), ("Kcal", "Sugar"), ("Grain", "Sugar"))
    assert release.noisy.dtype == np.int64
    frame = release.to_frame()
    assert frame["noisy_count"].tolist() == list(release.counts)
    assert list(zip(frame["var1"], frame["var2"], strict=True)) == list(release.pairs)
    assert release.statistic_law() == QuadrantCounts(501, 3)
    assert release.noise_law() == build_mechanism(release.mechanism, QuadrantCounts(501, 3), 1.0)


def test_it_is_frozen_and_keeps_its_own_tables(release: Release) -> None:
    for field in dataclasses.fields(release):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(release, field.name, getattr(release, field.name))
    labels = {"Kcal": "Energy"}
    mine = make_release(labels=labels)
    labels["Kcal"] = "changed"
    assert mine.labels == {"Kcal": "Energy"}
    mine.to_dict()["labels"]["Kcal"] = "changed"
    mine.to_dict()["parameters"].clear()
    assert mine.labels == {"Kcal": "Energy"}
    assert mine.parameters


def test_equal_releases_hash_equal_and_travel_to_other_processes(release: Release) -> None:
    for twin in (copy.copy(release), copy.deepcopy(release), pickle.loads(pickle.dumps(release))):
        assert twin == release
        assert hash(twin) == hash(release)
    assert dataclasses.replace(release, key_seed=2) != release


def test_repr_says_what_it_is_and_whether_its_noise_is_real() -> None:
    text = repr(make_release())
    assert (
        text
        == "<Release: 3 variables, 3 noisy quadrant counts, n = 501, geometric, epsilon = 1, secure noise>"
    )
    assert "INSECURE" in repr(make_release(secure=False))


def test_epsilon_is_never_rounded_where_it_is_claimed() -> None:
    release = make_release(epsilon=1.00000049)
    assert "epsilon = 1.00000049," in repr(release)
    assert "epsilon = 1.00000049 " in release.statement()


def test_statement_has_all_the_numbers_of_the_release(release: Release) -> None:
    text = release.statement()
    for part in (
        "3 variables (Kcal, Grain, Sugar)", "n = 501", "RIDAGEYR >= 20; DRABF == 2", "rounded to 3 decimals", "seed 1",
        "3 pairs", release.noise_law().description, "epsilon = 1 ", "delta = 0)", "'substitute one row'",
        "Survey weights", "not used", "how many rows were complete", "2601.03497",
    ):  # fmt: skip
        assert part in text
    assert "SEEDED" not in text
    assert "\n" not in text


def test_statement_of_a_plain_or_simulated_release() -> None:
    plain = make_release().statement()
    assert "filter" not in plain.replace("variables and filters, are outside", "")
    assert "rounded" not in plain
    assert "protects nobody" in make_release(secure=False).statement()


# --- to a file and back


def test_round_trip(release: Release, tmp_path: Path) -> None:
    path = release.save(tmp_path / "r.json")
    assert path == tmp_path / "r.json"
    assert Release.load(path) == Release.load(str(path)) == release
    values = json.loads(path.read_text())
    assert (values["format"], values["schema"]) == (FORMAT, SCHEMA_VERSION)
    assert os.listdir(tmp_path) == ["r.json"]


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)  # with nulls, separators and all else


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_release_comes_back_the_same(data: st.DataObject, tmp_path_factory) -> None:
    variables = tuple(data.draw(st.lists(text, min_size=2, max_size=5, unique=True)))
    mechanism = data.draw(st.sampled_from(MECHANISMS))
    release = make_release(
        variables,
        n=data.draw(st.integers(4, 10**6)) if mechanism == "geometric" else data.draw(st.integers(4, 500)),
        epsilon=data.draw(st.floats(1e-9, 10.0)),
        mechanism=mechanism,
        labels=data.draw(st.dictionaries(st.sampled_from(variables), text)),
        filters=tuple(data.draw(st.lists(text, max_size=3))),
        rounding=data.draw(st.none() | st.integers(-3, 9)),
        versions=data.draw(st.dictionaries(text, text, max_size=3)),
        key_seed=data.draw(st.integers(0, 2**64 - 1)),
        secure=data.draw(st.booleans()),
    )
    assert Release.from_dict(json.loads(json.dumps(release.to_dict()))) == release
    path = tmp_path_factory.getbasetemp() / "any.json"
    assert Release.load(release.save(path)) == release
    assert release.statement()
    assert repr(release)


def test_a_save_that_fails_leaves_the_old_file_whole(release: Release, tmp_path: Path, monkeypatch) -> None:
    path = release.save(tmp_path / "r.json")
    before = path.read_bytes()

    def broken(*arguments: object, **options: object) -> None:
        arguments[1].write("half a rel")  # type: ignore[attr-defined]
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dpsurvey.privacy.release.json.dump", broken)
    with pytest.raises(OSError, match="No space"):
        make_release(epsilon=2.0).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["r.json"]


def test_files_that_are_not_there(release: Release, tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(MissingFileError) as caught:
            Release.load(path)
        assert path.name in str(caught.value)
    with pytest.raises(MissingFileError):
        release.save(tmp_path / "nowhere" / "r.json")


# --- what is refused


def values(**changes: Any) -> dict[str, Any]:
    return {**make_release(ledger={"dataset": "d", "sequence": 1, "head": "ab"}).to_dict(), **changes}


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in values().items() if key != name}


FIELDS = [field.name for field in dataclasses.fields(Release)]
WRONG: dict[str, list[Any]] = {
    "variables": ["abc", None, {}, [], ["a"], ["a", "a", "b"], ["a", "b", 3], ["a", "b", "\udc80"], ["a", "b"],
                  ["a", "b", "c", "d"], [["a"], "b", "c"]],
    "n": [3, 0, -5, 10**9 + 1, 10**400, 501.0, True, "501", None, [501]],
    "counts": [[1, 2], [1, 2, 3, 4], [1, 2, 3.0], [1, 2, True], [1, 2, "3"], [1, 2, None], "123", {}, [1, 2, 2**63],
               [1, 2, -(2**63)], [1, 2, 10**4000], None, []],
    "statistic": ["concordance", "", None, 1, ["quadrant"]],
    "mechanism": ["gaussian", "rgm", "", None, 1, ["geometric"]],
    "parameters": [{}, None, [], {"scale": 3.0}, {"scale": 3.0, "privacy_map": 1.0, "more": 1}]
    + [{"scale": scale, "privacy_map": 1.0} for scale in (2.9, 0, -3.0, True, "3", math.inf, math.nan, 10**4000)]
    + [{"scale": 3.0, "privacy_map": cost} for cost in (0.5, 1.5, 0, True, None)],
    "epsilon": [0, 0.0, -1.0, math.nan, math.inf, True, "1", None, 2.0, 0.5, 10**400, 1e308, 5e-324, []],
    "delta": [-1e-9, 1.0, 2, math.nan, math.inf, 10**400, True, "0", None],
    "neighbours": ["add or remove one row", "", None, 1],
    "key_seed": [-1, 2**64, 10**4000, 1.0, True, "1", None],
    "key_fingerprint": [None, 5, []],
    "secure": [1, 0, "true", None],
    "labels": [None, [], "x", {"Kcal": 1}, {"Kcal": None}, {"Other": "label"}, {"Kcal": "\ud800"}],
    "filters": [None, "RIDAGEYR >= 20", {}, [1], [None], [["a"]], ["\udfff"]],
    "rounding": [1.0, True, "3", [3]],
    "coarse": [None, "Kcal", {}, ["Other"], [1], ["Kcal"]],
    "versions": [None, [], {"numpy": 2}],
    "ledger": [{}, [], "x", 1, {"dataset": "d", "sequence": 1}]
    + [{"dataset": "d", "sequence": 1, "head": "ab"} | change
       for change in ({"more": 1}, {"dataset": 1}, {"sequence": "1"}, {"sequence": True}, {"sequence": 0},
                      {"head": None})],
}  # fmt: skip


def test_every_field_is_attacked() -> None:
    assert set(WRONG) == set(FIELDS)
    assert Release.from_dict(values())  # the file that is changed is good


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, bad in WRONG.items() for value in bad],
    ids=lambda x: repr(x)[:40],
)
def test_a_wrong_value_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ReleaseFormatError) as caught:
        Release.from_dict(values(**{name: value}))
    assert caught.value.code == "DPS303"
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("name", FIELDS)
def test_a_missing_field_is_named(name: str) -> None:
    with pytest.raises(ReleaseFormatError, match=name):
        Release.from_dict(without(name))


def test_an_unknown_field_is_named_and_cut_short() -> None:
    with pytest.raises(ReleaseFormatError, match="noise_radius"):
        Release.from_dict(values(noise_radius=7))
    with pytest.raises(ReleaseFormatError) as caught:
        Release.from_dict(values(**{f"{i}" + "x" * 10_000: i for i in range(100)}))
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize(
    "schema", [0, 2, 10**4000, "1", 1.0, True, None, [1], {"a": 1}], ids=lambda x: repr(x)[:20]
)
def test_an_unknown_version_is_refused(schema: Any) -> None:
    with pytest.raises(ReleaseFormatError, match="schema version") as caught:
        Release.from_dict(values(schema=schema))
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("value", [None, [], "x", 5, {}, {"format": "other"}, {"format": None}])
def test_what_is_no_release_is_refused(value: Any) -> None:
    with pytest.raises(ReleaseFormatError, match="not a dpsurvey release"):
        Release.from_dict(value)


@pytest.mark.parametrize("change", [{"n": 502}, {"n": 500}, {"n": 50}])
def test_n_and_the_range_of_the_mechanism_must_agree(change: dict[str, int]) -> None:
    with pytest.raises(ReleaseFormatError):
        Release.from_dict({**make_release(mechanism="rgm").to_dict(), **change})


def test_a_count_outside_the_range_of_the_mechanism_is_refused() -> None:
    good = make_release(mechanism="rgm").to_dict()
    for count in (0, 252):  # the range at n = 501 is 1 to 251
        with pytest.raises(ReleaseFormatError):
            Release.from_dict({**good, "counts": [count, 100, 100]})
    wide = make_release().to_dict()
    assert Release.from_dict({**wide, "counts": [-20, 900, 0]}).counts == (
        -20,
        900,
        0,
    )  # geometric noise may be large


HOSTILE: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "cut off": lambda: json.dumps(values()).encode()[:-30],
    "two in one": lambda: json.dumps(values()).encode() * 2,
    "not text": lambda: b"\x93NUMPY\x01\x00" + bytes(100),
    "a page": lambda: b"<!DOCTYPE html><html>404</html>",
    "nested lists": lambda: b"[" * 5_000_000,
    "nested closed lists": lambda: b"[" * 100_000 + b"]" * 100_000,
    "nested objects": lambda: b'{"a":' * 1_000_000,
    "nested as deep as a parser goes": lambda: json.dumps(values(schema=0)).replace(
        '"schema": 0', f'"schema": {"[" * 900}{"]" * 900}').encode(),
    "NaN": lambda: json.dumps(values(epsilon=math.nan)).encode(),
    "Infinity": lambda: json.dumps(values(delta=math.inf)).encode(),
    "infinite by its exponent": lambda: json.dumps(values()).replace('"epsilon": 1.0', '"epsilon": 1e999').encode(),
    "a number of a million digits": lambda: json.dumps(values()).replace("501", "9" * 1_000_000).encode(),
    "many counts": lambda: json.dumps(values(counts=[1] * 4_000_000)).encode(),
    "many names": lambda: json.dumps(values(variables=[str(i) for i in range(1_000_000)])).encode(),
    "many fields": lambda: json.dumps({**values(), **{str(i): i for i in range(500_000)}}).encode(),
    "UTF-16": lambda: json.dumps(values()).encode("utf-16")[:-3],
    "20 MB": lambda: json.dumps(values(key_fingerprint="a" * 20_000_000)).encode(),
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_gives_a_named_error_soon(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(HOSTILE[kind]())
    start = time.process_time()
    with pytest.raises(ReleaseFormatError) as caught:
        Release.load(path)
    assert time.process_time() - start < 5
    assert len(str(caught.value)) < 2000


def test_a_huge_file_is_not_read_into_memory(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "r.json"
    with path.open("wb") as file:
        file.truncate(2**31)
    tracemalloc.start()
    with pytest.raises(ReleaseFormatError, match="too large"):
        Release.load(path)
    assert tracemalloc.get_traced_memory()[1] < 2**26
    tracemalloc.stop()
