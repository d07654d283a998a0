"""`tierrank aggregate` on a Dask cluster."""

import json
import os
import signal
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest

from dask_server import served
from tierrank.cli import options
from tierrank.cli.progress import FitDisplay

pytest.importorskip("distributed")
pytest.importorskip("pyarrow")


def races():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"race": np.repeat(np.arange(60), 4), "place": np.tile([1, 2, 2, 3], 60)})
    frame["driver"] = np.concatenate([rng.choice(list("abcdef"), 4, False) for _ in range(60)])
    return frame.sample(frac=1, random_state=0)


@pytest.mark.slow
def test_workers_that_it_starts_count_lists_over_files(run, tmp_path):
    whole = races()
    whole.to_parquet(tmp_path / "all.parquet", index=False)
    (tmp_path / "parts").mkdir()
    for number in range(3):
        part = whole.iloc[80 * number : 80 * (number + 1)]  # which cuts races in two
        part.to_parquet(tmp_path / "parts" / f"{number}.parquet", index=False)
    found = {}
    for name, file, more in (
        ("one", tmp_path / "all.parquet", ()),
        ("two", tmp_path / "parts", ("--workers", "2")),
    ):
        ran = run(
            "aggregate", file, *more, "--list", "race", "--item", "driver", "--rank", "place",
            "--json", tmp_path / f"{name}.json", "--out", tmp_path / f"{name}.html",
        )  # fmt: skip
        assert ran.code == 0, ran.text
        assert ("Dask workers here" in ran.text) == bool(more)
        rows = json.loads((tmp_path / f"{name}.json").read_text())["results"]
        found[name] = {row["item"]: (row["log_worth"], row["standard_error"]) for row in rows}
    assert set(found["one"]) == set(found["two"]) == set("abcdef")
    for item, numbers in found["one"].items():
        assert found["two"][item] == pytest.approx(numbers, abs=1e-9)


def test_a_cluster_and_the_start_of_one_are_not_asked_for_together(run, tmp_path):
    races().to_parquet(tmp_path / "all.parquet")
    ran = run(
        "aggregate", tmp_path / "all.parquet", "--workers", "2", "--dask", "tcp://127.0.0.1:1"
    )
    assert ran.code != 0
    assert "give one of them" in ran.text


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--format", "csv"), "--format is not for a cluster"),
        (("--strict",), "--strict is not for a cluster"),
        (("--separator", ";"), "--separator is not for a cluster"),
        (("--by", "race"), "--by, --time or --clusters: lists on a cluster have no columns beside"),
        (("--covariate", "place"), "--covariate: lists on a cluster have no columns beside them"),
    ],
)
def test_what_is_not_for_a_cluster_is_refused_by_name(run, tmp_path, monkeypatch, more, said):
    monkeypatch.setattr(options.Cluster, "client", lambda self: nullcontext("a client"))
    races().to_parquet(tmp_path / "all.parquet")
    ran = run("aggregate", tmp_path / "all.parquet", "--workers", "1", *more)
    assert ran.code == 1
    assert said in ran.text
    ran = run("aggregate", "-", "--workers", "1")
    assert ran.code == 1
    assert "- is read by one process" in ran.text


def test_a_cluster_that_is_not_there(run, tmp_path, monkeypatch):
    monkeypatch.setattr(options, "ANSWER", 1)
    races().to_parquet(tmp_path / "all.parquet")
    ran = run(
        "aggregate", tmp_path / "all.parquet", "--dask", "tcp://127.0.0.1:1", "--json",
        tmp_path / "out.json",
    )  # fmt: skip
    assert ran.code == 1
    assert "tcp://127.0.0.1:1: no Dask scheduler answered within 1 s" in ran.text
    assert not (tmp_path / "out.json").exists()


@pytest.mark.slow
def test_a_scheduler_that_dies_leaves_nothing_half_written(run, tmp_path, monkeypatch):
    monkeypatch.setattr("tierrank.data.rankings.container.FEW", 0)
    monkeypatch.setattr("tierrank.data.rankings.reading.FEW", 0)
    races().to_parquet(tmp_path / "all.parquet")
    shown = FitDisplay.watch
    with served(tmp_path) as (server, address):

        def watch(display, progress):
            os.killpg(server.pid, signal.SIGKILL)
            shown(display, progress)

        monkeypatch.setattr(FitDisplay, "watch", watch)
        ran = run(
            "aggregate", tmp_path / "all.parquet", "--dask", address, "--list", "race", "--item",
            "driver", "--rank", "place", "--json", tmp_path / "out.json", "--save",
            tmp_path / "model",
        )  # fmt: skip
    assert ran.code == 1
    assert "the scheduler of the Dask cluster is gone" in ran.text
    assert not (tmp_path / "out.json").exists()
    assert not (tmp_path / "model").exists()
