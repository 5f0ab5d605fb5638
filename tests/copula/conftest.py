"""Fixtures for results: a release made by hand, so that no rows are needed."""

from collections.abc import Callable

import pytest

from dpsurvey.privacy.release import Release


@pytest.fixture(scope="session")
def make_release() -> Callable[..., Release]:
    """Return a maker of releases with geometric noise."""

    def make(variables: tuple[str, ...], **changes: object) -> Release:
        m = len(variables) * (len(variables) - 1) // 2
        epsilon = float(changes.pop("epsilon", 1.0))  # type: ignore[arg-type]
        fields: dict[str, object] = {
            "variables": variables,
            "n": 500,
            "counts": tuple(range(150, 150 + m)),
            "statistic": "quadrant",
            "mechanism": "geometric",
            "parameters": {"scale": m / epsilon, "privacy_map": epsilon},
            "epsilon": epsilon,
            "delta": 0.0,
            "neighbours": "substitute one row",
            "key_seed": 2**100 + 1,
            "key_fingerprint": "0123456789abcdef",
            "secure": True,
        }
        return Release(**{**fields, **changes})

    return make
