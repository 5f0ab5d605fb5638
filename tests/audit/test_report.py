"""The report of the long audits, and what the published one says."""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

XML = """<testsuites><testsuite>
<testcase name="a"><properties>
 <property name="mechanism" value="linf"/><property name="statistic" value="Q"/><property name="epsilon" value="1.0"/>
 <property name="what" value="signs"/><property name="draws" value="100"/><property name="p" value="0.25"/>
 <property name="mechanism" value="linf"/><property name="statistic" value="Q"/><property name="epsilon" value="1.0"/>
 <property name="what" value="order"/><property name="draws" value="100"/><property name="p" value="0.5"/>
</properties></testcase>
<testcase name="b"><properties>
 <property name="mechanism" value="rgm"/><property name="statistic" value="Q"/><property name="delta" value="0.0"/>
 <property name="claim" value="1.0"/><property name="runs" value="9"/><property name="bound" value="0.875"/>
</properties><failure message="no"/></testcase>
</testsuite></testsuites>"""


@pytest.fixture(scope="module")
def report(root: Path) -> ModuleType:
    """The script as a module."""
    spec = spec_from_file_location("report", root / "tests" / "audit" / "report.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_figures_of_a_run_become_tables(report: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "audit.xml").write_text(XML)
    figures = report.read_figures([tmp_path / "audit.xml"])
    assert [figure.get("what") for figure in figures] == ["signs", "order", None]
    assert [figure["passed"] for figure in figures] == ["yes", "yes", "NO"]
    text = report.audits(figures)
    assert "| linf | Q | 1.0 | order | 100 | 0.5 |" in text
    assert "| rgm | Q | 0.0 | mechanism | 9 | 1.0 | 0.875 |" in text
    assert "3 figures, 1 of failed tests" in report.provenance(figures)


def test_the_published_figures_are_those_of_honest_mechanisms_and_of_an_audit_that_sees(
    report: ModuleType,
) -> None:
    page = report.PAGE.read_text(encoding="utf-8")
    assert [page.count(mark) for mark in report.MARKS] == [1, 1]
    published = page.split(report.MARKS[0])[1].split(report.MARKS[1])[0]
    for part in published.split("### ")[1:]:
        title, rows = part.split("\n")[0], re.findall(r"^\| (?!---|mechanism)(.*) \|$", part, re.MULTILINE)
        for row in rows:
            *_, claim, value = row.split(" | ")
            if title.startswith("Draws"):
                assert float(value) > 1e-6
            elif "broken" in title:
                assert float(value) > float(claim)
            else:
                assert float(value) <= float(claim)
