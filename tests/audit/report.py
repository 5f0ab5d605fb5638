"""Write the figures of the long audits into docs/results/trust.md, between its two marks.

Run ``python tests/audit/report.py``: it runs the long audits (some 40 minutes of processor time) and rewrites the part;
``python tests/audit/report.py FILE...`` takes the JUnit files of runs made before with
``pytest -m slow tests/audit -o junit_family=xunit1 --junitxml=FILE``.
"""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "results" / "trust.md"
MARKS = "<!-- audits: written by tests/audit/report.py -->\n", "<!-- end of audits -->\n"
Figures = dict[str, str]


def read_figures(files: Iterable[Path]) -> list[Figures]:
    """Return what each test noted, one record a figure; "passed" says whether its test did.

    A test may note a name several times: then one record for each time.
    """
    found = []
    for file in files:
        for case in ElementTree.parse(file).iter("testcase"):
            notes: list[Figures] = []
            for item in case.iter("property"):
                if not notes or item.attrib["name"] in notes[-1]:
                    notes.append({})
                notes[-1][item.attrib["name"]] = item.attrib["value"]
            passed = case.find("failure") is None and case.find("error") is None
            found += [{**note, "passed": "yes" if passed else "NO"} for note in notes]
    return found


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def audits(figures: list[Figures]) -> str:
    """Return the three tables: draws against their law, honest mechanisms and doors, broken ones."""
    laws = [f for f in figures if "p" in f]
    bounds = [f for f in figures if "bound" in f]
    honest, broken = ([f for f in bounds if ("broken" in f) == is_broken] for is_broken in (False, True))
    text = "### Draws against their law\n\n" + table(
        ("mechanism", "statistic", "epsilon", "what", "draws", "chi-square p-value"),
        [
            (f["mechanism"], f["statistic"], f["epsilon"], f["what"], f["draws"], f"{float(f['p']):.2g}")
            for f in laws
        ],
    )
    text += "\n### What outputs on two neighbours prove about epsilon\n\n" + table(
        ("mechanism", "statistic", "delta", "through", "runs", "epsilon claimed", "lower bound"),
        [(f["mechanism"], f["statistic"], f["delta"], f.get("door", "mechanism"), f["runs"], f["claim"],
          f"{float(f['bound']):.3f}") for f in honest],
    )  # fmt: skip
    return (
        text
        + "\n### The same of mechanisms broken on purpose\n\n"
        + table(
            ("mechanism", "statistic", "what is wrong", "runs", "epsilon claimed", "lower bound"),
            [
                (
                    f["mechanism"],
                    f["statistic"],
                    f["broken"],
                    f["runs"],
                    f["claim"],
                    f"{float(f['bound']):.3f}",
                )
                for f in broken
            ],
        )
    )


def provenance(figures: list[Figures]) -> str:
    """Return the commit, the versions and how many tests the figures are from."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in ("dpsurvey", "numpy", "opendp")
    )
    failed = sum(f["passed"] == "NO" for f in figures)
    return (
        f"Made by `python tests/audit/report.py` at commit {commit.stdout.strip()}, {versions}, Python "
        f"{platform.python_version()}: {len(figures)} figures, {failed} of failed tests.\n\n"
    )


def main(files: Sequence[str]) -> None:
    """Run the long audits unless their files are given, and rewrite the page."""
    with tempfile.TemporaryDirectory() as folder:
        made = [Path(file) for file in files]
        if not made:
            made = [Path(folder) / "audit.xml"]
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-m",
                "slow",
                "tests/audit",
                "-o",
                "junit_family=xunit1",
            ]
            subprocess.run([*command, f"--junitxml={made[0]}"], cwd=ROOT, check=False)
        figures = read_figures(made)
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    PAGE.write_text(
        before + MARKS[0] + "\n" + provenance(figures) + audits(figures) + "\n" + MARKS[1] + after,
        encoding="utf-8",
    )


if __name__ == "__main__":
    main(sys.argv[1:])
