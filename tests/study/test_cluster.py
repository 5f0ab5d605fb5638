"""A dask cluster takes a study unchanged: ``joblib.parallel_config(backend="dask")``."""

import contextlib
import subprocess
import sys

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


@contextlib.contextmanager
def cluster(folder, workers):
    """A scheduler here and `workers` processes of their own, as on a real cluster.

    The workers are started as a user starts them, by dask's command line, without a nanny: a
    busy machine may be slow to start them, and what they printed is in the failure.
    """
    log = folder / "workers.log"
    with (
        log.open("w") as out,
        distributed.LocalCluster(
            n_workers=0, host="127.0.0.1", dashboard_address=None, local_directory=str(folder)
        ) as scheduler,
        contextlib.ExitStack() as processes,
    ):
        command = [sys.executable, "-m", "dask", "worker", scheduler.scheduler_address]
        command += ["--no-nanny", "--nthreads", "1", "--memory-limit", "0", "--no-dashboard"]
        command += ["--local-directory", str(folder)]
        for _ in range(workers):
            worker = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
            processes.callback(worker.wait)
            processes.callback(worker.terminate)
        with distributed.Client(scheduler, timeout=60) as client:
            try:
                client.wait_for_workers(workers, timeout=180)
            except TimeoutError:
                pytest.fail(f"no {workers} workers after 180 s; they printed:\n{log.read_text()}")
            yield


def test_a_local_dask_cluster_gives_the_same_bytes(small_cells, tmp_path):
    run_cells(small_cells, runs=40, folder=tmp_path / "here", seed=5, progress=False)
    (tmp_path / "scratch").mkdir()
    with cluster(tmp_path / "scratch", workers=2), joblib.parallel_config(backend="dask"):
        run_cells(small_cells, runs=40, folder=tmp_path / "there", seed=5, progress=False)
    for path in (tmp_path / "here").glob("*.parquet"):
        assert path.read_bytes() == (tmp_path / "there" / path.name).read_bytes()
