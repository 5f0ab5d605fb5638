"""Noisy counts are exact integers from the rows to the file: no float is on the way."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsurvey as dps
from dpsurvey.privacy import exact
from dpsurvey.privacy.mechanisms import MECHANISMS, build_mechanism
from dpsurvey.privacy.release import Release
from dpsurvey.privacy.statistics import NEIGHBOURS, ConcordanceCounts

pytestmark = pytest.mark.filterwarnings("ignore::dpsurvey.errors.NoLedgerWarning")
BEYOND = [2**53 + 1, 2**53 + 3, 2**58 + 1]  # no float64 has these values
NAMES = list(MECHANISMS)


def options(mechanism: str) -> dict[str, Any]:
    return {"mechanism": mechanism, "delta": 1e-6 if mechanism == "gaussian" else 0.0}


@pytest.mark.parametrize("simulated", [False, True])
@pytest.mark.parametrize("statistic", ["quadrant", "concordance"])
@pytest.mark.parametrize("mechanism", NAMES)
def test_types_from_rows_to_file(
    mechanism: str, statistic: str, simulated: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, seen = MECHANISMS[mechanism], []
    method = "simulate" if simulated else "release"
    draw = getattr(kind, method)

    def spy(self: Any, counts: Any, *rest: Any) -> Any:
        noisy = draw(self, counts, *rest)
        seen.append((counts.dtype, noisy.dtype))
        return noisy

    monkeypatch.setattr(kind, method, spy)
    table = pd.DataFrame(np.random.default_rng(1).normal(size=(31, 3)), columns=list("xyz"))
    rng = np.random.default_rng(1) if simulated else None
    release = dps.release(table, 1.0, statistic=statistic, insecure_rng=rng, **options(mechanism))
    assert seen == [(np.dtype(np.int64), np.dtype(np.int64))]
    assert [type(count) for count in release.counts] == [int] * 3
    assert release.noisy.dtype == np.int64
    text = release.save(tmp_path / "r.json").read_text()
    written = re.search(r'"counts": \[([^\]]*)\]', text)
    assert written is not None
    assert re.fullmatch(r"\s*-?\d+(,\s*-?\d+)*\s*", written[1])
    assert all(type(count) is int for count in Release.load(tmp_path / "r.json").counts)


@pytest.mark.parametrize("mechanism", ["geometric", "linf"])
def test_counts_that_no_float_can_hold_come_through_mechanism_release_and_file(
    mechanism: str, tmp_path: Path
) -> None:
    """Discordant counts of a billion rows, at an epsilon at which noise is 0 for certain."""
    statistic = ConcordanceCounts(10**9, 3)
    law = build_mechanism(mechanism, statistic, 1e15)
    true = np.array(BEYOND, dtype=np.int64)
    for noisy in (law.release(true), law.simulate(true, np.random.default_rng(1))):
        assert noisy.tolist() == BEYOND
    release = Release(
        variables=("x", "y", "z"), n=statistic.n, counts=tuple(law.release(true).tolist()), statistic="concordance",
        mechanism=mechanism, parameters=law.parameters, epsilon=1e15, delta=0.0, neighbours=NEIGHBOURS, key_seed=1,
        key_fingerprint="0123456789abcdef", secure=True,
    )  # fmt: skip
    path = release.save(tmp_path / "r.json")
    assert json.loads(path.read_text())["counts"] == BEYOND
    assert Release.load(path).noisy.tolist() == BEYOND


@pytest.mark.parametrize("mechanism", ["geometric", "linf", "gaussian"])
@pytest.mark.parametrize("simulated", [False, True])
def test_noise_is_added_to_large_counts_to_the_last_bit(mechanism: str, simulated: bool) -> None:
    """Noise of a few units on counts near 2^58, where floats stand 64 apart: odd and even sums come alike."""
    law = build_mechanism(mechanism, ConcordanceCounts(5, 3), 1.0, options(mechanism)["delta"])
    true = np.array([2**58 + 1] * 3, dtype=np.int64)
    rng = np.random.default_rng(1)
    noisy = np.array([law.simulate(true, rng) if simulated else law.release(true) for _ in range(400)])
    noise = noisy - true
    assert len(np.unique(noise % 64)) > 8
    assert 400 < (noise % 2).sum() < 800  # of 1200, sd 17
    assert np.abs(noise).max() < 1000


def test_the_exact_samplers_ask_for_whole_numbers_and_give_whole_numbers() -> None:
    """Every bound that L-infinity noise asks randomness for is an integer, and so is every draw."""
    from dpsurvey.privacy.linf import LInfinity

    bounds: list[int] = []

    def randbelow(bound: int) -> int:
        bounds.append(bound)
        return exact.secure_randbelow(bound)

    law = LInfinity.build(ConcordanceCounts(100, 4, (3,)), 0.7)
    noisy = law._add(np.zeros(6, dtype=np.int64), randbelow)
    assert noisy.dtype == np.int64
    assert len(bounds) > 6
    assert {type(bound) for bound in bounds} == {int}
