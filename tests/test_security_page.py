"""SECURITY.md: its code runs, in order, and prints what the page says."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from pathlib import Path

import pytest

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_block_runs_and_prints_what_stands_below_it(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((root / "SECURITY.md").read_text(encoding="utf-8"))
    assert [kind for kind, _ in blocks] == ["python", "text"] * 3
    names: dict[str, object] = {}
    for (_, code), (_, wanted) in zip(blocks[::2], blocks[1::2], strict=True):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, "SECURITY.md", "exec"), names)
        options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert doctest.OutputChecker().check_output(wanted, said.getvalue(), options), said.getvalue()


def test_links_lead_somewhere(root: Path) -> None:
    page = (root / "SECURITY.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", page):
        assert (root / target).exists(), target
    for module in re.findall(r"`(?:dpsurvey/)?(privacy/\w+\.py)`", page):
        assert (root / "dpsurvey" / module).exists(), module
    for name in ("preflight", "rows_lost", "plan", "read_survey", "statement", "check_release"):
        assert name in page
