"""What crosses between R and Python comes back as it was; R's quirks of length one and NaN are undone."""

import json

import numpy as np
import pandas as pd
import pytest

import dpsurvey as dps
from dpsurvey.errors import ArgumentError, ReleaseFormatError
from dpsurvey.rvalues import (
    frame_from_r,
    frame_to_r,
    release_from_r,
    release_to_r,
    result_from_r,
    result_to_r,
    whole,
)

NAN = float("nan")


def test_columns_of_every_kind():
    table = {
        "columns": [
            {"name": "a b", "kind": "double", "values": [0.5, NAN, -1.0], "levels": []},
            {"name": "i", "kind": "integer", "values": [1.0, NAN, -7.0], "levels": []},
            {"name": "l", "kind": "logical", "values": [1.0, 0.0, NAN], "levels": []},
            {"name": "o", "kind": "ordered", "values": [2.0, NAN, 1.0], "levels": ["low", "high"]},
            {"name": "f", "kind": "factor", "values": [1.0, 1.0, 1.0], "levels": "only"},
            {"name": "t", "kind": "text", "values": [1.0, NAN, 2.0], "levels": ["x", "y"]},
            {"name": "d", "kind": "date", "values": [0.0, NAN, 86400.0], "levels": []},
        ],
        "id": {"name": "SEQN", "kind": "double", "values": [11.0, 12.0, 2.0**40], "levels": []},
        "labels": {"names": "a b", "texts": "Label"},
        "filters": "AGE >= 20",
        "round_to": 3.0,
    }
    frame = frame_from_r(table)
    assert frame.index.tolist() == [11, 12, 2**40]
    assert frame.index.name == "SEQN"
    assert [str(dtype) for dtype in frame.dtypes[:3]] == ["float64", "Int64", "boolean"]
    assert frame["o"].cat.ordered
    assert not frame["f"].cat.ordered
    assert frame["o"].cat.codes.tolist() == [1, -1, 0]
    assert frame["t"].tolist() == ["x", None, "y"] or frame["t"].isna().tolist() == [False, True, False]
    assert pd.api.types.is_datetime64_any_dtype(frame["d"])
    assert frame.isna().sum().tolist() == [1, 1, 1, 1, 0, 1, 1]
    assert frame.attrs["dpsurvey_codebook"] == {
        "labels": {"a b": "Label"},
        "filters": ["AGE >= 20"],
        "round_to": 3,
    }


def test_one_row_and_empty_lists_of_R():
    table = {"columns": [{"name": "a", "kind": "double", "values": 2.0, "levels": []}], "id": None}
    assert frame_from_r({**table, "labels": [], "filters": None})["a"].tolist() == [2.0]


def test_frames_come_apart():
    frame = pd.DataFrame(
        {
            "x": [1, 2],
            "y": [True, False],
            "some": pd.array([None, 2.5], dtype="Float64"),
            "maybe": pd.Series([True, None], dtype=object),
            "text": ["a", None],
        }
    )
    parts = {part["name"]: part for part in frame_to_r(frame)}
    assert {name: part["kind"] for name, part in parts.items()} == {
        "x": "double",
        "y": "logical",
        "some": "double",
        "maybe": "logical",
        "text": "text",
    }
    assert parts["y"]["values"] == [1.0, 0.0]
    assert np.isnan(parts["some"]["values"][0])
    assert parts["maybe"]["values"][0] == 1.0
    assert np.isnan(parts["maybe"]["values"][1])
    assert parts["text"]["missing"] == [False, True]
    json.dumps([part["name"] for part in parts.values()])


@pytest.fixture
def posterior():
    frame = pd.DataFrame(np.random.default_rng(1).standard_normal((200, 3)), columns=["a", "b", "c"])
    return dps.erl(frame, draws=20, chains=2, seed=2**40, progress=False)


def test_posteriors_return_unchanged(posterior):
    value = json.loads(json.dumps(result_to_r(posterior)))
    back = result_from_r(value)
    np.testing.assert_array_equal(back.draws, posterior.draws)
    assert (back.variables, back.seed, back.info) == (posterior.variables, 2**40, posterior.info)
    assert repr(back) == repr(posterior)


def test_estimates_and_releases_return_unchanged():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.standard_normal((200, 3)), columns=["a", "b", "c"])
    release = dps.release(frame, epsilon=2.0, insecure_rng=rng)
    assert release_from_r(release_to_r(release)["json"]) == release
    estimate = dps.CorrelationEstimate(np.eye(2), ("a", "b"), {}, method="MLE-NN", private=True)
    back = result_from_r(result_to_r(estimate))
    np.testing.assert_array_equal(back.R, estimate.R)
    with pytest.raises(ReleaseFormatError):
        release_from_r("no json")


@pytest.mark.parametrize("value", [1.5, True, "3", NAN, float("inf")])
def test_whole_numbers_only(value):
    with pytest.raises(ArgumentError, match="draws is not a whole number"):
        whole("draws", value)
