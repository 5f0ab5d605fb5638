"""The demo, run as ``make demo`` runs it: twice in the same folder, with everything it promises in it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dpsurvey as dps

matplotlib = pytest.importorskip(
    "matplotlib", reason="the demo draws a picture: pip install 'dpsurvey[plot]'"
)


@pytest.fixture(scope="module")
def demo(root, tmp_path_factory):
    """The folder in which the demo ran twice, and what it printed the second time."""
    folder = tmp_path_factory.mktemp("demo")
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, root / "examples" / "demo.py"],
            cwd=folder, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_it_tells_the_whole_story(demo):
    _, text = demo
    assert "3,934 of 5,265 rows are complete." in text
    assert "(confidential: for the data holder, in no release)" in text
    assert "Privacy statement" in text
    assert "with epsilon = 1" in " ".join(text.split())
    assert "Of a budget of 1.5, 1.0 is spent and 0.5 remains." in text
    assert "Bayes-NA  MLE-NN" in text
    assert "with posterior probability 95%" in text
    assert "Regression of HDL on BMI" in text
    assert "unweighted" in text
    assert "unfiltered for the quality of dietary recalls" in text
    assert "out/adults.png" in text


def test_it_leaves_a_release_a_ledger_a_posterior_and_a_picture(demo):
    folder, _ = demo
    release = dps.Release.load(folder / "out" / "adults.release.json")
    assert (release.p, release.n, release.epsilon, release.secure) == (7, 3934, 1.0, True)
    assert str(dps.Ledger.open(folder / "out" / "adults.ledger.json").remaining) == "0.5"
    posterior = dps.CorrelationPosterior.load(folder / "out" / "adults.posterior.npz")
    assert posterior.release == release
    lower, upper = posterior.interval()
    assert -0.75 < lower[5, 6] < upper[5, 6] < 0  # BMI and HDL, for any noise that may be expected
    from matplotlib.image import imread

    height, width, _ = imread(folder / "out" / "adults.png").shape
    assert width > height > 1000
    assert sorted(path.suffix for path in (folder / "out").iterdir() if path.suffix != ".lock") == [
        ".json", ".json", ".npz", ".png",
    ]  # fmt: skip
