"""Small files to train on, and the command line without its boxes and colours."""

import re
import shutil
import signal
from typing import NamedTuple

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from tierrank.cli import app
from tierrank.data import RankingData, write_letor
from tierrank.report import plots
from tierrank.report.plots import plot_curve

FEATURES = 4


class Ran(NamedTuple):
    """How a command ended, its words, and what it wrote to standard output as it is."""

    code: int
    text: str
    out: str
    err: str


@pytest.fixture(autouse=True)
def _one_thread():
    """The problems are tiny: a second thread would only wait."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def drawn_curves():
    """The curve of a training is really drawn."""


@pytest.fixture(autouse=True)
def _empty_curves(request):
    """To draw the curve takes far longer than a small training: most tests do without."""
    with pytest.MonkeyPatch.context() as patch:
        if "drawn_curves" not in request.fixturenames:
            patch.setattr(plots, "plot_curve", lambda path, *_, **__: path.write_bytes(b""))
        yield


@pytest.fixture(scope="session")
def run():
    def run(*arguments, columns=200, input=None):
        env = {"COLUMNS": str(columns), "NO_COLOR": "1"}
        result = CliRunner().invoke(app, [str(each) for each in arguments], input=input, env=env)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        plain = re.sub(r"\x1b\[[0-9;]*m", "", result.output)
        words = re.sub(r"[\s│╭╮╰╯─]+", " ", plain)
        return Ran(result.exit_code, words, result.stdout, result.stderr)

    return run


@pytest.fixture
def ctrl_c_when(monkeypatch):
    """Press it when a display is told so many times, as the keyboard does: by a signal."""

    def of(display):
        def press(look, times=1):
            seen = {"looks": 0}
            original = display.watch

            def watch(self, progress):
                original(self, progress)
                seen["looks"] += 1
                if seen["looks"] == look:
                    for _ in range(times):
                        signal.raise_signal(signal.SIGINT)

            monkeypatch.setattr(display, "watch", watch)

        return press

    yield of
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def simulated(queries, *, first=0, seed=0, features=FEATURES):
    """Rows whose grades follow a linear score, with ties and noise."""
    weights = np.random.default_rng(99).normal(size=features)
    rng = np.random.default_rng([seed, first])
    lengths = rng.integers(3, 12, size=queries)
    X = rng.normal(size=(lengths.sum(), features)).round(4)
    scores = X @ weights + rng.gumbel(size=len(X))
    y = np.digitize(scores, [-0.5, 1.0, 2.5]).astype(float)
    qid = np.repeat(np.arange(first, first + queries), lengths)
    names = tuple(f"x{column}" for column in range(features))
    return RankingData(X, y, qid, feature_names=names)


@pytest.fixture(scope="session")
def simulate():
    return simulated


def write_fold(folder):
    """Train, vali and test files in a new folder."""
    folder.mkdir()
    for first, (name, queries) in enumerate({"train": 30, "vali": 12, "test": 12}.items()):
        data = simulated(queries, first=1000 * first)
        write_letor(folder / f"{name}.txt", data.X, data.y, data.qid)
    return folder


@pytest.fixture
def fold(tmp_path):
    """A folder with train, vali and test files."""
    return write_fold(tmp_path / "fold")


@pytest.fixture(scope="session")
def train_once(run, tmp_path_factory):
    """Copy the linear model of a fold's training file with some options, trained the first time."""
    folder = tmp_path_factory.mktemp("trained")
    file = write_fold(folder / "fold") / "train.txt"
    trained = {}

    def copy(out, *options):
        if options not in trained:
            trained[options] = folder / str(len(trained))
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(plots, "plot_curve", plot_curve)
                ran = run("train", file, "--model", "linear", *options, "--out", trained[options])
            assert ran.code == 0, ran.text
        return shutil.copytree(trained[options], out)

    return copy


@pytest.fixture
def model(train_once, tmp_path):
    """A linear model that was trained on the folder."""
    return train_once(tmp_path / "model")
