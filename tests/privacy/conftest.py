"""Reference values of the paper's own code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def reference(golden: Path) -> dict[str, Any]:
    """What the paper's reference code computes in R."""
    return json.loads((golden / "dpbayescopula.json").read_text())
