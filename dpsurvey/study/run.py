"""Running the cells of a study: on all cores or on a cluster, resumable, with results that depend on the seed alone.

Work is handed out by joblib in small pieces, so ``joblib.parallel_config(backend="dask")`` or ray takes a study to a
cluster unchanged. Results are kept in one Parquet file a cell, written whole or not at all.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from dpsurvey.atomic import atomic_write
from dpsurvey.errors import ArgumentError, FileFormatError, MissingDependencyError
from dpsurvey.study import batch, regressions
from dpsurvey.study.cells import Cell
from dpsurvey.study.methods import answer
from dpsurvey.study.paper import SEED

_PIECE = 32  # runs handed to a worker at a time
_FORMAT = 1  # of the files; raise it when the meaning of a run changes
_KEY = b"dpsurvey.study"
# Milliseconds of a run, roughly: they only weigh the progress bar.
_COST = {
    ("Bayes-NA", 2): 1,
    ("Bayes-NA", 5): 35,
    ("Bayes-NA", 10): 180,
    ("Joint", 3): 150,
    ("Composite", 3): 15,
    ("Bayes-NA linf", 5): 35,
    ("Bayes-NA linf", 10): 180,
    ("Bayes-NA concordance", 5): 45,
    ("Bayes-NA concordance", 10): 230,
    ("Regression linf", 3): 30,
    ("Regression linf", 5): 120,
    ("Regression concordance", 3): 50,
    ("Regression concordance", 5): 220,
}


def run_cells(
    cells: Sequence[Cell],
    *,
    runs: int,
    folder: Path,
    jobs: int | None = None,
    seed: int = SEED,
    progress: bool = True,
    title: str = "study",
) -> dict[Cell, pd.DataFrame]:
    """Run every cell, or read what an earlier call in the same folder has finished.

    Parameters
    ----------
    cells : sequence of Cell
    runs : int
        Of every cell. A file that holds fewer is topped up, one that holds more is used in part.
    folder : Path
        Where the Parquet files go; made if it does not exist.
    jobs : int, optional
        Workers; by default what ``joblib.parallel_config`` says, else one.
    seed : int
    progress : bool
        Show a bar with the time left.
    title : str
        Of the bar.

    Returns
    -------
    dict of Cell to pandas.DataFrame
        Columns ``run``, ``quantity``, ``truth``, ``estimate``, ``lower``, ``upper``.

    Raises
    ------
    ArgumentError
        If `runs` is below 1, or the folder is in use by another study or holds cells of other settings.
    FileFormatError
        If a file in it is not a cell.
    MissingDependencyError
        If joblib or pyarrow is not installed.
    """
    if runs < 1:
        raise ArgumentError("runs is below 1", expected="1 or more", got=str(runs))
    _require_dependencies()
    folder.mkdir(parents=True, exist_ok=True)
    with _owned(folder):
        for stray in folder.glob(".*.part"):  # of a study that was killed while it wrote
            stray.unlink()
        found = {cell: _read(folder, cell, seed) for cell in cells}
        pieces = [
            (cell, range(start, min(start + _PIECE, runs)))
            for cell in cells
            for start in range(len(_runs_of(found[cell])), runs, _PIECE)
        ]
        _run_pieces(pieces, found, folder, jobs, seed, progress, title)
    return {cell: frame[frame["run"] < runs].reset_index(drop=True) for cell, frame in found.items()}


def _runs_of(frame: pd.DataFrame) -> range:
    return range(0 if frame.empty else int(frame["run"].iloc[-1]) + 1)


def _run_pieces(
    pieces: Sequence[tuple[Cell, range]],
    found: dict[Cell, pd.DataFrame],
    folder: Path,
    jobs: int | None,
    seed: int,
    progress: bool,
    title: str,
) -> None:
    """Compute the pieces in any order; write each cell as soon as all its pieces are there."""
    from joblib import Parallel, delayed
    from tqdm.auto import tqdm

    waiting: dict[Cell, int] = {}
    for cell, _ in pieces:
        waiting[cell] = waiting.get(cell, 0) + 1
    arrived: dict[Cell, list[pd.DataFrame]] = {cell: [found[cell]] for cell in waiting}
    total = sum(_cost(cell) * len(part) for cell, part in pieces)
    bar: tqdm[Any] = tqdm(
        total=total, desc=title, disable=not progress or not pieces,
        bar_format="{desc}: {percentage:3.0f}%|{bar}| {elapsed} gone, {remaining} left{postfix}",
    )  # fmt: skip
    pool = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    with bar:
        for place, frame in pool(delayed(_piece)(i, *piece, seed) for i, piece in enumerate(pieces)):
            cell, part = pieces[place]
            arrived[cell].append(frame)
            waiting[cell] -= 1
            if not waiting[cell]:
                found[cell] = _in_order(arrived.pop(cell))
                _write(folder, cell, found[cell], seed)
            bar.set_postfix_str(f", {sum(n == 0 for n in waiting.values())} of {len(waiting)} cells")
            bar.update(_cost(cell) * len(part))


def _piece(place: int, cell: Cell, part: range, seed: int) -> tuple[int, pd.DataFrame]:
    return place, answer(cell, part, seed)


def _in_order(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    filled = [frame for frame in frames if not frame.empty]
    return pd.concat(filled).sort_values(["run", "quantity"], kind="stable", ignore_index=True)


def _cost(cell: Cell) -> int:
    return _COST.get((cell.method, cell.p), 5)


def _settings(cell: Cell, seed: int) -> dict[str, Any]:
    """Return what the numbers of a cell depend on."""
    draws = regressions.settings() if cell.method.startswith("Regression") else batch.settings(cell.p)
    return {"format": _FORMAT, "cell": cell.name, "seed": seed, **draws}


def _write(folder: Path, cell: Cell, frame: pd.DataFrame, seed: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(frame, preserve_index=False)
    content = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({_KEY: json.dumps(_settings(cell, seed))}), content)
    with atomic_write(folder / f"{cell.name}.parquet", "wb") as file:
        file.write(content.getbuffer())


def _read(folder: Path, cell: Cell, seed: int) -> pd.DataFrame:
    """Return what a cell's file holds; an empty frame if there is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / f"{cell.name}.parquet"
    if not path.exists():
        return pd.DataFrame()
    try:
        table = pq.read_table(path, memory_map=False)
        settings = json.loads((table.schema.metadata or {})[_KEY])
    except (pa.ArrowException, KeyError, ValueError):
        raise FileFormatError(
            f"{path.name} is not a cell of a study", hint="delete it, or choose another folder"
        ) from None
    if settings != _settings(cell, seed):
        raise ArgumentError(
            f"{path.name} was made with other settings",
            expected=json.dumps(_settings(cell, seed)),
            got=json.dumps(settings),
            hint="choose another folder",
        )
    frame: pd.DataFrame = table.to_pandas()
    return frame


@contextmanager
def _owned(folder: Path) -> Iterator[None]:
    """Hold the folder for this process; the system lets go of the lock when a process dies."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / ".lock", timeout=0)
    try:
        with lock:
            yield
    except Timeout:
        raise ArgumentError(
            "another study is running in this folder", got=str(folder), hint="wait, or choose another folder"
        ) from None


def _require_dependencies() -> None:
    try:
        import joblib  # noqa: F401
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            f"studies need {error.name}", hint='install it with: pip install "dpsurvey[study]"'
        ) from None
