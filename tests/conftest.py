"""Shared fixtures."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The top folder of the project."""
    return ROOT


@pytest.fixture(scope="session")
def golden() -> Path:
    """Reference values from outside the project; every file states its origin."""
    return ROOT / "tests" / "golden"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the large real files, which is not part of the project."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip(
            "the large real survey files (a folder `shared` beside the project) are not on this machine"
        )
    return folder
