"""A dask cluster takes a study unchanged: ``joblib.parallel_config(backend="dask")``."""

import joblib
import pytest

from dpsurvey.study.run import run_cells

distributed = pytest.importorskip(
    "distributed", reason="the development dependency distributed is not installed"
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the cluster's own event loops
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_a_local_dask_cluster_gives_the_same_bytes(small_cells, tmp_path):
    run_cells(small_cells, runs=40, folder=tmp_path / "here", seed=5, progress=False)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None,
            memory_limit="1GiB", local_directory=str(tmp_path / "scratch"),
        ) as cluster,
        distributed.Client(cluster, timeout=60),
        joblib.parallel_config(backend="dask"),
    ):  # fmt: skip
        run_cells(small_cells, runs=40, folder=tmp_path / "there", seed=5, progress=False)
    for path in (tmp_path / "here").glob("*.parquet"):
        assert path.read_bytes() == (tmp_path / "there" / path.name).read_bytes()
