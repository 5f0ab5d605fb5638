"""The paper's Table 1 in full: `make study-check`. Its p = 2 column always runs."""

import pytest

from dpsurvey.study.run import run_cells
from dpsurvey.study.studies import STUDIES
from dpsurvey.study.tables import table1

CELLS = STUDIES["table1"].cells


def check(cells, runs, folder, jobs):
    table = table1(run_cells(cells, runs=runs, folder=folder, jobs=jobs, progress=False))
    between = (table["coverage"] > table["paper_coverage"]) & (
        table["coverage"] < 95.0
    )  # see findings.table1
    off = table[~(table["length_holds"] & (table["coverage_holds"] | between))]
    assert off.empty, off.to_string()
    return table


def test_two_variables(tmp_path):
    table = check([cell for cell in CELLS if cell.p == 2], 400, tmp_path, 1)
    assert len(table) == 25
    assert table["length_ratio"].median() == pytest.approx(1.0, abs=0.01)


@pytest.mark.slow
def test_all_49_cells(tmp_path):
    """Some 30 minutes of CPU."""
    table = check(CELLS, 1000, tmp_path, -1)
    assert len(table) == 49
    assert table["length_ratio"].median() == pytest.approx(1.0, abs=0.015)
