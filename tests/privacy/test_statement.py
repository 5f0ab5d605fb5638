"""The methods paragraph carries every number of its release, and each of them is the release's own."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsurvey as dps
from dpsurvey.privacy.mechanisms import MECHANISMS

RECEIPT = {"dataset": "NHANES 2017-18 diet", "sequence": 4, "head": "ab12" * 16}
RECORDED = {
    "filters": ("RIDAGEYR >= 20", "DRABF == 2"),
    "rounding": 3,
    "key_seed": 77,
    "key_fingerprint": "0123456789abcdef",
    "ledger": RECEIPT,
    "secure": True,
}


def make(**options: Any) -> dps.Release:
    table = pd.DataFrame(
        np.random.default_rng(1).normal(size=(61, 4)), columns=["Kcal", "Grain", "Veg", "Sex"]
    )
    made = dps.release(table, 0.75, insecure_rng=np.random.default_rng(1), **options)
    return dataclasses.replace(made, **RECORDED)


@pytest.mark.parametrize("statistic", ["quadrant", "concordance"])
@pytest.mark.parametrize("mechanism", list(MECHANISMS))
def test_every_number_of_the_release_is_in_it(statistic: str, mechanism: str) -> None:
    delta = 1e-6 if mechanism == "gaussian" else 0.0
    text = make(statistic=statistic, mechanism=mechanism, delta=delta).statement()
    for part in (
        "4 variables (Kcal, Grain, Veg, Sex)", "n = 61 complete rows", "RIDAGEYR >= 20; DRABF == 2",
        "rounded to 3 decimals", "seed 77, fingerprint 0123456789abcdef", "each of the 6 pairs",
        f"{MECHANISMS[mechanism].description} noise", "epsilon = 0.75 ", f"(delta = {'1e-06' if delta else '0'})",
        "'substitute one row' with n public",
        "entry 4 of the privacy ledger of 'NHANES 2017-18 diet' (head ab12ab12ab12ab12)",
        "how many rows were complete", "choice of variables and filters, are outside", "positions, in a table without",
        "Survey weights", "2601.03497",
    ):  # fmt: skip
        assert part in text
    assert ("(epsilon, delta)-differential" in text) == bool(delta)
    assert ("split at its median" in text) == (statistic == "quadrant")
    assert "SEEDED" not in text
    assert "No ledger" not in text
    assert "\n" not in text
    assert "  " not in text


@pytest.mark.parametrize(
    ("change", "gone", "come"),
    [
        ({"filters": ()}, "declared filters", ""),
        ({"rounding": None}, "rounded", ""),
        ({"ledger": None}, "entry 4", "No ledger kept count of what it spent."),
        ({"secure": False}, "No ledger", "SEEDED GENERATOR: it is a simulation and protects nobody."),
        ({"secure": False, "ledger": None}, "No ledger", "protects nobody"),
        ({"key_seed": 78}, "seed 77", "seed 78"),
        ({"coarse": ("Sex",)}, "", ""),
    ],
    ids=str,
)
def test_what_is_not_there_is_not_said(change: dict[str, Any], gone: str, come: str) -> None:
    options = {"coarse": ["Sex"]} if "coarse" in change else {}
    text = dataclasses.replace(
        make(statistic="concordance", mechanism="linf", **options), **change
    ).statement()
    assert not gone or gone not in text
    assert come in text
    assert ("pairs with Sex, declared to have few levels" in text) == ("coarse" in change)


def test_no_digit_of_epsilon_is_rounded_away() -> None:
    table = pd.DataFrame({"x": range(10), "y": range(10)})
    release = dps.release(table, 1.00000049, insecure_rng=np.random.default_rng(1))
    assert "epsilon = 1.00000049 " in release.statement()
